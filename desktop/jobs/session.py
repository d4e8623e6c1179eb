"""The one object both front ends use: journal, intake and engine behind a few calls.

The session has a thread of its own. Every public method may be called from any thread and
returns at once; what takes time comes back as a ``concurrent.futures.Future``. Listeners are
called on the session's thread with lists of events and must return quickly.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from desktop.errors import VersoError
from desktop.intake.model import RenderedPage
from desktop.jobs.benchmarks import BenchmarkRow
from desktop.jobs.core import Core
from desktop.jobs.errors import SessionClosed
from desktop.jobs.events import DocumentResult, EngineView, PageResult, SessionEvent
from desktop.jobs.journal import Journal
from desktop.settings import Values

Listener = Callable[[Sequence[SessionEvent]], None]
T = TypeVar("T")

log = logging.getLogger(__name__)


class Session:
    """Documents in, Markdown out, nothing lost in between."""

    def __init__(self, journal: Path, cache: Path, values: Values,
                 *, interpreter: str | None = None,
                 engine_args: Mapping[str, str] | None = None, resume: bool = True) -> None:
        """Open (or create) the journal; nothing runs until :meth:`start`.

        The engine is loaded when the first page needs it or by :meth:`warm_up`; ENGINE_ARGS
        reach it unchanged beside the settings. With RESUME False the documents of earlier runs
        are set aside, with all that was read of them, until they are added again. Raises
        JournalBusy, JournalTooNew, JournalUnusable (``desktop.jobs.errors``).
        """
        self._values = values
        self._lock = threading.Condition()
        self._calls = 0
        self._settled = True
        self._closed = False
        opened = Journal(journal)
        started: Future[Core] = Future()

        def create() -> Core:
            return Core(opened, cache, values, interpreter=interpreter,
                        engine_args=engine_args or {}, resume=resume,
                        settled=lambda: self._set_settled(True),
                        unsettled=lambda: self._set_settled(False))

        self._thread = threading.Thread(target=_run_loop, args=(create, started),
                                        name="session", daemon=True)
        self._thread.start()
        try:
            self._core = started.result()
        except BaseException:
            opened.close()
            raise

    # --- listening
    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call LISTENER with every batch of events from now on; the first batch describes
        everything there is. Returns the function that ends it."""
        self._send(lambda: self._core.subscribe(listener))
        return lambda: self._send(lambda: self._core.outbox.unsubscribe(listener))

    # --- the queue
    def add(self, paths: Sequence[Path], *, page_range: str = "", skip: Sequence[Path] = (),
            redo_outdated: bool = False) -> Future[list[int]]:
        """Queue files and folders (walked, without the folders SKIP); the ids of the documents,
        in order. Raises BadPageRange, NoDocuments.

        A file that is in the queue already keeps its document and what was read of it. With
        REDO_OUTDATED its pages that failed, or that were read with other settings, are read
        again, and what an earlier version of the file gave is dropped.
        """
        return self._ask(lambda: self._core.add(list(paths), page_range, list(skip),
                                                redo_outdated))

    def remove(self, document_ids: Sequence[int]) -> None:
        """Take documents out of the queue with their results (the files stay untouched)."""
        self._send(lambda: self._core.remove(list(document_ids)))

    def unlock(self, document_id: int, password: str) -> Future[bool]:
        """Try PASSWORD on an encrypted document; kept in memory only."""
        return self._ask(lambda: self._core.documents.unlock(document_id, password))

    def passwords(self) -> Future[dict[str, list[str]]]:
        """Those that opened documents of the queue: path → them. Not for showing or keeping."""
        return self._ask(_later(lambda: self._core.documents.known_passwords()))

    def set_page_range(self, document_id: int, page_range: str) -> Future[None]:
        """Change which pages are read ("1-3,7"; "" is all); raises BadPageRange."""
        return self._ask(lambda: self._core.set_page_range(document_id, page_range))

    # --- running
    def start(self) -> None:
        """Read the waiting pages, now and as they come."""
        self._send(self._core.start)

    def pause(self) -> None:
        """Begin no further page; those in flight end."""
        self._send(self._core.pause)

    def stop(self) -> None:
        """Pause and cancel the pages in flight; they wait again."""
        self._send(self._core.stop)

    def retry_failed(self) -> int:
        """Queue every suspicious page again, and open unreadable files again; how many."""
        return self._ask(self._core.retry_failed).result()

    def rerun(self, page_ids: Sequence[str]) -> None:
        """Read these pages again, whatever their state."""
        self._send(lambda: self._core.rerun(list(page_ids)))

    def look_at(self, page_id: str | None) -> None:
        """The page a person looks at: it goes first."""
        self._send(lambda: self._core.look_at(page_id))

    def warm_up(self) -> None:
        """Load the chosen engine before a page needs it, also when it failed before."""
        self._send(self._core.warm_up)

    def release_engine(self) -> Future[None]:
        """Stop, and end the engine, so that its device is free for something else, such as a
        measurement. The next page that is read starts it again."""
        return self._ask(self._core.release_engine)

    # --- measurements that were made
    def benchmarks(self) -> Future[list[BenchmarkRow]]:
        """All that are kept, the newest first."""
        return self._ask(_later(lambda: self._core.journal.benchmarks.rows()))

    def benchmark(self, benchmark_id: int) -> Future[dict[str, Any] | None]:
        """The JSON document of one; None: there is no such one."""
        return self._ask(_later(lambda: self._core.journal.benchmarks.document(benchmark_id)))

    def keep_benchmark(self, document: Mapping[str, Any], row: BenchmarkRow) -> Future[int]:
        """Keep one; its id. ROW says it in short (``desktop.benchmark.history.row``)."""
        return self._ask(_later(lambda: self._core.journal.benchmarks.add(document, row)))

    def rename_benchmark(self, benchmark_id: int, name: str) -> None:
        """Call one by a name."""
        self._send(lambda: self._core.journal.benchmarks.rename(benchmark_id, name))

    def remove_benchmark(self, benchmark_id: int) -> None:
        """Forget one."""
        self._send(lambda: self._core.journal.benchmarks.remove(benchmark_id))

    # --- settings
    @property
    def values(self) -> Values:
        """The values in force."""
        return self._values

    def set_values(self, values: Values) -> None:
        """Use VALUES from now on; a change that needs it restarts the engine between pages."""
        self._values = values
        self._send(lambda: self._core.set_values(values))

    @property
    def engine(self) -> EngineView:
        """The engine as it is now."""
        return self._core.engine.view

    # --- results
    def page_result(self, page_id: str) -> Future[PageResult]:
        """Everything there is of a page, also while it streams."""
        return self._ask(lambda: self._core.page_result(page_id))

    def document_result(self, document_id: int) -> Future[DocumentResult]:
        """Everything there is of a document, for an export; its pages are read when asked for."""
        return self._ask(lambda: self._core.document_result(
            document_id, lambda page_id: self.page_result(page_id).result()))

    def bitmap(self, page_id: str) -> Future[RenderedPage]:
        """The upright bitmap that engine and canvas share, drawn again if need be. The caller
        deletes it."""
        return self._ask(lambda: self._core.bitmap(page_id))

    def thumbnail(self, page_id: str, side: int) -> Future[RenderedPage]:
        """A small bitmap, SIDE pixels long; drawn when nothing more urgent waits."""
        return self._ask(lambda: self._core.thumbnail(page_id, side))

    # --- the end
    def wait(self, timeout: float | None = None) -> bool:
        """Block until nothing is left to do (command line); False when TIMEOUT s ran out.

        Nothing is left when all pages that can be read are, when it is paused and no page is in
        flight, or when the engine has failed for good (see :attr:`engine`).
        """
        with self._lock:
            return self._lock.wait_for(lambda: self._settled and not self._calls, timeout)

    def close(self) -> None:
        """End engine and helpers in order; the journal holds everything for the next start.

        Blocks until all processes are gone; not to be called by a listener.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
        loop = self._core.loop
        try:
            asyncio.run_coroutine_threadsafe(self._core.close(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            with self._lock:
                self._calls, self._settled = 0, True
                self._lock.notify_all()

    # --- inside
    def _set_settled(self, settled: bool) -> None:
        with self._lock:
            self._settled = settled
            self._lock.notify_all()

    def _send(self, call: Callable[[], Coroutine[Any, Any, object] | None]) -> None:
        """Run CALL on the session's thread; nobody waits for it. Nothing once it is closed."""
        async def run() -> None:
            answer = call()
            if answer is not None:
                await answer

        with contextlib.suppress(SessionClosed):
            self._ask(run).add_done_callback(_log_failure)

    def _ask(self, call: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Run CALL on the session's thread; raises SessionClosed."""
        async def run() -> T:
            try:
                return await call()
            finally:
                # Whoever waits must not wake between this call and what it gives to do.
                self._core.wake()
                self._core.loop.call_soon(self._core.loop.call_soon, self._answered)

        with self._lock:
            if self._closed:
                raise SessionClosed()
            self._calls += 1
            return asyncio.run_coroutine_threadsafe(run(), self._core.loop)

    def _answered(self) -> None:
        with self._lock:
            self._calls -= 1
            self._lock.notify_all()


def _later(call: Callable[[], T]) -> Callable[[], Coroutine[Any, Any, T]]:
    """CALL as what the session's thread awaits."""
    async def run() -> T:
        return call()
    return run


def _run_loop(create: Callable[[], Core], started: Future[Core]) -> None:
    """The session's thread."""
    loop = asyncio.new_event_loop()

    async def begin() -> None:
        try:
            started.set_result(create())
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            started.set_exception(error)
            loop.stop()

    beginning = loop.create_task(begin())
    try:
        loop.run_forever()
        loop.run_until_complete(_end_tasks(loop))
    finally:
        del beginning
        loop.close()


async def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Answers that somebody still waits for end as cancelled."""
    waiting = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await loop.shutdown_default_executor()


def _log_failure(done: Future[None]) -> None:
    """Nobody waits for the answer, so the log must have it."""
    if not done.cancelled() and (error := done.exception()) is not None:
        if isinstance(error, VersoError):
            log.warning("%s", error)
        else:
            log.error("a call to the session failed", exc_info=error)
