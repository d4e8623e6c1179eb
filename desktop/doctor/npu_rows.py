"""The rows about NPUs, and the code that was prepared for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from desktop.doctor import ascend
from desktop.doctor.ascend import Report
from desktop.doctor.ascend_smi import Npu
from desktop.doctor.diagnosis import Diagnosis
from desktop.doctor.engines import Examination
from desktop.doctor.layout import size
from desktop.doctor.marks import Mark, Row, worst
from desktop.doctor.prepared import Prepared
from desktop.engines.ascend.support import TITLES, Level, Verdict
from desktop.errors import Problem
from desktop.i18n import _

Told = Sequence[tuple[Mark, Problem]]

_NODES = ("ascend.no_device", "ascend.no_control_node", "ascend.forbidden")
_SMI = ("ascend.no_smi", "ascend.smi_silent", "ascend.smi_library", "ascend.refused",
        "ascend.occupied", "ascend.smi")
_DRIVER = ("ascend.environment.driver", "ascend.environment.driver_library")
_CANN = ("ascend.environment.toolkit", "ascend.environment.machine", "ascend.environment.modules",
         "ascend.environment.kernels")
_NNAL = ("ascend.environment.atb", "ascend.environment.atb_abi")
_LIBRARIES = ("ascend.toolkit_library", "ascend.torch_library")
_VARIABLES = ("ascend.not_set", "ascend.environment.variable")
_LACKING = "ascend.experts."
"""Begins the codes of what the MoE patch lacks; a package's name follows."""
_EXPERTS = ("ascend.experts", "ascend.package", "ascend.experts_unknown",
            "ascend.experts.torch_npu", "ascend.experts.vllm_ascend", "ascend.experts.vllm")
_MARKS = {Level.GOOD: Mark.GOOD, Level.WARNING: Mark.DOUBT, Level.PROBLEM: Mark.WRONG}


def rows(found: Diagnosis, told: Told,
         engine: Callable[[Examination], Iterator[Row]]) -> Iterator[Row]:
    """TOLD: the problems and warnings of the NPUs' side that are not the machine's own. ENGINE
    makes the rows of an engine."""
    report = found.ascend
    if report is None:
        yield Row(_("Devices"), _("No Ascend NPU."), Mark.NOTE, word=_("none"))
    else:
        yield from _Rows(report, told).all()
    for each in found.engines:
        if each.entry.name in ascend.ENGINES:
            yield from engine(each)
    if found.prepared is not None:
        yield _prepared(found.prepared)


class _Rows:
    """Makes the rows of REPORT; each of TOLD is used once, what no row is for gets its own."""

    def __init__(self, report: Report, told: Told) -> None:
        self._report = report
        self._left = list(told)

    def all(self) -> Iterator[Row]:
        """All of them, in the order in which things depend on each other."""
        report, host = self._report, self._report.host
        nodes, places = host.nodes, host.environment.places
        names = [f"davinci{number}" for number in nodes.numbers]
        yield self._row(_("Device nodes"), ", ".join(names) or _("none"), _NODES)
        yield self._row(_("Driver"), _part(
            report.npus.driver or host.driver_version, host.driver_folder), _DRIVER)
        yield self._row("npu-smi", report.npus.tool or _("not found"), _SMI,
                        Mark.GOOD if report.npus.tool else Mark.NOTE)
        for npu in report.npus.found:
            yield self._npu(npu)
        toolkit = places.toolkit
        yield self._cann(_part(toolkit.version, toolkit.path) if toolkit else _("not found"))
        yield self._row("NNAL", places.atb or _("not found"), _NNAL,
                        Mark.GOOD if places.atb else Mark.NOTE)
        libraries = [each for each in host.libraries if each.path]
        yield self._row(_("Libraries"), ", ".join(each.name for each in libraries)
                        or _("none found"), _LIBRARIES,
                        Mark.GOOD if len(libraries) == len(host.libraries) else Mark.NOTE)
        yield self._row(_("Variables"), _("set in this shell") if not host.unset else
                        _("not set here: {names}").format(names=", ".join(host.unset)), _VARIABLES)
        if host.shared_memory >= 0:
            yield self._row(_("Shared memory"), size(host.shared_memory),
                            ("ascend.shared_memory",))
        for verdict in report.versions:
            if verdict.what not in ("cann", "driver"):  # those have rows above
                yield self._version(verdict)
        lacking = self._take([problem.code for _mark, problem in self._left
                              if problem.code.startswith(_LACKING)])
        if lacking:  # of a package whose own row is not there
            yield Row(_(TITLES["moe"]), _("cannot be put in place"),
                      worst(mark for mark, _problem in lacking),
                      tuple(problem for _mark, problem in lacking))
        if any(problem.code in _EXPERTS for _mark, problem in self._left):
            # There is no verdict of versions for it where vllm-ascend is missing.
            yield self._row(_(TITLES["moe"]), _("not known"), _EXPERTS)
        for mark, problem in self._left:
            if problem.code != "ascend.version":  # those stand at their rows
                yield Row(_("Else"), "", mark, (problem,))

    def _take(self, codes: Sequence[str]) -> list[tuple[Mark, Problem]]:
        taken = [each for each in self._left if each[1].code in codes]
        self._left = [each for each in self._left if each[1].code not in codes]
        return taken

    def _row(self, title: str, text: str, codes: Sequence[str], mark: Mark = Mark.GOOD) -> Row:
        taken = self._take(codes)
        return Row(title, text, worst(each for each, _problem in taken) if taken else mark,
                   tuple(problem for _mark, problem in taken))

    def _cann(self, text: str) -> Row:
        """Where it is, and whether its version is that of the table."""
        verdict = next((each for each in self._report.versions if each.what == "cann"), None)
        row = self._row("CANN", text, _CANN)
        if verdict is None:
            return row
        judged = self._version(verdict)
        wanted = "" if verdict.level is Level.GOOD or not verdict.wanted else _(
            " (wanted: {version})").format(version=verdict.wanted)
        return replace(row, found=text + wanted, mark=worst((row.mark, judged.mark)),
                       problems=(*row.problems, *judged.problems))

    def _npu(self, npu: Npu) -> Row:
        mine = {problem for number, problem in self._report.of_npus if number == npu.visible}
        taken = [each for each in self._left if each[1] in mine]
        self._left = [each for each in self._left if each not in taken]
        text = _("{name}, {health}, {free} free of {total}").format(
            name=npu.name, health=npu.health, free=size(npu.free), total=size(npu.total))
        if npu.busy is not None:
            text += _(", {n} % busy").format(n=npu.busy)
        if npu.visible in self._report.chosen:
            text += _(" – the one to be used")
        return Row(_("NPU {number}").format(number=npu.visible), text,
                   worst(mark for mark, _problem in taken) if taken else Mark.GOOD,
                   tuple(problem for _mark, problem in taken), tuple(
                       _("used by {name} {pid}: {memory}").format(
                           name=holder.name or _("process"), pid=holder.pid,
                           memory=size(holder.bytes)) for holder in npu.holders))

    def _version(self, verdict: Verdict) -> Row:
        text = verdict.found or _("not installed")
        if verdict.wanted and verdict.level is not Level.GOOD:
            text += _(" (wanted: {version})").format(version=verdict.wanted)
        problems = tuple(problem for _mark, problem in self._left
                         if problem.code == "ascend.version" and problem.message == verdict.why)
        mark = _MARKS[verdict.level]
        lacking = self._take([_LACKING + verdict.what.replace("-", "_")])
        problems += tuple(problem for _mark, problem in lacking)
        mark = worst([mark, *(each for each, _problem in lacking)])
        if verdict.what == "moe":
            taken = self._take(_EXPERTS)
            problems += tuple(problem for _mark, problem in taken)
            mark = worst([mark, *(each for each, _problem in taken)])
        title = _("Model code") if verdict.what == "model" else _(TITLES[verdict.what])
        return Row(title, text, mark, problems)


def _part(version: str, folder: str) -> str:
    return ", ".join(filter(None, (version, folder))) or _("not found")


def _prepared(found: Prepared) -> Row:
    mark = (Mark.WRONG if found.problems else Mark.DOUBT if found.warnings else Mark.GOOD)
    text = _("{folder}: patch and environment in place").format(folder=found.folder) \
        if found.well else found.folder
    notes = (_("changed since: {files}").format(files=", ".join(found.touched)),) \
        if found.well and found.touched else ()
    return Row(_("Prepared code"), text, mark, (*found.problems, *found.warnings), notes)
