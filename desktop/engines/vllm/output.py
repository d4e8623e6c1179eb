"""What the engine's processes write to standard output and error, kept for when they die.

vLLM's engine runs in processes of its own, which inherit our descriptors 1 and 2 and write their
last words there, past this process. So both are led through a pipe: everything goes on to where
it went, and the last lines stay known.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import select
import termios
import threading
import time
from collections import deque
from collections.abc import Callable

_KEPT = 400


class OutputTail:
    """Lines written to descriptors 1 and 2 from :meth:`begin` to :meth:`end`, the last of them."""

    def __init__(self, listener: Callable[[str], None] | None = None) -> None:
        """LISTENER is called with each line, from a thread; it must not raise."""
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._originals: list[tuple[int, int]] = []
        self._lock = threading.Lock()
        self._count = 0
        self._readers: set[int] = set()
        self._in_hand = 0
        """Pipes from which something was taken, or is about to be, that is not kept yet."""
        self.listener = listener

    def begin(self) -> None:
        """Lead both descriptors through pipes."""
        for descriptor in (1, 2):
            original = os.dup(descriptor)
            reader, writer = os.pipe()
            os.dup2(writer, descriptor)
            os.close(writer)
            self._originals.append((descriptor, original))
            self._readers.add(reader)
            threading.Thread(target=self._pass_on, args=(reader, original),
                             name="engine-output", daemon=True).start()

    def end(self) -> None:
        """Lead them back. Processes that were started meanwhile keep the pipes, which are read
        on until those have ended."""
        for descriptor, original in self._originals:
            os.dup2(original, descriptor)
        self._originals.clear()

    def lines(self) -> list[str]:
        """The last lines, oldest first."""
        with self._lock:
            return list(self._lines)

    def settled(self, patience: float = 2.0) -> list[str]:
        """The last lines once nothing new has come for a moment: a process that has just died
        may not have been read to its end. Blocks for at most PATIENCE seconds."""
        deadline = time.monotonic() + patience
        seen = -1
        while time.monotonic() < deadline and (seen != self._count or self._behind()):
            seen = self._count
            time.sleep(0.2)
        return self.lines()

    def _behind(self) -> bool:
        """Whether something was written that is not kept yet: on a busy machine the threads that
        read may not have had their turn."""
        with self._lock:
            unread = any(_unread(reader) for reader in self._readers)
            return unread or self._in_hand > 0

    def _pass_on(self, reader: int, original: int) -> None:
        rest = b""
        waiting = select.poll()
        waiting.register(reader, select.POLLIN)
        while True:
            waiting.poll()
            with self._lock:  # before it is taken, so that it is never in neither place
                self._in_hand += 1
            data = os.read(reader, 65536)
            with contextlib.suppress(OSError):  # Nobody listens any more: still to be kept.
                view = memoryview(data)
                while view:
                    view = view[os.write(original, view):]
            # A progress bar writes over its line.
            *lines, rest = (rest + data).replace(b"\r", b"\n").split(b"\n")
            rest = rest[-4096:]
            for line in lines if data else [*lines, rest]:
                self._keep(line)
            with self._lock:
                self._in_hand -= 1
                if not data:
                    self._readers.discard(reader)
            if not data:
                break
        os.close(reader)
        os.close(original)

    def _keep(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip()
        if not text:
            return
        with self._lock:
            self._lines.append(text)
            self._count += 1
        if self.listener is not None:
            self.listener(text)


def _unread(pipe: int) -> bool:
    found = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, found)
    return found[0] > 0
