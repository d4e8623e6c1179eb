"""Keyboard and screen reader: everything that can be used has a name and can be reached."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QHeaderView,
    QLineEdit,
    QPlainTextEdit,
    QScrollBar,
    QWidget,
)

from desktop.ui.actions import DECLARED
from desktop.ui.main_window import MainWindow

USED = (QAbstractButton, QComboBox, QAbstractSpinBox, QAbstractSlider, QLineEdit, QPlainTextEdit,
        QAbstractItemView)


def used_widgets(window: MainWindow) -> list[QWidget]:
    """What a person can use in the window's own parts."""
    parts = (window.top, window.queue_dock, window.settings_dock, window.figures, window.toast,
             window.empty, window.log, window.problem_list)
    found: list[QWidget] = []
    for part in parts:
        for widget in (part, *part.findChildren(QWidget)):
            inner = (isinstance(widget, QHeaderView) or widget.objectName().startswith("qt_")
                     or isinstance(widget.parent(), (QAbstractSpinBox, QComboBox))
                     or isinstance(widget.parent().parent(), QComboBox))
            if isinstance(widget, USED) and not isinstance(widget, QScrollBar) and not inner:
                found.append(widget)
    return found


def test_everything_has_a_name_for_screen_readers(window: MainWindow) -> None:
    window.settings.set_advanced(True)
    nameless = []
    for widget in used_widgets(window):
        interface = QAccessible.queryAccessibleInterface(widget)
        name = interface.text(QAccessible.Text.Name) if interface is not None else ""
        if not name and widget is not window.toast.button:
            nameless.append(f"{type(widget).__name__} in {type(widget.parent()).__name__}")
    assert nameless == []


def test_everything_can_be_reached_with_the_keyboard(window: MainWindow) -> None:
    window.settings.set_advanced(True)
    unreachable = [widget for widget in used_widgets(window)
                   if not widget.focusPolicy() & Qt.FocusPolicy.TabFocus]
    assert [type(widget).__name__ for widget in unreachable] == []


def test_the_shortcuts_of_the_product_are_there_and_each_once(window: MainWindow) -> None:
    keys = [key for declared in DECLARED for key in declared.shortcuts]
    assert len(keys) == len(set(keys))
    for key in ("F5", "Ctrl+.", "Ctrl+R", "PgUp", "PgDown", "F8", "F6", "Ctrl+F", "Ctrl+E",
                "Ctrl+V", "Ctrl+O", "Ctrl+,", "F1"):
        assert key in keys
    overview = [keys for _group, rows in window.actions_.overview() for _what, keys in rows]
    assert len(overview) == sum(bool(declared.shortcuts) for declared in DECLARED)
