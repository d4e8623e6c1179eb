"""The whole examination, as an object and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from desktop import __version__
from desktop.doctor import ascend, engines, machine, prepared
from desktop.doctor.engines import Examination
from desktop.doctor.gpus import Gpus
from desktop.doctor.prepared import Prepared
from desktop.engines.remote.probe import Report as ServerReport
from desktop.errors import Problem
from desktop.i18n import _
from desktop.jobs.starts import Start
from desktop.settings import Values


@dataclass(frozen=True)
class Diagnosis:
    """What was found. SETTINGS: what is wrong with the settings file."""

    machine: machine.Machine
    engines: tuple[Examination, ...]
    chosen: str
    """The engine of the settings."""
    settings: tuple[Problem, ...] = ()
    ascend: ascend.Report | None = None
    """What of Ascend is there; None: nothing, and no engine for it is chosen."""
    prepared: Prepared | None = None
    """The code that ``verso prepare-npu`` made; None: none was named, and none lies here."""

    def starts(self, found: Examination) -> bool:
        """Whether nothing keeps this engine from starting, the NPUs included."""
        return found.can_start and not (
            found.entry.name in ascend.ENGINES and self.ascend is not None
            and not self.ascend.well)

    @property
    def can_start(self) -> bool:
        """Whether nothing keeps the chosen engine from starting."""
        if self.ascend is not None and not self.ascend.well and self.chosen in ascend.ENGINES:
            return False
        return any(found.can_start for found in self.engines if found.entry.name == self.chosen)

    @property
    def well(self) -> bool:
        """Whether the chosen engine can start, and the prepared code that was named can run."""
        return self.can_start and (
            self.prepared is None or self.prepared.well or not self.prepared.asked)

    def as_dict(self) -> dict[str, Any]:
        """As ``resources/schema/doctor.schema.json`` describes it."""
        return {
            "version": 1, "verso": __version__, "can_start": self.can_start, "well": self.well,
            "machine": _machine(self.machine),
            "engines": [{**_engine(found, self.chosen), "can_start": self.starts(found)}
                        for found in self.engines],
            "ascend": None if self.ascend is None else self.ascend.as_dict(),
            "prepared": None if self.prepared is None else self.prepared.as_dict(),
            "settings": [problem_of(problem) for problem in self.settings],
        }


def examine(values: Values, settings: tuple[Problem, ...] = (),
            tell: Callable[[str], None] = lambda _line: None, *,
            folder: str = "") -> Diagnosis:
    """Look at everything; TELL hears what is being looked at. FOLDER: code that was prepared for
    an NPU; empty: the one that is made by default, where it is there.

    Takes seconds, up to some minutes where libraries load from a slow disk or servers do not
    answer: every step has a limit of its own. Raises nothing.
    """
    tell(_("the machine"))
    found = machine.look()
    examined = []
    for entry in engines.shown(values):
        tell(_("the engine “{engine}”").format(engine=_(entry.title)))
        examined.append(engines.examine(entry, values, found.gpus))
    return Diagnosis(found, tuple(examined), str(values["engine"]), settings,
                     _ascend(values, found, examined, tell),
                     prepared.look(folder) if folder else prepared.look_around(values))


def _ascend(values: Values, found: machine.Machine, examined: Sequence[Examination],
            tell: Callable[[str], None]) -> ascend.Report | None:
    """The Ascend side, where there is one or it is asked for."""
    reports = [each.interpreter for each in examined if each.interpreter is not None]
    chosen = next((each.interpreter for each in examined if each.interpreter is not None
                   and each.entry.name == values["engine"]), None)
    # The official code runs on GPUs as well, by a vLLM without vllm-ascend.
    on_gpus = chosen is not None and bool(chosen.platform) and chosen.platform != "npu"
    if not ascend.present(reports) and (on_gpus or not ascend.asked_for(values)):
        return None
    tell(_("the NPUs"))
    with_npu = next((report for report in reports if "vllm-ascend" in report.versions), None)
    complete = any(each.model is not None and each.model.found.complete for each in examined)
    return ascend.look(values, found, chosen or with_npu or next(iter(reports), None),
                       weights_complete=complete)


def problem_of(problem: Problem) -> dict[str, str]:
    """PROBLEM for JSON, without the technical detail, which may be long."""
    return {"code": problem.code, "message": problem.message, "hint": problem.hint}


def _machine(found: machine.Machine) -> dict[str, Any]:
    return {
        "system": found.system, "python": found.python, "interpreter": found.interpreter,
        "cores": found.cores,
        "memory": {"total": found.memory_total, "free": found.memory_free,
                   "limit": found.memory_limit},
        "disks": [asdict(disk) for disk in found.disks],
        "gpus": _gpus(found.gpus),
        "gpu_problem": problem_of(found.gpus.problem) if found.gpus.problem else None,
    }


def _gpus(found: Gpus) -> list[dict[str, Any]]:
    return [{
        "number": gpu.device.number, "uuid": gpu.device.uuid, "name": gpu.device.name,
        "memory": {"total": gpu.device.total, "free": gpu.device.free},
        "busy": gpu.busy, "driver": gpu.driver,
        "parts": [{"uuid": part.uuid, "name": part.name} for part in gpu.parts],
        "processes": [{"pid": user.pid, "name": user.name, "memory": user.bytes}
                      for user in gpu.device.users],
    } for gpu in found.found]


def _engine(found: Examination, chosen: str) -> dict[str, Any]:
    report, model = found.interpreter, found.model
    return {
        "name": found.entry.name, "title": _(found.entry.title),
        "chosen": found.entry.name == chosen, "can_start": found.can_start,
        "problems": [problem_of(problem) for problem in found.problems],
        "notes": list(found.notes),
        "interpreter": None if report is None else {
            "path": report.path, "python": report.python, "usable": report.usable,
            "versions": dict(report.versions), "distributions": dict(report.distributions),
            "device": report.platform or report.device_kind, "devices": list(report.devices),
            "cuda": report.cuda, "repairs": list(report.repairs), "seconds": report.seconds},
        "model": None if model is None else {
            "folder": model.folder, "origin": model.origin, "complete": model.found.complete,
            "bytes": model.found.bytes, "architecture": model.found.architecture,
            "missing": list(model.found.missing),
            "damaged": [{"file": name, "reason": reason}
                        for name, reason in model.found.damaged]},
        "servers": [_server(server) for server in found.servers],
        "last_start": None if found.last is None else _last(found.last),
    }


def _last(start: Start) -> dict[str, Any]:
    got = start.got
    return {
        "when": start.when.isoformat(timespec="seconds"), "model": got.model,
        "device": got.device, "capacity": got.capacity,
        "memory": {"used": got.memory_used, "free": got.memory_free, "total": got.memory_total},
        "cache_tokens": got.cache_tokens, "context": got.context, "eager": got.eager,
        "versions": got.versions, "notes": list(got.notes),
    }


def _server(report: ServerReport) -> dict[str, Any]:
    problem = report.problem
    return {
        "address": report.address, "good": report.good,
        "problem": problem_of(problem) if problem else None,
        "model": report.model, "version": report.version, "context": report.context,
        "page_tokens": report.page_tokens, "streams": report.streams, "tags": report.tags,
        "ngram": report.guard,
        "findings": [{"level": found.level.value, **problem_of(found.problem)}
                     for found in report.findings],
    }
