"""Drops as Qt delivers them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QWidget


def mime_of(files: Sequence[Path]) -> QMimeData:
    """What a file manager hands over."""
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(file)) for file in files])
    return mime


def drop(window: QWidget, mime: QMimeData) -> bool:
    """Drag MIME over WINDOW and let go; whether it was taken."""
    middle = QPoint(window.width() // 2, window.height() // 2)
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(middle, Qt.DropAction.CopyAction, mime, buttons, keys)
    QApplication.sendEvent(window, enter)
    if not enter.isAccepted():
        return False
    release = QDropEvent(middle.toPointF(), Qt.DropAction.CopyAction, mime, buttons, keys)
    QApplication.sendEvent(window, release)
    return release.isAccepted()
