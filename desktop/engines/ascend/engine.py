"""The engine ``ascend``: vLLM's own model on an Ascend NPU, by vllm-ascend 0.16 and later."""

from __future__ import annotations

import msgspec

from desktop.engines.ascend.loading import AscendLoader, stack_versions
from desktop.engines.vllm.engine import VllmEngine
from desktop.protocol.messages import EngineReady


class AscendEngine(VllmEngine):
    """The engine ``vllm`` with what an NPU needs otherwise; see :class:`AscendLoader`."""

    name = "ascend"
    loader = AscendLoader

    async def _report(self) -> EngineReady:
        ready = await super()._report()
        return msgspec.structs.replace(ready, versions={**ready.versions, **stack_versions()})
