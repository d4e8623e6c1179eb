"""From blocks to safe HTML, off the UI thread, at most about twenty times a second.

The first change of a burst goes through at once. While a batch is being converted or shown, what
changes meanwhile is gathered; so a slow table slows its own updates down, never the window.

The first text of a page, for which somebody may be waiting, waits for nothing: neither for the
interval nor for the thread, to which and back from which it would queue behind everything that
the window draws meanwhile. It is short, as a stream begins; what is not goes the usual way.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence

from PySide6.QtCore import QObject, QTimer, Signal

from desktop.document.model import Block
from desktop.i18n import _
from desktop.ui.labels import doubtful
from desktop.ui.review.background import Background, forget
from desktop.ui.review.rendering import RenderedBlock

log = logging.getLogger(__name__)

INTERVAL = 0.05
"""Seconds between two batches, at least."""

AT_ONCE = 1_000
"""Characters of Markdown that are converted on the UI thread at most: about a millisecond."""

_background = Background("verso-html")

Convert = Callable[[Block], str]


class Feeder(QObject):
    """Gathers changed blocks and hands them on as HTML."""

    batch = Signal(object)
    """A list of :class:`RenderedBlock`; answer with :meth:`done` when it shows."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._dirty: dict[str, Block] = {}
        self._number = 0
        self._busy = False
        self._fresh = True
        """Whether the page has shown no text yet."""
        self._began = 0.0
        self._pause = INTERVAL
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._send)

    def put(self, blocks: Iterable[Block], convert: Convert) -> None:
        """These blocks are new or differ."""
        self._dirty.update((block.id, block) for block in blocks)
        self._convert = convert
        self._schedule()

    def clear(self) -> None:
        """Another page: forget what has not been shown yet."""
        forget(self._number)
        self._dirty.clear()
        self._busy = False
        self._fresh = True
        self._timer.stop()
        self._began = 0.0

    def done(self) -> None:
        """The last batch shows."""
        if self._busy:
            self._busy = False
            # An expensive page rests twice as long as it took.
            self._pause = max(INTERVAL, 2 * (time.monotonic() - self._began))
            self._schedule()

    @property
    def idle(self) -> bool:
        """Whether everything put in shows."""
        return not self._busy and not self._dirty

    def _schedule(self) -> None:
        if self._busy or not self._dirty:
            return
        if self._fresh:
            size = sum(len(block.markdown) for block in self._dirty.values())
            self._fresh = size == 0
            if size <= AT_ONCE:
                self._timer.stop()
                self._send_at_once()
                return
        if self._timer.isActive():
            return
        wait = self._began + self._pause - time.monotonic()
        self._timer.start(max(0, round(wait * 1000)))

    def _taken(self) -> list[Block]:
        blocks = sorted(self._dirty.values(), key=lambda block: block.index)
        self._dirty.clear()
        self._busy = True
        self._began = time.monotonic()
        return blocks

    def _send_at_once(self) -> None:
        made = None
        try:
            made = _convert_all(self._taken(), self._convert)
        except Exception as error:
            # As on the thread: what cannot be converted is left out, the page goes on.
            log.error("The first text of a page cannot be shown: %s", error, exc_info=error)
        self._hand_on(made)

    def _send(self) -> None:
        if self._busy or not self._dirty:
            return
        blocks = self._taken()
        convert = self._convert
        self._number = _background.run(
            self, lambda: _convert_all(blocks, convert), self._hand_on)

    def _hand_on(self, made: list[RenderedBlock] | None) -> None:
        if made is None:
            self.done()
        else:
            self.batch.emit(made)


def _convert_all(blocks: Sequence[Block], convert: Convert) -> list[RenderedBlock]:
    return [RenderedBlock(block.id, block.index, block.label, convert(block), _doubt(block))
            for block in blocks]


def _doubt(block: Block) -> str:
    if block.confidence is None or not doubtful(block.confidence):
        return ""
    return _("The engine is only {percent} % sure of this: compare it with the page.").format(
        percent=round(block.confidence * 100))
