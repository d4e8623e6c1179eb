"""Remarks on a run: a list of sentences."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QAbstractItemView, QListWidget, QListWidgetItem, QWidget

from desktop.i18n import N_
from desktop.ui.texts import say
from desktop.ui.theme import icon
from desktop.ui.tokens import Theme


class RemarksList(QListWidget):
    """What a reader of the figures should know, the most important first."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._remarks: tuple[tuple[str, str], ...] = ()
        say(self, accessibleName=N_("Remarks"))
        self.setWordWrap(True)
        self.setSpacing(2)
        self.setIconSize(QSize(16, 16))
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)

    def set_remarks(self, remarks: Sequence[tuple[str, str]]) -> None:
        """(tone, sentence) of each; tones: error, warning, info."""
        if tuple(remarks) == self._remarks and self.count():
            return
        self._remarks = tuple(remarks)
        self._fill()

    def _fill(self) -> None:
        self.clear()
        for tone, said in self._remarks:
            name, token = {"error": ("circle-x", "error"), "warning": ("triangle-alert", "warning")
                           }.get(tone, ("info", "link"))
            self.addItem(QListWidgetItem(icon(name, self._theme, token), said))

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._theme = theme
        self._fill()
