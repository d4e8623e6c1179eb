"""Waiting for a drawing in a coroutine, and no longer."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from pathlib import Path

import pytest

from desktop.intake.awaiting import drawn
from desktop.intake.errors import PageFailed
from desktop.intake.model import RenderedPage


def page(folder: Path) -> RenderedPage:
    """A page as it was drawn, with its file."""
    image = folder / "page.ppm"
    image.write_bytes(b"P6 1 1 255\n...")
    return RenderedPage(str(image), 1, 1, 72.0)


async def left(drawing: Future[RenderedPage]) -> None:
    """Somebody waits for DRAWING, and is cancelled while it goes on."""
    task = asyncio.create_task(drawn(drawing))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def ends_for_nobody(end: Callable[[Future[RenderedPage]], None]) -> None:
    """A drawing that has begun when it is left, and ends as END has it. What asyncio complains of
    it says when the last of it is gone."""
    drawing: Future[RenderedPage] = Future()
    drawing.set_running_or_notify_cancel()
    await left(drawing)
    end(drawing)
    for _turn in range(3):
        await asyncio.sleep(0)


def complaints_of(end: Callable[[Future[RenderedPage]], None]) -> list[str]:
    """What asyncio complains of."""
    found: list[str] = []

    async def body() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, context: found.append(str(context)))
        await ends_for_nobody(end)
        gc.collect()

    asyncio.run(body())
    return found


def test_it_is_given_on(tmp_path: Path) -> None:
    async def body() -> None:
        drawing: Future[RenderedPage] = Future()
        task = asyncio.create_task(drawn(drawing))
        await asyncio.sleep(0)
        drawing.set_running_or_notify_cancel()
        drawing.set_result(page(tmp_path))
        assert (await task).image == str(tmp_path / "page.ppm")
        assert (tmp_path / "page.ppm").exists()

    asyncio.run(body())


def test_its_error_is_raised() -> None:
    async def body() -> None:
        drawing: Future[RenderedPage] = Future()
        drawing.set_exception(PageFailed(detail="x"))
        with pytest.raises(PageFailed):
            await drawn(drawing)

    asyncio.run(body())


def test_before_its_turn_it_is_cancelled() -> None:
    async def body() -> None:
        drawing: Future[RenderedPage] = Future()
        await left(drawing)
        assert drawing.cancelled()

    asyncio.run(body())


def test_what_is_drawn_for_nobody_is_deleted(tmp_path: Path) -> None:
    assert not complaints_of(lambda drawing: drawing.set_result(page(tmp_path)))
    assert not (tmp_path / "page.ppm").exists()


@pytest.mark.parametrize("error", [CancelledError, PageFailed])
def test_how_it_failed_for_nobody_is_no_complaint(error: Callable[[], BaseException]) -> None:
    """Closed, the drawing processes end what they draw with CancelledError."""
    assert not complaints_of(lambda drawing: drawing.set_exception(error()))
