"""Slow questions asked off the window's thread, without holding up its end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_background(work: Callable[[], T], name: str = "background") -> T:
    """What WORK returns or raises, run on a thread that cannot keep the process from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():  # nobody waits any more
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result: T | None = None
        trouble: BaseException | None = None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            trouble = error
        try:
            loop.call_soon_threadsafe(settle, result, trouble)
        except RuntimeError:
            return  # the window is gone

    threading.Thread(target=run, name=name, daemon=True).start()
    return await future
