"""Pages of which nothing is heard any more: found, so that they do not keep the queue for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from desktop.jobs.pages import PageRun, Phase

LATE = 1.0
"""Seconds by which the timer may be late; later, and it was we who had no turn (a busy machine, a
process that was stopped): what the engine said meanwhile is still to be read."""


class StallWatch:
    """Used on the session's loop only. Costs one timer while pages are being read."""

    def __init__(self, runs: Callable[[], Iterable[PageRun]], limit: Callable[[], float],
                 stalled: Callable[[PageRun], None]) -> None:
        """LIMIT: seconds without a word after which STALLED is called with the page."""
        self._runs = runs
        self._limit = limit
        self._stalled = stalled
        self._timer: asyncio.TimerHandle | None = None

    def heard(self, run: PageRun) -> None:
        """The engine said something about the page."""
        run.heard = asyncio.get_running_loop().time()
        if self._timer is None:
            self.look()

    def look(self) -> None:
        """Find pages that have stalled; also when the limit is another."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop, limit = asyncio.get_running_loop(), self._limit()
        watched = [run for run in self._runs()
                   if run.phase is Phase.STREAMING and not run.ended.done()]
        due = [run for run in watched if run.heard + limit <= loop.time()]
        for run in due:
            self._stalled(run)
        rest = [run.heard for run in watched if run not in due]
        if rest:
            due_at = min(rest) + limit
            self._timer = loop.call_at(due_at, self._on_time, due_at)

    def _on_time(self, due_at: float) -> None:
        now = asyncio.get_running_loop().time()
        if now - due_at > LATE:
            for run in self._runs():
                run.heard = now
        self.look()
