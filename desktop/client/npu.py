"""What the worker needs in its environment where the engine's Python has vllm-ascend.

The interpreter is asked for versions and folders only, by a script that imports none of the
packages: torch_npu loads itself together with torch, and fails where the environment is not right
yet.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import replace

from desktop.client import interpreter
from desktop.client.endings import NoInterpreter
from desktop.client.interpreter import InterpreterSilent, NotPython, Report, resolve
from desktop.client.probing import ask
from desktop.client.staging import environment as environment_of
from desktop.client.staging import stage
from desktop.engines.ascend import problems, support
from desktop.engines.ascend.environment import Environment, Stack, find_and_build
from desktop.engines.registry import EngineEntry
from desktop.errors import VersoError

SECONDS = 60.0
_MARK = "VERSO-STACK "
_DETAIL = 4_000

# Python 3.8 and later.
_SCRIPT = r'''
import importlib.metadata, importlib.util, json, sys
facts = {}
for key, name, module in (("ascend", "vllm-ascend", "vllm_ascend"), ("vllm", "vllm", "vllm"),
                          ("torch", "torch", "torch"), ("torch_npu", "torch-npu", "torch_npu")):
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        continue
    try:
        facts[key] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        facts[key] = "?"
    folders = list(spec.submodule_search_locations or ())
    if key in ("ascend", "torch") and folders:
        facts[key + "_folder"] = folders[0]
sys.stdout.write("\nVERSO-STACK " + json.dumps(facts) + "\n")
'''


def stack(asked: str, cancel: threading.Event | None = None) -> Stack:
    """What the interpreter ASKED (as the setting ``engine_interpreter``) has of the NPU's stack.

    Blocks for a second or so, at most :data:`SECONDS`; CANCEL ends it early. Raises
    NoEnvironment, NotPython, InterpreterSilent; OSError where it cannot be started.
    """
    path = resolve(asked)
    folders = stage()
    answer = ask([path, "-c", _SCRIPT], seconds=SECONDS, folder=str(folders.work),
                 environment=environment_of(path, folders.path), cancel=cancel)
    for line in answer.out.splitlines():
        if line.startswith(_MARK):
            return Stack(**json.loads(line[len(_MARK):]))
    detail = answer.err[-_DETAIL:]
    if answer.status is None:
        raise InterpreterSilent(path=path, seconds=f"{SECONDS:g}", detail=detail)
    said = (answer.err.strip() or answer.out.strip() or "–").splitlines()[-1]
    raise NotPython(path=path, status=answer.status, said=said[:120], detail=detail)


def worker_environment(found: Stack, environ: Mapping[str, str] | None = None, *,
                       devices: str = "", home: str = "", root: str = "") -> Environment:
    """The environment for a worker with FOUND, beside ENVIRON (None: our own).

    DEVICES as the setting of that name. HOME and ROOT: see :class:`places.Search`.
    """
    fitting = support.row(found.ascend) if found.ascend else None
    return find_and_build(found, environ, devices=devices, home=home, root=root,
                          wanted=fitting.cann if fitting is not None else "")


def examine(entry: EngineEntry, asked: str, *, devices: str = "",
            cancel: threading.Event | None = None) -> Report:
    """The interpreter ASKED, thoroughly, as the worker of ENTRY would be started with it: what an
    NPU needs is set. Where that is not there, what can be said without importing anything, and
    what is missing. Blocks; raises nothing."""
    variables: dict[str, str | None] = {}
    if entry.npu:
        try:
            variables = start_environment(asked, devices=devices, cancel=cancel)
        except VersoError as error:
            quick = interpreter.examine(asked, entry.needs, cancel=cancel,
                                        official=entry.official)
            return replace(quick, problems=quick.problems or (error.problem(),))
    return interpreter.examine(asked, entry.needs, thorough=True, cancel=cancel,
                               official=entry.official, variables=variables)


def start_environment(asked: str, *, devices: str = "",
                      cancel: threading.Event | None = None) -> dict[str, str | None]:
    """Variables for a worker under the interpreter ASKED; None: not to be set, whatever our own
    environment says. DEVICES as the setting of that name. Empty where there is no vllm-ascend.

    Blocks for a second or so. Raises what keeps any engine from starting on an NPU (no toolkit,
    no driver …), or what :func:`stack` does.
    """
    try:
        found = stack(asked, cancel)
        if not found.ascend:
            return {}
        made = worker_environment(found, devices=devices)
    except OSError as error:
        raise NoInterpreter(interpreter=asked, detail=str(error)) from error
    fatal = problems.first_fatal(made.places)
    if fatal is not None:
        raise fatal
    return {**made.variables, **dict.fromkeys(made.removed)}
