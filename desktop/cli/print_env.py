"""``verso doctor --print-env``: the environment of an engine on an NPU, for a shell."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from desktop.cli.reporting import one_line, print_json
from desktop.cli.status import Exit
from desktop.client.endings import NoInterpreter
from desktop.client.interpreter import resolve
from desktop.client.npu import stack, worker_environment
from desktop.engines.ascend.environment import Environment, Stack
from desktop.engines.ascend.problems import NoVllmAscend, errors
from desktop.errors import Problem, VersoError
from desktop.i18n import _
from desktop.settings import Values


def run(values: Values, *, as_json: bool) -> Exit:
    """Print what a worker under the interpreter of VALUES would be started with.

    On stdout what a shell can take in (``eval "$(verso doctor --print-env)"``) or one JSON
    document, on stderr what is missing. Nothing is changed.
    """
    asked = str(values["engine_interpreter"])
    try:
        found = stack(asked)
        path = resolve(asked)
    except (VersoError, OSError) as error:
        _say((error if isinstance(error, VersoError) else
              NoInterpreter(interpreter=asked, detail=str(error))).problem())
        return Exit.SOME_FAILED
    made = worker_environment(found, devices=str(values["devices"]))
    problems = [error.problem() for error in errors(made.places)]
    if not found.ascend:
        problems.insert(0, NoVllmAscend(path=path).problem())
    if as_json:
        print_json(_document(path, found, made, problems))
    else:
        for line in _comments(path, found, made):
            print(one_line("# " + line))
        for line in made.shell():
            print(line)
    for problem in problems:
        _say(problem)
    return Exit.OK if made.places.can_start and found.ascend else Exit.SOME_FAILED


def _say(problem: Problem) -> None:
    print(one_line(f"verso: {problem.line()}"), file=sys.stderr)


def _comments(path: str, found: Stack, made: Environment) -> list[str]:
    versions = [f"{name} {version}" for name, version in (
        ("vllm-ascend", found.ascend), ("vllm", found.vllm), ("torch", found.torch),
        ("torch-npu", found.torch_npu)) if version]
    lines = [_("An engine on an NPU is started with this by {path}").format(path=path)]
    if versions:
        lines.append(", ".join(versions))
    toolkit = made.places.toolkit
    if toolkit is not None:
        lines.append(_("CANN {version} at {path}").format(
            version=toolkit.version or "?", path=toolkit.path))
    return lines


def _document(path: str, found: Stack, made: Environment,
              problems: list[Problem]) -> dict[str, Any]:
    places = dataclasses.asdict(made.places)
    del places["missing"]
    return {"interpreter": path, "stack": dataclasses.asdict(found), "places": places,
            "variables": dict(made.variables), "removed": list(made.removed),
            "problems": [problem._asdict() for problem in problems]}
