"""Server-sent events out of bytes, with bounds: a server may send anything."""

from __future__ import annotations

LONGEST = 1 << 20
"""Bytes of a line, of an event, and of what may come between two events."""


class Junk(ValueError):
    """Not a stream of events, or one without measure."""


class EventStream:
    """Feed it bytes as they come; it gives the ``data`` of every whole event."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """The events that PIECE completes; raises :class:`Junk`."""
        events: list[bytes] = []
        self._rest += piece
        start = 0
        while (end := self._rest.find(b"\n", start)) >= 0:
            line = bytes(self._rest[start:end]).rstrip(b"\r")
            start = end + 1
            if not line:
                if self._data:
                    events.append(b"\n".join(self._data))
                    self._data.clear()
                    self._size = 0
                continue
            self._size += len(line) + 1
            if self._size > LONGEST:
                raise Junk("an event without end")
            field, _, value = line.partition(b":")
            if field == b"data":
                self._data.append(value[1:] if value.startswith(b" ") else value)
        del self._rest[:start]
        if len(self._rest) > LONGEST:
            raise Junk("a line without end")
        return events
