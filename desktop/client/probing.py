"""Ask another program something: bounded in time and output, and never left behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

OUTPUT_LIMIT = 1 << 20
"""Bytes that are kept of each stream: its end."""
_LOOK = 0.1
"""Seconds between two looks at a wish to cancel."""
_DEATH = 2.0
"""Seconds for a program to die that was killed."""
_AFTERMATH = 0.5
"""Seconds for the last output of a program that has ended, where a child of it holds the pipe."""


_this_thread = threading.local()


@contextlib.contextmanager
def cancelled_by(cancel: threading.Event) -> Iterator[None]:
    """CANCEL ends every :func:`ask` of this thread within the block that has no CANCEL of its
    own."""
    before = getattr(_this_thread, "cancel", None)
    _this_thread.cancel = cancel
    try:
        yield
    finally:
        _this_thread.cancel = before


@dataclass(frozen=True)
class Answer:
    """What became of a program. STATUS as of ``subprocess``; None when it was killed because it
    took too long or nobody wants to know any more (CANCELLED)."""

    status: int | None
    out: str
    err: str
    seconds: float
    cancelled: bool = False

    @property
    def timed_out(self) -> bool:
        """Whether the time ran out."""
        return self.status is None and not self.cancelled


def ask(command: Sequence[str], *, seconds: float, environment: Mapping[str, str] | None = None,
        folder: str | None = None, cancel: threading.Event | None = None) -> Answer:
    """Run COMMAND without input for at most SECONDS, then kill it with all it started; where it
    cannot be killed it is left behind.

    Blocks; any thread. CANCEL ends it early. Raises OSError when it cannot be started.
    """
    begin = time.monotonic()
    cancel = cancel or getattr(_this_thread, "cancel", None)
    process = subprocess.Popen(
        list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=folder, env=None if environment is None else dict(environment),
        start_new_session=True)
    assert process.stdout is not None
    assert process.stderr is not None
    kept = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    finished = False
    try:
        finished = _read(process, kept, begin + seconds, cancel)
    finally:
        # Also what it started: it leads a group of its own, whose id is ours until it is reaped.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        status = _reaped(process)
        out, err = (_text(kept[stream.fileno()]) for stream in (process.stdout, process.stderr))
        process.stdout.close()
        process.stderr.close()
    return Answer(status if finished else None, out, err, time.monotonic() - begin,
                  not finished and cancel is not None and cancel.is_set())


def _read(process: subprocess.Popen[bytes], kept: dict[int, bytearray], deadline: float,
          cancel: threading.Event | None) -> bool:
    """Collect output until the program has ended by itself (True) or has to be killed."""
    with selectors.DefaultSelector() as selector:
        for descriptor in kept:
            selector.register(descriptor, selectors.EVENT_READ)
        ended_at: float | None = None
        while True:
            now = time.monotonic()
            if ended_at is None and _ended(process):
                ended_at = now
            if ended_at is not None and (not selector.get_map() or now > ended_at + _AFTERMATH):
                return True
            if ended_at is None and (now >= deadline or (cancel is not None and cancel.is_set())):
                return False
            if not selector.get_map():
                time.sleep(0.01)  # both streams are closed, the program is about to end
                continue
            for key, _mask in selector.select(min(_LOOK, max(0.0, deadline - now) or _LOOK)):
                piece = os.read(key.fd, 65536)
                if not piece:
                    selector.unregister(key.fd)
                    continue
                held = kept[key.fd]
                held += piece
                if len(held) > 2 * OUTPUT_LIMIT:
                    del held[:-OUTPUT_LIMIT]


def _reaped(process: subprocess.Popen[bytes]) -> int | None:
    """Its status; None: it does not even die. What waits inside a driver that is in trouble cannot
    be killed before that comes back, if ever; it is left to the kernel."""
    try:
        return process.wait(_DEATH)
    except subprocess.TimeoutExpired:
        return None


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended; it is not reaped, so that its group's id stays ours."""
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # the application leaves its children to the kernel
        return True


def _text(raw: bytearray) -> str:
    return bytes(raw[-OUTPUT_LIMIT:]).decode("utf-8", "replace")
