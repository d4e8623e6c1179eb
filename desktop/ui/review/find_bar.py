"""The bar for searching within the shown tab (Ctrl+F)."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLabel, QLineEdit, QWidget

from desktop.i18n import N_, _
from desktop.ui.review.strip import Strip
from desktop.ui.texts import say
from desktop.ui.theme import Theme


class FindBar(Strip):
    """Asks for text; the result view searches."""

    wanted = Signal(str, bool)
    """Show the next (False) or previous (True) place of the text; "" ends the search."""
    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.field = QLineEdit(self)
        say(self.field, placeholderText=N_("Find on this page"),
            accessibleName=N_("Find on this page"))
        self.field.setClearButtonEnabled(True)
        self.row.addWidget(self.field, 1)
        self._count = QLabel(self)
        self._count.setProperty("role", "secondary")
        self._count.setMinimumWidth(64)
        self._count.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.row.addWidget(self._count)
        up = self.add_button("chevron-up", N_("Previous match (Shift+Enter)"))
        down = self.add_button("chevron-down", N_("Next match (Enter)"))
        close = self.add_button("x", N_("Close (Esc)"))
        # While a person types, the search waits for a breath.
        self._typing = QTimer(self, singleShot=True, interval=150)
        self._typing.timeout.connect(lambda: self.search(False))
        self.field.textEdited.connect(lambda: self._typing.start())
        up.clicked.connect(lambda: self.search(True))
        down.clicked.connect(lambda: self.search(False))
        close.clicked.connect(self.close_bar)
        self.hide()

    def open_bar(self) -> None:
        """Show it and take the keyboard."""
        self.show()
        self.field.setFocus()
        self.field.selectAll()

    def close_bar(self) -> None:
        """End the search."""
        self._typing.stop()
        self.hide()
        self.wanted.emit("", False)
        self.closed.emit()

    def search(self, backward: bool) -> None:
        """Ask for the next or previous match."""
        self._typing.stop()
        if self.field.text():
            self.wanted.emit(self.field.text(), backward)
        else:
            self._count.clear()
            self.wanted.emit("", False)

    def show_count(self, current: int, count: int) -> None:
        """Match CURRENT of COUNT is shown."""
        if not self.field.text():
            self._count.clear()
        elif count:
            self._count.setText(_("{current} of {count}").format(current=current, count=count))
        else:
            self._count.setText(_("not found"))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close_bar()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.search(bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
        else:
            super().keyPressEvent(event)

    def apply_theme(self, theme: Theme) -> None:
        super().apply_theme(theme)
