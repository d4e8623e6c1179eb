"""All keys on one sheet."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QGridLayout, QLabel, QVBoxLayout, QWidget

from desktop.i18n import _
from desktop.ui.actions import Actions


class ShortcutsDialog(QDialog):
    """Made from the actions themselves; keys that belong to one view are added by hand."""

    def __init__(self, actions: Actions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(_("Keyboard shortcuts"))
        column = QVBoxLayout(self)
        column.setSpacing(12)
        grid = QGridLayout()
        grid.setHorizontalSpacing(24)
        grid.setVerticalSpacing(4)
        row = 0
        groups = actions.overview()
        groups.append((_("In the queue"), [
            (_("Fold, unfold"), "← →"), (_("Show page, unlock document"), _("Enter")),
            (_("Page range of a document"), "F2"), (_("Remove from queue"), _("Delete"))]))
        groups.append((_("On the page and in its text"), [
            (_("Next block, previous block"), "J, K"), (_("Larger, smaller"), "+, −"),
            (_("Whole page, 100 %, page width"), "0, 1, 2"), (_("Turn the view"), "R"),
            (_("Copy the chosen block, or the page"), "Ctrl+C")]))
        half = (sum(len(keys) + 1 for _name, keys in groups) + 1) // 2
        offset, used = 0, 0
        for name, keys in groups:
            if used >= half and offset == 0:
                offset, row = 3, 0
                grid.setColumnMinimumWidth(2, 24)
            heading = QLabel(name)
            heading.setProperty("role", "heading")
            grid.addWidget(heading, row, offset, 1, 2)
            row += 1
            for what, key in keys:
                grid.addWidget(QLabel(what), row, offset)
                label = QLabel(key)
                label.setProperty("role", "secondary")
                grid.addWidget(label, row, offset + 1)
                row += 1
            used += len(keys) + 1
        column.addLayout(grid)
        buttons = QDialogButtonBox()
        buttons.addButton(_("Close"), QDialogButtonBox.ButtonRole.RejectRole)
        buttons.rejected.connect(self.reject)
        column.addWidget(buttons)
