"""Labels of the panels."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QSizePolicy


def label(text: str, role: str) -> QLabel:
    """A label whose look the style sheet knows by ROLE; sentences wrap."""
    made = QLabel(text)
    made.setProperty("role", role)
    made.setWordWrap(role in ("secondary", "error", "warning"))
    made.setTextFormat(Qt.TextFormat.PlainText)
    if made.wordWrap():
        made.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
    return made


def small(made: QLabel) -> QLabel:
    """MADE in smaller letters."""
    font = made.font()
    font.setPointSizeF(font.pointSizeF() * 0.88)
    made.setFont(font)
    return made
