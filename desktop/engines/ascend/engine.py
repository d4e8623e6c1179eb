"""The engine ``ascend``: vLLM's own model on an Ascend NPU, by vllm-ascend 0.16 and later."""

from __future__ import annotations

from desktop.engines.ascend.loading import AscendLoader
from desktop.engines.vllm.engine import VllmEngine


class AscendEngine(VllmEngine):
    """The engine ``vllm`` with what an NPU needs otherwise; see :class:`AscendLoader`."""

    name = "ascend"
    loader = AscendLoader
