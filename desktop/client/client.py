"""The application's end of the worker: start, submit, cancel, restart, close."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from desktop.client import endings
from desktop.client.life import Ending, Life, Order
from desktop.errors import Problem, VersoError
from desktop.protocol.messages import (
    VERSION,
    AnyEvent,
    BlockConfidence,
    CancelPage,
    Command,
    PageFinished,
    PageOriented,
    PageRegions,
    PageRestarted,
    PageStarted,
    PageText,
    RaisePage,
    SetConcurrency,
    StartEngine,
    SubmitPage,
)
from desktop.protocol.wire import encode

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WorkerDied:
    """The worker is gone. PAGES were submitted and not finished, in order of submission: they
    are the caller's again. RESTART_IN: seconds until it is started again, None when it is not."""

    problem: Problem
    pages: tuple[str, ...]
    restart_in: float | None


ClientEvent = AnyEvent | WorkerDied

_DEAD = 15.0
"""Seconds in which processes that were killed are gone, on however busy a machine."""

_ABOUT_A_PAGE = (PageStarted, PageOriented, PageRegions, PageRestarted, PageText, BlockConfidence,
                 PageFinished)


@dataclass(frozen=True)
class Patience:
    """How often and how long; seconds."""

    first_pause: float = 1.0
    """Before the first restart; doubled with each death in a row."""
    longest_pause: float = 30.0
    deaths: int = 5
    """Deaths in a row after which it stays down."""
    hello: float = 60.0
    """From the start of the process to its first word."""
    cancel: float = 30.0
    """From a cancel to the end of the page; then the worker is killed and started again."""
    stop: float = 5.0
    """For the old worker to end when other settings are started."""

    def pause(self, deaths: int) -> float | None:
        """Seconds before the start that follows the DEATHS-th death in a row, None: no more."""
        if deaths >= self.deaths:
            return None
        return float(min(self.longest_pause, self.first_pause * 2 ** (deaths - 1)))


class EngineClient:
    """One worker process with one engine, kept alive. Thread-safe; no call blocks.

    A worker that dies is started again after a pause that doubles with each death in a row
    (reset by a finished page); the engine is loaded again with the same settings. A start that
    takes longer than the setting ``ready_seconds`` is given up. After too many deaths in a row,
    or when the engine says that starting again cannot help, it stays down until :meth:`start`.
    """

    def __init__(self, on_event: Callable[[ClientEvent], None],
                 *, interpreter: str | None = None,
                 environment: Mapping[str, str] | None = None,
                 patience: Patience = Patience()) -> None:
        """ON_EVENT is called on the client's reader thread, one event at a time; it may call any
        method here. INTERPRETER: the Python that runs the worker (a path, or a name looked up on
        PATH), None or "" for this one. ENVIRONMENT: variables set for it on top of our own."""
        self._on_event = on_event
        self._interpreter = _program(interpreter)
        self._environment = dict(environment or {})
        self._patience = patience
        self._changed = threading.Condition()  # Guards everything below.
        self._thread: threading.Thread | None = None
        self._closing = False
        self._order: Order | None = None
        self._life: Life | None = None
        """The worker that is heard; one that was stopped is not, though it may still run."""
        self._running: Life | None = None
        """The one that the reader thread is busy with."""
        self._connected = False
        """Whether the life has had its greeting; until then commands wait in ``_held``."""
        self._held: list[Command] = []
        self._pages: dict[str, SubmitPage] = {}
        """Submitted and not finished, in order."""
        self._cancelled: dict[str, float] = {}
        """Page id → when its end is overdue (``time.monotonic``)."""
        self._concurrency: int | None = None
        self._down: Problem | None = None
        """Why there is no worker and none will be started."""
        self._deaths = 0
        self._own: deque[ClientEvent] = deque()
        """Events of our own making, to be delivered on the reader thread."""

    # --- commands

    def start(self, engine: str, settings: dict[str, Any], *, interpreter: str | None = None,
              environment: Mapping[str, str | None] | None = None) -> None:
        """Start (or restart with other settings) the worker and load ENGINE.

        INTERPRETER: the Python for this start and those that follow a death of it; None: the one
        the client was made with. ENVIRONMENT: variables for these starts on top of the client's
        (None: not set, though our own environment has it).

        Pages in flight of a worker that runs come back in a :class:`WorkerDied` with
        ``restart_in=0``; pages that only wait for a worker are kept for the new one.
        """
        encode(StartEngine(VERSION, engine, settings))  # A value no wire can carry: raised here.
        with self._changed:
            self._order = Order(engine, dict(settings), _program(interpreter) or self._interpreter,
                                {**self._environment, **(environment or {})},
                                self._patience.hello)
            self._down = None
            self._deaths = 0
            self._closing = False
            if self._life is not None:
                pages = self._take_back()
                if pages:
                    self._own.append(
                        WorkerDied(endings.WorkerRestarted().problem(), pages, 0.0))
                self._life.stop(self._patience.stop)
                self._life = None
            self._wake()

    def submit(self, page: SubmitPage) -> None:
        """Hand over a page; events about it follow. Before EngineReady it waits in the worker,
        between two workers here. While the engine is down for good it comes straight back as a
        :class:`WorkerDied`. Raises ValueError for a page that is in flight."""
        page = msgspec.structs.replace(
            page, image=_absolute(page.image), words=_absolute(page.words))
        encode(page)
        with self._changed:
            if page.page_id in self._pages:
                raise ValueError(f"page {page.page_id} is in flight")
            if self._down is not None:
                self._own.append(WorkerDied(self._down, (page.page_id,), None))
                self._wake()
                return
            self._pages[page.page_id] = page
            self._tell(page)

    def cancel(self, page_id: str) -> None:
        """Stop a page; it ends with PageFinished(finish="cancelled") (or as it would have, when
        that came first). A page that is not in flight is left alone."""
        with self._changed:
            if page_id not in self._pages or page_id in self._cancelled:
                return
            if self._connected:
                self._cancelled[page_id] = time.monotonic() + self._patience.cancel
                self._tell(CancelPage(page_id))
            else:
                del self._pages[page_id]
                self._held = [command for command in self._held
                              if getattr(command, "page_id", None) != page_id]
                self._own.append(PageFinished(page_id, "cancelled"))
            self._wake()

    def raise_page(self, page_id: str) -> None:
        """A submitted page is wanted first."""
        with self._changed:
            if page_id in self._pages:
                self._tell(RaisePage(page_id))

    def set_concurrency(self, pages: int) -> None:
        """At most this many pages at once; 0: the engine's own choice. Holds for every worker
        from now on and goes before the setting ``concurrency``."""
        with self._changed:
            self._concurrency = pages
            if self._connected and self._life is not None:
                self._life.send(SetConcurrency(pages))

    def close(self, timeout: float = 5.0) -> None:
        """Ask, then TERM, then KILL; blocks until no process of the worker's group is left.

        No event follows. Called from within ON_EVENT it returns at once and the worker ends
        thereafter. :meth:`start` may follow.
        """
        with self._changed:
            self._closing = True
            self._order = None
            self._life = None
            life = self._running
            if life is not None:
                life.stop(timeout)
            self._take_back()
            self._own.clear()
            thread = self._thread
            self._changed.notify_all()
        if thread is None or thread is threading.current_thread():
            return
        thread.join(timeout)
        if thread.is_alive():
            # The reader may be held up in ON_EVENT: the processes must not wait for that.
            if life is not None:
                life.kill()
            thread.join(max(timeout, _DEAD))
            if thread.is_alive():
                _log.error("the reader of the engine's events does not end")

    # --- the reader thread

    def _run(self) -> None:
        while (order := self._next_order()) is not None:
            with self._changed:
                if self._order is not order:
                    continue
                life = self._life = self._running = Life(order, self)
            try:
                ending = life.run()
            except Exception as error:  # noqa: BLE001 - becomes a Problem; the thread lives on
                _log.exception("looking after the worker failed")
                ending = Ending(VersoError(detail=f"{type(error).__name__}: {error}"), fatal=True)
            with self._changed:
                self._running = None
            self._after(order, life, ending)

    def _next_order(self) -> Order | None:
        """Wait until there is something to start; None: closing."""
        while True:
            with self._changed:
                while not (self._own or self._closing
                           or (self._order is not None and self._down is None)):
                    self._changed.wait()
                if self._closing:
                    self._thread = None
                    return None
                if not self._own:
                    return self._order
            self._deliver()

    def _after(self, order: Order, life: Life, ending: Ending) -> None:
        """Report an end that nobody asked for, and wait until it is time for the next start."""
        with self._changed:
            if self._life is not life or ending.error is None:
                return
            cancelled = [page_id for page_id in self._pages if page_id in self._cancelled]
            problem = ending.error.problem()
            self._deaths += 1
            pause = None if ending.fatal else self._patience.pause(self._deaths)
            if pause is None:
                if not ending.fatal:
                    problem = endings.KeepsDying(
                        count=self._deaths, last=problem.message, detail=problem.detail).problem()
                self._down = problem
            self._life = None
            pages = self._take_back()
            self._own.extend(PageFinished(page_id, "cancelled") for page_id in cancelled)
            self._own.append(WorkerDied(problem, pages, pause))
            _log.warning("%s [%s] next start: %s", problem.message, problem.code,
                         "none" if pause is None else f"in {pause:g} s")
        until = time.monotonic() + (pause or 0)
        while True:
            self._deliver()
            with self._changed:
                if self._closing or self._order is not order:
                    return
                rest = until - time.monotonic()
                if rest <= 0:
                    return
                if not self._own:
                    self._changed.wait(rest)

    def _deliver(self) -> None:
        while True:
            with self._changed:
                if not self._own or self._closing:
                    return
                event = self._own.popleft()
            self._call(event)

    def _call(self, event: ClientEvent) -> None:
        try:
            self._on_event(event)
        except Exception:  # noqa: BLE001 - logged; the worker must be looked after all the same
            _log.exception("the listener failed on %s", type(event).__name__)

    # --- called by the life, on the reader thread

    def greeted(self, life: Life) -> None:
        """Name the engine to load, then what was asked for while there was no worker."""
        with self._changed:
            order = self._order
            if self._life is not life or order is None:
                return
            commands: list[Command] = [StartEngine(VERSION, order.engine, order.settings)]
            if self._concurrency is not None:
                commands.append(SetConcurrency(self._concurrency))
            for command in (*commands, *self._held):
                life.send(command)
            self._held.clear()
            self._connected = True

    def received(self, life: Life, event: AnyEvent) -> None:
        """Keep account of pages and pass EVENT on."""
        with self._changed:
            if self._life is not life or self._closing:
                return
            if isinstance(event, _ABOUT_A_PAGE):
                if event.page_id not in self._pages:
                    return
                if isinstance(event, PageFinished):
                    del self._pages[event.page_id]
                    self._cancelled.pop(event.page_id, None)
                    if event.finish != "cancelled":
                        self._deaths = 0
        self._call(event)

    def housekeeping(self, now: float) -> tuple[float | None, VersoError | None]:
        """Deliver our own events; find cancels that are overdue."""
        self._deliver()
        with self._changed:
            overdue = min(self._cancelled.values(), default=None)
        if overdue is not None and now >= overdue:
            return None, endings.CancelIgnored(seconds=f"{self._patience.cancel:g}")
        return overdue, None

    # --- helpers, all with the lock held

    def _tell(self, command: Command) -> None:
        if self._connected and self._life is not None:
            self._life.send(command)
        else:
            self._held.append(command)

    def _take_back(self) -> tuple[str, ...]:
        """Forget every page in flight; those that nobody has cancelled."""
        pages = tuple(page_id for page_id in self._pages if page_id not in self._cancelled)
        self._pages.clear()
        self._cancelled.clear()
        self._held.clear()
        self._connected = False
        return pages

    def _wake(self) -> None:
        """Let the reader thread look around; start it where it does not run."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="engine-client", daemon=True)
            self._thread.start()
        if self._running is not None:
            self._running.wake()
        self._changed.notify_all()


def _program(interpreter: str | None) -> str | None:
    """INTERPRETER wherever it is started from: the worker has another working folder."""
    if interpreter and os.sep in interpreter:
        return _absolute(os.path.expanduser(interpreter))
    return interpreter or None


def _absolute(path: str) -> str:
    return os.path.abspath(path) if path else ""
