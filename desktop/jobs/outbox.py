"""Events on their way to the listeners: in order, coalesced, a bounded number of batches a second.

The first event of a burst leaves at once; what follows is held for a moment and sent together.
Within a batch a later snapshot of a thing replaces the earlier one, so a slow listener or a fast
engine never makes a queue grow.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Protocol

from desktop.document.model import Block
from desktop.jobs.events import (
    BlocksChanged,
    DocumentRemoved,
    DocumentUpdated,
    LogAdded,
    PageCleared,
    PageRegionsFound,
    PageUpdated,
    RawText,
    SessionEvent,
)

log = logging.getLogger(__name__)

INTERVAL = 0.04
"""Seconds between two batches: 25 a second."""

MAX_LOG_LINES = 500
"""Log lines in one batch; an engine that floods the log loses the rest."""

Listener = Callable[[Sequence[SessionEvent]], None]


class Stream(Protocol):
    """A page that is being read."""

    def block(self, index: int) -> Block:
        """The block as it is now."""
        ...


class _Stream:
    """What a page's stream brought since the last batch; turned into events when it leaves."""

    def __init__(self, source: Stream) -> None:
        self.source = source
        self.dirty: set[int] = set()
        self.raw: list[str] = []


class Outbox:
    """Belongs to the session's loop; not thread-safe."""

    def __init__(self, loop: asyncio.AbstractEventLoop, interval: float = INTERVAL) -> None:
        self._loop = loop
        self._interval = interval
        self._listeners: list[Listener] = []
        self._pending: dict[Hashable, SessionEvent | _Stream] = {}
        self._log_lines = 0
        self._awaited: weakref.WeakSet[Stream] = weakref.WeakSet()
        """Streams of which something was heard, but nothing that can be read."""
        self._timer: asyncio.Handle | None = None
        self._last = -interval

    # --- listeners
    def subscribe(self, listener: Listener, snapshot: Sequence[SessionEvent]) -> None:
        """SNAPSHOT is LISTENER's first batch."""
        self.flush()
        self._listeners.append(listener)
        self._call(listener, snapshot)

    def unsubscribe(self, listener: Listener) -> None:
        """No further call."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    # --- events
    def post(self, event: SessionEvent) -> None:
        """Send EVENT with the next batch."""
        key: Hashable
        match event:
            case PageUpdated(page):
                key = ("page", page.id)
                self._pending.pop(key, None)  # it moves behind what came in between
            case PageCleared(page_id):
                for kind in ("page", "stream", "regions"):
                    self._pending.pop((kind, page_id), None)
                key = ("cleared", page_id)
                self._pending.pop(key, None)
            case PageRegionsFound(page_id):
                key = ("regions", page_id)
            case DocumentUpdated(document, pages) if pages is None:
                key = ("document", document.id)
                self._pending.pop(key, None)
            case DocumentRemoved():
                key = object()
            case LogAdded():
                self._log_lines += 1
                if self._log_lines > MAX_LOG_LINES:
                    return
                key = object()
            case _:
                key = type(event) if type(event).__name__ in _SINGLE else object()
                self._pending.pop(key, None)
        self._pending[key] = event
        self._arrange()

    def streamed(self, page_id: str, source: Stream, changed: Sequence[int], raw: str, *,
                 first: bool = False) -> None:
        """Blocks CHANGED of a page, and the RAW text that did it. The FIRST text of a page waits
        for no interval, nor does the first that can be read (often a tag comes before it):
        somebody may be looking at an empty page."""
        key = ("stream", page_id)
        entry = self._pending.get(key)
        if not isinstance(entry, _Stream) or entry.source is not source:
            entry = self._pending[key] = _Stream(source)
        entry.dirty.update(changed)
        if raw:
            entry.raw.append(raw)
        if first:
            self._awaited.add(source)
        readable = source in self._awaited and any(
            source.block(index).markdown for index in changed)
        if readable:
            self._awaited.discard(source)
        at_once = first or readable
        if at_once and self._timer is not None:
            self._timer.cancel()
            self._timer = self._loop.call_soon(self.flush)
        else:
            self._arrange(at_once=at_once)

    def flush(self) -> None:
        """Send what there is, now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._pending:
            return
        pending, self._pending, self._log_lines = self._pending, {}, 0
        self._last = self._loop.time()
        batch = [event for key, entry in pending.items() for event in _events(key, entry)]
        for listener in list(self._listeners):
            self._call(listener, batch)

    # --- inside
    def _arrange(self, *, at_once: bool = False) -> None:
        if self._timer is None:
            # Even "at once" is a turn of the loop later: events of one cause leave together.
            wait = 0.0 if at_once else self._last + self._interval - self._loop.time()
            self._timer = (self._loop.call_later(wait, self.flush) if wait > 0
                           else self._loop.call_soon(self.flush))

    def _call(self, listener: Listener, batch: Sequence[SessionEvent]) -> None:
        try:
            listener(batch)
        except Exception:
            log.exception("a listener of the session failed")


_SINGLE = frozenset({"EngineUpdated", "ProgressUpdated"})
"""Events of which only the newest matters."""


def _events(key: Hashable, entry: SessionEvent | _Stream) -> Iterator[SessionEvent]:
    if not isinstance(entry, _Stream):
        yield entry
        return
    assert isinstance(key, tuple)
    page_id = key[1]
    if entry.raw:
        yield RawText(page_id, "".join(entry.raw))
    if entry.dirty:
        yield BlocksChanged(page_id,
                            tuple(entry.source.block(index) for index in sorted(entry.dirty)))
