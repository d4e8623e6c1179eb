"""The measurement behind the page: on its own thread, heard on the window's, a few times a second.

What happens between two deliveries is merged where it arrives; rows of levels are made there too,
so that the window only shows them.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import threading
from collections.abc import Awaitable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from desktop import paths
from desktop.benchmark import history
from desktop.benchmark.document import comparison, document, knee, level_document
from desktop.benchmark.events import (
    BenchEvent,
    EngineProgress,
    EngineStarted,
    LevelFinished,
    LevelStarted,
    Live,
    RoundFinished,
    RoundStarted,
    RunFinished,
    RunStarted,
    Sampled,
)
from desktop.benchmark.plan import Plan
from desktop.benchmark.records import Round
from desktop.benchmark.results import Result
from desktop.benchmark.run import Benchmark
from desktop.benchmark.sampling import Sample
from desktop.benchmark.workload import Workload, gather
from desktop.i18n import _
from desktop.jobs.errors import SessionClosed
from desktop.jobs.events import ProgressView
from desktop.jobs.session import Session
from desktop.settings import Values
from desktop.ui.background import in_background
from desktop.ui.benchmark.figures import Row, Shown, row_of, running
from desktop.ui.engine_use import EngineUse
from desktop.ui.tasks import Tasks

log = logging.getLogger(__name__)
T = TypeVar("T")

INTERVAL = 0.25
"""Seconds between two deliveries."""
_PATIENCE = 10.0
"""Seconds at the window's end for the engine to be gone."""


class Phase(enum.Enum):
    """What the measurement is at."""

    IDLE = "idle"
    OPENING = "opening"
    """Pages are looked at, the engine of the conversion is ended."""
    RUNNING = "running"
    STOPPING = "stopping"
    """It was cancelled; the engine is being ended."""


@dataclass
class News:
    """What happened since the last delivery."""

    started: RunStarted | None = None
    level: LevelStarted | None = None
    progress: EngineProgress | None = None
    ready: EngineStarted | None = None
    round: RoundStarted | None = None
    live: Live | None = None
    speeds: list[float] = field(default_factory=list)
    """Output tokens, else pages, a second; twice a second."""
    samples: list[Sample] = field(default_factory=list)
    rows: dict[int, Row] = field(default_factory=dict)
    """Levels that changed."""


class Cancelled(Exception):
    """A person does not want it any more."""


class Pending:
    """Merges events. Used under the lock of :class:`Measuring`."""

    def __init__(self) -> None:
        self._news = News()
        self._some = False
        self._cold: dict[int, Round] = {}
        self._rounds: dict[int, list[Round]] = {}
        self._starts: dict[int, float] = {}

    def add(self, event: BenchEvent, row: Row | None) -> None:
        """Merge EVENT; ROW: of a level that has ended."""
        news = self._news
        self._some = True
        if isinstance(event, Live):
            news.live = event
            news.speeds.append(event.pages_per_s if event.output_tps is None
                               else event.output_tps)
        elif isinstance(event, Sampled):
            news.samples.append(event.sample)
        elif isinstance(event, RoundStarted):
            news.round = event
            news.progress = None
            news.rows[event.index] = self._row(event)
        elif isinstance(event, RoundFinished):
            if event.round.kind == "cold":
                self._cold[event.index] = event.round
            elif event.round.kind == "measured":
                self._rounds.setdefault(event.index, []).append(event.round)
        elif isinstance(event, LevelFinished) and row is not None:
            news.rows[event.result.index] = row
        elif isinstance(event, LevelStarted):
            news.level, news.round, news.live = event, None, None
            news.rows[event.index] = running(event.level, _("engine starts"), None, ())
        elif isinstance(event, EngineProgress):
            news.progress = event
        elif isinstance(event, EngineStarted):
            news.ready, news.progress = event, None
            self._starts[event.index] = event.seconds
        elif isinstance(event, RunStarted):
            news.started = event

    def _row(self, event: RoundStarted) -> Row:
        doing = {"cold": _("cold round"), "warm-up": _("warm-up {n}").format(n=event.number)}.get(
            event.kind, _("round {n}").format(n=event.number))
        return running(event.level, doing, self._cold.get(event.index),
                       self._rounds.get(event.index, ()), self._starts.get(event.index))

    def take(self) -> News | None:
        """Everything; None: nothing happened."""
        if not self._some:
            return None
        news, self._news, self._some = self._news, News(), False
        return news


class Measuring(QObject):
    """At most one measurement at a time; used on the window's thread."""

    phase_changed = Signal()
    delivered = Signal(object)
    """News."""
    finished = Signal(object)
    """Shown: the whole run."""
    kept = Signal(int)
    """Its number in the history."""

    _wake = Signal()

    def __init__(self, session: Session, use: EngineUse, tasks: Tasks,
                 parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._use = use
        self._tasks = tasks
        self.phase = Phase.IDLE
        self.plan = Plan()
        self._benchmark: Benchmark | None = None
        self._lock = threading.Lock()
        self._pending = Pending()
        self._levels: list[dict[str, Any]] = []
        self._rows: list[Row] = []
        """Of the levels that have ended; filled on the measurement's thread."""
        self._woken = False
        self._whole: Shown | None = None
        self._unkept: Mapping[str, Any] | None = None
        self._cancel: asyncio.Future[None] | None = None
        self._cancelled = False
        self._closed = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(round(INTERVAL * 1000))
        self._timer.timeout.connect(self._deliver)
        self._wake.connect(self._timer.start, Qt.ConnectionType.QueuedConnection)

    @property
    def running(self) -> bool:
        """Whether the engine's device is taken, or about to be."""
        return self.phase is not Phase.IDLE

    def start(self, plan: Plan, sources: Sequence[Path], values: Values,
              progress: ProgressView) -> None:
        """Measure PLAN on SOURCES (none: the samples) with VALUES; nothing while one runs.
        PROGRESS: of the conversion, which is paused meanwhile."""
        if self.running or self._closed:
            return
        self.plan = plan
        self._cancelled = False
        self._set_phase(Phase.OPENING)
        self._tasks.spawn(self._run(plan, list(sources), values, progress), "benchmark")

    def cancel(self) -> None:
        """End it now, with the finished rounds."""
        if self.phase not in (Phase.OPENING, Phase.RUNNING):
            return
        if self._benchmark is not None:
            self._benchmark.cancel()
        self._cancelled = True
        if self._cancel is not None and not self._cancel.done():
            self._cancel.set_result(None)
        self._set_phase(Phase.STOPPING)

    def close(self) -> None:
        """The window closes: end it, tell nothing more."""
        self._closed = True
        self._timer.stop()
        if self._benchmark is not None:
            self._benchmark.cancel()

    def wait(self) -> None:
        """After :meth:`close`: block until its engine is gone, and keep what was finished. Not on
        the window's thread, and before the session is closed."""
        benchmark = self._benchmark
        if benchmark is None:
            return
        try:
            benchmark.wait(_PATIENCE)
        except Exception:
            log.exception("the measurement failed")
        found, self._unkept = self._unkept, None
        if found is not None and _worth_keeping(found):
            try:
                self._session.keep_benchmark(found, history.row(found)).result(_PATIENCE)
            except (SessionClosed, TimeoutError):
                log.warning("the measurement is not in the history")

    # --- from beginning to end
    async def _run(self, plan: Plan, sources: Sequence[Path], values: Values,
                   progress: ProgressView) -> None:
        self._cancel = asyncio.get_running_loop().create_future()
        self._whole = self._unkept = None
        if self._cancelled:  # before this began
            self._cancel.set_result(None)
        try:
            workload = await self._unless_cancelled(open_pages(self._session, sources))
            await self._use.lend(progress)
            if not self._cancel.done():
                await self._measure(Benchmark(plan, workload, values, paths.cache_dir()))
        except Cancelled:
            log.info("the measurement was cancelled before it began")
        finally:
            self._cancel = None
            if not self._closed:
                self._use.give_back()
                self._benchmark = None
                self._set_phase(Phase.IDLE)

    async def _measure(self, benchmark: Benchmark) -> None:
        with self._lock:
            self._pending = Pending()
        self._levels, self._rows = [], []
        self._benchmark = benchmark
        self._set_phase(Phase.RUNNING)
        benchmark.subscribe(self._take)
        benchmark.start()
        try:
            await in_background(lambda: benchmark.wait(), "benchmark end")
        finally:
            whole = self._whole
            if whole is not None and not self._closed:
                self._deliver()
                self.finished.emit(whole)
        found, self._unkept = self._unkept, None
        if found is not None and _worth_keeping(found):
            kept: Future[int] = self._session.keep_benchmark(found, history.row(found))
            self.kept.emit(await asyncio.wrap_future(kept))

    async def _unless_cancelled(self, work: Awaitable[T]) -> T:
        assert self._cancel is not None
        task: asyncio.Future[T] = asyncio.ensure_future(work)
        both: set[asyncio.Future[Any]] = {task, self._cancel}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if self._cancel.done():
            task.cancel()
            raise Cancelled
        return task.result()

    def _set_phase(self, phase: Phase) -> None:
        if phase is not self.phase:
            self.phase = phase
            self.phase_changed.emit()

    # --- its events
    def _take(self, events: Sequence[BenchEvent]) -> None:
        """On the measurement's thread. What takes a moment comes where no page is being read, and
        before the lock, for which the window may wait."""
        rows: list[Row | None] = []
        for event in events:
            row = None
            if isinstance(event, LevelFinished):
                self._levels.append(level_document(event.result))
                row = row_of(self._levels[-1])
                self._rows.append(row)
            elif isinstance(event, RunFinished):
                found = self._document(event.result)
                self._whole, self._unkept = Shown(tuple(self._rows), found), found
            rows.append(row)
        with self._lock:
            for event, row in zip(events, rows, strict=True):
                self._pending.add(event, row)
            if self._woken or self._closed:
                return
            self._woken = True
        self._wake.emit()

    def _document(self, result: Result) -> dict[str, Any]:
        """As ``document`` makes it; but its levels, which may be many, are there already."""
        if len(self._levels) != len(result.levels):
            return document(result)
        return {**document(replace(result, levels=())), "levels": self._levels,
                "engine": document(replace(result, levels=tuple(
                    each for each in result.levels if each.ready is not None)[:1]))["engine"],
                "knee": knee(result), "comparison": comparison(result)}

    def _deliver(self) -> None:
        self._timer.stop()
        with self._lock:
            news = self._pending.take()
            self._woken = False
        if news is not None:
            self.delivered.emit(news)


def _worth_keeping(found: Mapping[str, Any]) -> bool:
    return any(level["rounds"] or level["cold"] for level in found["levels"])


async def open_pages(session: Session, sources: Sequence[Path]) -> Workload:
    """The pages of SOURCES; a protected file opens where SESSION knows its password already.
    Raises what ``gather`` does."""
    known = await asyncio.wrap_future(session.passwords())
    return await in_background(
        lambda: gather(sources, paths.cache_dir(), lambda path: known.get(str(path), ())),
        "benchmark pages")

