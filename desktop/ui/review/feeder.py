"""From blocks to safe HTML, off the UI thread, at most about twenty times a second.

The first change of a burst goes through at once. While a batch is being converted or shown, what
changes meanwhile is gathered; so a slow table slows its own updates down, never the window.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from PySide6.QtCore import QObject, QTimer, Signal

from desktop.document.model import Block
from desktop.i18n import _
from desktop.ui.labels import doubtful
from desktop.ui.review.background import Background, forget
from desktop.ui.review.rendering import RenderedBlock

INTERVAL = 0.05
"""Seconds between two batches, at least."""

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
        if self._busy or not self._dirty or self._timer.isActive():
            return
        wait = self._began + self._pause - time.monotonic()
        self._timer.start(max(0, round(wait * 1000)))

    def _send(self) -> None:
        if self._busy or not self._dirty:
            return
        blocks = sorted(self._dirty.values(), key=lambda block: block.index)
        self._dirty.clear()
        self._busy = True
        self._began = time.monotonic()
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
