"""The key of a server: entered once, kept in the system's keyring, never shown again."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from desktop.errors import Problem
from desktop.i18n import _
from desktop.ui.panels.captions import label


class ServerKeyDialog(QDialog):
    """Enter or forget a key. Whoever made it keeps the key and tells how that went."""

    chosen = Signal(str)
    """Another server is shown: its address."""
    store_wanted = Signal(str, str)
    """Address and key; the field is emptied at once."""
    delete_wanted = Signal(str)

    def __init__(self, servers: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(_("Server key"))
        self.setMinimumWidth(460)
        column = QVBoxLayout(self)
        column.setSpacing(16)
        form = QFormLayout()
        form.setHorizontalSpacing(16)
        form.setVerticalSpacing(12)
        self.server = QComboBox()
        self.server.addItems(list(servers))
        self.server.setAccessibleName(_("Server"))
        self.server.currentTextChanged.connect(self._choose)
        self.key = QLineEdit()
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        self.key.setAccessibleName(_("Key"))
        self.key.setPlaceholderText(_("as the server's operator gave it"))
        form.addRow(QLabel(_("Server")), self.server)
        form.addRow(QLabel(_("Key")), self.key)
        column.addLayout(form)
        column.addWidget(label(_(
            "The key is kept in the system's keyring: not in a settings file, a log or a "
            "message. It is not shown again."), "secondary"))
        self.state = label("", "secondary")
        column.addWidget(self.state)
        buttons = QDialogButtonBox()
        self.save = QPushButton(_("Keep key"))
        self.save.setProperty("primary", True)
        self.save.setEnabled(False)
        self.key.textChanged.connect(lambda text: self.save.setEnabled(bool(text.strip())))
        self.save.clicked.connect(self._store)
        self.forget = QPushButton(_("Forget key"))
        self.forget.setAutoDefault(False)
        self.forget.setEnabled(False)
        self.forget.clicked.connect(lambda: self.delete_wanted.emit(self.server.currentText()))
        buttons.addButton(self.save, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.addButton(self.forget, QDialogButtonBox.ButtonRole.ActionRole)
        close = buttons.addButton(_("Close"), QDialogButtonBox.ButtonRole.RejectRole)
        close.setAutoDefault(False)
        buttons.rejected.connect(self.reject)
        column.addWidget(buttons)

    def show_source(self, source: str) -> None:
        """Say where the server's key is from (keyring, environment); "": it has none."""
        self._say({
            "keyring": _("A key for this server is in the keyring."),
            "environment": _("The variable VERSO_API_KEY gives the key; it goes before the "
                             "keyring."),
        }.get(source, _("No key is kept for this server.")), "secondary")
        self.forget.setEnabled(source == "keyring")

    def show_problem(self, problem: Problem) -> None:
        """Say why the keyring did not do it."""
        self._say(problem.line(), "error")

    def _say(self, text: str, role: str) -> None:
        self.state.setText(text)
        self.state.setProperty("role", role)
        self.state.style().polish(self.state)

    def _choose(self, server: str) -> None:
        self.key.clear()
        self.forget.setEnabled(False)
        self._say("", "secondary")
        self.chosen.emit(server)

    def _store(self) -> None:
        value = self.key.text()
        self.key.clear()
        self.store_wanted.emit(self.server.currentText(), value)
