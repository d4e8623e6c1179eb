"""What the engine's Python has, and whether the official code runs on it.

Decided from the packages' metadata before anything is imported. Whether it is an NPU or a GPU is
decided by vllm-ascend being there: with it, vLLM computes on an NPU and nowhere else.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass

from desktop.engines.ascend.switches import release
from desktop.engines.ascend_legacy.failures import WrongVersion
from desktop.engines.vllm import versions
from desktop.i18n import _

VLLM = (0, 8, 5)
"""The vLLM that the official code is written for, of any post-release or build."""
_MODEL = (0, 16)
"""The first vLLM that has the model itself."""
_TRANSFORMERS = (5,)
"""The first transformers that the official code cannot be imported with: it takes
``_calc_banned_ngram_tokens`` from it, and vLLM 0.8.5 sets no upper bound."""


@dataclass(frozen=True)
class Stack:
    """Versions; empty: not installed."""

    vllm: str
    ascend: str = ""
    torch: str = ""
    torch_npu: str = ""
    transformers: str = ""

    @property
    def npu(self) -> bool:
        """Whether pages are read on an NPU."""
        return bool(self.ascend)

    def as_dict(self) -> dict[str, str]:
        """For the report of what the engine got."""
        found = {"vllm": self.vllm, "vllm-ascend": self.ascend, "torch": self.torch,
                 "torch-npu": self.torch_npu, "transformers": self.transformers}
        return {name: version for name, version in found.items() if version}


def of(installed: Mapping[str, str]) -> Stack:
    """What a Python has whose packages INSTALLED tells: distribution → version."""
    return Stack(*(installed.get(name, "") for name in (
        "vllm", "vllm-ascend", "torch", "torch-npu", "transformers")))


def installed() -> Stack:
    """What this Python has; nothing is imported."""
    found = versions.installed()
    ascend = importlib.util.find_spec("vllm_ascend") is not None
    return Stack(found.vllm, (_version("vllm-ascend") or "?") if ascend else "", found.torch,
                 _version("torch-npu"), found.transformers)


def check(found: Stack) -> None:
    """Raise WrongVersion unless FOUND is the stack that the official code is for."""
    vllm = release(found.vllm)
    if vllm[:3] != VLLM:
        raise WrongVersion(
            found=f"vLLM {found.vllm or '–'}",
            reason=_("the model's official code runs on vLLM 0.8.5 only"),
            way_out=_other_engine(found) if vllm >= _MODEL else _install())
    if found.ascend not in ("", "?") and release(found.ascend)[:3] != VLLM:
        raise WrongVersion(
            found=f"vllm-ascend {found.ascend}",
            reason=_("beside vLLM {vllm} only vllm-ascend 0.8.5rc1 works").format(vllm=found.vllm),
            way_out=_install())
    if release(found.transformers) >= _TRANSFORMERS:
        raise WrongVersion(
            found=f"transformers {found.transformers}",
            reason=_("vLLM 0.8.5 and the official code are written for transformers 4"),
            way_out=_("Install it there: {command}").format(
                command='pip install "transformers>=4.51.1,<4.54"'))


def _other_engine(found: Stack) -> str:
    return _("This vLLM has the model itself: choose the engine “{engine}”.").format(
        engine="ascend" if found.npu else "vllm")


def _install() -> str:
    return _("Choose a Python with vLLM 0.8.5.post1 (and vllm-ascend 0.8.5rc1 for an NPU), as in "
             "the container image quay.io/ascend/vllm-ascend:v0.8.5rc1.")


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
