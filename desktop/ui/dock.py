"""A dock with a quiet title: heading at the left, a fact at the right."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QLabel, QSizePolicy, QToolButton, QWidget

from desktop.i18n import _
from desktop.ui.theme import icon
from desktop.ui.tokens import Theme


class Dock(QDockWidget):
    """Can be moved, floated and closed; its place is saved under NAME."""

    def __init__(self, name: str, title: str, content: QWidget, theme: Theme,
                 parent: QWidget) -> None:
        super().__init__(title, parent)
        self.setObjectName(name)
        self.setWidget(content)
        bar = QWidget()
        row = QHBoxLayout(bar)
        row.setContentsMargins(12, 8, 6, 8)
        row.setSpacing(8)
        self._title = QLabel(title.upper())
        self._title.setProperty("role", "heading")
        font = self._title.font()
        font.setPointSizeF(font.pointSizeF() * 0.88)
        self._title.setFont(font)
        self._fact = QLabel()
        self._fact.setProperty("role", "secondary")
        self._fact.setFont(font)
        self._fact.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._fact.setWordWrap(True)
        self._fact.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._close = QToolButton()
        self._close.setIconSize(QSize(12, 12))
        self._close.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._close.clicked.connect(self.close)
        row.addWidget(self._title)
        row.addWidget(self._fact, 1)
        row.addWidget(self._close)
        self.setTitleBarWidget(bar)
        self.set_title(title)
        self.apply_theme(theme)

    def set_title(self, title: str) -> None:
        """Name it anew (another language)."""
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self._title.setText(title.upper())
        self._close.setAccessibleName(_("Close {title}").format(title=title))
        self._close.setToolTip(_("Close"))

    def set_fact(self, text: str) -> None:
        """What stands at the right of the title."""
        self._fact.setText(text)

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._close.setIcon(icon("x", theme, "secondary"))
