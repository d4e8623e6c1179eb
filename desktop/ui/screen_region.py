"""A part of the screen as a picture: the screen is frozen, and a rectangle drawn on it."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QCursor,
    QGuiApplication,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QScreen,
)
from PySide6.QtWidgets import QWidget

from desktop.i18n import _

_SMALLEST = 8
"""Logical pixels; a smaller rectangle is a slip of the hand."""


def grab(screen: QScreen | None = None) -> tuple[QScreen, QPixmap] | None:
    """SCREEN (the one with the pointer) as it is now; None where the desktop does not allow it,
    as Wayland does not."""
    screen = (screen or QGuiApplication.screenAt(QCursor.pos())
              or QGuiApplication.primaryScreen())
    if screen is None or QGuiApplication.platformName().startswith("wayland"):
        return None
    picture = screen.grabWindow(0)
    return None if picture.isNull() else (screen, picture)


class ScreenRegion(QWidget):
    """Covers a screen with its PICTURE until a rectangle is drawn or Escape is pressed."""

    chosen = Signal(object)
    """QImage, in the screen's own pixels."""
    closed = Signal()
    """However it ended."""

    def __init__(self, screen: QScreen, picture: QPixmap) -> None:
        super().__init__(None, Qt.WindowType.FramelessWindowHint
                         | Qt.WindowType.WindowStaysOnTopHint)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(_("Screen region"))
        self.setAccessibleName(_("Draw a rectangle around what is to be read"))
        self.setCursor(Qt.CursorShape.CrossCursor)
        self.setGeometry(screen.geometry())
        self._picture = picture
        self._from: QPoint | None = None
        self._to = QPoint()

    @property
    def rectangle(self) -> QRect:
        """What is drawn so far, in logical pixels; empty before anything is."""
        return QRect() if self._from is None else QRect(self._from, self._to).normalized()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._from = self._to = event.position().toPoint()
        self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._to = event.position().toPoint()
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._to = event.position().toPoint()
        rectangle = self.rectangle & self.rect()
        if min(rectangle.width(), rectangle.height()) < _SMALLEST:
            self._from = None
            self.update()
            return
        scale = self._picture.devicePixelRatio()
        pixels = QRect(rectangle.topLeft() * scale, QSize(rectangle.size() * scale))
        image = self._picture.copy(pixels).toImage()
        image.setDevicePixelRatio(1)
        self.chosen.emit(image)
        self._end()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self._end()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._picture)
        painter.fillRect(self.rect(), QColor(0, 0, 0, 90))
        rectangle = self.rectangle
        if rectangle.isEmpty():
            painter.setPen(QColor("white"))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, _(
                "Draw a rectangle around what is to be read. Escape cancels."))
            return
        scale = self._picture.devicePixelRatio()
        painter.drawPixmap(rectangle, self._picture,
                           QRect(rectangle.topLeft() * scale, QSize(rectangle.size() * scale)))
        painter.setPen(QColor("#4c8dff"))
        painter.drawRect(rectangle)

    def _end(self) -> None:
        self.closed.emit()
        self.close()
