"""The empty queue: one large place to drop on, one sentence, a button, the sample."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from desktop.i18n import N_
from desktop.ui.texts import say
from desktop.ui.theme import pixmap
from desktop.ui.tokens import Theme


class EmptyArea(QWidget):
    """Teaches the one thing to do first."""

    files_wanted = Signal()
    sample_wanted = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._over = False
        column = QVBoxLayout(self)
        column.setContentsMargins(48, 48, 48, 48)
        column.setSpacing(16)
        column.addStretch(1)
        self._picture = QLabel()
        self._picture.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column.addWidget(self._picture)
        self._title = QLabel()
        say(self._title, text=N_("Drop PDFs, images or folders here to turn them into Markdown."))
        font = self._title.font()
        font.setPointSizeF(font.pointSizeF() * 1.35)
        self._title.setFont(font)
        self._title.setWordWrap(True)
        self._title.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column.addWidget(self._title)
        row = QHBoxLayout()
        row.setSpacing(12)
        self.add = QPushButton()
        say(self.add, text=N_("Choose files…"))
        self.add.setProperty("primary", True)
        self.add.clicked.connect(self.files_wanted)
        self.sample = QPushButton()
        say(self.sample, text=N_("Try the sample"))
        self.sample.clicked.connect(self.sample_wanted)
        row.addStretch(1)
        row.addWidget(self.add)
        row.addWidget(self.sample)
        row.addStretch(1)
        column.addLayout(row)
        hint = QLabel()
        say(hint, text=N_("Pasting works too: Ctrl+V"))
        hint.setProperty("role", "secondary")
        hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column.addWidget(hint)
        column.addStretch(1)
        self.apply_theme(theme)

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._theme = theme
        self._picture.setPixmap(pixmap("file-plus", theme.secondary, 48, self.devicePixelRatioF()))
        self.update()

    def set_over(self, over: bool) -> None:
        """Something is being dragged over the window."""
        self._over = over
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), QColor(self._theme.canvas))
        area = QRectF(self.rect()).adjusted(24, 24, -24, -24)
        painter.setBrush(QColor(self._theme.selection if self._over else self._theme.surface))
        tone = self._theme.accent if self._over else self._theme.border_strong
        painter.setPen(QPen(QColor(tone), 1.5, Qt.PenStyle.DashLine))
        painter.drawRoundedRect(area, 8, 8)
