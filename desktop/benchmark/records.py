"""What was measured, as data. Times are seconds on the machine's monotonic clock, durations
seconds; figures that do not exist for an engine are None."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

from desktop.errors import Problem

COUNTED = frozenset({"complete", "length"})
"""Outcomes of a page that count as throughput: it was read to its end, or to the limit of tokens
asked for. Everything else is counted apart."""
LEFT_OUT = "blank"
"""Outcome of a page that was not handed over: neither throughput nor a failure."""


def counted(outcomes: Mapping[str, int]) -> int:
    """How many of OUTCOMES (word → pages) are throughput."""
    return sum(outcomes.get(word, 0) for word in COUNTED)


def failed(outcomes: Mapping[str, int]) -> int:
    """How many of OUTCOMES are neither throughput nor loops, those left out aside."""
    return sum(count for word, count in outcomes.items()
               if word not in COUNTED and word not in ("loop", LEFT_OUT))


def uncounted(outcomes: Mapping[str, int]) -> str:
    """What is no throughput, in words; "": all is."""
    return ", ".join(f"{word} {count}" for word, count in outcomes.items() if word not in COUNTED)


@dataclass
class Timing:
    """One request while it runs and after. OUTPUTS come in three columns of equal length: when,
    tokens, characters."""

    number: int
    """In its round, from 1."""
    page: str
    """Name of the page: file and number."""
    submitted: float = 0.0
    started: float = 0.0
    """When the worker began it."""
    ended: float = 0.0
    outcome: str = ""
    """A finish word of the protocol; "" while it runs."""
    prompt_tokens: int = 0
    output_tokens: int = 0
    restarts: int = 0
    """How often it was begun anew: after a loop, or where a server broke off."""
    digest: str = ""
    """Of its text."""
    problem: Problem | None = None
    drawing: float = 0.0
    """Seconds to draw its page, which was done before it was handed over."""
    times: array[float] = field(default_factory=lambda: array("d"))
    tokens: array[int] = field(default_factory=lambda: array("l"))
    characters: array[int] = field(default_factory=lambda: array("l"))

    @property
    def counted(self) -> bool:
        """Whether it is throughput."""
        return self.outcome in COUNTED

    @property
    def first(self) -> float | None:
        """When its first token (or text, where tokens are not counted) came."""
        return self.times[0] if self.times else None

    @property
    def last(self) -> float:
        """When its last token came; its end where tokens are not counted."""
        if self.output_tokens and self.times:
            return self.times[-1]
        return self.ended


@dataclass(frozen=True)
class Request:
    """One request in short."""

    number: int
    page: str
    outcome: str
    submitted: float
    ended: float
    ttft: float | None
    """To the first token (or text)."""
    tpot: float | None
    """Each token after the first."""
    latency: float
    """To the last token, or to the end where tokens are not counted."""
    prompt_tokens: int
    output_tokens: int
    characters: int
    outputs: int
    """Outputs of the engine's that its tokens came in."""
    restarts: int
    drawing: float
    digest: str = ""
    problem: Problem | None = None

    @property
    def counted(self) -> bool:
        """Whether it is throughput."""
        return self.outcome in COUNTED


@dataclass(frozen=True)
class Distribution:
    """Of durations, seconds."""

    count: int
    mean: float
    sd: float | None
    p50: float
    p90: float
    p99: float
    most: float


@dataclass(frozen=True)
class Spread:
    """Over rounds: their mean, and the standard deviation of a sample (None for one round)."""

    mean: float
    sd: float | None

    @property
    def scatter(self) -> float:
        """The deviation as a share of the mean; 0 where there is none."""
        return self.sd / self.mean if self.sd is not None and self.mean else 0.0


@dataclass(frozen=True)
class Steady:
    """A round apart from ramp-up and drain: from the end of the first pages (as many as are read
    at once) to the handing over of the last one."""

    seconds: float
    output_tps: float | None
    total_tps: float | None
    pages_per_s: float
    chars_per_s: float


@dataclass(frozen=True)
class Round:
    """One round's figures. Rates are over ``seconds``, of pages that count."""

    kind: str
    """cold, warm-up, measured."""
    number: int
    concurrency: int
    seconds: float
    """From handing over the first page to the end of the last one."""
    requests: tuple[Request, ...]
    outcomes: dict[str, int]
    """Word → pages that ended so."""
    prompt_tokens: int | None
    output_tokens: int | None
    characters: int
    output_tps: float | None
    total_tps: float | None
    pages_per_s: float
    chars_per_s: float
    goodput: float | None
    """Pages a second within the limits; None where none are set."""
    ttft: Distribution | None
    tpot: Distribution | None
    itl: Distribution | None
    latency: Distribution | None
    tokens_per_output: float | None
    steady: Steady | None
    starved: float = 0.0
    """Seconds for which a place was free because the next page was not drawn yet."""

    @property
    def counted(self) -> int:
        """Pages that count."""
        return counted(self.outcomes)

    @property
    def looped(self) -> int:
        """Pages whose output repeated itself to the end."""
        return self.outcomes.get("loop", 0)

    @property
    def failed(self) -> int:
        """Pages that count neither as throughput nor as loops, those left out aside."""
        return failed(self.outcomes)
