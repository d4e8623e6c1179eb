"""The only door between the session's thread and the window.

The session calls :meth:`Bridge.take` on its own thread, as often as it likes. What arrives is
merged where it lies (the last state of a page, all text of a page in one piece), so that a
flood costs the window no more than one delivery every 50 ms; the first event after a pause is
delivered at once, and so is the first text of a page that is looked at.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from desktop.jobs import events as e
from desktop.jobs.session import Session

INTERVAL = 0.05
"""Seconds between two deliveries."""
_CONTENT = ("raw", "blocks", "cleared", "joined")
LOG_LINES = 2_000
"""Log lines kept between two deliveries; older ones are dropped, the log file has them all."""


@dataclass(frozen=True)
class RawJoined:
    """Raw text of the page that came before this is part of a result that was fetched."""

    page_id: str


class Pending:
    """Events not delivered yet, merged. Not thread-safe: the bridge holds a lock around it."""

    def __init__(self) -> None:
        self._slots: dict[tuple[Any, ...], Any] = {}
        self._log: list[e.LogAdded] = []
        self._fresh = False
        self.urgent = False
        """Whether the first text of the watched page is among them."""

    def __len__(self) -> int:
        return len(self._slots) + len(self._log)

    def _latest(self, key: tuple[Any, ...], event: Any) -> None:
        # Taken out first: a merged event stands where its newest part arrived.
        self._slots.pop(key, None)
        self._slots[key] = event

    def add(self, event: e.SessionEvent, watched: str | None) -> None:
        """Merge EVENT; content of pages other than WATCHED is nobody's and dropped."""
        if isinstance(event, (e.BlocksChanged, e.RawText, e.PageCleared)):
            if event.page_id == watched:
                self._content(event)
        elif isinstance(event, e.PageUpdated):
            self._latest(("page", event.page.id), event)
        elif isinstance(event, e.PageRegionsFound):
            self._latest(("regions", event.page_id), event)
        elif isinstance(event, e.ProgressUpdated):
            self._latest(("progress",), event)
        elif isinstance(event, e.EngineUpdated):
            self._latest(("engine",), event)
        elif isinstance(event, e.LogAdded):
            self._log.append(event)
            if len(self._log) > LOG_LINES:
                del self._log[: LOG_LINES // 2]
        elif isinstance(event, (e.DocumentAdded, e.DocumentUpdated, e.DocumentRemoved)):
            self._document(event)
        elif isinstance(event, e.ProblemAdded):
            self._latest(("problem", event.problem.key), event)
        elif isinstance(event, e.ProblemRemoved):
            self._latest(("problem", event.key), event)
        else:
            self._latest(("finished",), event)

    def _content(self, event: e.BlocksChanged | e.RawText | e.PageCleared) -> None:
        page = event.page_id
        if isinstance(event, e.PageCleared):
            for kind in ("blocks", "raw", "regions"):
                self._slots.pop((kind, page), None)
            self._latest(("cleared", page), event)
            self._fresh, self.urgent = True, False
        elif isinstance(event, e.RawText):
            self._slots.setdefault(("raw", page), []).append(event.text)
        else:
            known = self._slots.setdefault(("blocks", page), {})
            for block in event.blocks:
                known[block.index] = block
                if self._fresh and block.markdown:
                    self._fresh, self.urgent = False, True

    def _document(self, event: e.DocumentAdded | e.DocumentUpdated | e.DocumentRemoved) -> None:
        if isinstance(event, e.DocumentRemoved):
            for kind in ("added", "pages", "document"):
                self._slots.pop((kind, event.document_id), None)
            self._latest(("removed", event.document_id), event)
            return
        number = event.document.id
        if isinstance(event, e.DocumentAdded):
            self._latest(("added", number), event)
        elif event.pages is not None:
            # The list of pages is a snapshot: what was merged after it must come after it.
            self._slots.pop(("document", number), None)
            self._latest(("pages", number), event)
        else:
            self._latest(("document", number), event)

    def take(self) -> list[e.SessionEvent]:
        """Everything, in order, and start anew."""
        out: list[e.SessionEvent] = []
        for key, value in self._slots.items():
            if key[0] == "raw":
                out.append(e.RawText(key[1], "".join(value)))
            elif key[0] == "blocks":
                out.append(e.BlocksChanged(key[1], tuple(value[i] for i in sorted(value))))
            else:
                out.append(value)
        out.extend(self._log)
        self._slots = {}
        self._log = []
        self.urgent = False
        return out

    def join_raw(self, page_id: str) -> None:
        """Undelivered raw text is in a result; a mark stands where it was."""
        self._slots.pop(("raw", page_id), None)
        self._latest(("joined", page_id), RawJoined(page_id))

    def forget_content(self) -> None:
        """Drop undelivered content: another page is watched from now on."""
        for key in [k for k in self._slots if k[0] in _CONTENT]:
            del self._slots[key]
        self._fresh, self.urgent = True, False


class LogRelay(logging.Handler):
    """The application's own log, passed on as the engine's is; any thread."""

    def __init__(self, take: Callable[[Sequence[e.SessionEvent]], None]) -> None:
        super().__init__(logging.INFO)
        self._take = take

    def emit(self, record: logging.LogRecord) -> None:
        source = record.name.rsplit(".", 1)[-1]
        self._take([e.LogAdded(record.levelno, source, record.getMessage(), record.created)])


class Bridge(QObject):
    """Session events as one Qt signal on the window's thread."""

    delivered = Signal(list)
    """A list of session events, merged; at most one every 50 ms, but for the first text of the
    watched page."""

    _wake = Signal()

    def __init__(self, session: Session, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._lock = threading.Lock()
        self._pending = Pending()
        self._watched: str | None = None
        self._woken = False
        self._last = 0.0
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._deliver)
        self._wake.connect(self._schedule, Qt.ConnectionType.QueuedConnection)
        self._end: Callable[[], None] | None = None
        self._relay = LogRelay(self.take)

    def open(self) -> None:
        """Listen from now on; the first delivery describes everything there is."""
        self._end = self._session.subscribe(self.take)
        logging.getLogger("desktop").addHandler(self._relay)

    def close(self) -> None:
        """Listen no more."""
        logging.getLogger("desktop").removeHandler(self._relay)
        if self._end is not None:
            self._end()
            self._end = None
        self._timer.stop()

    def watch(self, page_id: str | None) -> None:
        """Content (blocks, raw text) is wanted of this page only; other pages' is dropped."""
        with self._lock:
            if page_id != self._watched:
                self._watched = page_id
                self._pending.forget_content()

    def join_raw(self, page_id: str) -> None:
        """A result of the page was fetched just now; any thread. See :class:`RawJoined`."""
        with self._lock:
            if page_id == self._watched:
                self._pending.join_raw(page_id)

    def take(self, events: Sequence[e.SessionEvent]) -> None:
        """The session's listener; any thread."""
        with self._lock:
            hurried = self._pending.urgent
            for event in events:
                self._pending.add(event, self._watched)
            hurry = self._pending.urgent and not hurried
            if not len(self._pending) or (self._woken and not hurry):
                return
            self._woken = True
        self._wake.emit()

    def _schedule(self) -> None:
        left = self._last + INTERVAL - time.monotonic()
        with self._lock:
            urgent = self._pending.urgent
        if left <= 0 or urgent:
            self._deliver()
        else:
            self._timer.start(max(1, round(left * 1000)))

    def _deliver(self) -> None:
        self._timer.stop()
        with self._lock:
            events = self._pending.take()
            self._woken = False
        self._last = time.monotonic()
        if events:
            self.delivered.emit(events)
