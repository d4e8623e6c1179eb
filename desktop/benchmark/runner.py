"""Carries a plan out: engines are started, pages handed over, times noted.

One coroutine on one loop. It drives the client that the conversion drives, and hands over as many
pages at once as the level says – no more: the next one follows when one has ended. Of each level
only whole rounds are kept, whatever ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from array import array
from collections.abc import Callable
from dataclasses import replace

from desktop.benchmark.errors import NothingRead, OnlyBlank
from desktop.benchmark.events import (
    BenchEvent,
    EngineProgress,
    EngineStarted,
    LevelFinished,
    LevelStarted,
    Live,
    RequestFinished,
    RoundFinished,
    RoundStarted,
    RunStarted,
    Sampled,
    Stopping,
)
from desktop.benchmark.feed import Feed
from desktop.benchmark.link import EngineLink, LevelBroken, Sampling, Surroundings
from desktop.benchmark.metrics import request, round_of
from desktop.benchmark.plan import CONTINUOUS, Level, Plan
from desktop.benchmark.records import LEFT_OUT, Round, Timing, uncounted
from desktop.benchmark.results import Ended, LevelResult, level_result
from desktop.benchmark.rounds import RoundReading
from desktop.benchmark.sampling import Sample, summaries
from desktop.benchmark.workload import Workload
from desktop.errors import VersoError, problem_of
from desktop.i18n import _
from desktop.protocol.messages import EngineReady
from desktop.settings import Values, setting

log = logging.getLogger(__name__)

TICK = 0.5
"""Seconds between two looks at the rates, and for pages that have fallen silent."""


class Runner:
    """Used once, in a running loop."""

    def __init__(self, plan: Plan, workload: Workload, values: Values,
                 surroundings: Surroundings, tell: Callable[[BenchEvent], None]) -> None:
        """TELL is called in the loop's thread."""
        self._plan = plan
        self._workload = workload
        self._values = values
        self._by = surroundings
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._clock = surroundings.clock
        self._began = self._clock.now()
        self._work: asyncio.Task[None] | None = None
        self._why: Ended | None = None
        self._link = EngineLink(surroundings, values, lambda step, fraction: tell(
            EngineProgress(self._index, step, fraction)))
        self._hopeless = False
        self._index = 0
        self._serial = 1
        self._done = 0
        self._expected = plan.expected_requests()
        self._samples: list[Sample] = []
        self._measuring: float | None = None
        """When the first measured round of the level began."""
        self.levels: list[LevelResult] = []
        self.ended = Ended.COMPLETE

    async def run(self) -> None:
        """Measure everything; ``levels`` and ``ended`` tell what came of it. Raises nothing that
        a level can be blamed for."""
        self._tell(RunStarted(self._plan, self._expected))
        self._work = self._loop.create_task(self._levels())
        cap = (self._loop.call_later(self._plan.time_cap, self._stop, Ended.TIME_CAP)
               if self._plan.time_cap else None)
        tick = self._loop.create_task(self._ticks())
        try:
            await self._work
        except asyncio.CancelledError:
            if self._why is None:
                raise
            self.ended = self._why
        finally:
            if cap is not None:
                cap.cancel()
            tick.cancel()
            await asyncio.gather(tick, return_exceptions=True)
        if self.ended is Ended.COMPLETE and not any(each.rounds for each in self.levels):
            self.ended = Ended.FAILED

    def cancel(self) -> None:
        """End now; finished rounds stay. In the loop's thread."""
        self._stop(Ended.INTERRUPTED)

    def _stop(self, why: Ended) -> None:
        if self._why is None and self._work is not None and not self._work.done():
            self._why = why
            self._tell(Stopping())
            self._link.cancel.set()
            self._work.cancel()

    # --- levels

    async def _levels(self) -> None:
        try:
            before: LevelResult | None = None
            waiting = list(self._plan.stated())
            while waiting and not self._hopeless:
                level = waiting.pop(0)
                result = await self._level(level)
                if self._plan.gain is None or level.strategy != CONTINUOUS:
                    continue
                if not self._gains(before, result):
                    waiting = [each for each in waiting if each.strategy != CONTINUOUS]
                    continue
                before = result
                further = None if waiting else self._plan.further(level.concurrency)
                if further is not None:
                    waiting.append(further)
                    self._expected += further.requests * len(list(self._plan.kinds(first=False)))
        finally:
            await self._link.release()

    def _gains(self, before: LevelResult | None, after: LevelResult) -> bool:
        """Whether still more pages at once may be worth it."""
        assert self._plan.gain is not None
        if after.speed is None:
            return False
        if before is None or not before.speed:
            return True
        return after.speed >= before.speed * (1 + self._plan.gain / 100)

    async def _level(self, level: Level) -> LevelResult:
        self._index = len(self.levels)
        self._samples = []
        self._measuring = None
        result = LevelResult(self._index, level, Ended.COMPLETE)
        between: list[array[float]] = []
        self._tell(LevelStarted(self._index, level))
        sampler: Sampling | None = None
        try:
            if self._by.sampling is not None:  # looking for devices may take a moment
                sampler = await self._loop.run_in_executor(
                    None, self._by.sampling, self._sampled, lambda: self._link.pid)
            await self._by.source.prepare([self._workload.page(number)
                                           for number in range(level.requests)])
            ready, seconds = await self._engine(level.concurrency)
            result = replace(result, ready=ready, start_seconds=seconds)
            if sampler is not None:
                sampler.start()
            for kind, number in self._plan.kinds(first=seconds is not None):
                figures, gaps = await self._round(level, kind, number)
                if kind == "cold":
                    result = replace(result, cold=figures)
                elif kind == "warm-up":
                    result = replace(result, warmups=(*result.warmups, figures))
                else:
                    result = replace(result, rounds=(*result.rounds, figures))
                    between.append(gaps)
                self._tell(RoundFinished(self._index, level, figures))
                if not figures.counted:
                    raise LevelBroken(_nothing(figures))
        except asyncio.CancelledError:
            result = replace(result, ended=self._why or Ended.INTERRUPTED)
            raise
        except LevelBroken as broken:
            self._hopeless = broken.hopeless
            result = replace(result, ended=Ended.FAILED, problem=broken.error.problem())
        except Exception as error:
            log.exception("a level of the measurement failed")
            result = replace(result, ended=Ended.FAILED, problem=problem_of(error))
        finally:
            if sampler is not None:
                await self._loop.run_in_executor(None, sampler.stop)
            result = level_result(replace(
                result, samples=tuple(self._samples), devices=summaries(self._measured())), between)
            self.levels.append(result)
            self._tell(LevelFinished(result))
        if result.ended is Ended.FAILED:
            await self._link.release()  # or its client would start it again
        return result

    async def _engine(self, concurrency: int) -> tuple[EngineReady, float | None]:
        """What reads so many pages at once, and the seconds to start it; None: it ran already."""
        seconds = None
        if self._link.running and self._plan.keep_engine:
            self._link.set_concurrency(concurrency)
        else:
            # One that is kept must have room for the levels to come.
            most = max(level.concurrency for level in self._plan.possible())
            seconds = await self._link.start(
                concurrency, most if self._plan.keep_engine else concurrency)
        assert self._link.ready is not None
        self._tell(EngineStarted(self._index, self._link.ready, seconds or 0.0))
        return self._link.ready, seconds

    async def _round(self, level: Level, kind: str, number: int) -> tuple[Round, array[float]]:
        pages = [self._workload.page(index) for index in range(level.requests)]
        feed = Feed(self._by.source, pages, self._serial, level.concurrency)
        self._serial += len(pages)
        self._tell(RoundStarted(self._index, level, kind, number, len(pages)))
        if kind == "measured" and self._measuring is None:
            self._measuring = self._clock.now()
        reading = RoundReading(
            self._link, feed, level, f"b{self._index}-{kind[0]}{number}", self._clock,
            bool(self._values["skip_blank"]), lambda timing: self._ended(kind, number, timing))
        try:
            await reading.read(len(pages))
        finally:
            await reading.close()
        return round_of(level, kind, number, reading.begin, reading.timings, self._plan.goodput,
                        reading.starved)

    def _ended(self, kind: str, number: int, timing: Timing) -> None:
        """A page has."""
        self._done += 1
        self._link.rates.pages += timing.counted
        self._tell(RequestFinished(self._index, kind, number, request(timing)))

    # --- beside

    async def _ticks(self) -> None:
        rates = self._link.rates
        while True:
            await asyncio.sleep(TICK)
            now = self._clock.now()
            tokens, characters, pages = rates.look(now)
            self._tell(Live(self._index, now - self._began, tokens if rates.tokens else None,
                            characters, pages, self._link.in_flight, self._done, self._expected))
            self._link.find_silent()

    def _measured(self) -> list[Sample]:
        """The samples of the measured rounds; all of the level's, where there are none."""
        since = self._measuring
        return [one for one in self._samples if since is not None and one.at > since] or (
            self._samples)

    def _sampled(self, sample: Sample) -> None:
        """On a thread of the sampler's."""
        def take() -> None:
            self._samples.append(sample)
            self._tell(Sampled(self._index, sample))
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(take)


def _nothing(figures: Round) -> VersoError:
    """Why none of the pages counts."""
    if set(figures.outcomes) == {LEFT_OUT}:
        declared = setting("skip_blank")
        return OnlyBlank(title=_(declared.title), flag=declared.flag)
    problem = next((one.problem for one in figures.requests if one.problem is not None), None)
    return NothingRead(
        reason=problem.message if problem else uncounted(figures.outcomes),
        hint=(problem.hint if problem else "") or _(
            "Convert one of them to see why."))
