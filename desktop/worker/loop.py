"""The worker's asyncio loop: one engine, the pages that wait for it, those it reads.

Runs on Python 3.10 with msgspec alone (and what the chosen engine needs).
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from typing import Dict, Optional, Set

from desktop.engines import registry
from desktop.engines.base import Engine, EngineDied, Finish
from desktop.errors import VersoError
from desktop.i18n import N_, _
from desktop.protocol.messages import (
    AnyCommand,
    Bye,
    CancelPage,
    EngineFailed,
    EngineLoading,
    EngineReady,
    PageFinished,
    PageStarted,
    ProblemData,
    RaisePage,
    SetConcurrency,
    Shutdown,
    StartEngine,
    SubmitPage,
)
from desktop.protocol.wire import check_version
from desktop.worker.admission import Admission
from desktop.worker.outbox import Outbox
from desktop.worker.reading import PageReading
from desktop.worker.stream import PageStream

_log = logging.getLogger(__name__)

_PROGRESS = 0.05
"""Seconds between two reports about the same step of loading."""

CANCEL_GRACE = 2.0
"""Seconds for pages to stop when the worker ends."""
CLOSE_GRACE = 10.0
"""Seconds for the engine to release what it holds; the application kills sooner if it must."""


class EngineMissing(VersoError):
    """What the engine is made of is not installed."""

    code = "engine.missing"
    message = N_("The engine “{title}” cannot start: {modules} is not installed.")
    hint = N_("Install it into the Python environment that runs the engine, or choose another "
              "engine.")


class EngineCrashed(VersoError):
    """An exception nobody foresaw, while the engine was loaded."""

    code = "engine.crashed"
    message = N_("The engine “{title}” could not be loaded.")
    hint = N_("See the log (View › Log) for the cause, or choose another engine.")


class PageCrashed(VersoError):
    """An exception nobody foresaw, while a page was read."""

    code = "engine.page"
    message = N_("The engine failed on this page.")
    hint = N_("Read the page again; if this repeats, please report it with the log (View › Log).")


class Worker:
    """Takes commands in the loop's thread (:meth:`take`), answers through the outbox."""

    def __init__(self, outbox: Outbox) -> None:
        """To be made inside the running loop."""
        self._outbox = outbox
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._status = 0
        self._load: Optional[asyncio.Task[None]] = None
        self._watch: Optional[asyncio.Task[None]] = None
        self._engine: Optional[Engine] = None
        self._last_progress = ("", 0.0)
        self._capacity = 0
        """0 until the engine is ready."""
        self._wanted: Optional[int] = None
        """What the application asked for; 0: the engine's own choice, None: nothing yet."""
        self._waiting = Admission()
        self._running: Dict[str, asyncio.Task[Finish]] = {}
        self._costs: Dict[str, int] = {}
        """What the running pages take of the engine's budget."""
        self._cancelled: Set[str] = set()

    async def run(self) -> int:
        """Work until :class:`Shutdown`, :meth:`stop` or the engine's end; the exit status."""
        await self._stop.wait()
        tasks = [*self._running.values(), *filter(None, (self._load, self._watch))]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_GRACE)
        if self._engine is not None:
            try:
                await asyncio.wait_for(self._engine.close(), CLOSE_GRACE)
            except Exception:  # noqa: BLE001 - it is logged, and the process ends anyway
                _log.exception("the engine did not close in order")
        self._outbox.send(Bye())
        return self._status

    def stop(self, status: int = 0) -> None:
        """End in order."""
        self._status = self._status or status
        self._stop.set()

    def fail(self, error: VersoError, *, fatal: bool) -> None:
        """Say that there is no engine any more, and end."""
        if not self._stop.is_set():
            self._outbox.send(EngineFailed(_data(error), fatal))
            self.stop(3)

    def refuse(self, error: VersoError) -> None:
        """The application sent what is no command: nothing after it can be trusted."""
        self.fail(error, fatal=False)

    def take(self, command: AnyCommand) -> None:
        """Carry out COMMAND."""
        if self._stop.is_set():
            return
        if isinstance(command, StartEngine):
            self._load = self._loop.create_task(self._start(command))
        elif isinstance(command, SubmitPage):
            self._waiting.add(command)
            self._fill()
        elif isinstance(command, CancelPage):
            self._cancel(command.page_id)
        elif isinstance(command, RaisePage):
            self._waiting.urge(command.page_id)
            self._fill()
        elif isinstance(command, SetConcurrency):
            self._set_concurrency(command.pages)
        elif isinstance(command, Shutdown):
            self.stop()

    # --- the engine

    async def _start(self, command: StartEngine) -> None:
        title = command.engine
        try:
            check_version(command.version)
            entry = registry.entry(command.engine)
            title = _(entry.title)
            missing = entry.missing()
            if missing:
                raise EngineMissing(title=title, modules=", ".join(missing))
            self._engine = entry.create()
            ready = await self._engine.start(command.settings, self._progress)
        except EngineDied as error:
            self.fail(error, fatal=False)
        except VersoError as error:
            self.fail(error, fatal=True)
        except ImportError as error:
            self.fail(EngineMissing(title=title, modules=error.name or str(error),
                                    detail=traceback.format_exc()), fatal=True)
        except (Exception, SystemExit):  # noqa: BLE001 - becomes a Problem at the boundary
            _log.exception("loading the engine failed")
            self.fail(EngineCrashed(title=title, detail=traceback.format_exc()), fatal=False)
        else:
            self._engine.grown = self._fill
            self._engine.changed = self._ready
            self._watch = self._loop.create_task(self._watched(self._engine))
            if self._wanted is None:
                self._wanted = int(command.settings.get("concurrency") or 0)
            self._ready(ready)

    def _ready(self, ready: EngineReady) -> None:
        """The engine is ready, or has become something else."""
        if not self._stop.is_set():
            self._outbox.send(ready)
            self._capacity = max(1, ready.capacity)
            self._set_concurrency(self._wanted or 0)

    async def _watched(self, engine: Engine) -> None:
        try:
            died = await engine.watch()
        except Exception:  # noqa: BLE001 - pages are read all the same, and will tell
            _log.exception("the engine is not watched any more")
            return
        if died is not None:
            self.fail(died, fatal=False)

    def _progress(self, step: str, fraction: float) -> None:
        """From any thread of the engine's, as often as it likes."""
        now = time.monotonic()
        last_step, last_time = self._last_progress
        if step != last_step or now - last_time >= _PROGRESS or fraction >= 1:
            self._last_progress = (step, now)
            self._outbox.send(EngineLoading(step, fraction))

    def _set_concurrency(self, pages: int) -> None:
        self._wanted = pages
        if self._engine is not None and self._capacity:
            self._engine.set_concurrency(pages or self._capacity)
        self._fill()

    # --- pages

    def _fill(self) -> None:
        """Begin waiting pages while there is room."""
        engine = self._engine
        if engine is None or not self._capacity:
            return
        limit = self._wanted or self._capacity
        while not self._stop.is_set():
            page = self._waiting.next(self._costs, limit, bool(self._wanted), engine.budget,
                                      engine.cost)
            if page is None:
                break
            self._begin(engine, page)

    def _begin(self, engine: Engine, page: SubmitPage) -> None:
        stream = PageStream(page.page_id, self._outbox.send, self._loop, timed=page.timed)
        reading = PageReading(engine, page, stream, self._outbox.room,
                              lambda: page.page_id in self._cancelled)
        self._outbox.send(PageStarted(page.page_id, stream.started))
        task = self._loop.create_task(reading.run())
        self._running[page.page_id] = task
        self._costs[page.page_id] = engine.cost(page) if engine.budget else 0
        task.add_done_callback(lambda task: self._ended(stream, task))

    def _cancel(self, page_id: str) -> None:
        if self._waiting.remove(page_id):
            self._outbox.send(PageFinished(page_id, "cancelled"))
        elif page_id in self._running:
            self._cancelled.add(page_id)
            self._running[page_id].cancel()

    def _ended(self, stream: PageStream, task: asyncio.Task[Finish]) -> None:
        del self._running[stream.page_id], self._costs[stream.page_id]
        cancelled = stream.page_id in self._cancelled
        self._cancelled.discard(stream.page_id)
        stream.flush()
        if self._stop.is_set() and not cancelled:
            if not task.cancelled():
                task.exception()  # Looked at, so that asyncio does not complain.
            return
        end = Finish("cancelled")
        problem = None
        if not task.cancelled():
            error = task.exception()
            if isinstance(error, EngineDied):
                self.fail(error, fatal=False)
                return
            if error is None:
                end = task.result()
            elif not cancelled:
                end = Finish("failed")
                problem = _page_problem(error)
        self._outbox.send(PageFinished(
            stream.page_id, end.reason, problem, seconds=stream.seconds,
            first_text=stream.first_text, prompt_tokens=end.prompt_tokens,
            output_tokens=end.output_tokens or stream.tokens, limit=end.limit))
        self._fill()


def _page_problem(error: BaseException) -> ProblemData:
    if isinstance(error, VersoError):
        return _data(error)
    detail = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    _log.error("reading a page failed\n%s", detail)
    return _data(PageCrashed(detail=detail))


def _data(error: VersoError) -> ProblemData:
    return ProblemData(*error.problem())
