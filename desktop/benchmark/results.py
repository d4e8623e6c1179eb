"""What a run found: a level's figures over its rounds, and the run as a whole."""

from __future__ import annotations

import enum
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from desktop.benchmark.metrics import distribution, spread
from desktop.benchmark.plan import Level, Plan, Strategy
from desktop.benchmark.records import Distribution, Request, Round, Spread
from desktop.benchmark.sampling import Sample, Summary
from desktop.benchmark.workload import Workload
from desktop.errors import Problem
from desktop.protocol.messages import EngineReady


class Ended(enum.Enum):
    """Why a run, or a level of it, ended."""

    COMPLETE = "complete"
    FAILED = "failed"
    """Its engine did not start, or died. (A run: no level has a figure.)"""
    INTERRUPTED = "interrupted"
    TIME_CAP = "time cap"


@dataclass(frozen=True)
class LevelResult:
    """One level. Figures are those of its measured rounds; None where there are none."""

    index: int
    level: Level
    ended: Ended
    problem: Problem | None = None
    ready: EngineReady | None = None
    """What the engine got."""
    start_seconds: float | None = None
    """From starting the worker to the engine being ready; None: it ran already."""
    cold: Round | None = None
    warmups: tuple[Round, ...] = ()
    rounds: tuple[Round, ...] = ()
    itl: Distribution | None = None
    devices: tuple[Summary, ...] = ()
    """While the measured rounds were read; where that was too short for a sample, all the time."""
    samples: tuple[Sample, ...] = ()

    @property
    def concurrency(self) -> int:
        """Pages at once."""
        return self.level.concurrency

    @property
    def strategy(self) -> Strategy:
        """How pages were handed over."""
        return self.level.strategy

    @property
    def requests(self) -> list[Request]:
        """Those of the measured rounds."""
        return [one for each in self.rounds for one in each.requests]

    @property
    def output_tps(self) -> Spread | None:
        """Output tokens a second."""
        return self._rate(each.output_tps for each in self.rounds)

    @property
    def total_tps(self) -> Spread | None:
        """Tokens a second, those of prompts and pages included."""
        return self._rate(each.total_tps for each in self.rounds)

    @property
    def pages_per_s(self) -> Spread | None:
        """Pages a second."""
        return spread(each.pages_per_s for each in self.rounds)

    @property
    def chars_per_s(self) -> Spread | None:
        """Characters a second."""
        return spread(each.chars_per_s for each in self.rounds)

    @property
    def seconds(self) -> Spread | None:
        """Of a round."""
        return spread(each.seconds for each in self.rounds)

    @property
    def goodput(self) -> Spread | None:
        """Pages a second within the limits."""
        return spread(each.goodput for each in self.rounds)

    @property
    def ttft(self) -> Distribution | None:
        """Over all pages that count."""
        return distribution(one.ttft for one in self._counted if one.ttft is not None)

    @property
    def tpot(self) -> Distribution | None:
        """Likewise."""
        return distribution(one.tpot for one in self._counted if one.tpot is not None)

    @property
    def latency(self) -> Distribution | None:
        """Likewise."""
        return distribution(one.latency for one in self._counted)

    @property
    def steady_output_tps(self) -> Spread | None:
        """Output tokens a second apart from ramp-up and drain."""
        return spread(each.steady.output_tps if each.steady else None for each in self.rounds)

    @property
    def steady_total_tps(self) -> Spread | None:
        """Tokens a second apart from ramp-up and drain."""
        return spread(each.steady.total_tps if each.steady else None for each in self.rounds)

    @property
    def steady_pages_per_s(self) -> Spread | None:
        """Pages a second apart from ramp-up and drain."""
        return spread(each.steady.pages_per_s if each.steady else None for each in self.rounds)

    @property
    def steady_chars_per_s(self) -> Spread | None:
        """Characters a second apart from ramp-up and drain."""
        return spread(each.steady.chars_per_s if each.steady else None for each in self.rounds)

    @property
    def outcomes(self) -> dict[str, int]:
        """Word → pages of the measured rounds that ended so."""
        return dict(sum((Counter(each.outcomes) for each in self.rounds), Counter[str]()))

    @property
    def looped(self) -> int:
        """Pages whose output repeated itself to the end."""
        return sum(each.looped for each in self.rounds)

    @property
    def failed(self) -> int:
        """Pages that failed."""
        return sum(each.failed for each in self.rounds)

    @property
    def flawed(self) -> bool:
        """Whether something about it went wrong: an exit status of 1."""
        return self.ended is Ended.FAILED or any(
            each.failed or each.looped for each in self.every_round)

    @property
    def every_round(self) -> tuple[Round, ...]:
        """Cold, warm-up and measured ones."""
        return (*((self.cold,) if self.cold else ()), *self.warmups, *self.rounds)

    @property
    def speed(self) -> float | None:
        """What levels are compared by: output tokens a second, else pages a second."""
        found = self.output_tps or self.pages_per_s
        return found.mean if found is not None else None

    @property
    def _counted(self) -> list[Request]:
        return [one for one in self.requests if one.counted]

    def _rate(self, values: Iterable[float | None]) -> Spread | None:
        """Of tokens: where some rounds have them, one in which every page failed brought none."""
        found = list(values)
        if all(value is None for value in found):
            return None
        return spread(value if value is not None or each.counted else 0.0
                      for value, each in zip(found, self.rounds, strict=True))


def level_result(result: LevelResult, gaps: Iterable[array[float]]) -> LevelResult:
    """RESULT with the distribution of the GAPS of its measured rounds."""
    together: array[float] = array("d")
    for each in gaps:
        together.extend(each)
    return replace(result, itl=distribution(together))


@dataclass(frozen=True)
class Result:
    """A whole run."""

    plan: Plan
    workload: Workload
    engine: str
    settings: Mapping[str, Any]
    """Values in force, without secrets."""
    changed: Mapping[str, Any]
    """Those that differ from the defaults."""
    engine_args: Mapping[str, str]
    started: float
    """Seconds since the epoch."""
    seconds: float
    ended: Ended
    levels: tuple[LevelResult, ...] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    command: str = ""
    """The equivalent command line."""

    @property
    def ready(self) -> EngineReady | None:
        """What the engine got, at the first level that had one."""
        return next((each.ready for each in self.levels if each.ready is not None), None)

    @property
    def problem(self) -> Problem | None:
        """Of the first level that failed."""
        return next((each.problem for each in self.levels if each.problem is not None), None)

    @property
    def counts_tokens(self) -> bool:
        """Whether the engine counts tokens."""
        return any(each.output_tps is not None or (each.cold is not None
                                                   and each.cold.output_tps is not None)
                   for each in self.levels)


def measured(levels: Sequence[LevelResult]) -> list[LevelResult]:
    """Those that have figures."""
    return [each for each in levels if each.rounds]
