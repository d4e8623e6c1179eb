"""One drawing process, seen from the application."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from desktop.intake import wire

_ROOT = Path(__file__).resolve().parents[2]
_START_SECONDS = 120.0
"""A cold start on a busy machine takes seconds; this is for one that never comes."""
_ENVIRONMENT = {
    # A process is one core's worth; the pool is what runs side by side.
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    # Freed bitmaps go back to the system and do not stay in arenas.
    "MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "4194304",
    "MALLOC_MMAP_THRESHOLD_": "1048576",
}


class ProcessDied(Exception):
    """The process ended, or was ended, before it answered."""

    def __init__(self, words: str, *, timed_out: bool = False, started: bool = True) -> None:
        super().__init__(words)
        self.timed_out = timed_out
        self.started = started


class DrawingProcess:
    """Starts with the first request. Used by one thread, which must outlive the process: the
    kernel ends the process together with the thread that started it."""

    def __init__(self, memory_mb: int) -> None:
        self._memory_mb = memory_mb
        self._child: subprocess.Popen[bytes] | None = None
        self._stderr: BinaryIO | None = None
        self._lock = threading.Lock()
        self._expired = False
        self._closed = False
        self._turn = 0
        self.requests = 0
        """Requests it has answered since it was started."""

    @property
    def pid(self) -> int:
        """0 while there is none."""
        child = self._child
        return child.pid if child is not None else 0

    def start(self) -> None:
        """Start it unless it runs; raises :class:`ProcessDied` if it does not come up."""
        with self._lock:
            if self._closed:
                raise ProcessDied("closed")
            if self._child is not None:
                return
            search = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
            self._stderr = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - outlives this
            self._child = subprocess.Popen(
                [sys.executable, "-m", "desktop.intake.drawer", str(os.getpid()),
                 str(self._memory_mb)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr,
                env={**os.environ, **_ENVIRONMENT, "PYTHONPATH": search},
                start_new_session=True,
            )
        reply = self._reply(_START_SECONDS, started=False)
        if not isinstance(reply, wire.Started):
            raise self._end("it did not report that it started", started=False)

    def ask(self, request: wire.Request) -> wire.Reply:
        """The answer to REQUEST; raises :class:`ProcessDied` if it crashes or takes longer than
        ``request.seconds``. The next request starts a new process."""
        self.start()
        child = self._child
        assert child is not None
        assert child.stdin is not None
        try:
            wire.send(cast(BinaryIO, child.stdin), request)
        except OSError as error:
            raise self._end(str(error)) from error
        reply = self._reply(request.seconds)
        self.requests += 1
        return reply

    def stop(self) -> None:
        """End it, if it runs."""
        self._end("stopped")

    def close(self) -> None:
        """End it for good; from any thread."""
        with self._lock:
            self._closed = True
            if self._child is not None:
                self._child.kill()

    def _reply(self, seconds: float, started: bool = True) -> wire.Reply:
        child = self._child
        assert child is not None
        assert child.stdout is not None
        self._expired = False
        timer = threading.Timer(seconds, self._expire, (child, self._turn))
        timer.daemon = True
        timer.start()
        try:
            return wire.receive_reply(cast(BinaryIO, child.stdout))
        except (EOFError, OSError, msgspec.MsgspecError) as error:
            raise self._end(str(error), started=started) from error
        finally:
            timer.cancel()
            with self._lock:
                self._turn += 1

    def _expire(self, child: subprocess.Popen[bytes], turn: int) -> None:
        with self._lock:
            # A timer that fired as its answer came must not end the next request.
            if turn == self._turn and child is self._child:
                self._expired = True
                child.kill()

    def _end(self, words: str, started: bool = True) -> ProcessDied:
        with self._lock:
            child, self._child = self._child, None
            self.requests = 0
            expired = self._expired
        if child is None:
            return ProcessDied(words, started=started)
        child.kill()
        code = child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    # A request it never took is still in the buffer.
                    continue
        tail = self._tail()
        return ProcessDied("; ".join(filter(None, (_in_words(code), words, tail))),
                           timed_out=expired, started=started)

    def _tail(self) -> str:
        file, self._stderr = self._stderr, None
        if file is None:
            return ""
        with file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 2000))
            return file.read().decode("utf-8", "replace").strip()


def _in_words(code: int) -> str:
    if code < 0:
        try:
            return f"ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"ended by signal {-code}"
    return f"ended with status {code}"
