"""The log: the last lines of application and engine, filtered by level."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable

from PySide6.QtGui import QColor, QFontDatabase, QGuiApplication, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from desktop.i18n import N_, _
from desktop.jobs.events import LogAdded
from desktop.ui.texts import say
from desktop.ui.tokens import Theme

KEPT = 5_000
LEVELS = ((N_("Everything"), logging.DEBUG), (N_("Information"), logging.INFO),
          (N_("Warnings"), logging.WARNING), (N_("Errors"), logging.ERROR))


class LogPanel(QWidget):
    """Bounded: the oldest lines go; the log file keeps them."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._lines: deque[LogAdded] = deque(maxlen=KEPT)
        self._level = logging.INFO
        self.text = QPlainTextEdit()
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 6, 8, 6)
        column.setSpacing(6)
        bar = QHBoxLayout()
        title = QLabel()
        say(title, text=N_("Show"))
        self.levels = QComboBox()
        say(self.levels, accessibleName=N_("Log level"))
        title.setBuddy(self.levels)
        for name, level in LEVELS:
            self.levels.addItem(_(name), level)
        self.levels.setCurrentIndex(1)
        self.levels.activated.connect(lambda _row: self.set_level(self.levels.currentData()))
        copy = QPushButton()
        say(copy, text=N_("Copy all"))
        copy.clicked.connect(
            lambda: QGuiApplication.clipboard().setText(self.text.toPlainText()))
        bar.addWidget(title)
        bar.addWidget(self.levels)
        bar.addStretch(1)
        bar.addWidget(copy)
        column.addLayout(bar)
        self.text.setReadOnly(True)
        say(self.text, accessibleName=N_("Log"))
        self.text.setMaximumBlockCount(KEPT)
        self.text.setUndoRedoEnabled(False)
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        column.addWidget(self.text, 1)

    def add(self, lines: Iterable[LogAdded]) -> None:
        """Show LINES below what is there, in one change of the text."""
        fresh = list(lines)
        self._lines.extend(fresh)
        self._write(line for line in fresh if line.level >= self._level)

    def set_level(self, level: int) -> None:
        """Show lines of LEVEL (as in logging) and above."""
        self._level = level
        self.levels.setCurrentIndex(self.levels.findData(level))
        self._rewrite()

    def retranslate(self) -> None:
        """Name the levels in the current language; the rest says itself again."""
        for row, (name, _level) in enumerate(LEVELS):
            self.levels.setItemText(row, _(name))

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._theme = theme
        self._rewrite()

    def _rewrite(self) -> None:
        self.text.clear()
        self._write(line for line in self._lines if line.level >= self._level)

    def _write(self, lines: Iterable[LogAdded]) -> None:
        bar = self.text.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - 4
        cursor = QTextCursor(self.text.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.beginEditBlock()
        first = self.text.document().isEmpty()
        for line in lines:
            style = QTextCharFormat()
            tone = ("error" if line.level >= logging.ERROR else
                    "warning" if line.level >= logging.WARNING else "text")
            style.setForeground(QColor(getattr(self._theme, tone)))
            clock = time.strftime("%H:%M:%S", time.localtime(line.time))
            if not first:
                cursor.insertBlock()
            first = False
            cursor.insertText(f"{clock} {logging.getLevelName(line.level):<7} "
                              f"{line.source}: {line.text}", style)
        cursor.endEditBlock()
        if at_end:
            bar.setValue(bar.maximum())
