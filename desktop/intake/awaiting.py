"""A drawing that a coroutine waits for, and may stop waiting for."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

from desktop.intake.model import RenderedPage


async def drawn(drawing: Future[RenderedPage]) -> RenderedPage:
    """The page of a future of :meth:`desktop.intake.rasterizer.Rasterizer.render`, whose errors it
    raises. Cancelled meanwhile, it sees to it that what is drawn for nobody is deleted."""
    waiting = asyncio.wrap_future(drawing)
    try:
        # Shielded: a drawing that has begun cannot be cancelled, its files must be found.
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        # Nobody asks how it ended; asyncio would log that as an error.
        waiting.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        if not drawing.cancel():
            drawing.add_done_callback(_delete)
        raise


def _delete(drawing: Future[RenderedPage]) -> None:
    if not drawing.cancelled() and drawing.exception() is None:
        drawing.result().delete()
