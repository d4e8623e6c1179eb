"""Preferences: what belongs to the window and not to a run. Made from the declared settings."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFormLayout, QLabel, QVBoxLayout, QWidget

from desktop.i18n import _
from desktop.settings import SETTINGS, Section, Values
from desktop.ui.panels.fields import Field
from desktop.ui.tokens import Theme


class PreferencesDialog(QDialog):
    """Language, appearance; a change works at once."""

    changed = Signal(str, object)

    def __init__(self, values: Values, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(_("Preferences"))
        self.setMinimumWidth(380)
        column = QVBoxLayout(self)
        column.setSpacing(16)
        form = QFormLayout()
        form.setHorizontalSpacing(16)
        form.setVerticalSpacing(12)
        self.fields: dict[str, Field] = {}
        for setting in SETTINGS:
            if setting.section is Section.APPEARANCE:
                field = Field(setting, values[setting.key])
                field.apply_theme(theme)
                field.changed.connect(self.changed)
                title = QLabel(_(setting.title))
                title.setBuddy(field)
                form.addRow(title, field)
                self.fields[setting.key] = field
        column.addLayout(form)
        buttons = QDialogButtonBox()
        buttons.addButton(_("Close"), QDialogButtonBox.ButtonRole.RejectRole)
        buttons.rejected.connect(self.reject)
        column.addWidget(buttons)
