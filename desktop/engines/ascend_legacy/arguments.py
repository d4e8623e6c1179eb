"""Settings as the arguments of vLLM 0.8.5's engine, with the values of the CANN recipe (Atlas A2):
those of its benchmark, which starts the engine as its run scripts do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from desktop.engines.ascend_legacy.official import ARCHITECTURE
from desktop.engines.vllm.arguments import Arguments
from desktop.i18n import _

SEQUENCES = 100
"""Pages that vLLM works on at once: the official scripts' own number, and the most that the
recipe was measured with."""
DTYPE = "bfloat16"
"""The official code converts to it wherever it computes; no other format runs."""


def build(values: Mapping[str, Any], *, npu: bool) -> Arguments:
    """The arguments of ``AsyncEngineArgs`` for the declared settings VALUES; NPU: pages are read
    on an NPU."""
    notes = []
    if values["dtype"] not in ("auto", DTYPE):
        notes.append(_("The official code computes in bfloat16 only: “Number format” has no "
                       "effect."))
    wanted: dict[str, Any] = {
        "model": values["model"],
        "hf_overrides": {"architectures": [ARCHITECTURE]},
        "dtype": DTYPE,
        "trust_remote_code": True,
        "max_model_len": values["max_model_len"],
        # vllm-ascend 0.8.5rc1 has no graphs for this model.
        "enforce_eager": npu or values["eager"],
        "tensor_parallel_size": values["tensor_parallel"],
        "gpu_memory_utilization": values["memory_utilization"],
        "swap_space": values["swap_space"],
        "disable_mm_preprocessor_cache": True,
        "max_num_seqs": max(values["concurrency"], SEQUENCES),
        "disable_log_requests": True,  # They would be in the log with their text.
        "disable_log_stats": True,
    }
    if values["quantization"] != "none":
        wanted["quantization"] = values["quantization"]
    return Arguments(wanted, tuple(notes))
