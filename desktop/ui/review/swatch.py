"""A small square of one colour, for menus."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap


def swatch(tone: str) -> QIcon:
    """The square in the colour TONE (``#rrggbb``)."""
    picture = QPixmap(32, 32)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(tone))
    painter.drawRoundedRect(QRectF(6, 6, 20, 20), 4, 4)
    painter.end()
    return QIcon(picture)
