"""What the form asks for, as data: it is remembered, and becomes a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from desktop.benchmark.plan import (
    CONTINUOUS,
    GAIN,
    LEVELS,
    Goodput,
    Plan,
    Requests,
    Strategy,
)

SAMPLES, DOCUMENT, CHOSEN = "samples", "document", "chosen"
CONTINUOUSLY, ONE_BY_ONE, BATCHES, COMPARE = "continuous", "sequential", "batch", "compare"
MOST_ROUNDS = 1_000
MOST_AMOUNT = 100_000
MOST_MINUTES = 7 * 24 * 60
MOST_MS = 3_600_000


@dataclass(frozen=True)
class Wish:
    """All fields of the form. Zero means “none” for limits."""

    pages: str = SAMPLES
    """``samples``, ``document`` (that shown in the window), ``chosen`` (PATHS)."""
    paths: tuple[str, ...] = ()
    levels: str = ", ".join(map(str, LEVELS))
    raising: bool = False
    warmup: int = 2
    rounds: int = 5
    amount: int = 1
    """Pages a round."""
    times: bool = True
    """AMOUNT is in times of the pages at once."""
    keep_engine: bool = False
    strategy: str = CONTINUOUSLY
    batch: int = 4
    cold: bool = True
    unique: bool = False
    ahead: bool = False
    minutes: int = 0
    """After which the run ends."""
    ttft: int = 0
    """Milliseconds, as the next two: limits of goodput."""
    tpot: int = 0
    e2el: int = 0

    @property
    def strategies(self) -> tuple[Strategy, ...]:
        """How pages are handed over."""
        batches = Strategy("batch", self.batch)
        return {ONE_BY_ONE: (Strategy("sequential"),), BATCHES: (batches,),
                COMPARE: (Strategy("sequential"), batches, CONTINUOUS)}.get(
                    self.strategy, (CONTINUOUS,))

    @property
    def continuous(self) -> bool:
        """Whether pages at once can be chosen, and raised."""
        return CONTINUOUS in self.strategies

    def plan(self) -> Plan:
        """What is to be measured; raises BadPlan."""
        limits = {key: float(value) for key, value in (
            ("ttft", self.ttft), ("tpot", self.tpot), ("e2el", self.e2el)) if value}
        return Plan(
            levels=Plan.parse_levels(self.levels) if self.continuous else (1,),
            strategies=self.strategies, cold=self.cold, warmup=self.warmup, rounds=self.rounds,
            requests=Requests(times=float(self.amount)) if self.times
            else Requests(count=self.amount),
            gain=GAIN if self.raising and self.continuous else None,
            time_cap=60.0 * self.minutes, goodput=Goodput(limits), keep_engine=self.keep_engine,
            unique=self.unique, ahead=self.ahead)

    def kept(self) -> str:
        """As text, for the settings of the window."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def of(cls, kept: object) -> Wish:
        """What :meth:`kept` gave; the usual form where it is of another version or damaged."""
        if not isinstance(kept, str) or not kept:
            return cls()
        try:
            found = msgspec.json.decode(kept, type=cls)
        except msgspec.MsgspecError:
            return cls()
        return found if _in_range(found) else cls()


_RANGES: Mapping[str, tuple[int, int]] = {
    "warmup": (0, MOST_ROUNDS), "rounds": (1, MOST_ROUNDS), "amount": (1, MOST_AMOUNT),
    "batch": (1, 256), "minutes": (0, MOST_MINUTES), "ttft": (0, MOST_MS), "tpot": (0, MOST_MS),
    "e2el": (0, MOST_MS)}


def range_of(field: str) -> tuple[int, int]:
    """The least and the most that FIELD can be."""
    return _RANGES[field]


def _in_range(wish: Wish) -> bool:
    return all(low <= getattr(wish, key) <= high for key, (low, high) in _RANGES.items())
