"""The strip of tabs and tools above each half of the pane."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QToolButton, QWidget

from desktop.ui.texts import say
from desktop.ui.theme import LIGHT, Theme, colour, icon

HEIGHT = 36


class Strip(QWidget):
    """A row 36 px high with a line under it, as tall on both sides."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme = LIGHT
        self._icons: dict[QToolButton, str] = {}
        self.row = QHBoxLayout(self)
        self.row.setContentsMargins(8, 0, 8, 0)
        self.row.setSpacing(2)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setMinimumHeight(HEIGHT)

    def add_button(self, name: str, tip: str, *, text: str = "") -> QToolButton:
        """A flat button with the icon NAME; TIP also names it for screen readers. Both words are
        marked with ``N_``."""
        button = QToolButton(self)
        button.setIconSize(QSize(16, 16))
        say(button, toolTip=tip, accessibleName=tip)
        button.setAutoRaise(True)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        if text:
            say(button, text=text)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon if name
                                      else Qt.ToolButtonStyle.ToolButtonTextOnly)
        if name:
            self._icons[button] = name
            button.setIcon(icon(name, self.theme, "secondary"))
        self.row.addWidget(button)
        return button

    def apply_theme(self, theme: Theme) -> None:
        self.theme = theme
        for button, name in self._icons.items():
            button.setIcon(icon(name, theme, "secondary"))
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), max(HEIGHT, super().sizeHint().height()))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(event.rect(), colour(self.theme, "window"))
        line: QColor = colour(self.theme, "border")
        painter.fillRect(0, self.height() - 1, self.width(), 1, line)
