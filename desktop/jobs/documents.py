"""Documents of the queue: opened, unlocked, checked against the file they came from."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path

from desktop.errors import Problem, VersoError, problem_of
from desktop.intake import ranges
from desktop.intake.errors import BadPageRange, NoDocuments, PasswordNeeded, WrongPassword
from desktop.intake.rasterizer import Rasterizer
from desktop.intake.walk import walk
from desktop.jobs.digests import Digests, file_status
from desktop.jobs.errors import SourceChanged, SourceMissing, UnknownDocument
from desktop.jobs.events import (
    DocumentAdded,
    DocumentRemoved,
    DocumentState,
    DocumentUpdated,
    DocumentView,
    PageView,
    ProblemAdded,
    ProblemRemoved,
    ProblemView,
)
from desktop.jobs.journal import Journal
from desktop.jobs.outbox import Outbox
from desktop.jobs.records import Counts, DocumentRow, document_view

log = logging.getLogger(__name__)


class Documents:
    """Used on the session's loop only."""

    def __init__(self, journal: Journal, outbox: Outbox, rasterizer: Callable[[], Rasterizer],
                 helper: Executor, changed: Callable[[], None]) -> None:
        """CHANGED is called when there may be pages to read that there were not before."""
        self._journal = journal
        self._outbox = outbox
        self._rasterizer = rasterizer
        self._helper = helper
        self._changed = changed
        self._digests = Digests(journal)
        self._counts: dict[int, Counts] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self.passwords: dict[int, str] = {}
        self.live: Callable[[], Mapping[str, PageView]] = dict
        """Pages in flight as they are now; the journal has them as waiting."""
        self._turn = asyncio.Semaphore(1)
        """One file is examined at a time: the first page of the first one is not kept waiting
        by the thousand that were dropped with it."""

    async def close(self) -> None:
        """What is being opened is opened at the next start."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._digests.close()

    def resume(self) -> None:
        """Take up what an earlier run left: passwords are asked for again, what was being
        opened is opened."""
        for row in self._journal.documents():
            if row.locked and row.state is DocumentState.OPEN:
                row = self._ask_password(row)
            self._recount(row.id)
            if row.state is DocumentState.OPENING:
                self._start_opening(row)
            else:
                self._digests.want(row)

    @property
    def opening(self) -> bool:
        """Whether some document is still being opened."""
        return bool(self._tasks)

    def totals(self) -> Counts:
        """Pages of all documents together."""
        return Counts(*map(sum, zip(*self._counts.values(), strict=True))) \
            if self._counts else Counts()

    def view(self, row: DocumentRow) -> DocumentView:
        """As front ends see it."""
        return document_view(row, self._counts.get(row.id, Counts()))

    def row(self, document_id: int) -> DocumentRow:
        """The document; raises :class:`UnknownDocument`."""
        row = self._journal.document(document_id)
        if row is None:
            raise UnknownDocument()
        return row

    # --- what a person asks for
    async def add(self, paths: Sequence[Path], page_range: str, skip: Collection[Path],
                  redo: str | None) -> list[int]:
        """Queue files and folders. A file that is in the journal already is taken up where it
        was; with REDO (a fingerprint) its pages read with other settings, and those that
        failed, are read again, and what an earlier version of the file gave is dropped."""
        ranges.check(page_range)
        loop = asyncio.get_running_loop()
        files = await loop.run_in_executor(
            self._helper, lambda: [path.absolute() for path in walk(paths, skip=skip)])
        if paths and not files:
            raise NoDocuments()
        ids: list[int] = []
        for file in files:
            row = await self._known(file, redo)
            if row is None:
                row = self._journal.add_document(str(file), file.name, page_range)
                self._outbox.post(DocumentAdded(self.view(row)))
                self._start_opening(row)
            else:
                self._take_up(row, page_range, redo)
            if row.id not in ids:
                ids.append(row.id)
            await asyncio.sleep(0)  # thousands of files must not hold up what is being read
        self._changed()
        return ids

    async def unlock(self, document_id: int, password: str) -> bool:
        """Try PASSWORD on a document that needs one."""
        row = self.row(document_id)
        try:
            await self._examine(row, password)
        except (WrongPassword, PasswordNeeded):
            return False
        return True

    def known_passwords(self) -> dict[str, list[str]]:
        """Those that opened a document: path → them."""
        found: dict[str, list[str]] = {}
        for document_id, password in self.passwords.items():
            found.setdefault(self.row(document_id).path, []).append(password)
        return found

    def set_page_range(self, document_id: int, page_range: str) -> None:
        """Change which pages are read; raises BadPageRange and leaves things as they were."""
        row = self.row(document_id)
        if row.state is not DocumentState.OPEN and not row.pages:
            ranges.check(page_range)
            self._journal.update_document(document_id, page_range=page_range)
            self.tell(document_id)
            return
        ranges.parse(page_range, row.pages)
        self._journal.update_document(document_id, page_range=page_range)
        if row.state is DocumentState.OPEN:
            self._clear_problem(document_id)
        self._select(document_id)
        self._changed()

    def hold(self, document_ids: Collection[int]) -> None:
        """Begin no page of these documents any more."""
        for document_id in document_ids:
            if self._journal.document(document_id) is not None:
                self._journal.update_document(document_id, held=True)

    def remove(self, document_id: int) -> None:
        """Forget it; no page of it may be in flight."""
        task = self._tasks.pop(document_id, None)
        if task is not None:
            task.cancel()
        self.passwords.pop(document_id, None)
        self._counts.pop(document_id, None)
        self._digests.forget(document_id)
        self._clear_problem(document_id)
        for row in self._journal.pages(document_id):
            if row.problem is not None:
                self._outbox.post(ProblemRemoved(row.key.id))
        self._journal.remove_document(document_id)
        self._outbox.post(DocumentRemoved(document_id))

    def reopen_unreadable(self) -> int:
        """Try the files again that could not be read; how many."""
        rows = [row for row in self._journal.documents()
                if row.state is DocumentState.UNREADABLE]
        for row in rows:
            self._start_opening(row)
        return len(rows)

    # --- for the pages being read
    async def check_source(self, row: DocumentRow) -> None:
        """Raise SourceMissing or SourceChanged when the file is not what it was."""
        status = file_status(row.path)
        if status is None:
            raise SourceMissing(name=row.name)
        if status == (row.size, row.mtime_ns):
            return
        if not row.sha256 or await self._digests.of(row.path) != row.sha256:
            raise SourceChanged(name=row.name)
        self._journal.update_document(row.id, size=status[0], mtime_ns=status[1])

    async def digested(self, document_id: int) -> DocumentRow:
        """The document once its digest is known; raises :class:`UnknownDocument`."""
        await self._digests.wait(document_id)
        return self.row(document_id)

    def fail(self, document_id: int, problem: Problem) -> None:
        """No further page of the document can be read."""
        row = self._journal.document(document_id)
        if row is None or row.state is DocumentState.UNREADABLE:
            return
        self._journal.update_document(document_id, state=DocumentState.UNREADABLE,
                                      problem=problem)
        self._report(document_id, problem)
        self.tell(document_id)

    def tell(self, document_id: int) -> None:
        """Count its pages again and tell the listeners."""
        row = self._journal.document(document_id)
        if row is not None:
            self._recount(document_id)
            self._outbox.post(DocumentUpdated(self.view(row)))

    def page_views(self, document_id: int) -> tuple[PageView, ...]:
        """Its selected pages as they are now."""
        live = self.live()
        return tuple(live.get(row.key.id) or row.view()
                     for row in self._journal.pages(document_id))

    def problems(self, row: DocumentRow) -> list[ProblemView]:
        """What the Problems list shows of a document and its pages."""
        found = []
        if row.problem is not None:
            found.append(ProblemView(_key(row.id), row.problem, row.id, row.name))
        if self._counts.get(row.id, Counts()).suspicious:
            found += [ProblemView(page.key.id, page.problem, row.id, row.name, page.key.number,
                                  page.key.id)
                      for page in self._journal.pages(row.id) if page.problem is not None]
        return found

    # --- inside
    async def _known(self, file: Path, redo: str | None) -> DocumentRow | None:
        """The document made from this FILE as it is now."""
        for row in self._journal.documents_at(str(file)):
            if not row.size:  # never opened yet
                return row
            try:
                await self.check_source(row)
            except SourceMissing:
                return row
            except SourceChanged as error:
                if redo is not None:
                    self.remove(row.id)
                elif not row.held:
                    self.fail(row.id, error.problem())
                continue
            return self.row(row.id)
        return None

    def _take_up(self, row: DocumentRow, page_range: str, redo: str | None) -> None:
        """ROW was added again."""
        was_held = row.held
        if was_held or (page_range and page_range != row.page_range):
            row = self._journal.update_document(row.id, held=False, page_range=page_range)
        if row.state is DocumentState.OPEN:
            self._clear_problem(row.id)
            self._select(row.id, tell=False)
            if row.locked and row.id not in self.passwords:
                row = self._ask_password(row)
        self._digests.want(row)
        if redo is not None:
            self._journal.reset(self._journal.outdated(row.id, redo))
        self._recount(row.id)
        if was_held:
            self._outbox.post(DocumentAdded(self.view(self.row(row.id)),
                                            self.page_views(row.id)))
        else:
            self._outbox.post(DocumentUpdated(self.view(self.row(row.id)),
                                              self.page_views(row.id)))
        if row.state in (DocumentState.UNREADABLE, DocumentState.OPENING):
            self._start_opening(row)

    def _ask_password(self, row: DocumentRow) -> DocumentRow:
        """The password of an earlier run is forgotten."""
        problem = PasswordNeeded().problem()
        row = self._journal.update_document(row.id, state=DocumentState.PASSWORD,
                                            problem=problem)
        self._report(row.id, problem)
        return row

    def _start_opening(self, row: DocumentRow) -> None:
        if row.id in self._tasks:
            return
        self._clear_problem(row.id)
        self._journal.update_document(row.id, state=DocumentState.OPENING)
        self.tell(row.id)
        task = asyncio.create_task(self._open(row), name=f"open {row.id}")
        self._tasks[row.id] = task

        def done(_: object) -> None:
            if self._tasks.get(row.id) is task:
                del self._tasks[row.id]
            self._changed()

        task.add_done_callback(done)

    async def _open(self, row: DocumentRow) -> None:
        try:
            async with self._turn:
                await self._examine(row, self.passwords.get(row.id))
        except (PasswordNeeded, WrongPassword) as error:
            self._journal.update_document(row.id, state=DocumentState.PASSWORD, locked=True,
                                          problem=error.problem())
            self._report(row.id, error.problem())
            self.tell(row.id)
        except VersoError as error:
            self.fail(row.id, error.problem())
        except Exception as error:
            log.exception("opening document %d failed", row.id)
            self.fail(row.id, problem_of(error))

    async def _examine(self, row: DocumentRow, password: str | None) -> None:
        """Open the file and take in what it holds."""
        status = file_status(row.path) or (0, 0)
        info = await asyncio.wrap_future(self._rasterizer().open(Path(row.path), password))
        row = self.row(row.id)
        digest = row.sha256
        if row.size and status != (row.size, row.mtime_ns):
            digest = await self._digests.of(row.path) if digest else ""
            if not digest or digest != self.row(row.id).sha256:
                self._journal.reset(self._journal.all_pages(row.id))
        if password is not None:
            self.passwords[row.id] = password
        self._journal.update_document(
            row.id, state=DocumentState.OPEN, pages=info.pages,
            sha256=digest, size=status[0], mtime_ns=status[1],
            locked=password is not None)
        self._digests.want(self.row(row.id))
        self._clear_problem(row.id)
        self._select(row.id)
        self._changed()

    def _select(self, document_id: int, *, tell: bool = True) -> None:
        """Make the pages of its range the ones that are read."""
        row = self.row(document_id)
        try:
            numbers = ranges.parse(row.page_range, row.pages)
        except BadPageRange as error:
            numbers = []
            self._journal.update_document(document_id, problem=error.problem())
            self._report(document_id, error.problem())
        self._journal.select_pages(document_id, numbers)
        self._recount(document_id)
        if tell:
            self._outbox.post(DocumentUpdated(self.view(self.row(document_id)),
                                              self.page_views(document_id)))

    def _recount(self, document_id: int) -> None:
        self._counts[document_id] = self._journal.counts(document_id)

    def _report(self, document_id: int, problem: Problem) -> None:
        name = self.row(document_id).name
        self._outbox.post(ProblemAdded(ProblemView(_key(document_id), problem, document_id,
                                                   name)))

    def _clear_problem(self, document_id: int) -> None:
        row = self._journal.document(document_id)
        if row is not None and row.problem is not None:
            self._journal.update_document(document_id, problem=None)
            self._outbox.post(ProblemRemoved(_key(document_id)))


def _key(document_id: int) -> str:
    return f"document-{document_id}"
