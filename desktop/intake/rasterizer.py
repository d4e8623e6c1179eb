"""Files → upright RGB pages, in processes of their own.

A page that cannot be drawn (crash, time or memory limit) fails alone: its process is replaced
and the others go on. Nothing is held for a whole document.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import threading
import uuid
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any, NamedTuple

from desktop.intake import wire
from desktop.intake.errors import (
    DrawingUnavailable,
    Failure,
    IntakeError,
    NoSpace,
    OpenTooSlow,
    PageFailed,
    PageTooSlow,
    Unreadable,
    WrongPassword,
    from_failure,
)
from desktop.intake.model import RenderedPage, RenderRequest, SourceInfo
from desktop.intake.process import DrawingProcess, ProcessDied

_log = logging.getLogger(__name__)

_OPEN_SECONDS = 120.0
_IDLE_SECONDS = 120.0
"""After this the processes are given back; the next page starts them again."""
_GROWN_MB = 700
"""A process that still holds this much after a page is replaced: memory is bounded by pages,
not by documents."""


class _Open(NamedTuple):
    path: Path
    password: str | None


class _Job(NamedTuple):
    priority: int
    order: int
    future: Future[Any]
    request: RenderRequest | _Open


class Rasterizer:
    """A small pool of drawing processes. Thread-safe."""

    def __init__(self, out_dir: Path, *, processes: int = 2, memory_mb: int = 2048) -> None:
        """Bitmaps are written under OUT_DIR. Processes start when first needed."""
        self._out_dir = out_dir
        self._count = max(1, processes)
        self._memory_mb = memory_mb
        self._wake = threading.Condition()
        self._jobs: list[_Job] = []
        self._order = itertools.count()
        self._processes: list[DrawingProcess] = []
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._warm = False
        self._closed = False

    def open(self, path: Path, password: str | None = None) -> Future[SourceInfo]:
        """Examine a file. Raises (through the future) NotADocument, Unreadable, PasswordNeeded,
        WrongPassword, NoPages – all in ``desktop.intake.errors``."""
        future: Future[SourceInfo] = Future()
        self._submit(0, future, _Open(path, password))
        return future

    def render(self, request: RenderRequest, *, priority: int = 1) -> Future[RenderedPage]:
        """Draw one page; lower PRIORITY goes first (0: looked at, 1: to be read, 2: thumbnail).
        A future that is cancelled before its turn costs nothing. Raises PageFailed and its
        subclasses, and what :meth:`open` raises if the file changed meanwhile."""
        future: Future[RenderedPage] = Future()
        self._submit(priority, future, request)
        return future

    def warm_up(self) -> None:
        """Start the first process now, so that the first page need not wait for it."""
        with self._wake:
            if not self._closed and not self._threads:
                self._warm = True
                self._add_thread()

    def pids(self) -> list[int]:
        """The processes that run now."""
        with self._wake:
            return [process.pid for process in self._processes if process.pid]

    def close(self) -> None:
        """End the processes; what still waits is cancelled, what is being drawn ends with
        ``CancelledError``."""
        with self._wake:
            self._closed = True
            waiting, self._jobs = self._jobs, []
            processes, threads = list(self._processes), list(self._threads)
            self._wake.notify_all()
        for job in waiting:
            job.future.cancel()
        for process in processes:
            process.close()
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join()

    # --- the queue
    def _submit(self, priority: int, future: Future[Any], request: _Open | RenderRequest) -> None:
        with self._wake:
            if self._closed:
                future.cancel()
                return
            heapq.heappush(self._jobs, _Job(priority, next(self._order), future, request))
            if len(self._jobs) > self._idle and len(self._threads) < self._count:
                self._add_thread()
            self._wake.notify()

    def _add_thread(self) -> None:
        process = DrawingProcess(self._memory_mb)
        thread = threading.Thread(target=self._run, args=(process,), daemon=True,
                                  name=f"rasterizer-{len(self._threads) + 1}")
        self._processes.append(process)
        self._threads.append(thread)
        thread.start()

    def _run(self, process: DrawingProcess) -> None:
        """A thread of the pool: it owns PROCESS, which cannot outlive it."""
        if self._warm:
            try:
                process.start()
            except ProcessDied:
                # The first page tries again and says why.
                process.stop()
        while (job := self._next(process)) is not None:
            future = job.future
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = self._do(process, job.request)
            except (IntakeError, CancelledError) as error:
                future.set_exception(error)
            except Exception as error:  # noqa: BLE001 - the thread's boundary: goes to the caller
                _log.exception("drawing failed inside Verso")
                process.stop()
                future.set_exception(error)
            else:
                future.set_result(result)
        process.stop()

    def _next(self, process: DrawingProcess) -> _Job | None:
        with self._wake:
            while not self._jobs and not self._closed:
                self._idle += 1
                woken = self._wake.wait(_IDLE_SECONDS if process.pid else None)
                self._idle -= 1
                if not woken and not self._jobs:
                    process.stop()
            return None if self._closed else heapq.heappop(self._jobs)

    # --- the work
    def _do(self, process: DrawingProcess, request: _Open | RenderRequest) -> Any:
        if request.password and not request.password.isprintable():
            # No such thing can be typed, and half a character cannot cross a wire.
            raise WrongPassword
        if isinstance(request, _Open):
            return self._open(process, request)
        return self._render(process, request)

    def _open(self, process: DrawingProcess, request: _Open) -> SourceInfo:
        try:
            reply = self._ask(process, wire.OpenFile(
                os.fsencode(request.path), request.password, _OPEN_SECONDS))
        except ProcessDied as death:
            if death.timed_out:
                raise OpenTooSlow(seconds=_OPEN_SECONDS, detail=str(death)) from death
            raise Unreadable(detail=str(death)) from death
        if not isinstance(reply, wire.Opened):
            raise TypeError(f"not an answer to open: {reply!r}")
        return SourceInfo(str(request.path), reply.kind, reply.pages, reply.encrypted)

    def _render(self, process: DrawingProcess, request: RenderRequest) -> RenderedPage:
        name = uuid.uuid4().hex
        image = self._out_dir / f"{name}.ppm"
        words = self._out_dir / f"{name}.words"
        try:
            self._out_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NoSpace(detail=str(error)) from error
        try:
            reply = self._ask(process, wire.DrawPage(
                os.fsencode(request.path), request.password, request.number, request.dpi,
                request.max_pixels, request.max_side, request.clockwise, os.fsencode(image),
                os.fsencode(words) if request.words else b"", request.seconds))
        except ProcessDied as death:
            for left in (image, words):
                left.with_name(left.name + ".part").unlink(missing_ok=True)
                left.unlink(missing_ok=True)
            if death.timed_out:
                raise PageTooSlow(seconds=request.seconds, detail=str(death)) from death
            raise PageFailed(detail=str(death)) from death
        if not isinstance(reply, wire.Drawn):
            raise TypeError(f"not an answer to draw: {reply!r}")
        if reply.memory_mb > _GROWN_MB:
            process.stop()
        return RenderedPage(str(image), reply.width, reply.height, reply.dpi,
                            str(words) if reply.words else "", reply.blank, reply.lowered,
                            reply.damaged, reply.paged)

    def _ask(self, process: DrawingProcess, request: wire.Request) -> wire.Reply:
        """The answer of PROCESS; raises IntakeError for a failure it reports.

        A process that crashes may have been harmed by an earlier page, so a page is blamed
        only for the death of a process that did nothing else before.
        """
        while True:
            before = process.requests
            try:
                reply = process.ask(request)
            except ProcessDied as death:
                if self._closed:
                    raise CancelledError from death
                if not death.started:
                    raise DrawingUnavailable(detail=str(death)) from death
                _log.warning("a drawing process ended: %s", death)
                if death.timed_out or before == 0:
                    raise
                continue
            if isinstance(reply, Failure):
                raise from_failure(reply)
            return reply
