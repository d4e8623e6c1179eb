"""The engines there are. To add one, add it here; nothing of it is imported until it is asked for.

Runs on Python 3.10 with msgspec alone.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass

from desktop.engines.base import Engine
from desktop.errors import VersoError
from desktop.i18n import N_


class UnknownEngine(VersoError):
    """A name that no engine has."""

    code = "engine.unknown"
    message = N_("There is no engine named “{name}”.")
    hint = N_("`verso engines` lists those there are.")


@dataclass(frozen=True)
class EngineEntry:
    """How an engine is found and shown. ``needs``: modules without which it cannot start."""

    name: str
    title: str
    summary: str
    location: str
    """module:class"""
    needs: tuple[str, ...] = ()
    hidden: bool = False
    arguments: bool = False
    """Whether it understands ``--engine-arg KEY=VALUE`` besides the declared settings."""
    npu: bool = False
    """Whether it computes on an Ascend NPU, where there is vllm-ascend: its worker is started
    with what that needs."""
    official: bool = False
    """Whether it runs the model's official code: what holds for vLLM's own model (which versions
    have it, and read right) does not matter then."""

    def missing(self) -> tuple[str, ...]:
        """The modules of ``needs`` that this interpreter does not have (nothing is imported)."""
        return tuple(name for name in self.needs if importlib.util.find_spec(name) is None)

    def create(self) -> Engine:
        """A new engine, not started."""
        module, _, name = self.location.partition(":")
        engine: Engine = getattr(importlib.import_module(module), name)()
        return engine


ENGINES: tuple[EngineEntry, ...] = (
    EngineEntry(
        "embedded", N_("Built in"),
        N_("Reads pages on this machine's processor; needs no accelerator and no model files."),
        "desktop.engines.embedded.engine:EmbeddedEngine",
        needs=("rapidocr", "onnxruntime", "numpy", "cv2"),
    ),
    EngineEntry(
        "vllm", N_("vLLM"),
        N_("Reads pages with DeepSeek-OCR-2 on this machine's GPU or processor, by vLLM."),
        "desktop.engines.vllm.engine:VllmEngine", needs=("vllm",), arguments=True,
    ),
    EngineEntry(
        "ascend", N_("Ascend NPU"),
        N_("Reads pages with DeepSeek-OCR-2 on this machine's Ascend NPU, by vLLM with vllm-ascend "
           "(0.16 or later)."),
        "desktop.engines.ascend.engine:AscendEngine",
        needs=("vllm", "vllm_ascend", "torch_npu"), arguments=True, npu=True,
    ),
    EngineEntry(
        "ascend-legacy", N_("vLLM 0.8.5, official code"),
        N_("Reads pages with the model's official code on vLLM 0.8.5: on an Ascend NPU "
           "(vllm-ascend 0.8.5rc1) or an NVIDIA GPU."),
        "desktop.engines.ascend_legacy.engine:AscendLegacyEngine", needs=("vllm",),
        arguments=True, npu=True, official=True,
    ),
    EngineEntry(
        "remote", N_("vLLM server"),
        N_("Has pages read by vLLM servers elsewhere, one or several, with DeepSeek-OCR-2."),
        "desktop.engines.remote.engine:RemoteEngine", needs=("httpx",),
    ),
    EngineEntry(
        "scripted", N_("Scripted"),
        N_("Replays recorded model output; for tests."),
        "desktop.engines.scripted:ScriptedEngine", hidden=True, arguments=True,
    ),
)


def entry(name: str) -> EngineEntry:
    """The engine called NAME; raises :class:`UnknownEngine`."""
    for candidate in ENGINES:
        if candidate.name == name:
            return candidate
    raise UnknownEngine(name=name)
