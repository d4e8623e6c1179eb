"""A DeepSeek-OCR-2 of random numbers, so small that real vLLM runs it on any processor.

What is real: vLLM itself, its classes of this model, its image processor (true tiles and token
counts), scheduler, streaming, servers. What is not: the weights, which are random, and the
tokenizer's words. Its output is noise, unless it is told what to write (``SCRIPT``).

``build`` writes the folder.
``environment`` are the variables under which vLLM must run to take it: they bring the folder
``path`` beside this file, in which lie a plugin that shrinks the vision towers, the logits
processor that recites, and a repair for torchvision's wheel beside a torch for processors.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.tiny_vllm.model import CONTEXT, build

PATH = Path(__file__).with_name("path")
"""The folder for PYTHONPATH."""

NGRAM = "vllm.model_executor.models.deepseek_ocr:NGramPerReqLogitsProcessor"
"""vLLM's own processor that forbids repeated n-grams, for servers started by hand."""

SCRIPT = "VERSO_TINY_SCRIPT"
"""Variable that names the file whose text pages get; see ``verso_tiny_vllm.Recital``."""

ENGINE_ARGS: dict[str, object] = {
    "dtype": "float32", "max_model_len": 4096, "max_num_seqs": 4,
    "enforce_eager": True, "enable_prefix_caching": False, "mm_processor_cache_gb": 0,
    "limit_mm_per_prompt": {"image": 1},
}
"""Arguments of vLLM's engine with which the model runs on two cores and 4 GiB."""

__all__ = ["CONTEXT", "ENGINE_ARGS", "NGRAM", "PATH", "SCRIPT", "build", "environment",
           "interpreter"]


def environment(script: Path | None = None) -> dict[str, str]:
    """Variables to be set on top of our own; SCRIPT: the file that says what pages get."""
    search = [str(PATH), os.environ.get("PYTHONPATH", "")]
    variables = {
        "PYTHONPATH": os.pathsep.join(entry for entry in search if entry),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        # By itself vLLM binds threads to cores and reserves one: of two cores that is half.
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
    }
    if script is not None:
        variables[SCRIPT] = str(script)
    return variables


def interpreter() -> Path | None:
    """The Python of the environment with real vLLM (``packaging/test --engines`` makes it), or
    None where there is none."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(os.environ.get("VERSO_ENGINES_ENV") or cache / "verso-tests" / "engines")
    python = folder / "bin" / "python"
    return python if python.exists() else None
