"""What waits to be sent to the application, in bounded number.

A thread of its own writes to the connection, so that the asyncio loop never blocks on an
application that is slow to read. Whoever produces text waits in :meth:`Outbox.room` while too
much is waiting: that bounds the worker's memory whatever an engine yields.

Runs on Python 3.10 with msgspec alone.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from typing import Deque, Optional

from desktop.protocol.messages import AnyCommand, Event, LogLine
from desktop.protocol.wire import Channel, ChannelClosed, encode
from desktop.worker.lines import LineLimit, printable

HIGH = 256
"""Messages that may wait before producers of text have to."""
HIGH_BYTES = 1 << 20
"""Likewise, their size in sum."""

_MOST_LINES = 200
"""Lines of one log record; a trace has fewer."""


class Outbox:
    """Thread-safe queue of events with a thread that sends them."""

    def __init__(self, channel: Channel[AnyCommand]) -> None:
        self._channel = channel
        self._waiting: Deque[bytes] = deque()
        self._size = 0
        """Bytes in ``_waiting``."""
        self._crowded = False
        """Whether a producer waits for room."""
        self._changed = threading.Condition()
        self._closing = False
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._room: Optional[asyncio.Event] = None
        self._thread = threading.Thread(target=self._write, name="outbox", daemon=True)
        self._thread.start()

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop whose coroutines call :meth:`room`; called once, in it."""
        self._room = asyncio.Event()
        self._loop = loop

    def send(self, event: Event) -> None:
        """Queue EVENT; from any thread, never blocks."""
        data = encode(event)
        with self._changed:
            if self._closing:
                return
            self._waiting.append(data)
            self._size += len(data)
            self._changed.notify()

    async def room(self) -> None:
        """Wait until more text may be queued."""
        while self._room is not None:
            with self._changed:
                if self._closing or not self._full(1):
                    return
                self._crowded = True
                self._room.clear()
            await self._room.wait()

    def _full(self, part: int) -> bool:
        return len(self._waiting) * part >= HIGH or self._size * part >= HIGH_BYTES

    def close(self, timeout: float) -> None:
        """Send what waits, for at most TIMEOUT seconds, and take nothing more."""
        with self._changed:
            self._closing = True
            self._wake_producers()
            self._changed.notify()
        self._thread.join(timeout)

    def _write(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    if self._closing:
                        return
                    self._changed.wait()
                data = self._waiting.popleft()
                self._size -= len(data)
                if self._crowded and not self._full(4):
                    self._wake_producers()
            try:
                self._channel.send_encoded(data)
            except ChannelClosed:
                # The reading side of the connection ends as well, and with it the worker.
                with self._changed:
                    self._closing = True
                    self._waiting.clear()
                    self._wake_producers()
                return

    def _wake_producers(self) -> None:
        self._crowded = False
        if self._loop is not None and self._room is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._room.set)


class OutboxHandler(logging.Handler):
    """Sends log records to the application, a bounded number."""

    def __init__(self, outbox: Outbox) -> None:
        super().__init__(logging.INFO)
        self._outbox = outbox
        self._limit = LineLimit()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
        except Exception:  # noqa: BLE001 - a library's bad format must not end its thread
            self.handleError(record)
            return
        if not self._limit.admits():
            return
        left_out = self._limit.left_out()
        if left_out:
            self._outbox.send(LogLine(logging.WARNING, "log", f"({left_out} lines left out)"))
        for line in text.splitlines()[:_MOST_LINES]:
            self._outbox.send(LogLine(record.levelno, record.name, printable(line)))
