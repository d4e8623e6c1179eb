"""One run of ``verso convert``: follows the session, writes each document when it is done."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from desktop.cli.reporting import Reporter, one_line, problem_line, shown_path
from desktop.cli.status import Exit
from desktop.errors import Problem, VersoError
from desktop.export import ExportOptions, export
from desktop.i18n import _, ngettext
from desktop.intake.errors import NoDocuments, WrongPassword
from desktop.intake.walk import OUTPUT_MARK
from desktop.jobs.errors import JournalWriteFailed
from desktop.jobs.events import (
    DocumentAdded,
    DocumentState,
    DocumentUpdated,
    DocumentView,
    EngineState,
    EngineUpdated,
    ProblemAdded,
    ProblemView,
    ProgressUpdated,
    SessionEvent,
)
from desktop.jobs.session import Session
from desktop.protocol.messages import EngineReady

_HEARD = (DocumentAdded, DocumentUpdated, EngineUpdated, ProblemAdded, ProgressUpdated)

IDLE_SECONDS = 5.0
"""Without any news after which it is checked that something is still going on."""


@dataclass
class _Item:
    """What became of one document."""

    view: DocumentView
    done: bool = False
    unlocked: bool = False
    """A password opened it; the news of that may still be on its way."""
    files: list[Path] = field(default_factory=list)
    problems: list[tuple[int, Problem]] = field(default_factory=list)
    """(page, what is wrong); page 0: the document's own."""


class Conversion:
    """Used once."""

    def __init__(self, session: Session, output: Path, formats: Sequence[str],
                 passwords: Sequence[str], report: Reporter) -> None:
        self._session = session
        self._output = output
        self._formats = formats
        self._passwords = passwords
        self._report = report
        self._events: queue.SimpleQueue[SessionEvent] = queue.SimpleQueue()
        self._items: dict[int, _Item] = {}
        self._order: list[int] = []
        self._told: set[str] = set()
        self._engine_problem: Problem | None = None
        self._failed = False
        self.model = ""
        self.notes: list[str] = []
        """What the engine said of how it runs, each sentence once."""

    def run(self, inputs: Sequence[Path], page_range: str) -> Exit:
        """Read and write everything; the exit status."""
        session = self._session
        session.subscribe(self._listen)
        # A folder that is both input and output is walked: results in it are known as such.
        skip = [] if any(_same(path, self._output) for path in inputs) else [self._output]
        adding = session.add(inputs, page_range=page_range, skip=skip, redo_outdated=True)
        session.start()
        try:
            self._order = adding.result()
            self._follow()
        except NoDocuments as error:
            self._say_problem(", ".join(map(shown_path, map(str, inputs))), 0, error.problem())
            return Exit.SOME_FAILED
        except KeyboardInterrupt:
            self._interrupted()
            return Exit.INTERRUPTED
        if self._engine_problem is not None:
            self._report.say(one_line(f"verso: {self._engine_problem.line()}"))
            return Exit.NO_ENGINE
        return Exit.SOME_FAILED if self._failed else Exit.OK

    def summary(self) -> list[dict[str, Any]]:
        """What became of each document, for ``--json``."""
        return [self._summary(self._items[document_id]) for document_id in self._order
                if document_id in self._items]

    # --- following
    def _listen(self, batch: Sequence[SessionEvent]) -> None:
        for event in batch:
            if isinstance(event, _HEARD):
                self._events.put(event)

    def _follow(self) -> None:
        """Handle events until every document is done or the engine has failed."""
        while not all(document_id in self._items and self._items[document_id].done
                      for document_id in self._order):
            try:
                event = self._events.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                if self._session.wait(0) and self._events.empty():
                    # Nothing moves any more: better a clear end than waiting for ever.
                    self._abandon(VersoError(detail="the session came to rest").problem())
                    return
                continue
            match event:
                case DocumentAdded(view) | DocumentUpdated(view):
                    self._document(view)
                case ProblemAdded(problem):
                    self._problem(problem)
                case ProgressUpdated(progress):
                    self._report.progress(progress)
                case EngineUpdated(engine):
                    if engine.ready is not None:
                        self._engine_ready(engine.ready)
                    if engine.state is EngineState.FAILED:
                        self._engine_problem = engine.problem
                        self._write_rest()
                        return

    def _document(self, view: DocumentView) -> None:
        """One document changed. They are written in the order they were named, so that the
        same call gives the same names of folders."""
        self._items.setdefault(view.id, _Item(view)).view = view
        for document_id in self._order:
            item = self._items.get(document_id)
            if item is None:
                return
            if not item.done:
                self._advance(item)
            if not item.done:
                return

    def _advance(self, item: _Item) -> None:
        """Write it, unlock it or give it up when it is time."""
        view = item.view
        match view.state:
            case DocumentState.OPEN if view.selected == view.finished and view.selected:
                self._write(item)
            case DocumentState.OPEN if not view.selected and view.problem is not None:
                self._give_up(item, view.problem)
            case DocumentState.PASSWORD if view.problem is not None:
                self._unlock(item, view.problem)
            case DocumentState.UNREADABLE if view.problem is not None:
                self._give_up(item, view.problem)

    def _problem(self, view: ProblemView) -> None:
        if view.page and view.document_id in self._items:
            self._page_problem(self._items[view.document_id], view.page, view.problem)
        elif view.problem.code == JournalWriteFailed.code:
            self._abandon(view.problem)
        elif view.key == "journal":
            self._report.say(one_line(f"verso: {view.problem.line()}"))

    def _unlock(self, item: _Item, problem: Problem) -> None:
        if item.view.selected and item.view.finished == item.view.selected:
            self._write(item)  # read by an earlier call: nothing needs the file any more
            return
        if item.unlocked:
            return
        for password in self._passwords:
            if self._session.unlock(item.view.id, password).result():
                item.unlocked = True
                return
        self._give_up(item, WrongPassword().problem() if self._passwords else problem)

    def _give_up(self, item: _Item, problem: Problem) -> None:
        """It cannot be read (any further)."""
        self._failed = True
        item.done = True
        item.problems.append((0, problem))
        self._say_problem(item.view.path, 0, problem)
        if item.view.finished:
            self._write(item)

    def _abandon(self, problem: Problem) -> None:
        """Nothing more can be read."""
        self._failed = True
        self._report.say(one_line(f"verso: {problem.line()}"))
        self._write_rest()
        for document_id in self._order:
            item = self._items.get(document_id)
            if item is not None and not item.done:
                item.done = True
                item.problems.append((0, problem))

    # --- writing
    def _write(self, item: _Item) -> None:
        item.done = True
        try:
            result = self._session.document_result(item.view.id).result()
            for page in result.pages:
                if page.view.problem is not None:
                    self._page_problem(item, page.view.number, page.view.problem)
            item.files = export(result, self._output, self._formats, ExportOptions.of(
                self._session.values, lambda page_id: self._session.bitmap(page_id).result()))
            if item.files:
                (item.files[0].parent / OUTPUT_MARK).touch()
        except VersoError as error:
            self._failed = True
            item.problems.append((0, error.problem()))
            self._say_problem(item.view.path, 0, error.problem())
            return
        if item.files:
            count = item.view.finished
            self._report.say(one_line(ngettext(
                "{source} → {target} ({count} page)", "{source} → {target} ({count} pages)",
                count).format(source=shown_path(item.view.path),
                              target=shown_path(str(item.files[0])), count=count)))

    def _write_rest(self) -> None:
        """What was finished of the documents that will not be: nothing is lost."""
        for document_id in self._order:
            item = self._items.get(document_id)
            if item is not None and not item.done and item.view.finished:
                self._write(item)

    def _interrupted(self) -> None:
        self._session.stop()
        self._session.wait(10)
        try:
            while True:
                event = self._events.get_nowait()
                if isinstance(event, DocumentUpdated) and event.document.id in self._items:
                    self._items[event.document.id].view = event.document
        except queue.Empty:
            self._write_rest()
        self._report.say(_("verso: Interrupted. Call it again to go on where it was."))

    # --- telling
    def _engine_ready(self, ready: EngineReady) -> None:
        self.model = ready.model
        for note in ready.notes:
            if note not in self.notes:  # It says them again at each of its starts.
                self.notes.append(note)
                self._report.say(one_line(_("engine: {note}").format(note=note)))

    def _page_problem(self, item: _Item, page: int, problem: Problem) -> None:
        key = f"{item.view.id}-{page}"
        if key in self._told:
            return
        self._told.add(key)
        self._failed = True
        item.problems.append((page, problem))
        self._say_problem(item.view.path, page, problem)

    def _say_problem(self, path: str, page: int, problem: Problem) -> None:
        self._report.say("verso: " + problem_line(path, page, problem))

    def _summary(self, item: _Item) -> dict[str, Any]:
        view = item.view
        state = view.state.value
        if view.state is DocumentState.OPEN:
            state = "complete" if view.selected and view.finished == view.selected else "partial"
        return {
            "path": view.path, "state": state, "pages": view.pages, "selected": view.selected,
            "finished": view.finished, "suspicious": view.suspicious,
            "files": [str(path) for path in item.files],
            "problems": [{"page": page, "code": problem.code, "message": problem.message,
                          "hint": problem.hint} for page, problem in sorted(item.problems)]}


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
