"""Why the mixture of experts cannot be put in place, in a person's words: what the patch
(:mod:`desktop.engines.ascend.moe.patch`) warns of by the names of Python packages."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

from desktop.engines.ascend.moe import patch
from desktop.errors import VersoError
from desktop.i18n import N_


class TorchNpuMissing(VersoError):
    """PyTorch knows no NPU."""

    code = "ascend.experts.torch_npu"
    message = N_("torch-npu is not installed where the engine runs: PyTorch cannot use an NPU, and "
                 "the MoE patch has nothing to compute with.")
    hint = N_("Install the torch-npu of the installed torch's version (pip install torch-npu==…), "
              "or use a container image of vllm-ascend.")


class VllmAscendMissing(VersoError):
    """vLLM knows no NPU."""

    code = "ascend.experts.vllm_ascend"
    message = N_("vllm-ascend is not installed where the engine runs: vLLM cannot use an NPU, and "
                 "the MoE patch has nothing to put in vLLM's place.")
    hint = N_("Install the vllm-ascend made for the installed vLLM, or use its container image.")


class VllmMissing(VersoError):
    """There is nothing to patch."""

    code = "ascend.experts.vllm"
    message = N_("vLLM is not installed where the engine runs: the MoE patch has nothing to patch.")
    hint = N_("Install vLLM and the vllm-ascend made for it, or use a container image of "
              "vllm-ascend.")


_DIAGNOSES: dict[type[patch.MoePatchWarning], type[VersoError]] = {
    patch.TorchNpuMissing: TorchNpuMissing, patch.VllmAscendMissing: VllmAscendMissing,
    patch.VllmMissing: VllmMissing,
}


def missing(installed: Callable[[str], bool] | None = None) -> tuple[VersoError, ...]:
    """What is lacking; nothing is imported. INSTALLED says of a module whether it is there; None:
    in this Python."""
    there = installed or _installed
    return tuple(error() for warning, error in _DIAGNOSES.items() if not there(warning.package))


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
