"""Pages of which nothing is heard any more: found, so that they do not keep the queue for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from desktop.jobs.pages import PageRun, Phase


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
            self._timer = loop.call_at(min(rest) + limit, self.look)
