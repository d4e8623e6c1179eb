"""Export from the window: which formats, where to, and the work away from the window's thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QMenu

from desktop.i18n import _

if TYPE_CHECKING:
    from desktop.ui.main_window import MainWindow


class Exporting:
    """Fills the menu from the registry of formats and carries an export out."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window

    def fill(self, menu: QMenu) -> None:
        """One entry a format."""
        menu.clear()
        menu.addAction(_("All formats"))
