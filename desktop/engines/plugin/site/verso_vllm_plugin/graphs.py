"""The vision encoder as captured CUDA graphs, for some numbers of views.

Launched one by one, the some 1,500 kernels of a page keep the engine core's one thread busy for
longer than the device needs for them. A graph is one launch.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Tuple

import torch

from verso_vllm_plugin import NotHere, log, pages


class Graphs:
    """Graphs of one model; made with the first page, which is the engine's warm-up."""

    def __init__(self, model: Any, most: int) -> None:
        """MOST: pages at once; fewer where memory is short."""
        self._graphs: Dict[Tuple[int, int], Tuple[Any, torch.Tensor]] = {}
        self._inputs: Dict[int, torch.Tensor] = {}
        started = time.monotonic()
        at_once = pages.room(model, most)
        self.chunks = pages.Chunks(max(1, at_once))
        if at_once < 1:
            log.warning("Verso: no room for graphs of the vision encoder")
            return
        free = torch.cuda.mem_get_info()[0]
        self._capture(model, next(model.sam_model.parameters()))
        log.info("Verso: vision encoder captured for %s views and %s tiles in %.1f s, %d MiB",
                 self.chunks.views, self.chunks.tiles, time.monotonic() - started,
                 max(0, free - torch.cuda.mem_get_info()[0]) >> 20)

    def encode(self, model: Any, views: torch.Tensor) -> torch.Tensor:
        """See ``pages.Encode``."""
        count, side = views.shape[0], views.shape[-1]
        graph, out = self._graphs.get((side, count), (None, views))
        if graph is None:
            return pages.features(model, views)
        self._inputs[side][:count].copy_(views)
        graph.replay()
        # The graphs share their memory: the next one may write here.
        return out.clone()

    def _capture(self, model: Any, weight: torch.Tensor) -> None:
        pool = torch.cuda.graph_pool_handle()
        for side, counts in ((pages.TILE, self.chunks.tiles), (pages.VIEW, self.chunks.views)):
            self._inputs[side] = _blank(counts[0], side, weight)
            for count in counts:  # the largest first: the others fit into its memory
                views = self._inputs[side][:count]
                stream = torch.cuda.Stream()
                stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(stream):
                    pages.features(model, views)  # lets libraries choose their kernels
                torch.cuda.current_stream().wait_stream(stream)
                torch.cuda.synchronize()
                torch.cuda.empty_cache()
                graph = torch.cuda.CUDAGraph()
                # Other threads of the engine may wait for their own copies meanwhile.
                with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
                    out = pages.features(model, views)
                self._graphs[side, count] = (graph, out)


def _blank(count: int, side: int, like: torch.Tensor) -> torch.Tensor:
    return torch.zeros((count, 3, side, side), dtype=like.dtype, device=like.device)


def apply(most: int) -> str:
    """Make graphs of every model whose first page arrives from now on, for up to MOST pages."""
    from vllm.platforms import current_platform

    if not current_platform.is_cuda():
        raise NotHere("there is no CUDA")

    def make(model: Any) -> Any:
        try:
            return Graphs(model, most)
        except Exception:  # noqa: BLE001 - vLLM goes on without it
            # Pages can be read without them.
            log.warning("Verso: the vision encoder cannot be captured", exc_info=True)
            torch.cuda.empty_cache()
            return pages.launched(model)

    pages.make_encoder = make
    return f"captured for up to {most} pages at once"
