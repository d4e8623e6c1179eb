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


def set_role(made: QLabel, role: str) -> None:
    """Have MADE look as ROLE from now on; whether it wraps stays as it is."""
    if made.property("role") != role:
        made.setProperty("role", role)
        made.style().unpolish(made)  # A style sheet looks at properties once.
        made.style().polish(made)


def small(made: QLabel) -> QLabel:
    """MADE in smaller letters."""
    font = made.font()
    font.setPointSizeF(font.pointSizeF() * 0.88)
    made.setFont(font)
    return made
