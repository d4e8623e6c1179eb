"""What has to be known before an engine's worker is started: under which Python, with which
model. What is missing is said here, in seconds, instead of after minutes of loading."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from desktop.client import interpreter, npu
from desktop.engines.ascend_legacy import official, stack
from desktop.engines.registry import entry
from desktop.models import places
from desktop.settings import Values, setting
from desktop.settings.catalog import BY_KEY


@dataclass(frozen=True)
class Prepared:
    """How a worker is started. INTERPRETER None: under the Python that runs Verso. ENVIRONMENT:
    variables on top of our own (None: not set)."""

    interpreter: str | None
    settings: dict[str, Any]
    environment: Mapping[str, str | None] = field(default_factory=dict)


def needs_preparing(engine: str) -> bool:
    """Whether something about ENGINE has to be looked up (which may take seconds)."""
    return any(setting(key).applies_to(engine) for key in ("engine_interpreter", "model"))


def prepare(values: Values, arguments: Mapping[str, str], fallback: str | None = None,
            cancel: threading.Event | None = None) -> Prepared:
    """Interpreter and model for the engine that VALUES choose; ARGUMENTS are those of
    ``--engine-arg``, FALLBACK the Python where the setting names none.

    Blocks for seconds; CANCEL ends it early. Raises VersoError with a way out: an interpreter
    that cannot be used, one with other versions than the official code runs on, no model, no
    official code, an NPU without its toolkit or driver – what would be the first to see to first.
    """
    engine = entry(values["engine"])
    settings: dict[str, Any] = values.as_dict()
    # Text from the command line must not take the place of a declared value of another type:
    # those have flags of their own.
    settings.update({key: value for key, value in arguments.items() if key not in BY_KEY})
    settings["engine_args"] = dict(arguments)
    program = fallback
    if setting("engine_interpreter").applies_to(engine.name):
        asked = str(values["engine_interpreter"]) or fallback or ""
        if asked:
            found = interpreter.check(asked, engine.needs, cancel=cancel,
                                      official=engine.official)
            program = found.path
            if engine.official:
                stack.check(stack.of(found.versions))
        elif (missing := interpreter.missing_here(engine)) is not None:
            raise missing
        elif engine.official:
            stack.check(stack.installed())
    if setting("model").applies_to(engine.name):
        # Whether it is complete, and of the right kind, the engine says.
        settings["model"] = str(places.locate(values))
    if setting("official_code").applies_to(engine.name):
        settings["official_code"] = str(official.located(str(values["official_code"])))
    environment: Mapping[str, str | None] = {}
    if engine.npu:
        environment = npu.start_environment(program or "", devices=str(values["devices"]),
                                            cancel=cancel)
    return Prepared(program, settings, environment)
