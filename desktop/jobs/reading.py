"""The window of pages that are being read, from drawing to saving."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from desktop.client.client import WorkerDied
from desktop.errors import Problem, VersoError, problem_of
from desktop.i18n import _
from desktop.intake.awaiting import drawn
from desktop.intake.model import RenderedPage, RenderRequest
from desktop.intake.rasterizer import Rasterizer
from desktop.jobs.documents import Documents
from desktop.jobs.engine import EngineLink
from desktop.jobs.errors import PageKilledWorker, PageStalled, SourceChanged, SourceMissing
from desktop.jobs.events import (
    PageCleared,
    PageRegionsFound,
    PageState,
    PageUpdated,
    PageView,
    ProblemAdded,
    ProblemRemoved,
    ProblemView,
)
from desktop.jobs.figures import Figures
from desktop.jobs.journal import Journal
from desktop.jobs.outbox import Outbox
from desktop.jobs.pages import MAX_RAW, PageRun, Phase
from desktop.jobs.progress import Progress
from desktop.jobs.records import DocumentRow, Outcome, PageKey
from desktop.jobs.requests import replace_request, request_for
from desktop.jobs.scheduler import given_up, to_begin, to_put_back, to_submit, window_size
from desktop.jobs.stalls import StallWatch
from desktop.protocol.messages import (
    BlockConfidence,
    PageFinished,
    PageOriented,
    PageRegions,
    PageRestarted,
    PageStarted,
    PageText,
    SubmitPage,
)
from desktop.settings import Values, setting

log = logging.getLogger(__name__)


class Tools(NamedTuple):
    """What reading pages takes."""

    journal: Journal
    outbox: Outbox
    documents: Documents
    engine: EngineLink
    figures: Figures
    progress: Progress
    rasterizer: Callable[[], Rasterizer]
    helper: Executor
    in_force: Callable[[], tuple[Values, str]]
    """The values and their fingerprint, extra engine arguments included."""
    wake: Callable[[], None]
    """There may be something to begin."""
    save_failed: Callable[[sqlite3.Error], None]
    """The journal cannot be written: nothing more can be read."""


class Reading:
    """Used on the session's loop only."""

    def __init__(self, tools: Tools) -> None:
        self._t = tools
        self.runs: dict[PageKey, PageRun] = {}
        self.looked_at: PageKey | None = None
        self._barred: set[PageKey] = set()
        """Waiting pages that must not be begun just now."""
        self._drawn = False
        """Whether any page has been drawn, or failed to be, by now."""
        self._cancelling: set[str] = set()
        """Pages that were taken back from the engine, which has not confirmed it yet."""
        self.stalls = StallWatch(lambda: list(self.runs.values()), self._stall_seconds,
                                 self._stalled)

    @property
    def streaming(self) -> int:
        """Pages the engine works on."""
        return sum(run.phase is Phase.STREAMING for run in self.runs.values())

    def views(self) -> dict[str, PageView]:
        """Page id → the page as it is now, of those in the window."""
        return {run.id: run.view() for run in self.runs.values()}

    # --- forward
    def fill(self) -> None:
        """Take pages into the window and hand over what is drawn."""
        # The very first page has the drawing process that is warm to itself: a person waits.
        window = window_size(self._t.engine.capacity) if self._drawn else 1
        unbegun = [key for key, run in self.runs.items() if run.phase < Phase.STREAMING]
        victim = to_put_back(self._t.journal, self.runs.keys(), unbegun, window, self.looked_at)
        if victim is not None and (task := self.runs[victim].task) is not None:
            task.cancel()
        taken = self.runs.keys() | self._barred
        for key in to_begin(self._t.journal, taken, window + len(self._barred), self.looked_at):
            self._begin(key)
        if not self.runs:
            return
        if self._t.engine.outdated:
            if not any(run.with_engine for run in self.runs.values()) and not self._cancelling:
                self._t.engine.restart()
            return
        self._t.engine.ensure()
        if self._t.engine.ready:
            self._submit()

    def _begin(self, key: PageKey) -> None:
        row = self._t.journal.page(key)
        if row is None:
            return
        run = self.runs[key] = PageRun(row, *self._t.in_force())
        self._t.progress.begin()
        self._t.outbox.post(PageUpdated(run.view()))
        run.task = asyncio.create_task(self._read(run), name=f"read {run.id}")
        # Cancelled before its first step a task runs nothing, not even what stands under "finally".
        run.task.add_done_callback(lambda _task: self._never_began(run))

    def _submit(self) -> None:
        runs = self.runs.values()
        drawn = [run.candidate for run in runs
                 if run.phase is Phase.DRAWN and run.id not in self._cancelling]
        submitted = [run.candidate for run in runs if run.with_engine]
        for key in to_submit(drawn, submitted, self.looked_at):
            run = self.runs[key]
            assert run.rendered is not None
            run.phase = Phase.SUBMITTED
            self._t.outbox.post(PageUpdated(run.view()))
            self._t.engine.submit(SubmitPage(
                run.id, run.rendered.image, run.rendered.width, run.rendered.height,
                run.rendered.words,
                # Engines choose by it what was published for images and for PDF pages.
                {**run.values.as_dict(), "source": "pdf" if run.rendered.paged else "image"},
                0 if key == self.looked_at else 1, run.row.attempts + 1))

    # --- one page
    async def _read(self, run: PageRun) -> None:
        """Draw, read and save one page; whatever happens, the window has room again."""
        try:
            try:
                await self._attempt(run)
            except (SourceMissing, SourceChanged) as error:
                self._t.documents.fail(run.key.document_id, error.problem())
            except VersoError as error:
                self._end(run, self._failure(run, error.problem()))
            except sqlite3.Error:
                raise
            except Exception as error:
                log.exception("reading page %s failed", run.id)
                self._end(run, self._failure(run, problem_of(error)))
        except sqlite3.Error as error:
            self._t.save_failed(error)
        finally:
            self._leave(run)

    async def _attempt(self, run: PageRun) -> None:
        await self._draw(run, self._t.documents.row(run.key.document_id))
        assert run.rendered is not None
        if run.rendered.blank and run.values["skip_blank"]:
            width, height = run.size()
            self._end(run, Outcome(
                PageState.BLANK, width=width, height=height, fingerprint=run.fingerprint,
                engine=run.values["engine"]))
            return
        while not given_up(run.deaths):
            run.phase = Phase.DRAWN
            self._t.outbox.post(PageUpdated(run.view()))
            self._t.wake()
            event = await asyncio.shield(run.ended)  # that the task ends is no end of the page
            if event is not None:
                await self._finish(run, event)
                return
            self._clear(run)
            run.begin()
        self._end(run, self._failure(run, self._given_up(run)))

    async def _draw(self, run: PageRun, document: DocumentRow) -> None:
        await self._t.documents.check_source(document)
        text_layer = setting("text_layer")
        words = (text_layer.applies_to(run.values["engine"])
                 and run.values["text_layer"] != "never")
        request = replace_request(request_for(run.values, document.path, run.key.number),
                                  password=self._t.documents.passwords.get(document.id),
                                  words=words)
        try:
            run.rendered = await self.render(
                request, priority=0 if run.key == self.looked_at else 1)
        finally:
            self._drawn = True
        run.drawn.set_result(run.rendered)

    async def render(self, request: RenderRequest, priority: int) -> RenderedPage:
        """Draw a page; what is drawn for nobody any more is deleted."""
        return await drawn(self._t.rasterizer().render(request, priority=priority))

    async def _finish(self, run: PageRun, event: PageFinished) -> None:
        """The engine is done with it: cut the figures, save."""
        run.phase = Phase.SAVING
        changed = run.parser.finish()
        if changed:
            self._t.outbox.streamed(run.id, run, changed, "")
        outcome = run.outcome(event, run.values["engine"], self._t.engine.model)
        assert run.rendered is not None
        crops = await asyncio.get_running_loop().run_in_executor(
            self._t.helper, self._t.figures.cut, run.key, run.blocks(),
            Path(run.rendered.image), run.rotation)
        self._end(run, replace(outcome, crops=crops))

    def _given_up(self, run: PageRun) -> Problem:
        if not run.stalled:
            return PageKilledWorker(times=run.deaths).problem()
        limit = setting("stall_seconds")
        return PageStalled(times=run.deaths, seconds=f"{self._stall_seconds():g}",
                           title=_(limit.title), flag=limit.flag).problem()

    def _failure(self, run: PageRun, problem: Problem) -> Outcome:
        """It failed here, not in the engine; text so far is kept."""
        width, height = run.size()
        return Outcome(
            PageState.FAILED, problem, "".join(run.raw), run.regions, width=width,
            height=height, rotation=run.rotation, blocks=len(run.parser.blocks),
            fingerprint=run.fingerprint, engine=run.values["engine"],
            model=self._t.engine.model)

    def _end(self, run: PageRun, outcome: Outcome) -> None:
        """Save how it ended and tell."""
        run.phase = Phase.SAVING
        self._t.journal.note_settings(run.fingerprint, run.values.discreet())
        if not self._t.journal.save(run.key, outcome):
            return
        self._t.progress.page()
        row = self._t.journal.page(run.key)
        if row is None:
            return
        self._t.outbox.post(PageUpdated(row.view()))
        if outcome.problem is not None:
            name = self._t.documents.row(run.key.document_id).name
            self._t.outbox.post(ProblemAdded(ProblemView(
                run.id, outcome.problem, run.key.document_id, name, run.key.number, run.id)))

    def _never_began(self, run: PageRun) -> None:
        if self.runs.get(run.key) is run:
            try:
                self._leave(run)
            except sqlite3.Error as error:
                self._t.save_failed(error)

    def _leave(self, run: PageRun) -> None:
        """Out of the window, finished or not."""
        if run.with_engine and not run.ended.done():
            # The client gives an engine that does not let go a while, then starts it again.
            self._cancelling.add(run.id)
            self._t.engine.cancel(run.id)
        if not run.drawn.done():
            run.drawn.cancel()
        if run.rendered is not None:
            run.rendered.delete()
        if self.runs.get(run.key) is run:
            del self.runs[run.key]
        row = self._t.journal.page(run.key)
        if row is not None and not row.state.final:
            self._clear(run)
            self._t.outbox.post(PageUpdated(row.view()))
        self._t.documents.tell(run.key.document_id)
        self._t.wake()

    def _clear(self, run: PageRun) -> None:
        """What was shown of it no longer holds."""
        if run.raw or run.regions:
            self._t.outbox.post(PageCleared(run.id))

    # --- back
    async def take_back(self, runs: Iterable[PageRun]) -> None:
        """Let pages wait again; those that are being saved are saved first."""
        chosen = list(runs)
        for run in chosen:
            if run.phase is not Phase.SAVING and run.task is not None:
                run.task.cancel()
        if chosen:
            await asyncio.wait([run.task for run in chosen if run.task is not None])

    async def take_back_unbegun(self) -> None:
        """Take back what the engine has not begun."""
        await self.take_back([run for run in self.runs.values()
                              if run.phase < Phase.STREAMING])

    async def redo(self, keys: Iterable[PageKey]) -> None:
        """Read pages again, whatever became of them."""
        keys = set(keys)
        self._barred |= keys
        try:
            await self.take_back([self.runs[key] for key in keys if key in self.runs])
            rows = [row for row in map(self._t.journal.page, sorted(keys)) if row is not None]
            self._t.journal.reset(row.key for row in rows)
        finally:
            self._barred -= keys
        for row in rows:
            self._t.figures.delete(row.key)
            if row.problem is not None:
                self._t.outbox.post(ProblemRemoved(row.key.id))
            self._t.outbox.post(PageCleared(row.key.id))
            fresh = self._t.journal.page(row.key)
            if fresh is not None:
                self._t.outbox.post(PageUpdated(fresh.view()))
        for document_id in {row.key.document_id for row in rows}:
            self._t.documents.tell(document_id)
        self._t.wake()

    def look_at(self, key: PageKey | None) -> None:
        """A person looks at this page."""
        self.looked_at = key
        run = self.runs.get(key) if key is not None else None
        if run is not None and run.phase is Phase.SUBMITTED:
            self._t.engine.raise_page(run.id)
        self._t.wake()

    # --- from the engine
    def worker_died(self, event: WorkerDied) -> None:
        """The pages it had come back; those it worked on are under suspicion."""
        self._cancelling.clear()
        for page_id in event.pages:
            key = PageKey.of(page_id)
            run = self.runs.get(key) if key is not None else None
            if run is None or not run.with_engine or run.ended.done():
                continue
            if run.phase is Phase.STREAMING:
                run.deaths = self._t.journal.worker_died(run.key)
                run.stalled = False
            run.phase = Phase.DRAWN
            run.ended.set_result(None)
        self._t.wake()

    def _stall_seconds(self) -> float:
        return float(self._t.in_force()[0]["stall_seconds"])

    def _stalled(self, run: PageRun) -> None:
        """The engine has gone silent on a page: it counts as if its worker had died. What holds
        the page up may hold up more than that, so the engine begins no other page."""
        log.warning("page %s: nothing was heard for %g s", run.id, self._stall_seconds())
        try:
            run.deaths = self._t.journal.worker_died(run.key)
        except sqlite3.Error as error:
            self._t.save_failed(error)
        run.stalled = True
        self._cancelling.add(run.id)
        self._t.engine.cancel(run.id)
        self._t.engine.wear()
        run.phase = Phase.DRAWN
        run.ended.set_result(None)
        for other in self.runs.values():
            if other.phase is Phase.SUBMITTED and other.task is not None:
                other.task.cancel()

    def page_event(self, event: object) -> None:
        """Anything the engine says about a page."""
        page_id = getattr(event, "page_id", "")
        if page_id in self._cancelling:
            if isinstance(event, PageFinished):
                self._cancelling.discard(page_id)
                self._t.wake()
            return
        key = PageKey.of(page_id)
        run = self.runs.get(key) if key is not None else None
        if run is None or not run.with_engine or run.ended.done():
            return
        self.stalls.heard(run)
        match event:
            case PageStarted():
                run.phase = Phase.STREAMING
                self.stalls.look()
                run.row = replace(run.row, attempts=self._t.journal.begun(run.key))
                self._t.outbox.post(PageUpdated(run.view()))
            case PageOriented(_, clockwise):
                run.rotation = (run.rotation + clockwise) % 360
                self._t.outbox.post(PageUpdated(run.view()))
            case PageRegions(_, regions):
                run.regions = regions
                self._t.outbox.post(PageRegionsFound(run.id, regions))
            case PageRestarted(_, reason):
                self._clear(run)
                run.begin_again(looped=reason == "loop")
                self._t.outbox.post(PageUpdated(run.view()))
            case PageText(_, text, tokens):
                self._t.progress.tokens(tokens)
                if not run.overflowed:
                    first = not run.raw
                    self._t.outbox.streamed(run.id, run, run.feed(text), text, first=first)
                    if run.length > MAX_RAW:
                        run.overflowed = True
                        self._t.engine.cancel(run.id)
            case BlockConfidence(_, index, confidence):
                run.confidences[index] = confidence
                if 0 <= index < len(run.parser.blocks):
                    self._t.outbox.streamed(run.id, run, (index,), "")
            case PageFinished():
                run.ended.set_result(event)
