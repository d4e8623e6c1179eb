"""Bytes of a child's output as lines for the log, in bounded memory and number.

Runs on Python 3.10 with the standard library alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import List

LONGEST = 4000
"""Characters of a line; the rest of it is cut off."""

_END = re.compile(rb"\r\n|\n|\r")  # A progress bar ends its states with a carriage return.
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


class LineSplitter:
    """Cuts a stream of bytes into lines: no escape sequences, no control characters."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> List[str]:
        """Take the next bytes; the lines that are complete now, without empty ones."""
        *ended, self._rest = _END.split(self._rest + data)
        if len(self._rest) > 4 * LONGEST:
            ended.append(self._rest)
            self._rest = b""
        return [line for piece in ended if (line := printable(piece.decode("utf-8", "replace")))]

    def finish(self) -> List[str]:
        """No more comes: what is left over."""
        return self.feed(b"\n")


def printable(text: str) -> str:
    """TEXT without terminal control, cut to :data:`LONGEST` characters."""
    text = _CONTROL.sub("", text).rstrip()
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"


class LineLimit:
    """Lets at most RATE lines a second through, BURST at once; counts the others."""

    def __init__(self, rate: float = 50.0, burst: int = 200,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._credit = float(burst)
        self._last = clock()
        self._left_out = 0

    def admits(self) -> bool:
        """Whether a line may pass now."""
        now = self._clock()
        self._credit = min(self._burst, self._credit + (now - self._last) * self._rate)
        self._last = now
        if self._credit < 1:
            self._left_out += 1
            return False
        self._credit -= 1
        return True

    def left_out(self) -> int:
        """Lines held back since the last call."""
        count, self._left_out = self._left_out, 0
        return count
