"""What the worker, and whatever runs inside it, writes to its standard output and error."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable
from typing import IO

from desktop.i18n import _
from desktop.protocol.messages import LogLine
from desktop.worker.lines import LineLimit, LineSplitter

_KEPT = 40
"""Lines of the end that are kept to explain a death."""


class OutputPipe:
    """Reads one pipe when it has something; sends its lines as log lines, a bounded number."""

    def __init__(self, stream: IO[bytes], source: str, emit: Callable[[LogLine], None]) -> None:
        self.descriptor = stream.fileno()
        os.set_blocking(self.descriptor, False)
        self._source = source
        self._emit = emit
        self._lines = LineSplitter()
        self._limit = LineLimit()
        self._end: deque[str] = deque(maxlen=_KEPT)

    def read(self) -> bool:
        """Take what is there, at most 64 KiB; False at the end of the stream."""
        return self._read() != 0

    def drain(self) -> None:
        """Take what is there now, at most 4 MiB: the writer is dead."""
        for _round in range(64):
            if self._read() <= 0:
                return

    def _read(self) -> int:
        """Bytes taken, 0 at the end, -1 when nothing is there now."""
        try:
            data = os.read(self.descriptor, 65536)
        except BlockingIOError:
            return -1
        self._take(self._lines.feed(data) if data else self._lines.finish())
        return len(data)

    def tail(self) -> str:
        """The last lines."""
        return "\n".join(self._end)

    def _take(self, lines: list[str]) -> None:
        self._end.extend(lines)
        for line in lines:
            if not self._limit.admits():
                continue
            left_out = self._limit.left_out()
            if left_out:
                self._emit(LogLine(logging.WARNING, self._source,
                                   _("({count} lines left out)").format(count=left_out)))
            self._emit(LogLine(logging.INFO, self._source, line))
