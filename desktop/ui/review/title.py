"""The name of the page, drawn like a tab and shortened where there is no room."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from desktop.ui.theme import LIGHT, Theme, colour


class TitleTab(QWidget):
    """Text with the accent under it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._text = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumWidth(48)

    def set_text(self, text: str) -> None:
        self._text = text
        self.setAccessibleName(text)
        self.setToolTip(text)
        self.update()

    def apply_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(QFontMetrics(self._font()).horizontalAdvance(self._text) + 24, 36)

    def _font(self) -> QFont:
        font = QFont(self.font())
        font.setWeight(QFont.Weight.DemiBold)
        return font

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._text:
            return
        painter = QPainter(self)
        painter.setFont(self._font())
        painter.setPen(colour(self._theme, "text"))
        room = self.width() - 24
        shown = painter.fontMetrics().elidedText(self._text, Qt.TextElideMode.ElideMiddle, room)
        painter.drawText(QRect(12, 0, room, self.height() - 2),
                         int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft), shown)
        width = painter.fontMetrics().horizontalAdvance(shown) + 24
        painter.fillRect(0, self.height() - 2, width, 2, colour(self._theme, "accent"))
