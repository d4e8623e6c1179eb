"""A measurement as front ends use it: on a thread of its own, heard from any other."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from desktop.benchmark import devices, environment
from desktop.benchmark.clock import LoopClock
from desktop.benchmark.command import command_line
from desktop.benchmark.events import BenchEvent, LevelFinished, RunFinished, Stopping
from desktop.benchmark.feed import Drawn
from desktop.benchmark.link import Surroundings
from desktop.benchmark.plan import Plan
from desktop.benchmark.results import Ended, Result
from desktop.benchmark.runner import Runner
from desktop.benchmark.warnings import warnings
from desktop.benchmark.workload import Workload
from desktop.client.client import EngineClient
from desktop.engines.model import variables
from desktop.intake.rasterizer import Rasterizer
from desktop.jobs.preparing import Prepared, prepare
from desktop.settings import Values

log = logging.getLogger(__name__)

Listener = Callable[[Sequence[BenchEvent]], None]

INTERVAL = 0.1
"""Seconds between two batches of events."""
_AT_ONCE = (LevelFinished, Stopping, RunFinished)


class Benchmark:
    """One run. Every method may be called from any thread; none but :meth:`wait` blocks."""

    def __init__(self, plan: Plan, workload: Workload, values: Values, cache: Path, *,
                 engine_args: Mapping[str, str] | None = None,
                 interpreter: str | None = None) -> None:
        """Pages are drawn below CACHE. Nothing runs until :meth:`start`."""
        self._plan = plan
        self._workload = workload
        self._values = values
        self._cache = cache
        self._engine_args = dict(engine_args or {})
        self._interpreter = interpreter
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._runner: Runner | None = None
        self._cancelled = False
        self._pending: list[BenchEvent] = []
        self._flushing: asyncio.TimerHandle | None = None
        self._result: Result | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="benchmark", daemon=True)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call LISTENER with every batch of events from now on, on the benchmark's thread; it
        must return quickly. The last batch ends with RunFinished. Returns the function that ends
        it."""
        with self._lock:
            self._listeners.append(listener)

        def end() -> None:
            with self._lock, contextlib.suppress(ValueError):
                self._listeners.remove(listener)
        return end

    def start(self) -> None:
        """Begin; once."""
        self._thread.start()

    def cancel(self) -> None:
        """End now: pages in flight are dropped, finished rounds kept, the engine is released."""
        with self._lock:
            self._cancelled = True
            loop, runner = self._loop, self._runner
        if loop is not None and runner is not None:
            with contextlib.suppress(RuntimeError):  # it has just ended by itself
                loop.call_soon_threadsafe(runner.cancel)

    def wait(self, timeout: float | None = None) -> Result | None:
        """Block until it has ended and everything is released; None when TIMEOUT seconds ran out.
        Raises what went wrong inside."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            return None
        if self._failure is not None:
            raise self._failure
        return self._result

    @property
    def result(self) -> Result | None:
        """What was found, once it has ended."""
        return self._result

    # --- its thread

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except Exception as error:
            log.exception("the measurement could not be begun or ended")
            self._failure = self._failure or error

    async def _main(self) -> None:
        loop = asyncio.get_running_loop()
        self._cache.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="benchmark-", dir=self._cache))
        rasterizer = Rasterizer(folder, memory_mb=self._values["page_memory"])
        helper = ThreadPoolExecutor(2, "benchmark-helper")
        source = Drawn(rasterizer, helper, self._values, ahead=self._plan.ahead,
                       marked=self._plan.unique, passwords=self._workload.passwords)
        surroundings = await loop.run_in_executor(None, environment.describe, str(
            self._values["engine_interpreter"]))
        started, begin = time.time(), loop.time()
        try:
            runner = Runner(self._plan, self._workload, self._values, Surroundings(
                LoopClock(loop), EngineClient, source, functools.partial(
                    _prepare, self._engine_args, self._interpreter), devices.sampler),
                self._post)
            with self._lock:
                self._loop, self._runner = loop, runner
                cancelled = self._cancelled
            if cancelled:
                runner.ended = Ended.INTERRUPTED
            else:
                await self._measure(runner)
        finally:
            source.close()
            await loop.run_in_executor(None, rasterizer.close)
            helper.shutdown(wait=True)
            shutil.rmtree(folder, ignore_errors=True)
        caches = environment.caches(self._values, self._engine_args)
        levels = tuple(runner.levels)
        discreet = self._values.discreet()
        arguments = variables.discreet(self._engine_args)
        self._result = Result(
            self._plan, self._workload, self._values["engine"], discreet,
            {key: discreet[key] for key in self._values.changed()}, arguments, started,
            loop.time() - begin, runner.ended, levels, {**surroundings, "caches": caches},
            warnings(self._values["engine"], self._plan, self._workload, levels, caches),
            command_line(self._plan, self._workload.sources, self._values, arguments,
                         protected=bool(self._workload.passwords)))
        self._post(RunFinished(self._result))

    async def _measure(self, runner: Runner) -> None:
        try:
            await runner.run()
        except Exception as error:
            # Listeners get what there is all the same; `wait` raises it.
            log.exception("the measurement failed")
            self._failure = error
            runner.ended = Ended.FAILED

    def _post(self, event: BenchEvent) -> None:
        self._pending.append(event)
        if isinstance(event, _AT_ONCE):
            self._flush()
        elif self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(INTERVAL, self._flush)

    def _flush(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        batch, self._pending = self._pending, []
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners if batch else ():
            try:
                listener(batch)
            except Exception:
                log.exception("a listener of the measurement failed")


def _prepare(engine_args: Mapping[str, str], interpreter: str | None, values: Values,
             cancel: threading.Event) -> Prepared:
    return prepare(values, engine_args, interpreter, cancel)
