"""Our plugin for vLLM, as a folder that any Python with vLLM can be given.

vLLM loads plugins by entry point in each of its processes, the engine core's among them. The
folder holds the package ``verso_vllm_plugin`` and a dist-info that names it, so that it is found
wherever the folder is on ``sys.path`` and PYTHONPATH; nothing is installed. What the plugin does
is chosen by environment variables, see :func:`environment`.

Runs on Python 3.10 without any other package.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

MASK = "VERSO_FAST_MASK"
"""1: the vision encoder's attention mask by tensor operations."""
TOKENIZER_CLASS = "VERSO_TOKENIZER_CLASS"
"""1: the model's tokenizer read by the right class with transformers 5 before 5.8."""
ATTENTION_TYPE = "VERSO_ATTENTION_TYPE"
"""1: the attention type that vllm-ascend's visual decoder asks its layers for."""
HEAD_SIZE = "VERSO_HEAD_SIZE"
"""1: the attention's head size computed where the configuration yields 0."""
ATTENTION = "VERSO_FAST_ATTENTION"
"""1: the vision encoder's attention with relative positions in one kernel."""
PAGES = "VERSO_RAW_PAGES"
"""1: pages cross to the engine core as they are, and are cut into views on the device."""
GRAPHS = "VERSO_ENCODER_GRAPHS"
"""Most pages that the vision encoder takes at once, as captured graphs; 0: launched one by one."""


def folder() -> Path:
    """What goes on ``sys.path`` and PYTHONPATH. Absolute, and valid under the link through which
    the worker's interpreter sees our package."""
    return Path(__file__).absolute().parent / "site"


def environment(settings: Mapping[str, Any]) -> dict[str, str]:
    """The variables that make the plugin do what SETTINGS (as declared) ask for.

    To be set before vLLM is imported, so that its processes inherit them. Each is a wish: the
    plugin looks at what the installed vLLM has and says in the log what it did.
    """
    def asked(key: str) -> bool:
        return bool(settings.get(key, True))

    graphs = asked("encoder_graphs") and not settings.get("eager")
    return {
        MASK: "1" if asked("fast_mask") else "0",
        ATTENTION: "1" if asked("fast_attention") else "0",
        HEAD_SIZE: "1",
        TOKENIZER_CLASS: "1",
        ATTENTION_TYPE: "1",
        PAGES: "1" if asked("raw_pages") else "0",
        GRAPHS: str(_AT_ONCE) if graphs else "0",
    }


_AT_ONCE = 4
"""Pages: more at once are hardly faster a page, and take memory."""
