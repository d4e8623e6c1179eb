"""Several engines of vLLM that share one device and the pages.

vLLM's engine core is a process with one busy thread, which prepares a step, launches it and takes
in what came out. Between two steps the device waits for it. With two cores, each with a copy of
the weights and its share of the memory, one computes while the other prepares.
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from desktop.engines.vllm.devices import Device
from desktop.engines.vllm.failures import GB
from desktop.engines.vllm.preflight import Need

_log = logging.getLogger(__name__)

AUTOMATIC = 2
"""Cores of a device that has room for them."""
_PAGES = 50
"""Pages, each with :data:`_PAGE` tokens, that the KV cache of each of several cores must hold."""
_PAGE = 3500
_BESIDES = 3.0 * GB
"""What each core takes beyond its share: graphs of the vision encoder, and what they work in."""
_FEW = 16
"""With fewer pages in flight the device waits for pages, not for the core."""
_THREADS = 4
"""Threads of the processor that a core keeps busy, those of its libraries counted."""
_PATIENCE = 2.0
"""Seconds for vLLM's processes to end by themselves: no page is with them any more."""


def how_many(values: Mapping[str, Any], needed: Need, devices: Sequence[Device]) -> int:
    """Engine cores for the declared settings VALUES, on DEVICES that are used (empty: not known)
    and a model that takes what is NEEDED."""
    parallel = (int(values["tensor_parallel"]) * int(values["pipeline_parallel"])
                * int(values["data_parallel"]))
    if parallel > 1:
        return 1
    if values["engine_cores"]:
        return int(values["engine_cores"])
    if len(devices) != 1 or values["eager"] or 0 < int(values["concurrency"]) < _FEW:
        return 1
    if (os.cpu_count() or 1) < AUTOMATIC * _THREADS:
        return 1
    total, share = devices[0].total, float(values["memory_utilization"])
    token = needed.cache / max(1, int(values["max_model_len"]))
    least = needed.least + _PAGES * _PAGE * token
    fits = (share * total >= AUTOMATIC * least
            and (1 - share) * total >= AUTOMATIC * _BESIDES)
    return AUTOMATIC if fits else 1


class Cores:
    """``AsyncLLM``s, each with a core of its own; a page goes to the one that has least to do."""

    def __init__(self, engines: Sequence[Any]) -> None:
        self._engines = tuple(engines)
        self._load = [0] * len(self._engines)

    def __len__(self) -> int:
        return len(self._engines)

    @property
    def first(self) -> Any:
        """One of them, for what all have in common."""
        return self._engines[0]

    @property
    def errored(self) -> bool:
        """Whether one of them is dead."""
        return any(engine.errored for engine in self._engines)

    @property
    def cache_tokens(self) -> int:
        """Tokens that their KV caches hold together."""
        caches = [engine.vllm_config.cache_config for engine in self._engines]
        return sum(int(cache.num_gpu_blocks or 0) * int(cache.block_size or 0)
                   for cache in caches)

    async def generate(self, prompt: Any, parameters: Any, request: str, cost: int,
                       core: int | None = None, **keywords: Any) -> AsyncGenerator[Any, None]:
        """vLLM's outputs for PROMPT, which is expected to take COST tokens of a KV cache, from
        the one that has least to do, or from CORE."""
        chosen = self._load.index(min(self._load)) if core is None else core
        self._load[chosen] += cost
        try:
            stream = self._engines[chosen].generate(prompt, parameters, request, **keywords)
            async with aclosing(stream):
                async for result in stream:
                    yield result
        finally:
            self._load[chosen] -= cost

    def shut_down(self) -> None:
        """End vLLM's processes; those that do not end by themselves in time are killed. Blocks."""
        for engine in self._engines:
            _shut_down(engine)


def _shut_down(engine: Any) -> None:
    try:
        if "timeout" in inspect.signature(engine.shutdown).parameters:
            engine.shutdown(timeout=_PATIENCE)
        else:
            engine.shutdown()
    except Exception:  # noqa: BLE001 - the worker ends, and its group is killed
        _log.exception("vLLM did not shut down in order")
