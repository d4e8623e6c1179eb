"""What the window itself can do about a problem: a button beside its words. Qt-free."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from desktop.errors import Problem
from desktop.i18n import _
from desktop.settings import SETTINGS, InvalidSetting, Setting, Value
from desktop.settings import setting as _declared


@dataclass(frozen=True)
class Remedy:
    """One thing to do. ``action``: ``get_model``, ``set`` (``values`` are used), ``show`` (the
    setting ``key``), ``check`` (the interpreter), ``probe`` (the servers), ``key`` (of a
    server), ``retry``."""

    action: str
    text: str
    key: str = ""
    values: dict[str, Value] = field(default_factory=dict)


_MODEL = ("model.missing", "model.incomplete", "model.damaged", "vllm.model")
_INTERPRETER = ("engine.not_installed", "worker.interpreter", "worker.start", "worker.silent",
                "vllm.missing", "interpreter.missing", "interpreter.not_python",
                "interpreter.silent", "interpreter.too_old")
_PACKAGES = ("interpreter.lacks", "interpreter.broken", "vllm.version", "vllm.tokenizer")
_SERVERS = ("remote.no_servers", "remote.address")
_KEYS = ("remote.key", "remote.key_wanted", "remote.key_format")
_SETTINGS = {
    "vllm.other_model": "model", "vllm.device": "devices", "vllm.devices": "tensor_parallel",
    "engine.ready_timeout": "ready_seconds", "remote.model": "remote_model",
    "engine.context": "max_model_len", "model.offline": "offline",
    "model.bad_address": "hub_address", "model.bad_proxy": "proxy",
}


def remedy(problem: Problem) -> Remedy | None:
    """What can be done about PROBLEM by pressing a button; None: nothing that helps."""
    code = problem.code
    if code in _MODEL:
        return Remedy("get_model", _("Get the model…"))
    if code in _INTERPRETER:
        return Remedy("show", _("Choose interpreter…"), "engine_interpreter")
    if code in _PACKAGES:
        return Remedy("check", _("Check interpreter"))
    if code in _SERVERS:
        return Remedy("show", _("Enter servers…"), "servers")
    if code in _KEYS:
        return Remedy("key", _("Enter key…"))
    if code.endswith(".memory") and (values := values_in(problem.hint)):
        # The figures that would fit are in the words of the engine.
        return Remedy("set", _("Use {values}").format(values=", ".join(
            f"{value:g}" if isinstance(value, float) else str(value)
            for value in values.values())), values=values)
    if code == "page.length":
        title = _(_declared("max_model_len").title)
        return Remedy("show", _("Show setting"),
                      "max_model_len" if f"“{title}”" in problem.hint else "max_tokens")
    if code in _SETTINGS:
        return Remedy("show", _("Show setting"), _SETTINGS[code])
    if code.startswith("remote."):
        return Remedy("probe", _("Probe servers"))
    return None


def values_in(hint: str) -> dict[str, Value]:
    """Settings that HINT advises with a value: “Memory utilization” to at most 0.62."""
    found: dict[str, Value] = {}
    for setting in SETTINGS:
        title = re.escape(f"“{_(setting.title)}”")
        # At most a few words between the name and its value, and no end of a sentence.
        match = re.search(title + r"(?:\s+[^\s“”.;]+){0,3}?\s+(" + _pattern(setting) + r")(?!\w)",
                          hint) if _pattern(setting) else None
        if match is None:
            continue
        try:
            value = setting.parse(match[1].rstrip("."))
        except InvalidSetting:
            continue
        if value != setting.default:
            found[setting.key] = value
    return found


def _pattern(setting: Setting) -> str:
    """What a value of SETTING looks like; "" for one that cannot be recognised."""
    if setting.choices:
        return "|".join(map(re.escape, setting.choices))
    if setting.kind is float:
        return r"\d*\.\d+"
    return r"\d+" if setting.kind is int else ""
