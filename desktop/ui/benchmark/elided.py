"""Text that ends in dots where room is short; all of it is in its tip."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QWidget


class ElidedLabel(QLabel):
    """A line that never widens the window."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)

    def setText(self, text: str) -> None:
        """Say TEXT."""
        super().setText(text)
        self.setAccessibleName(text)
        self._tell()

    def minimumSizeHint(self) -> QSize:
        return QSize(min(40, self.sizeHint().width()), self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._tell()

    def shown_text(self) -> str:
        """What can be read of it."""
        return self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight,
                                             self.contentsRect().width())

    def _tell(self) -> None:
        self.setToolTip(self.text() if self.shown_text() != self.text() else "")

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.contentsRect(), self.alignment(), self.shown_text())


def shortened(text: str, metrics: QFontMetrics, room: int) -> str:
    """TEXT whose words – names of files, mostly – have dots in their middle where one alone is
    wider than ROOM, pixels: a label that wraps would cut it off."""
    return " ".join(metrics.elidedText(word, Qt.TextElideMode.ElideMiddle, room)
                    for word in text.split(" "))
