"""One round: pages handed over as the strategy says, each followed to its end.

Continuously, a few pages more are handed over than are read at once, as in a conversion: the worker
keeps the limit, and has the next page at hand when one has ended. Such a page counts as handed over
from the moment when there was a place for it.
"""

from __future__ import annotations

import asyncio
import bisect
from collections.abc import Callable

from desktop.benchmark.clock import Clock
from desktop.benchmark.feed import Feed, Ready
from desktop.benchmark.link import EngineLink
from desktop.benchmark.plan import Level
from desktop.benchmark.records import Timing
from desktop.jobs.scheduler import PREFETCH


class RoundReading:
    """The pages of one round on their way. Used once."""

    def __init__(self, link: EngineLink, feed: Feed, level: Level, name: str, clock: Clock,
                 skip_blank: bool, ended: Callable[[Timing], None]) -> None:
        """NAME begins the ids of its pages; ENDED is called with each page that has."""
        self._link = link
        self._feed = feed
        self._level = level
        self._name = name
        self._clock = clock
        self._skip_blank = skip_blank
        self._ended = ended
        self._pending: dict[asyncio.Future[Timing], Ready] = {}
        self._batch = level.strategy.name == "batch"
        self._most = level.concurrency + (0 if self._batch else PREFETCH)
        """Pages that the worker may have."""
        self._turns: dict[int, int] = {}
        """Number of a page → how many were handed over before it."""
        self._ends: list[float] = []
        """When pages ended that had been handed over, in order."""
        self.timings: list[Timing] = []
        """Those that have ended."""
        self.begin = 0.0
        self.starved = 0.0
        """Seconds for which a place was free because the next page was not drawn yet."""

    async def read(self, count: int) -> None:
        """Have COUNT pages read; raises LevelBroken. The clock starts when as many are drawn as
        begin together."""
        await self._feed.fill()
        self.begin = self._clock.now()
        for number in range(1, count + 1):
            if len(self._pending) >= self._most:
                await self._wait(everything=self._batch)
            waiting = self._clock.now()
            ready = await self._feed.next()
            self._note_starved(waiting)
            timing = self._skipped(ready, number)
            if timing is not None:
                self._end(timing, ready)
            else:
                self._turns[number] = len(self._turns)
                done = self._link.submit(f"{self._name}-{number}", ready, number)
                self._pending[done] = ready
        while self._pending:
            await self._wait(everything=True)
        self.timings.sort(key=lambda timing: timing.number)

    async def close(self) -> None:
        """Delete the bitmaps of pages that did not end."""
        for done, ready in self._pending.items():
            if done.done() and not done.cancelled():
                done.exception()  # looked at, so that asyncio does not complain
            ready.discard()
        self._pending.clear()
        await self._feed.close()

    async def _wait(self, *, everything: bool) -> None:
        done, _rest = await asyncio.wait(
            self._pending, return_when=asyncio.ALL_COMPLETED if everything
            else asyncio.FIRST_COMPLETED)
        for timing, future in sorted(((future.result(), future) for future in done),
                                     key=lambda pair: pair[0].ended):
            before = self._turns[timing.number] - self._level.concurrency
            if 0 <= before < len(self._ends) and not self._batch:
                # It waited at hand until so many had ended.
                timing.submitted = max(timing.submitted, self._ends[before])
            bisect.insort(self._ends, timing.ended)
            self._end(timing, self._pending.pop(future))

    def _note_starved(self, since: float) -> None:
        """A page has been waited for, from SINCE on: whether a place was free meanwhile."""
        ends = sorted(done.result().ended for done in self._pending
                      if done.done() and not done.cancelled() and done.exception() is None)
        spare = len(self._pending) - self._level.concurrency + 1
        if spare > 0:
            if len(ends) < spare:
                return  # all places were taken all the time
            since = max(since, ends[spare - 1])
        self.starved += max(0.0, self._clock.now() - since)

    def _end(self, timing: Timing, ready: Ready) -> None:
        ready.discard()
        self._feed.done()
        self.timings.append(timing)
        self._ended(timing)

    def _skipped(self, ready: Ready, number: int) -> Timing | None:
        """A page that is not handed over, as ended; None: it is. A conversion would not hand it
        over either."""
        now = self._clock.now()
        timing = Timing(number, ready.page.name, now, now, now, drawing=ready.seconds)
        if ready.rendered is None:
            timing.outcome = "failed"
            timing.problem = ready.problem.problem() if ready.problem is not None else None
        elif ready.rendered.blank and self._skip_blank:
            timing.outcome = "blank"
        else:
            return None
        return timing
