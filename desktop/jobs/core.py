"""The inside of the session: everything that happens on its loop."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from desktop.client.client import WorkerDied
from desktop.engines.base import EngineDied
from desktop.intake.model import RenderedPage
from desktop.intake.rasterizer import Rasterizer
from desktop.jobs import starts
from desktop.jobs.bitmaps import Bitmaps
from desktop.jobs.documents import Documents
from desktop.jobs.engine import EngineLink
from desktop.jobs.errors import JournalWriteFailed, UnknownPage
from desktop.jobs.events import (
    BlocksChanged,
    DocumentAdded,
    DocumentResult,
    EngineState,
    EngineUpdated,
    EngineView,
    LogAdded,
    PageRegionsFound,
    PageResult,
    ProblemAdded,
    ProblemRemoved,
    ProblemView,
    ProgressUpdated,
    QueueFinished,
    RawText,
    RunState,
    SessionEvent,
)
from desktop.jobs.figures import Figures
from desktop.jobs.journal import Journal
from desktop.jobs.outbox import Listener, Outbox
from desktop.jobs.pages import Phase, StoredPages, stored_result
from desktop.jobs.progress import Progress
from desktop.jobs.reading import Reading, Tools
from desktop.jobs.records import PageKey, PageRow
from desktop.protocol.messages import EngineReady, LogLine
from desktop.settings import SETTINGS, Applies, Section, Values

log = logging.getLogger(__name__)

PROGRESS_SECONDS = 0.5


class Core:
    """Created and used on the loop's thread only (the journal is opened before)."""

    def __init__(self, journal: Journal, cache: Path, values: Values, *,
                 interpreter: str | None, engine_args: Mapping[str, str], resume: bool,
                 settled: Callable[[], None], unsettled: Callable[[], None]) -> None:
        """SETTLED is called when nothing is left to do, UNSETTLED when there is again."""
        self.loop = asyncio.get_running_loop()
        self.values = values
        self.run = RunState.PAUSED
        self.journal = journal
        # Nobody else has the journal open, so nobody else draws into a folder named after it.
        name = hashlib.sha256(os.fsencode(journal.path.absolute())).hexdigest()[:16]
        self._cache = cache / f"pages-{name}"
        shutil.rmtree(self._cache, ignore_errors=True)
        self._engine_args = dict(engine_args)
        self._settled, self._unsettled = settled, unsettled
        self._adding = 0
        self._busy = False
        self._woken = False
        self._closing = False
        self._tick: asyncio.TimerHandle | None = None
        self._noted: EngineReady | None = None
        """What the engine got, as it was kept at last."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._problems: dict[str, ProblemView] = {}
        """Those of neither a page nor a document."""
        self._rasterizer = self._new_rasterizer()
        self._helper = ThreadPoolExecutor(2, "session-helper")
        self.outbox = Outbox(self.loop)
        self.progress = Progress()
        self.figures = Figures(journal.path.parent / "crops")
        self.engine = EngineLink(self, self._deliver, values, engine_args, interpreter)
        self.documents = Documents(journal, self.outbox, lambda: self._rasterizer, self._helper,
                                   self.wake)
        self.reading = Reading(Tools(
            journal, self.outbox, self.documents, self.engine, self.figures, self.progress,
            lambda: self._rasterizer, self._helper, lambda: (self.values, self.fingerprint()),
            self.wake, self._save_failed))
        self.documents.live = self.reading.views
        self._bitmaps = Bitmaps(journal, self.documents, self.reading, lambda: self.values)
        if not resume:
            journal.hold_all()
        if journal.trouble is not None:
            self._report("journal", ProblemView("journal", journal.trouble))
        self.documents.resume()
        self.wake()

    # --- listening
    def subscribe(self, listener: Listener) -> None:
        """Everything there is, then every change."""
        snapshot: list[SessionEvent] = []
        problems = list(self._problems.values())
        for row in self.journal.documents():
            snapshot.append(DocumentAdded(self.documents.view(row),
                                          self.documents.page_views(row.id)))
            problems += self.documents.problems(row)
        for run in self.reading.runs.values():
            if run.regions:
                snapshot.append(PageRegionsFound(run.id, run.regions))
            if run.raw:
                snapshot += [RawText(run.id, "".join(run.raw)),
                             BlocksChanged(run.id, run.blocks())]
        snapshot += map(ProblemAdded, problems)
        snapshot += [EngineUpdated(self.engine.view), self._progress_event()]
        self.outbox.subscribe(listener, snapshot)

    # --- the queue
    async def add(self, paths: Sequence[Path], page_range: str, skip: Collection[Path],
                  redo: bool) -> list[int]:
        """See Session.add."""
        self._adding += 1
        try:
            return await self.documents.add(paths, page_range, skip,
                                            self.fingerprint() if redo else None)
        finally:
            self._adding -= 1
            self.wake()

    async def remove(self, document_ids: Collection[int]) -> None:
        """See Session.remove."""
        self.documents.hold(document_ids)  # or a page of them might be begun meanwhile
        await self.reading.take_back([run for run in self.reading.runs.values()
                                      if run.key.document_id in document_ids])
        for document_id in document_ids:
            self.documents.remove(document_id)
            await self.loop.run_in_executor(self._helper, self.figures.delete_document,
                                            document_id)
        self.wake()

    async def set_page_range(self, document_id: int, page_range: str) -> None:
        """See Session.set_page_range."""
        self.documents.set_page_range(document_id, page_range)
        await self.reading.take_back([
            run for run in self.reading.runs.values()
            if run.key.document_id == document_id and not self.journal.is_waiting(run.key)])

    # --- running
    def start(self) -> None:
        """See Session.start."""
        self.engine.forget_failure()
        journal = self._problems.get("journal")
        if journal is not None and journal.problem.code == JournalWriteFailed.code:
            self._settle_problem("journal")
        self._set_run(RunState.RUNNING)

    async def pause(self) -> None:
        """See Session.pause."""
        self._set_run(RunState.PAUSED)
        await self.reading.take_back_unbegun()

    async def stop(self) -> None:
        """See Session.stop."""
        self._set_run(RunState.PAUSED)
        await self.reading.take_back(self.reading.runs.values())

    async def release_engine(self) -> None:
        """See Session.release_engine."""
        await self.stop()
        await self.loop.run_in_executor(self._helper, self.engine.close)
        # No page is with it any more, nor will it confirm that one was taken back.
        self.reading.worker_died(WorkerDied(EngineDied().problem(), (), None))
        self.engine.released()

    async def retry_failed(self) -> int:
        """See Session.retry_failed."""
        keys = self.journal.suspicious()
        self.engine.forget_failure()
        await self.reading.redo(keys)
        return len(keys) + self.documents.reopen_unreadable()

    async def rerun(self, page_ids: Sequence[str]) -> None:
        """See Session.rerun."""
        await self.reading.redo(key for key in map(PageKey.of, page_ids) if key is not None)

    def look_at(self, page_id: str | None) -> None:
        """See Session.look_at."""
        self.reading.look_at(PageKey.of(page_id) if page_id is not None else None)

    def warm_up(self) -> None:
        """See Session.warm_up."""
        self.engine.forget_failure()
        self.engine.ensure()
        self._rasterizer.warm_up()

    # --- settings
    async def set_values(self, values: Values) -> None:
        """See Session.set_values."""
        before, self.values = self.values, values
        self.engine.set_values(values)
        self.reading.stalls.look()
        if before["page_memory"] != values["page_memory"]:
            old, self._rasterizer = self._rasterizer, self._new_rasterizer()
            await self.reading.take_back(
                [run for run in self.reading.runs.values() if run.phase is Phase.DRAWING])
            await self.loop.run_in_executor(self._helper, old.close)
        if any(before[s.key] != values[s.key] for s in SETTINGS
               if s.applies is not Applies.NOW):
            # What the engine has not begun is "the next page".
            await self.reading.take_back_unbegun()
        self.wake()

    def fingerprint(self) -> str:
        """Of the values in force and the extra arguments of the engine."""
        plain = self.values.fingerprint()
        if not self._engine_args:
            return plain
        text = json.dumps([plain, self._engine_args], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    # --- results
    async def page_result(self, page_id: str) -> PageResult:
        """See Session.page_result."""
        key, row = self._page(page_id)
        run = self.reading.runs.get(key)
        if run is not None and (run.raw or not row.state.final):
            return run.result()
        return stored_result(row, self.journal.result(key), self.figures)

    async def document_result(self, document_id: int,
                              fetch: Callable[[str], PageResult]) -> DocumentResult:
        """See Session.document_result; FETCH reads a page for whoever goes over them."""
        document = await self.documents.digested(document_id)
        keys: list[str] = []
        last: PageRow | None = None
        for row in self.journal.pages(document_id):
            keys.append(row.key.id)
            if row.state.final and row.engine:
                last = row
        settings: dict[str, object] = dict(
            self.journal.settings_used(last.fingerprint) if last else {}) or dict(
            self.values.discreet())
        settings.update((s.key, self.values[s.key]) for s in SETTINGS
                        if s.section is Section.OUTPUT)
        return DocumentResult(
            self.documents.view(document), document.sha256,
            last.engine if last else self.values["engine"], last.model if last else "",
            settings, StoredPages(keys, fetch))

    async def bitmap(self, page_id: str) -> RenderedPage:
        """See Session.bitmap."""
        return await self._bitmaps.bitmap(self._page(page_id)[1])

    async def thumbnail(self, page_id: str, side: int) -> RenderedPage:
        """See Session.thumbnail."""
        return await self._bitmaps.thumbnail(self._page(page_id)[1], side)

    # --- the end
    async def close(self) -> None:
        """Everything ends; pages in flight wait for the next start."""
        self._closing = True
        if self._tick is not None:
            self._tick.cancel()
        await self.documents.close()
        await self.reading.take_back(self.reading.runs.values())
        await asyncio.gather(self.loop.run_in_executor(None, self.engine.close),
                             self.loop.run_in_executor(None, self._rasterizer.close))
        await self.loop.run_in_executor(
            None, lambda: self._helper.shutdown(wait=True, cancel_futures=True))
        self.outbox.flush()
        self.journal.close()
        shutil.rmtree(self._cache, ignore_errors=True)

    # --- what EngineLink tells
    def engine_changed(self, view: EngineView) -> None:
        """The state of the engine is another."""
        self.outbox.post(EngineUpdated(view))
        if view.ready is not None and view.ready != self._noted:
            self._noted = view.ready
            self.loop.run_in_executor(self._helper, starts.note, view.ready)
        if view.state is EngineState.FAILED and view.problem is not None:
            self._report("engine", ProblemView("engine", view.problem))
            self._later(self.reading.take_back(self.reading.runs.values()))
        elif view.state in (EngineState.READY, EngineState.OFF) and "engine" in self._problems:
            self._settle_problem("engine")
        self.wake()

    def engine_log(self, line: LogLine) -> None:
        """A line for the log."""
        if line.source not in ("stdout", "stderr"):  # those may hold a document's text
            logging.getLogger(f"worker.{line.source}").log(
                min(line.level, logging.WARNING), "%s", line.text)
        self.outbox.post(LogAdded(line.level, line.source, line.text, time.time()))

    def worker_died(self, event: WorkerDied) -> None:
        """Its pages are to be done again."""
        with self._saving():
            self.reading.worker_died(event)

    def page_event(self, event: object) -> None:
        """Anything about a page."""
        with self._saving():
            self.reading.page_event(event)

    # --- inside
    def wake(self) -> None:
        """Look soon for what can be begun."""
        if not self._woken and not self._closing:
            self._woken = True
            self.loop.call_soon(self._fill)

    def _fill(self) -> None:
        self._woken = False
        if self._closing:
            return
        with self._saving():
            if self.run is RunState.RUNNING and not self.engine.failed:
                self.reading.fill()
            self._settle()

    @contextlib.contextmanager
    def _saving(self) -> Iterator[None]:
        """A journal that cannot be written pauses everything."""
        try:
            yield
        except sqlite3.Error as error:
            self._save_failed(error)

    def _settle(self) -> None:
        """Tell whether something is left to do."""
        busy = bool(self._adding or self.documents.opening or self.reading.runs)
        if not busy and self.run is RunState.RUNNING and not self.engine.failed:
            busy = bool(self.journal.next_waiting((), 1))
        was_busy, self._busy = self._busy, busy
        if busy and self._tick is None:
            self._progress_tick()
        if busy:
            self._unsettled()
            return
        if was_busy:
            self.progress.end()
            totals = self.documents.totals()
            if self.run is RunState.RUNNING and not self.engine.failed:
                self.outbox.post(QueueFinished(totals.selected, totals.suspicious))
            self.outbox.post(self._progress_event())
        self.outbox.flush()  # who waits for the end has heard of it then
        self._settled()

    def _progress_tick(self) -> None:
        self.outbox.post(self._progress_event())
        self._tick = (self.loop.call_later(PROGRESS_SECONDS, self._progress_tick)
                      if self._busy else None)

    def _progress_event(self) -> ProgressUpdated:
        totals = self.documents.totals()
        return ProgressUpdated(self.progress.view(self.run, totals.selected, totals.finished,
                                                  self.reading.streaming))

    def _set_run(self, run: RunState) -> None:
        self.run = run
        self.outbox.post(self._progress_event())
        self.wake()

    def _deliver(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self.loop.call_soon_threadsafe(call)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _report(self, key: str, view: ProblemView) -> None:
        self._problems[key] = view
        self.outbox.post(ProblemAdded(view))

    def _settle_problem(self, key: str) -> None:
        del self._problems[key]
        self.outbox.post(ProblemRemoved(key))

    def _save_failed(self, error: sqlite3.Error) -> None:
        problem = JournalWriteFailed(path=self.journal.path.parent, detail=str(error)).problem()
        log.warning("journal: %s", error)
        self._report("journal", ProblemView("journal", problem))
        self._set_run(RunState.PAUSED)
        self._later(self.reading.take_back_unbegun())

    def _new_rasterizer(self) -> Rasterizer:
        # At least two: one examines files while the other draws.
        processes = max(2, min(4, (os.cpu_count() or 2) // 2))
        return Rasterizer(self._cache, processes=processes, memory_mb=self.values["page_memory"])

    def _page(self, page_id: str) -> tuple[PageKey, PageRow]:
        key = PageKey.of(page_id)
        row = self.journal.page(key) if key is not None else None
        if key is None or row is None:
            raise UnknownPage()
        return key, row
