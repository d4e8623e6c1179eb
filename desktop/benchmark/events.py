"""What a run tells while it goes on. Listeners get batches, in order (see ``run.Benchmark``)."""

from __future__ import annotations

from dataclasses import dataclass

from desktop.benchmark.plan import Level, Plan
from desktop.benchmark.records import Request, Round
from desktop.benchmark.results import LevelResult, Result
from desktop.benchmark.sampling import Sample
from desktop.protocol.messages import EngineReady


@dataclass(frozen=True)
class RunStarted:
    """EXPECTED: pages that the stated levels read, all rounds together."""

    plan: Plan
    expected: int


@dataclass(frozen=True)
class LevelStarted:
    """The engine of the level is about to be started (or goes on, with ``keep_engine``)."""

    index: int
    level: Level


@dataclass(frozen=True)
class EngineProgress:
    """STEP in words; FRACTION 0–1, -1: unknown."""

    index: int
    step: str
    fraction: float


@dataclass(frozen=True)
class EngineStarted:
    """SECONDS from the start of its worker; 0 where it ran already."""

    index: int
    ready: EngineReady
    seconds: float


@dataclass(frozen=True)
class RoundStarted:
    """KIND: cold, warm-up, measured; NUMBER from 1; REQUESTS pages."""

    index: int
    level: Level
    kind: str
    number: int
    requests: int


@dataclass(frozen=True)
class RequestFinished:
    """A page is done, however it ended."""

    index: int
    kind: str
    number: int
    request: Request


@dataclass(frozen=True)
class Live:
    """Twice a second while a level runs: rates over the last two seconds (None: not counted)."""

    index: int
    at: float
    """Seconds since the run began."""
    output_tps: float | None
    chars_per_s: float
    pages_per_s: float
    in_flight: int
    done: int
    """Pages of the whole run that have ended."""
    expected: int
    """Pages of the whole run, as far as is known."""


@dataclass(frozen=True)
class Sampled:
    """The state of devices and processes."""

    index: int
    sample: Sample


@dataclass(frozen=True)
class RoundFinished:
    """Its figures."""

    index: int
    level: Level
    round: Round


@dataclass(frozen=True)
class LevelFinished:
    """Its figures, or what went wrong."""

    result: LevelResult


@dataclass(frozen=True)
class Stopping:
    """It was cancelled, or its time is up; the engine is being released."""


@dataclass(frozen=True)
class RunFinished:
    """Always the last one."""

    result: Result


BenchEvent = (RunStarted | LevelStarted | EngineProgress | EngineStarted | RoundStarted
              | RequestFinished | Live | Sampled | RoundFinished | LevelFinished | Stopping
              | RunFinished)
