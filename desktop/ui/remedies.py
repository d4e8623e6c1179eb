"""What the window itself can do about a problem: a button beside its words. Qt-free."""

from __future__ import annotations

from dataclasses import dataclass, field

from desktop.errors import Problem
from desktop.i18n import _
from desktop.settings import InvalidSetting, UnknownSetting, Value
from desktop.settings import setting as _declared


@dataclass(frozen=True)
class Remedy:
    """One thing to do. ``action``: ``get_model``, ``set`` (``values`` are used), ``show`` (the
    setting ``key``), ``check`` (the interpreter), ``probe`` (the servers), ``key`` (of a
    server), ``examine`` (the machine), ``retry``."""

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
_EXAMINED = ("engine.", "worker.", "vllm.", "ascend.", "interpreter.")
"""What looking at everything may tell the reason of, where nothing else helps."""
_SETTINGS = {
    "vllm.memory": "memory_utilization", "vllm.memory_ran_out": "batched_tokens",
    "vllm.other_model": "model", "vllm.device": "devices", "vllm.devices": "tensor_parallel",
    "vllm.device_mig": "devices", "vllm.devices_mig": "tensor_parallel",
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
    if values := _values(problem):
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
    if code.startswith(_EXAMINED):
        return examination()
    return None


def examination() -> Remedy:
    """What may tell the reason where nothing else does."""
    return Remedy("examine", _("Examine machine…"))


def _values(problem: Problem) -> dict[str, Value]:
    """The settings that would mend PROBLEM; empty where one of them cannot be set (another
    version's worker may advise what this one does not have)."""
    try:
        return {key: _declared(key).parse(value) for key, value in problem.fix}
    except (UnknownSetting, InvalidSetting):
        return {}
