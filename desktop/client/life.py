"""The life of one worker process, from its start to its last word."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import selectors
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from desktop.client import endings
from desktop.client.output import OutputPipe
from desktop.client.process import WorkerProcess
from desktop.errors import RemoteProblem, VersoError
from desktop.i18n import _
from desktop.protocol.messages import (
    AnyEvent,
    Command,
    EngineFailed,
    EngineLoading,
    EngineReady,
    Hello,
    Shutdown,
)
from desktop.protocol.wire import (
    ChannelClosed,
    GarbledMessage,
    VersionMismatch,
    check_version,
    encode,
)
from desktop.settings import setting

_log = logging.getLogger(__name__)

_CLOSED_GRACE = 2.0
"""Seconds a process may go on after its connection ended."""
_FAILED_GRACE = 15.0
"""Seconds it may take to leave after it said that the engine failed."""
_SETTLE = 0.5
"""Seconds for what a worker started to end after it."""
_BACKLOG = 10_000
"""Messages that are read before the worker is judged to be late."""
_WITHOUT_SENTINEL = 0.2
"""Seconds between two looks at a process whose end cannot be waited for."""

_FATAL = (VersionMismatch, endings.WorkerSilent, endings.ReadyTimeout,
          endings.IllegalInstruction)
"""Ends that would only repeat themselves."""


@dataclass(frozen=True)
class Order:
    """What is to be started."""

    engine: str
    settings: dict[str, Any]
    interpreter: str | None = None
    environment: Mapping[str, str | None] = field(default_factory=dict)
    """Variables on top of our own; None: not set."""
    hello_seconds: float = 60.0

    @property
    def ready_seconds(self) -> float:
        """How long loading may take."""
        return float(self.settings.get("ready_seconds") or setting("ready_seconds").default)


@dataclass(frozen=True)
class Ending:
    """How a life ended. ERROR is None when it was asked for; FATAL: another start cannot help."""

    error: VersoError | None
    fatal: bool = False


class Owner(Protocol):
    """Who gets a life's events; called on the thread of :meth:`Life.run`."""

    def greeted(self, life: Life) -> None:
        """The worker has said hello: the time for the first :meth:`Life.send`."""

    def received(self, life: Life, event: AnyEvent) -> None:
        """An event has come."""

    def housekeeping(self, now: float) -> tuple[float | None, VersoError | None]:
        """Called after every wait: when to call again at the latest (``time.monotonic``), and
        why the worker has to be killed, if so."""


class Life:
    """Runs one worker. :meth:`run` blocks; the other methods may be called from any thread."""

    def __init__(self, order: Order, owner: Owner) -> None:
        self._order = order
        self._owner = owner
        self._lock = threading.Lock()
        self._process: WorkerProcess | None = None
        self._letters: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._wake_in, self._wake_out = os.pipe()
        os.set_blocking(self._wake_out, False)
        self._over = False
        self._asked = False
        self._term_at = float("inf")
        self._kill_at = float("inf")
        self._hello_at = float("inf")
        self._ready_at = float("inf")
        self._greeted = False
        self._step = "–"
        self._failure: EngineFailed | None = None

    # --- from any thread

    def send(self, command: Command) -> None:
        """Queue COMMAND; what cannot be delivered any more is dropped."""
        self._letters.put(encode(command))

    def stop(self, timeout: float) -> None:
        """Ask it to end; SIGTERM after half of TIMEOUT seconds, SIGKILL after nine tenths."""
        now = time.monotonic()
        with self._lock:
            self._asked = True
            self._term_at = min(self._term_at, now + 0.5 * timeout)
            self._kill_at = min(self._kill_at, now + 0.9 * timeout)
        self.send(Shutdown())
        self.wake()

    def kill(self) -> None:
        """SIGKILL to everything of it, now."""
        with self._lock:
            process = self._process
        if process is not None:
            process.kill()

    def wake(self) -> None:
        """Let :meth:`run` look around (it calls ``housekeeping``)."""
        with self._lock:
            if not self._over:
                with contextlib.suppress(BlockingIOError):  # Full: it will wake up in any case.
                    os.write(self._wake_out, b"x")

    # --- on the thread that runs it

    def run(self) -> Ending:
        """From the start of the process until nothing of it is left."""
        try:
            return self._run()
        finally:
            with self._lock:
                self._over = True
                os.close(self._wake_in)
                os.close(self._wake_out)

    def _run(self) -> Ending:
        order = self._order
        memory_kills = endings.memory_kills()
        try:
            process = WorkerProcess(order.interpreter, order.environment)
        except endings.NoInterpreter as error:
            return Ending(error, fatal=True)
        except OSError as error:
            return Ending(endings.WorkerNotLaunched(reason=error.strerror or str(error),
                                                    detail=str(error)))
        with self._lock:
            self._process = process
        _log.info("worker %d started for engine %s", process.pid, order.engine)
        writer = threading.Thread(
            target=self._write, args=(process,), name="worker-writer", daemon=True)
        status = 0
        try:
            now = time.monotonic()
            self._hello_at = now + min(order.hello_seconds, order.ready_seconds)
            writer.start()
            out = OutputPipe(process.stdout, "stdout", self._emit)
            err = OutputPipe(process.stderr, "stderr", self._emit)
            verdict = self._pump(process, out, err)
            if process.ended():
                process.settle(_SETTLE)
            process.kill()
            if not isinstance(verdict, GarbledMessage):
                self._last_words(process)
            out.drain()
            err.drain()
        finally:
            process.kill()
            self._letters.put(None)
            writer.join(_SETTLE)  # It must not write to a descriptor that is closed below.
            status = process.reap()
            _log.info("worker %d ended, status %d", process.pid, status)
        return self._ending(verdict, status, endings.memory_kills() > memory_kills, err.tail())

    def _pump(self, process: WorkerProcess, out: OutputPipe, err: OutputPipe) -> VersoError | None:
        """Pass everything on until the process has ended (None) or has to be (why)."""
        with selectors.DefaultSelector() as selector:
            selector.register(process.channel, selectors.EVENT_READ, process.channel)
            selector.register(self._wake_in, selectors.EVENT_READ, "wake")
            for pipe in (out, err):
                selector.register(pipe.descriptor, selectors.EVENT_READ, pipe)
            if process.sentinel is not None:
                selector.register(process.sentinel, selectors.EVENT_READ, "end")
            lost = False
            while True:
                now = time.monotonic()
                call_at, verdict = self._owner.housekeeping(now)
                verdict = verdict or self._overdue(process, now, lost=lost)
                if verdict is not None and not lost and process.channel.pending():
                    # We had no turn ourselves for a while: nothing may be overdue at all.
                    try:
                        self._catch_up(process)
                    except (GarbledMessage, VersionMismatch) as error:
                        return error
                    call_at, verdict = self._owner.housekeeping(now)
                    verdict = verdict or self._overdue(process, now, lost=lost)
                if verdict is not None:
                    return verdict
                if now >= self._kill_at:
                    return None
                deadline = min(self._next_deadline(), call_at or float("inf"))
                timeout = None if deadline == float("inf") else max(0.0, deadline - now)
                if process.sentinel is None:
                    timeout = min(timeout or _WITHOUT_SENTINEL, _WITHOUT_SENTINEL)
                ended = False
                for key, _mask in selector.select(timeout):
                    source = key.data
                    if source is process.channel:
                        try:
                            self._take(process.channel.receive())
                        except ChannelClosed:
                            selector.unregister(process.channel)
                            lost = True
                            with self._lock:
                                self._kill_at = min(
                                    self._kill_at, time.monotonic() + _CLOSED_GRACE)
                        except (GarbledMessage, VersionMismatch) as error:
                            return error
                    elif isinstance(source, OutputPipe):
                        if not source.read():
                            selector.unregister(source.descriptor)
                    elif source == "wake":
                        os.read(self._wake_in, 4096)
                    else:
                        ended = True
                if ended or (process.sentinel is None and process.ended()):
                    return None

    def _next_deadline(self) -> float:
        with self._lock:
            return min(self._term_at, self._kill_at, self._hello_at, self._ready_at)

    def _overdue(self, process: WorkerProcess, now: float, *, lost: bool) -> VersoError | None:
        """What has taken too long, if that ends the worker."""
        with self._lock:
            terminate = now >= self._term_at
            if terminate:
                self._term_at = float("inf")
            if lost and now >= self._kill_at and not self._asked:
                return endings.ChannelLost()
        if terminate:
            process.terminate()
        order = self._order
        if now >= self._hello_at:
            return endings.WorkerSilent(
                interpreter=order.interpreter or sys.executable,
                seconds=round(min(order.hello_seconds, order.ready_seconds)))
        if now >= self._ready_at:
            limit = setting("ready_seconds")
            return endings.ReadyTimeout(
                engine=order.engine, seconds=f"{order.ready_seconds:g}", step=self._step,
                title=_(limit.title), flag=limit.flag)
        return None

    def _take(self, event: AnyEvent) -> None:
        if isinstance(event, Hello):
            check_version(event.version)
            self._greeted = True
            self._hello_at = float("inf")
            self._ready_at = time.monotonic() + self._order.ready_seconds
            self._owner.greeted(self)
        elif isinstance(event, EngineLoading):
            self._step = event.step
        elif isinstance(event, EngineReady):
            self._ready_at = float("inf")
        elif isinstance(event, EngineFailed):
            self._failure = event
            self._ready_at = float("inf")
            with self._lock:
                self._kill_at = min(self._kill_at, time.monotonic() + _FAILED_GRACE)
        self._emit(event)

    def _emit(self, event: AnyEvent) -> None:
        self._owner.received(self, event)

    def _catch_up(self, process: WorkerProcess) -> None:
        """Take what was sent and not read yet, but no more than so much of it."""
        with contextlib.suppress(ChannelClosed):  # It is seen again.
            for _number in range(_BACKLOG):
                if not process.channel.pending():
                    return
                self._take(process.channel.receive())

    def _last_words(self, process: WorkerProcess) -> None:
        """What was sent before the end and not read yet."""
        while process.channel.pending():
            try:
                self._take(process.channel.receive())
            except (ChannelClosed, GarbledMessage, VersionMismatch):
                return  # The end; or a message that death cut off.

    def _write(self, process: WorkerProcess) -> None:
        while (letter := self._letters.get()) is not None:
            try:
                process.channel.send_encoded(letter)
            except ChannelClosed:
                return

    def _ending(self, verdict: VersoError | None, status: int, out_of_memory: bool,
                tail: str) -> Ending:
        if self._asked:
            return Ending(None)
        if self._failure is not None:  # Its own words are the best there are.
            return Ending(RemoteProblem(self._failure.problem.problem()), self._failure.fatal)
        if verdict is not None:
            return Ending(_with_detail(verdict, tail), isinstance(verdict, _FATAL))
        if not self._greeted and status >= 0:
            return Ending(endings.WorkerNotStarted(
                interpreter=self._order.interpreter or sys.executable, status=status, detail=tail),
                fatal=True)
        error = endings.ending(status, out_of_memory=out_of_memory, detail=tail)
        return Ending(error, isinstance(error, _FATAL))


def _with_detail(error: VersoError, tail: str) -> VersoError:
    if not tail:
        return error
    problem = error.problem()
    return RemoteProblem(problem._replace(detail=f"{problem.detail}\n{tail}".strip()))
