"""The Ascend side of a machine: what is there, what is wrong, and what helps."""

from __future__ import annotations

import getpass
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from desktop.client import interpreter
from desktop.doctor import ascend_experts, ascend_host, ascend_smi
from desktop.doctor import ascend_problems as problems
from desktop.doctor.ascend_experts import Experts
from desktop.doctor.ascend_host import Host, Looker
from desktop.doctor.ascend_smi import Npu, Npus
from desktop.doctor.layout import size
from desktop.doctor.machine import Machine
from desktop.engines.ascend import experts as moe_experts
from desktop.engines.ascend import places, support
from desktop.engines.ascend.environment import VISIBLE, Stack
from desktop.engines.ascend.problems import errors
from desktop.engines.ascend.support import Installed, Level, Model, Verdict
from desktop.engines.vllm.devices import needed
from desktop.engines.vllm.failures import TooFewDevices
from desktop.errors import Problem, VersoError
from desktop.i18n import _
from desktop.settings import Values

ENGINES = ("ascend", "ascend-legacy")
_WITHOUT_BF16 = ("310", "910A", "910PRO", "910PREMIUM")
"""Names of chips, in capitals, that know no bfloat16: the inference cards, the first 910."""
_ILL = ("ALARM", "CRITICAL")
"""Words of npu-smi for a card that is not to be used; Warning, UNKNOWN and others may work."""
_LEAST = 12 << 30
"""Bytes of HBM below which it makes no sense to try: weights (6.8 GB), work, some cache."""


@dataclass(frozen=True)
class Report:
    """What was found. PROBLEMS keep an engine from running on an NPU; WARNINGS may."""

    host: Host
    npus: Npus
    versions: tuple[Verdict, ...]
    chosen: tuple[int, ...] = ()
    """Numbers of the NPUs that an engine would use, as programs count; empty: none."""
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    of_npus: tuple[tuple[int, Problem], ...] = ()
    """Those of them that are about one NPU, with its number."""
    experts: Experts | None = None
    """Whether the MoE patch is needed, asked of the packages; None: they are not all there."""

    @property
    def well(self) -> bool:
        """Whether nothing was found that keeps an engine from running."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """As ``resources/schema/doctor.schema.json`` describes it."""
        host = self.host
        toolkit = host.environment.places.toolkit
        return {
            "well": self.well,
            "problems": [_plain(problem) for problem in self.problems],
            "warnings": [_plain(problem) for problem in self.warnings],
            "nodes": {"numbers": list(host.nodes.numbers), "missing": list(host.nodes.missing),
                      "forbidden": list(host.nodes.forbidden)},
            "driver": {"folder": host.driver_folder,
                       "version": self.npus.driver or host.driver_version},
            "cann": {"folder": toolkit.path if toolkit else "",
                     "version": toolkit.version if toolkit else ""},
            "atb": host.environment.places.atb,
            "npu_smi": self.npus.tool,
            "npus": [_npu(npu, npu.visible in self.chosen) for npu in self.npus.found],
            "versions": [{"what": each.what, "found": each.found, "wanted": each.wanted,
                          "level": each.level.value, "why": each.why, "fix": each.fix}
                         for each in self.versions],
            "libraries": [{"name": each.name, "part": each.part, "path": each.path}
                          for each in host.libraries],
            "experts": None if self.experts is None else {
                "state": self.experts.state, "reason": self.experts.reason},
            "unset": list(host.unset),
            "shared_memory": host.shared_memory,
        }


def asked_for(values: Values) -> bool:
    """Whether the settings choose an engine for NPUs."""
    return str(values["engine"]) in ENGINES


def present(reports: Sequence[interpreter.Report] = (),
            environ: Mapping[str, str] | None = None, root: str = "") -> bool:
    """Whether anything of Ascend is on this machine: a node, npu-smi, CANN, torch-npu in one of
    the interpreters of REPORTS. Takes a millisecond; nothing is started."""
    looker = Looker(os.environ if environ is None else environ, root)
    if any("torch-npu" in report.versions for report in reports):
        return True
    return (ascend_host.nodes(looker).any or bool(_tool(looker))
            or places.find(ascend_host.search(looker)).toolkit is not None)


def look(values: Values, machine: Machine, report: interpreter.Report | None = None, *,
         environ: Mapping[str, str] | None = None, root: str = "",
         weights_complete: bool = False) -> Report:
    """Examine everything; raises nothing. REPORT: the interpreter that runs the engine; None
    asks the one of the settings. Blocks for as long as npu-smi, ldd and that one take, each of
    which has a limit. WEIGHTS_COMPLETE: the model is there, so that no room is needed for it.
    """
    looker = Looker(os.environ if environ is None else environ, root)
    if report is None:
        report = interpreter.examine(str(values["engine_interpreter"]))
    host = ascend_host.look(looker, _stack(report), _folder(report, "torch-npu"))
    npus = _npus(looker, host)
    toolkit = host.environment.places.toolkit
    versions = support.judge(Installed(
        report.versions.get("vllm-ascend", ""), report.versions.get("vllm", ""), report.python,
        toolkit.version if toolkit else "", report.versions.get("torch", ""),
        report.versions.get("torch-npu", ""), report.versions.get("transformers", ""),
        npus.driver or host.driver_version))
    chosen, missing = _chosen(values, npus, looker.environ)
    experts = _experts(report, host)
    versions = _with_experts(_with_other_toolkit(versions, host, report), experts)
    absent = errors(host.environment.places)
    fatal = sum(each.fatal for each in host.environment.places.missing)
    of_chosen, of_others = list(_of_npus(values, npus, chosen)), list(_other_npus(npus, chosen))
    wrong = [*(error.problem() for error in (
        *absent[:fatal], *_libraries(host), *_devices(host, npus))),
        *([npus.problem] if npus.problem is not None else []),
        *(error.problem() for error in (
            *missing, *of_chosen, *_versions(versions, Level.PROBLEM),
            *_engine(values, report))),
        *([experts.problem] if experts is not None and experts.problem is not None else [])]
    warned = [*(error.problem() for error in (
        *absent[fatal:], *of_others, *_versions(versions, Level.WARNING),
        *_variables(values, host), *_machine(machine, host, weights_complete))),
        *([experts.warning] if experts is not None and experts.warning is not None else []),
        *(error.problem() for error in _lacking(values, report, host))]
    return Report(host, npus, versions, tuple(npu.visible for npu in chosen), tuple(wrong),
                  tuple(warned), tuple((int(error.values["number"]), error.problem())
                                       for error in (*of_chosen, *of_others)), experts)


def engine_for(ascend: str) -> str:
    """The engine that vllm-ascend of this version runs with: a name of :data:`ENGINES`, empty
    where it is not known or there is none."""
    found = support.row(ascend) if ascend else None
    if found is None or found.model is Model.NONE:
        return ""
    return ENGINES[1] if found.model is Model.OFFICIAL else ENGINES[0]


def _engine(values: Values, report: interpreter.Report) -> Iterator[VersoError]:
    """Whether the chosen engine is the one for the installed vllm-ascend."""
    version = report.versions.get("vllm-ascend", "")
    right = engine_for(version)
    if right and asked_for(values) and str(values["engine"]) != right:
        yield problems.OtherEngine(version=version, engine=str(values["engine"]), right=right)


def _experts(report: interpreter.Report, host: Host) -> Experts | None:
    if not all(name in report.versions for name in ("vllm", "vllm-ascend", "torch-npu")):
        return None
    return ascend_experts.look(report.path, host.environment,
                               can_start=host.environment.places.can_start)


def _lacking(values: Values, report: interpreter.Report, host: Host) -> tuple[VersoError, ...]:
    """What the MoE patch warns of by the names of packages, where an NPU is to be used."""
    if not report.python or not (host.nodes.any or str(values["engine"]) == "ascend"):
        return ()
    return moe_experts.missing(lambda module: module.replace("_", "-") in report.versions)


def _with_other_toolkit(versions: tuple[Verdict, ...], host: Host,
                        report: interpreter.Report) -> tuple[Verdict, ...]:
    """Where the right toolkit is here too, and a variable names the wrong one: nothing is to be
    installed."""
    named, fitting = host.environment.places.toolkit, support.row(
        report.versions.get("vllm-ascend", ""))
    if named is None or not named.source or fitting is None:
        return versions
    other = next((each for each in host.environment.places.toolkits if support.cann_key(
        each.version) == support.cann_key(fitting.cann)), None)
    if other is None:
        return versions
    fix = _("{name} names this one, and {version} is at {path}: unset {name}, or name that."
            ).format(name=named.source, version=other.version, path=other.path)
    return tuple(replace(each, fix=fix) if each.what == "cann" and each.why else each
                 for each in versions)


def _with_experts(versions: tuple[Verdict, ...], experts: Experts | None) -> tuple[Verdict, ...]:
    """What the packages say, in place of what the table says of their versions."""
    if experts is None or experts.state == ascend_experts.UNKNOWN:
        return versions
    level = Level.GOOD if experts.problem is None else Level.PROBLEM
    if not any(each.what == "moe" for each in versions):
        return (*versions, Verdict("moe", experts.words, "", level))
    return tuple(replace(each, found=experts.words, level=level) if each.what == "moe" else each
                 for each in versions)


def _stack(report: interpreter.Report) -> Stack:
    """What the interpreter of REPORT has of the NPU's stack."""
    versions = report.versions
    return Stack(versions.get("vllm-ascend", ""), versions.get("vllm", ""),
                 versions.get("torch", ""), versions.get("torch-npu", ""),
                 _folder(report, "torch"), _folder(report, "vllm-ascend"))


def _folder(report: interpreter.Report, package: str) -> str:
    if package not in report.versions:
        return ""
    return ascend_host.package_folder(report.prefix, package.replace("-", "_"))


# --- what is wrong


def _tool(looker: Looker) -> str:
    return ascend_smi.find(looker.environ, tuple(
        str(looker.at(place)) for place in ascend_smi.PLACES))


def _npus(looker: Looker, host: Host) -> Npus:
    """Ask npu-smi with the libraries on its path, whatever this shell has, and of all NPUs: its
    numbers would be other ones among those that this shell leaves."""
    tool = _tool(looker)
    if not tool:
        return Npus()
    variables = {**looker.environ, "LD_LIBRARY_PATH": ":".join(host.searched)}
    variables.pop(VISIBLE, None)
    return ascend_smi.look(tool, variables)


def _devices(host: Host, npus: Npus) -> Iterator[VersoError]:
    nodes = host.nodes
    if not nodes.numbers:
        yield problems.NoNode(folder=nodes.folder)
    elif nodes.missing:
        yield problems.NoControlNode(
            nodes=", ".join(nodes.missing), folder=nodes.folder,
            options=" ".join(f"--device /dev/{name}" for name in nodes.missing))
    if nodes.forbidden:
        yield problems.NodeForbidden(
            nodes=", ".join(f"{nodes.folder}/{name}" for name in nodes.forbidden),
            user=_user(), group=nodes.group)
    if not npus.tool and nodes.any:
        yield problems.NoSmi(places=", ".join(ascend_smi.PLACES))


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        return str(os.getuid())


def _libraries(host: Host) -> Iterator[VersoError]:
    """Those that the search for places does not ask for."""
    if host.environment.places.toolkit is None:
        return
    missing = [each.name for each in host.libraries if each.part == "CANN" and not each.path]
    for name in missing:
        yield problems.LibraryMissing(library=name, places=", ".join(host.searched))
    lacking = [name for name in host.torch_lacks if name not in missing]
    if lacking and host.environment.places.can_start:
        yield problems.LibraryOfTorch(libraries=", ".join(lacking),
                                      places=", ".join(host.searched))


def _chosen(values: Values, npus: Npus, environment: Mapping[str, str],
            ) -> tuple[list[Npu], list[VersoError]]:
    """The NPUs that an engine would use: those of the settings, else of the variable, else as
    many of the first as run the model together; and what keeps it from having them."""
    said = str(values["devices"]).replace(" ", "") or environment.get(VISIBLE, "")
    count = needed(values.as_dict())
    if npus.problem is not None or not npus.found:
        return [], []
    there, missing = list(npus.found), list[VersoError]()
    if said:
        by_number = {npu.visible: npu for npu in npus.found}
        numbers = [int(part) for part in said.split(",") if part.isdecimal()]
        there = [by_number[number] for number in numbers if number in by_number]
        missing = [problems.NotChosenThere(number=number,
                                           there=", ".join(map(str, sorted(by_number))))
                   for number in numbers if number not in by_number]
        if len(set(numbers)) < len(numbers):  # named twice: a program sees none
            there = []
    if not missing and len(there) < count:
        missing.append(TooFewDevices(needed=count, count=len(there)))
    return there[:count], missing


def _of_npus(values: Values, npus: Npus, chosen: Sequence[Npu]) -> Iterator[VersoError]:
    share = float(values["memory_utilization"])
    for npu in chosen:
        if npu.health.upper() in _ILL:
            yield _unhealthy(npu)
        if npu.name.upper().removeprefix("ASCEND").startswith(_WITHOUT_BF16):
            yield problems.NotForThis(number=npu.visible, name=npu.name)
        if npu.total and npu.free < share * npu.total:
            fits = int(npu.free / npu.total * 100 - 1) / 100
            enough = fits * npu.total >= _LEAST
            yield problems.Full(
                number=npu.visible, name=npu.name, free=size(npu.free), total=size(npu.total),
                needed=size(round(share * npu.total)),
                lower=_(", or lower “Memory utilization” (--memory-utilization) to {share}").format(
                    share=f"{fits:g}") if enough else "",
                fix=(("memory_utilization", fits),) if enough else (),
                holders=", ".join(f"{holder.name or _('process')} {holder.pid} "
                                  f"({size(holder.bytes)})" for holder in npu.holders)
                or _("nobody that npu-smi may name (perhaps another container)"))


def _other_npus(npus: Npus, chosen: Sequence[Npu]) -> Iterator[VersoError]:
    for npu in npus.found:
        if not npu.well and (npu not in chosen or npu.health.upper() not in _ILL):
            yield _unhealthy(npu)


def _unhealthy(npu: Npu) -> VersoError:
    return problems.Unhealthy(number=npu.visible, name=npu.name, health=npu.health or "?",
                              card=npu.card, chip=npu.chip)


def _versions(verdicts: Sequence[Verdict], level: Level) -> Iterator[VersoError]:
    for each in verdicts:
        if each.level is level and each.why:
            yield problems.WrongVersion(why=each.why, way_out=each.fix)


def _variables(values: Values, host: Host) -> Iterator[VersoError]:
    if host.unset:
        asked = str(values["engine_interpreter"])
        command = ["verso", "doctor", "--print-env",
                   *(("--engine-interpreter", asked) if asked else ())]
        yield problems.NotSet(names=", ".join(host.unset), command=shlex.join(command))


def _machine(machine: Machine, host: Host, weights_complete: bool) -> Iterator[VersoError]:
    for disk in machine.disks:
        # Where the model is or will be; what is there already needs no room.
        if disk.what == "models" and 0 <= disk.free < support.DISK_BYTES and not weights_complete:
            yield problems.LittleDisk(path=disk.path, free=size(disk.free),
                                      needed="50 GB")
    total = min(machine.memory_total, machine.memory_limit or machine.memory_total)
    if 0 < total < support.MEMORY_BYTES:
        yield problems.LittleMemory(total=size(total), needed="32 GB")
    if 0 <= host.shared_memory < support.SHARED_MEMORY_BYTES:
        yield problems.LittleShared(path="/dev/shm", size=size(host.shared_memory))


def _plain(problem: Problem) -> dict[str, str]:
    return {"code": problem.code, "message": problem.message, "hint": problem.hint}


def _npu(npu: Npu, chosen: bool) -> dict[str, Any]:
    return {
        "number": npu.visible, "node": npu.number, "card": npu.card, "chip": npu.chip,
        "name": npu.name, "health": npu.health, "chosen": chosen,
        "memory": {"total": npu.total, "free": npu.free}, "busy": npu.busy,
        "processes": [{"pid": holder.pid, "name": holder.name, "memory": holder.bytes}
                      for holder in npu.holders]}
