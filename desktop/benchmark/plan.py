"""What is measured: levels, rounds, requests, limits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from desktop.benchmark.errors import BadPlan
from desktop.i18n import N_, _, ngettext
from desktop.settings import setting

MOST = int(setting("concurrency").maximum or 256)
"""Pages at once that can be asked for."""
LEVELS = (1, 8, 16)
"""Pages at once where nothing else is said, as in the CANN recipe."""
STEADY = 4
"""Requests a round, in times of the pages at once, from which on a steady state is reported."""
GAIN = 5.0
"""Percent more throughput from which on another level is worth it."""
KINDS = ("cold", "warm-up", "measured")


@dataclass(frozen=True)
class Strategy:
    """How pages are handed over. NAME: ``continuous`` (the next one when one ends), ``batch``
    (SIZE together, the next ones when all have ended), ``sequential`` (one by one)."""

    name: str = "continuous"
    size: int = 0

    def __str__(self) -> str:
        return f"batch:{self.size}" if self.name == "batch" else self.name

    @classmethod
    def parse(cls, text: str) -> Strategy:
        """``continuous``, ``sequential`` or ``batch:N``; raises BadPlan."""
        name, colon, size = text.strip().partition(":")
        if name in ("continuous", "sequential") and not colon:
            return cls(name)
        if name == "batch" and size.isdecimal() and 1 <= int(size) <= MOST:
            return cls(name, int(size))
        raise BadPlan(what=_("“{text}” is no strategy: sequential, batch:N or continuous.").format(
            text=text))


CONTINUOUS = Strategy()
COMPARED = (Strategy("sequential"), Strategy("batch", 4), CONTINUOUS)
"""The comparison of the vLLM article."""

GOODPUT_KEYS = ("ttft", "tpot", "e2el")
GOODPUT_TITLES = {"ttft": N_("first token"), "tpot": N_("each further token"),
                  "e2el": N_("whole page")}


@dataclass(frozen=True)
class Goodput:
    """Limits, in milliseconds, within which a page counts as good; keys as in
    ``vllm bench serve``: ttft, tpot, e2el."""

    limits: Mapping[str, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.limits)

    @classmethod
    def parse(cls, pairs: Sequence[str]) -> Goodput:
        """KEY:MILLISECONDS pairs; raises BadPlan."""
        limits: dict[str, float] = {}
        for pair in pairs:
            key, _colon, value = pair.strip().partition(":")
            key = {"latency": "e2el"}.get(key, key)
            try:
                number = float(value)
            except ValueError:
                number = -1.0
            if key not in GOODPUT_KEYS or not 0 <= number < float("inf"):
                raise BadPlan(what=_("“{text}” is no limit of goodput: {keys}, each with "
                                     "milliseconds, as in ttft:500.").format(
                    text=pair, keys=", ".join(GOODPUT_KEYS)))
            limits[key] = number
        return cls(limits)


@dataclass(frozen=True)
class Requests:
    """Pages a round: COUNT of them, or TIMES the pages at once."""

    count: int = 0
    times: float = 1.0

    def __str__(self) -> str:
        return str(self.count) if self.count else f"{self.times:g}x"

    @classmethod
    def parse(cls, text: str) -> Requests:
        """``64`` or ``4x``; raises BadPlan."""
        match = re.fullmatch(r"(\d{1,6})|(\d{1,4}(?:\.\d{1,3})?)\s*[x×]", text.strip())
        if match is not None:
            if match[1] and int(match[1]) > 0:
                return cls(count=int(match[1]))
            if match[2] and float(match[2]) > 0:
                return cls(times=float(match[2]))
        raise BadPlan(what=_("“{text}” is no number of pages a round: a number, or how many times "
                             "the pages at once, as in 4x.").format(text=text))

    def of(self, concurrency: int) -> int:
        """How many at this level."""
        return self.count or max(1, round(self.times * concurrency))


@dataclass(frozen=True)
class Level:
    """One thing that is measured: CONCURRENCY pages at once, handed over as STRATEGY says."""

    concurrency: int
    strategy: Strategy = CONTINUOUS
    requests: int = 1
    """Pages a round."""

    @property
    def steady(self) -> bool:
        """Whether there are enough pages for a steady state."""
        return (self.strategy.name == "continuous"
                and self.requests >= STEADY * self.concurrency)


def in_words(strategy: str, concurrency: int) -> str:
    """A level as it is called in sentences; STRATEGY as ``str()`` gives it."""
    if strategy != str(CONTINUOUS):
        return strategy
    return ngettext("{count} page at once", "{count} pages at once", concurrency).format(
        count=concurrency)


@dataclass(frozen=True)
class Plan:
    """All that is measured in one run."""

    levels: tuple[int, ...] = LEVELS
    """Pages at once."""
    strategies: tuple[Strategy, ...] = (CONTINUOUS,)
    cold: bool = True
    """Whether the first round after the engine's start is measured for itself."""
    warmup: int = 2
    """Rounds whose figures are thrown away."""
    rounds: int = 5
    """Rounds that count."""
    requests: Requests = Requests()
    gain: float | None = None
    """Percent: go on doubling the pages at once, from the last level on, until the throughput
    gains less. None: only the levels named."""
    most: int = MOST
    """Pages at once that are not exceeded by that."""
    time_cap: float = 0.0
    """Seconds after which the run ends with what is finished; 0: none."""
    goodput: Goodput = Goodput()
    keep_engine: bool = False
    """One engine for all levels: quick, and only the first level has a cold round."""
    unique: bool = False
    """Change each page by a trace, so that no cache knows it."""
    ahead: bool = False
    """Draw each page once before its level; otherwise they are drawn as they are in a
    conversion, a few ahead of the engine, for each request."""

    def __post_init__(self) -> None:
        if not self.levels or any(not 1 <= level <= MOST for level in self.levels):
            raise BadPlan(what=_("Pages at once are numbers from 1 to {most}.").format(most=MOST))
        if self.rounds < 1 or self.warmup < 0:
            raise BadPlan(what=_("At least one round is measured, and there are none or more "
                                 "before it to warm up."))
        if not self.strategies:
            raise BadPlan(what=_("No strategy is named."))
        if not 0 <= self.time_cap < float("inf"):
            raise BadPlan(what=_("The time cap is a number of seconds."))
        if self.gain is not None and not 0 < self.gain < 100:
            raise BadPlan(what=_("The gain is percent, more than 0 and less than 100."))
        if not max(self.levels) <= self.most <= MOST and self.gain is not None:
            raise BadPlan(what=_("Pages at once cannot be raised to at most {most}: it is a number "
                                 "from {least} to {limit}.").format(
                most=self.most, least=max(self.levels), limit=MOST))

    @classmethod
    def parse_levels(cls, text: str) -> tuple[int, ...]:
        """``1,8,16`` as numbers, each once, in the order named; raises BadPlan."""
        try:
            found = tuple(dict.fromkeys(int(part) for part in text.split(",") if part.strip()))
        except ValueError:
            found = ()
        if not found or any(not 1 <= level <= MOST for level in found):
            raise BadPlan(what=_("“{text}”: pages at once are numbers from 1 to {most}, separated "
                                 "by commas.").format(text=text, most=MOST))
        return found

    @staticmethod
    def usual_levels(raised: bool) -> tuple[int, ...]:
        """Pages at once where none are named; RAISED: with ``gain``."""
        return LEVELS[:1] if raised else LEVELS

    @property
    def comparison(self) -> bool:
        """Whether strategies are compared."""
        return len(self.strategies) > 1

    @property
    def rounds_in_all(self) -> int:
        """Rounds of a level with a cold one."""
        return int(self.cold) + self.warmup + self.rounds

    def stated(self) -> tuple[Level, ...]:
        """The levels known before anything is measured, in order.

        Strategies that are compared read the same pages: as many as the one with most.
        """
        found: list[Level] = []
        for strategy in self.strategies:
            widths = {"sequential": (1,), "batch": (strategy.size,)}.get(
                strategy.name, self.levels)
            found += [Level(width, strategy, self.requests.of(width)) for width in widths]
        if self.comparison:
            most = max(level.requests for level in found)
            found = [Level(level.concurrency, level.strategy, most) for level in found]
        return tuple(found)

    def further(self, concurrency: int) -> Level | None:
        """The level after CONCURRENCY where levels are raised; None: there is none."""
        width = min(2 * concurrency, self.most, MOST)
        return Level(width, CONTINUOUS, self.requests.of(width)) if width > concurrency else None

    def possible(self) -> tuple[Level, ...]:
        """All levels there may be: with ``gain`` it may end before."""
        found = list(self.stated())
        if self.gain is not None and found[-1].strategy.name == "continuous":
            while (level := self.further(found[-1].concurrency)) is not None:
                found.append(level)
        return tuple(found)

    def kinds(self, first: bool) -> Iterator[tuple[str, int]]:
        """(kind, number) of each round of a level, in order; FIRST: its engine is a fresh one."""
        if self.cold and (first or not self.keep_engine):
            yield "cold", 1
        for number in range(1, self.warmup + 1):
            yield "warm-up", number
        for number in range(1, self.rounds + 1):
            yield "measured", number

    def expected_requests(self) -> int:
        """Pages that the stated levels read."""
        return sum(level.requests * len(list(self.kinds(index == 0)))
                   for index, level in enumerate(self.stated()))

    def expected_seconds(self, speed: Mapping[int, float], start: float = 0.0) -> float | None:
        """Seconds that the stated levels take. SPEED: pages a second by pages at once, as
        measured before; between them it is interpolated, beyond them it does not grow. START:
        seconds to start the engine. None: nothing is known."""
        if not speed:
            return None
        seconds = 0.0
        for index, level in enumerate(self.stated()):
            if index == 0 or not self.keep_engine:
                seconds += start
            rounds = len(list(self.kinds(index == 0)))
            seconds += rounds * level.requests / max(1e-9, _interpolated(speed, level.concurrency))
        return min(seconds, self.time_cap) if self.time_cap else seconds


def _interpolated(speed: Mapping[int, float], width: int) -> float:
    known = sorted(speed.items())
    below = [one for one in known if one[0] <= width]
    above = [one for one in known if one[0] >= width]
    if not below:
        return above[0][1] * width / above[0][0]
    if not above:
        return below[-1][1]
    (low, slow), (high, fast) = below[-1], above[0]
    return slow if high == low else slow + (fast - slow) * (width - low) / (high - low)
