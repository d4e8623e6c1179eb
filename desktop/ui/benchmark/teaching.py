"""What the page says before anything was measured."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from desktop.i18n import N_
from desktop.ui.texts import say
from desktop.ui.theme import pixmap
from desktop.ui.tokens import Theme

_STEPS = (
    N_("Choose what is read, and how many pages at once: each number is a level."),
    N_("A level's engine is started anew and reads a cold round, rounds for warming up, and the "
       "rounds that count."),
    N_("The knee is the fewest pages at once beyond which more bring less than 5 %: a good setting "
       "for the conversion."),
)


class Teaching(QWidget):
    """One sentence, three steps, a button; earlier runs."""

    start_wanted = Signal()
    history_wanted = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        column = QVBoxLayout(self)
        column.setContentsMargins(48, 32, 48, 32)
        column.setSpacing(12)
        column.addStretch(2)
        self._picture = QLabel()
        self._picture.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column.addWidget(self._picture)
        title = QLabel()
        say(title, text=N_("How fast does this machine read?"))
        font = title.font()
        font.setPointSizeF(font.pointSizeF() * 1.35)
        title.setFont(font)
        title.setWordWrap(True)
        title.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column.addWidget(title)
        column.addSpacing(4)
        for step in _STEPS:
            line = QLabel()
            say(line, text=step)
            line.setProperty("role", "secondary")
            line.setWordWrap(True)
            line.setAlignment(Qt.AlignmentFlag.AlignCenter)
            line.setMaximumWidth(620)
            row = QHBoxLayout()
            row.addStretch(1)
            row.addWidget(line, 6)
            row.addStretch(1)
            column.addLayout(row)
        column.addSpacing(8)
        buttons = QHBoxLayout()
        buttons.setSpacing(12)
        self.start = QPushButton()
        say(self.start, text=N_("Start test"))
        self.start.setProperty("primary", True)
        self.start.clicked.connect(self.start_wanted)
        self.history = QPushButton()
        say(self.history, text=N_("Earlier tests…"))
        self.history.clicked.connect(self.history_wanted)
        buttons.addStretch(1)
        buttons.addWidget(self.start)
        buttons.addWidget(self.history)
        buttons.addStretch(1)
        column.addLayout(buttons)
        column.addStretch(3)
        self.apply_theme(theme)

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._theme = theme
        self._picture.setPixmap(pixmap("gauge", theme.secondary, 48, self.devicePixelRatioF()))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(QColor(self._theme.surface))
        painter.setPen(QPen(QColor(self._theme.border), 1))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
