"""Every word of the window is said again when the language changes."""

from __future__ import annotations

import gettext
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QDialog,
    QLabel,
    QLineEdit,
    QTabBar,
    QTabWidget,
    QWidget,
)
from pytestqt.qtbot import QtBot

from desktop import i18n
from desktop.engines import registry
from desktop.ui.main_window import MainWindow
from tests.ui.conftest import WAIT

OWN_NAMES = ("verso", "english", "cpu", "gnu", "dpi")


class Marked(gettext.NullTranslations):
    """A language in which every message stands in angle quotes."""

    def gettext(self, message: str) -> str:
        return f"‹{message}›"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return f"‹{msgid1 if n == 1 else msgid2}›"


def words_of(root: QWidget) -> list[tuple[str, str]]:
    """(where, what) for everything that is written in ROOT or read out of it."""
    found = []
    for widget in (root, *root.findChildren(QWidget)):
        if widget.objectName().startswith(("qt_", "Scroll")):
            continue  # Qt's own parts: its own translation names them
        name = f"{type(widget).__name__} {widget.objectName()}"
        said = [widget.toolTip(), widget.accessibleName()]
        if isinstance(widget, (QLabel, QAbstractButton)):
            said.append(widget.text())
        if isinstance(widget, QLineEdit):
            said.append(widget.placeholderText())
        if isinstance(widget, (QTabBar, QTabWidget)):
            said += [widget.tabText(tab) for tab in range(widget.count())]
        if isinstance(widget, QComboBox):
            said += [widget.itemText(row) for row in range(widget.count())]
        if isinstance(widget, QDialog):
            said.append(widget.windowTitle())
        found += [(name, text) for text in said]
    found += [("QAction", action.text()) for action in root.findChildren(QAction)]
    return found


def untranslated(root: QWidget, allowed: tuple[str, ...]) -> list[tuple[str, str]]:
    """What of it is not in the marked language."""
    return [(where, text) for where, text in words_of(root)
            if sum(char.isalpha() for char in text) > 1 and "‹" not in text
            and not any(name in text.casefold() for name in allowed)]


def test_everything_is_said_again(window: MainWindow, qtbot: QtBot, sample_pdf: Path,
                                  script: Callable[..., None],
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    # An engine that is never ready: no page is read meanwhile, which would be said as well.
    script(load={"faults": [{"kind": "hang"}]})
    window.add([sample_pdf])
    qtbot.waitUntil(lambda: bool(window.model.documents())
                    and window.controller.page_id is not None, timeout=WAIT)
    window.commands.preferences()
    window.commands.shortcuts()
    monkeypatch.setattr(i18n, "_catalogue", Marked())
    try:
        window.commands.say_everything_again()
        # Data, and names that are the same in every language.
        allowed = (*OWN_NAMES, "sample.pdf", "中文", "j, k", "ctrl", "shift", "alt", "pgdown",
                   "pgup", "enter", "delete", "0, 1, 2", "f1", "f2", "f5", "f6", "f8",
                   *(entry.name for entry in registry.ENGINES if entry.hidden))
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        left = untranslated(window, allowed)
        assert not left, "\n".join(map(str, left))
        for dialog in window.findChildren(QDialog):
            if dialog.isVisible():
                assert untranslated(dialog, allowed) == []
    finally:
        monkeypatch.setattr(i18n, "_catalogue", gettext.NullTranslations())
        window.commands.say_everything_again()
        for dialog in window.findChildren(QDialog):
            dialog.close()
