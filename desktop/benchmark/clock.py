"""Time as a measurement sees it.

The worker stamps each output of the engine on the machine's monotonic clock, which application
and worker share (on Linux one clock serves all processes; asyncio's loops use it). So a request's
times, taken on both sides, are on one scale and no message's way is part of them.

Tests run everything – runner, worker and scripted engine – in one loop whose clock jumps from one
event to the next: there every figure is exact.
"""

from __future__ import annotations

import asyncio
from typing import Protocol


class Clock(Protocol):
    """Seconds on the clock that the worker's stamps are on."""

    def now(self) -> float:
        """The time."""
        ...


class LoopClock:
    """The clock of a loop: the machine's monotonic one, unless a test has put in its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop or asyncio.get_running_loop()

    def now(self) -> float:
        """The time."""
        return self._loop.time()
