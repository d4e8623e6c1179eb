"""Variables that vLLM, and the processes that it starts, read while they are imported."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ALWAYS: Mapping[str, str] = {
    # A fork of this process would inherit its threads' locks; a new process does not.
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    # The model is on this machine, and documents are nobody else's business.
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}
PREFERRED: Mapping[str, str] = {
    "TOKENIZERS_PARALLELISM": "false",
    # Numbers are those of nvidia-smi; by itself CUDA counts from the fastest GPU.
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
}
"""Set unless a person has."""

_SECRET = re.compile(r"(?:^|[_-])(?:token|key|secret|password)$")
"""Ends of the names of arguments whose values are nobody's business: hf_token, api-key."""


def prepare(folder: Path, plugin: str, *, preferred: Mapping[str, str] | None = None,
            always: Mapping[str, str] | None = None) -> None:
    """Set in this process what further ones inherit: the tables above with what PREFERRED and
    ALWAYS add, and the way to the vLLM plugin PLUGIN (an entry point's name) in FOLDER.

    May be called again. The plugin is found by PYTHONPATH; where a person has named plugins in
    VLLM_PLUGINS, only those are loaded, so it is named too.
    """
    for key, value in {**PREFERRED, **(preferred or {})}.items():
        os.environ.setdefault(key, value)
    os.environ.update({**ALWAYS, **(always or {})})
    path = str(folder)
    if path not in sys.path:
        sys.path.append(path)
    search = os.environ.get("PYTHONPATH", "")
    if path not in search.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(part for part in (search, path) if part)
    chosen = os.environ.get("VLLM_PLUGINS")
    if chosen is not None and plugin not in chosen.split(","):
        os.environ["VLLM_PLUGINS"] = ",".join(part for part in (chosen, plugin) if part)


def discreet(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of vLLM as they may stand in a log or a result."""
    return {key: "…" if _SECRET.search(key) and value else value for key, value in given.items()}
