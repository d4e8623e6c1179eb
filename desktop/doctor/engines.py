"""Every engine: can it start here, what has it got, and what is missing?"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from desktop.client import interpreter, npu
from desktop.client.probing import ask
from desktop.client.staging import environment, stage
from desktop.doctor import ascend, ascend_problems, prepared
from desktop.doctor.gpus import Gpus
from desktop.engines.ascend.failures import NoPlatform
from desktop.engines.ascend.preparation.target import MANIFEST
from desktop.engines.ascend_legacy import official, stack
from desktop.engines.model import weights
from desktop.engines.registry import ENGINES, EngineEntry
from desktop.engines.remote import addresses
from desktop.engines.remote.probe import Report as ServerReport
from desktop.engines.remote.probe import probe_all
from desktop.engines.vllm import devices, preflight
from desktop.engines.vllm.failures import NoDevice, NotTheModel
from desktop.errors import Problem, VersoError
from desktop.i18n import N_, _
from desktop.jobs import starts
from desktop.models import places
from desktop.models.errors import ModelIncomplete, ModelMissing
from desktop.paths import OwnFolderUnusable
from desktop.settings import Values, setting

IMPORT_SECONDS = 120.0


class EngineBroken(VersoError):
    """An engine's packages are there and cannot be imported."""

    code = "doctor.broken"
    message = N_("A package of the engine “{engine}” cannot be used: {reason}")
    hint = N_("Install it anew: {command}")


class OldDriver(VersoError):
    """torch was built for a CUDA that the driver does not know."""

    code = "doctor.old_driver"
    message = N_("The driver {driver} knows CUDA up to {have}, and torch in {path} was built for "
                 "CUDA {wanted}: it finds no GPU.")
    hint = N_("Install a newer driver, or torch and vLLM that were built for CUDA {have} or "
              "earlier.")


class ForNpus(VersoError):
    """vllm-ascend takes vLLM over wherever it is installed."""

    code = "doctor.for_npus"
    message = N_("{path} has vllm-ascend {version}, with which vLLM computes on Ascend NPUs only.")
    hint = N_("Choose an engine for NPUs (--engine ascend), or a Python without vllm-ascend "
              "(“Engine interpreter”).")


@dataclass(frozen=True)
class Model:
    """The model's folder, as an engine would find it."""

    folder: str
    origin: str
    """A key of ``desktop.models.places.ORIGINS``."""
    found: weights.Weights


@dataclass(frozen=True)
class Examination:
    """What was found out about one engine. PROBLEMS keep it from starting; the first is the one
    to see to first. NOTES are worth knowing."""

    entry: EngineEntry
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    interpreter: interpreter.Report | None = None
    model: Model | None = None
    servers: tuple[ServerReport, ...] = field(default=())
    last: starts.Start | None = None
    """What it got when it last started, with whatever settings."""

    @property
    def can_start(self) -> bool:
        """Whether nothing was found that keeps it from starting."""
        return not self.problems


def shown(values: Values) -> list[EngineEntry]:
    """The engines a person may choose, and the chosen one."""
    return [entry for entry in ENGINES if not entry.hidden or entry.name == values["engine"]]


def examine(entry: EngineEntry, values: Values, gpus: Gpus | None = None, *,
            thorough: bool = True) -> Examination:
    """Look at the engine ENTRY as VALUES would have it started.

    THOROUGH imports what the engine imports, asks its servers and compares the free memory of
    GPUS with what is needed; without it a second or two. Raises nothing; every step is bounded.
    """
    try:
        return replace(_examine(entry, values, gpus, thorough), last=starts.last(entry.name))
    except OwnFolderUnusable as error:  # Every engine needs it.
        return Examination(entry, (error.problem(),))


def _examine(entry: EngineEntry, values: Values, gpus: Gpus | None, thorough: bool) -> Examination:
    if setting("engine_interpreter").applies_to(entry.name):
        return _local(entry, values, gpus or Gpus(), thorough)
    missing = _missing(entry, thorough)
    if missing is not None:
        return Examination(entry, (missing,))
    if setting("servers").applies_to(entry.name):
        return _remote(entry, values, thorough)
    return Examination(entry)


_PROBLEM = "VERSO-PROBLEM "
_OPEN_MODELS = f"""
import json, sys
from desktop.engines.embedded import models
from desktop.errors import VersoError
try:
    models.load(lambda _step, _fraction: None)
except VersoError as error:
    print({_PROBLEM!r} + json.dumps(error.problem()[:3]))
    sys.exit(1)
"""
"""Opens the built-in engine's models as it does itself when it starts."""


def _missing(entry: EngineEntry, thorough: bool) -> Problem | None:
    """What an engine that runs under our own Python lacks."""
    lacking = interpreter.missing_here(entry, choosable=False)
    if lacking is not None:
        return lacking.problem()
    if not thorough or not entry.needs:
        return None
    code = "import importlib\n" + "".join(
        f"importlib.import_module({name!r})\n" for name in entry.needs)
    if entry.name == "embedded":
        code += _OPEN_MODELS
    command = interpreter.pip(sys.executable, ("verso-ocr",)).replace(
        " install ", " install --force-reinstall ")
    try:
        answer = ask([sys.executable, "-c", code], seconds=IMPORT_SECONDS,
                     environment=environment(sys.executable, stage().path))
    except OSError as error:
        return EngineBroken(engine=_(entry.title), reason=error.strerror,
                            command=command).problem()
    if answer.status == 0:
        return None
    for line in answer.out.splitlines():
        if line.startswith(_PROBLEM):
            return Problem(*json.loads(line.removeprefix(_PROBLEM)))
    lines = answer.err.strip().splitlines()
    reason = (_("importing it took more than {seconds} s").format(seconds=f"{IMPORT_SECONDS:g}")
              if answer.status is None else
              lines[-1][:300] if lines else f"status {answer.status}")
    return EngineBroken(engine=_(entry.title), reason=reason, command=command,
                        detail=answer.err[-4000:]).problem()


# --- on this machine


def _local(entry: EngineEntry, values: Values, gpus: Gpus, thorough: bool) -> Examination:
    asked = str(values["engine_interpreter"])
    here = None if asked else interpreter.missing_here(entry)
    if here is not None:
        report = None
        problems = [here.problem()]
    else:
        report = _interpreter(entry, asked, str(values["devices"]), thorough)
        problems = list(report.problems)
    if entry.official:
        problems += _official(values, report)
    model, trouble = _model(values)
    problems += trouble
    if report is not None and report.thorough and report.usable and report.platform != "npu":
        problems += _device(values, report, gpus, model)
    notes = [*(report.notes if report else ())]
    if report is not None and report.repairs:
        notes.append(_("Verso's vLLM plugin repairs: {names}.").format(
            names=", ".join(report.repairs)))
    return Examination(entry, tuple(problems), tuple(notes), report, model)


def _interpreter(entry: EngineEntry, asked: str, devices_: str,
                 thorough: bool) -> interpreter.Report:
    """The interpreter ASKED as ENTRY's worker would be started with it.

    vLLM is loaded there only where it is vLLM for this engine's devices: that takes a while, and
    vllm-ascend cannot be loaded without what it needs from its environment.
    """
    quick = interpreter.examine(asked, entry.needs, official=entry.official)
    version = quick.versions.get("vllm-ascend", "")
    variables: dict[str, str | None] = {}
    if version and entry.name not in ascend.ENGINES:
        return replace(quick, problems=(ForNpus(path=quick.path, version=version).problem(),))
    if version:
        right = ascend.engine_for(version)
        if right and right != entry.name:
            return replace(quick, problems=(ascend_problems.OtherEngine(
                version=version, engine=entry.name, right=right).problem(),))
    if quick.problems or not thorough or (entry.official and _stack(quick) is not None):
        return quick
    if version:
        try:
            variables = npu.start_environment(asked, devices=devices_)
        except VersoError:
            return quick  # what is missing is told with the NPUs
    found = interpreter.examine(asked, entry.needs, thorough=True, official=entry.official,
                                variables=variables)
    if version and found.usable and found.platform != "npu":
        found = replace(found, problems=(NoPlatform(
            vllm=found.versions.get("vllm", "?"), ascend=version,
            platform=found.platform or "–").problem(),))
    return found


def _stack(report: interpreter.Report) -> Problem | None:
    """Why the official code does not run on what the interpreter has; None: it does, or there is
    no vLLM, which is told otherwise."""
    if "vllm" not in report.versions:
        return None
    try:
        stack.check(stack.of(report.versions))
    except VersoError as error:
        return error.problem()
    return None


def _official(values: Values, report: interpreter.Report | None) -> list[Problem]:
    """What is wrong with the official code, and with what it would run on."""
    wrong = _stack(report) if report is not None else None
    problems = [wrong] if wrong is not None else []
    try:
        folder = official.located(str(values["official_code"]))
    except VersoError as error:
        return [*problems, error.problem()]
    if (folder / MANIFEST).is_file():
        code = prepared.look(str(folder))
        problems += code.problems if code is not None else ()
    return problems


def _model(values: Values) -> tuple[Model | None, list[Problem]]:
    place = places.find(values)
    if place is None:
        return None, [ModelMissing(model=places.MODEL).problem()]
    found = weights.check(place.folder)
    model = Model(str(place.folder), place.origin, found)
    if not found.complete:
        what = found.words() if place.folder.is_dir() else _("there is no such folder")
        return model, [ModelIncomplete(folder=place.folder, what=what).problem()]
    if found.architecture != preflight.ARCHITECTURE:
        return model, [NotTheModel(folder=place.folder,
                                   architecture=found.architecture or "?").problem()]
    return model, []


def _device(values: Values, report: interpreter.Report, gpus: Gpus,
            model: Model | None) -> list[Problem]:
    """Whether the device is there and holds what would be asked of it: the engine's own words."""
    if not report.platform:
        if gpus.problem is not None:
            return [gpus.problem]
        if gpus.found and _major(report.cuda) > _major(gpus.cuda) > 0:
            return [OldDriver(driver=gpus.found[0].driver, have=gpus.cuda, wanted=report.cuda,
                              path=report.path).problem()]
        return [NoDevice(distribution=report.distributions.get("vllm", "vllm"),
                         version=report.versions.get("vllm", "?")).problem()]
    if report.platform != "cuda" or not gpus.found:
        return []
    found = [device for gpu in gpus.found for device in (gpu.device, *gpu.parts)]
    visible = str(values["devices"]).replace(" ", "") or os.environ.get(devices.VISIBLE)
    try:
        usable = devices.to_use(found, visible, values.as_dict())
        if model is not None and model.found.complete:
            plain = {**values.as_dict(), "model": model.folder}
            preflight.memory(plain, preflight.need(plain, model.found), usable)
    except VersoError as error:
        return [error.problem()]
    return []


# --- elsewhere


def _major(version: str) -> int:
    """12 of ``12.8``; 0 where there is none."""
    number = version.partition(".")[0]
    return int(number) if number.isdecimal() else 0


def _remote(entry: EngineEntry, values: Values, thorough: bool) -> Examination:
    servers = str(values["servers"])
    try:
        addresses.parse(servers)
        reports: Sequence[ServerReport] = ()
        if thorough:
            reports = asyncio.run(probe_all(servers, str(values["remote_model"])))
    except VersoError as error:
        return Examination(entry, (error.problem(),))
    # One that works is enough; what is wrong with the others is told all the same.
    broken = [report.problem for report in reports if report.problem is not None]
    problems = tuple(broken) if reports and len(broken) == len(reports) else ()
    notes = [] if problems else [problem.line() for problem in broken]
    notes += [f"{report.name}: {found.problem.line()}"
              for report in reports for found in report.findings]
    return Examination(entry, problems, tuple(notes), servers=tuple(reports))
