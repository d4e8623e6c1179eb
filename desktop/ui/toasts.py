"""Messages that interrupt nobody: a bar over the lower edge, and the desktop's own notice."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSystemTrayIcon,
    QToolButton,
    QWidget,
)

from desktop.i18n import N_
from desktop.ui.texts import say
from desktop.ui.theme import icon, pixmap
from desktop.ui.tokens import Theme

SHOWN_MS = 7_000
OFFERED_MS = 15_000
"""How long a message that offers to do something stays."""
MOST_WIDE = 640
_KINDS = {"info": ("info", "link"), "ok": ("circle-check", "ok"),
          "warning": ("triangle-alert", "warning"), "error": ("circle-x", "error")}


class Toast(QWidget):
    """One message at a time, over the lower edge of HOST. Errors stay until they are closed."""

    def __init__(self, host: QWidget, theme: Theme) -> None:
        super().__init__(host)
        self._host = host
        self._theme = theme
        self._kind = "info"
        say(self, accessibleName=N_("Message"))
        row = self._row = QHBoxLayout(self)
        row.setContentsMargins(12, 8, 8, 8)
        row.setSpacing(8)
        self._icon = QLabel()
        self.text = QLabel()
        self.text.setWordWrap(True)
        self.text.setTextFormat(Qt.TextFormat.PlainText)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.button = QPushButton()
        self._close = QToolButton()
        say(self._close, accessibleName=N_("Close message"), toolTip=N_("Close"))
        self._close.clicked.connect(self._end)
        row.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self.text, 1)
        row.addWidget(self.button)
        row.addWidget(self._close, 0, Qt.AlignmentFlag.AlignTop)
        self._act: Callable[[], object] | None = None
        self._next: tuple[str, str, str, Callable[[], object], str] | None = None
        self._about = ""
        self.button.clicked.connect(self._clicked)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._end)
        host.installEventFilter(self)
        self.apply_theme(theme)
        self.hide()

    def say(self, text: str, kind: str = "info", action: str = "",
            act: Callable[[], object] | None = None, about: str = "") -> None:
        """Show TEXT (KIND: info, ok, warning, error), with a button ACTION that calls ACT;
        :meth:`retract` takes back what was said ABOUT something.

        Mere news does not take away a message that offers to do something; an offer that is
        no more than news waits until that is gone, and comes back when a warning or an error
        took its place.
        """
        if self.isVisible() and self._act is not None:
            if kind in ("info", "ok"):
                if act is not None:
                    self._next = (text, kind, action, act, about)
                return
            if self._kind in ("info", "ok") and self._next is None:
                self._next = (self.text.text(), self._kind, self.button.text(), self._act,
                              self._about)
        self._kind = kind
        self._act = act
        self._about = about
        self.text.setText(text)
        self.button.setText(action)
        self.button.setVisible(bool(action))
        self.apply_theme(self._theme)
        self._place()
        self.show()
        self.raise_()
        if kind == "error":
            self._timer.stop()
        else:
            self._timer.start(OFFERED_MS if action else SHOWN_MS)

    def _clicked(self) -> None:
        act = self._act
        self._end()
        if act is not None:
            act()

    def retract(self, about: str) -> None:
        """What was said ABOUT this does not hold any more."""
        if self._next is not None and self._next[-1] == about:
            self._next = None
        if self._about == about and self.isVisible():
            self._end()

    def _end(self) -> None:
        """Go, and say what had to wait."""
        self._act = None
        self.hide()
        waiting, self._next = self._next, None
        if waiting is not None:
            self.say(*waiting)

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._theme = theme
        name, token = _KINDS[self._kind]
        self._icon.setPixmap(pixmap(name, getattr(theme, token), 18, self.devicePixelRatioF()))
        self._close.setIcon(icon("x", theme, "secondary"))
        self._close.setIconSize(QSize(14, 14))
        self.update()

    def _place(self) -> None:
        host = self._host
        width = min(MOST_WIDE, host.width() - 32)
        self.setFixedWidth(width)
        height = self._row.heightForWidth(width)
        self.setFixedHeight(max(height, 44))
        self.move((host.width() - width) // 2, host.height() - self.height() - 16)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(QColor(self._theme.surface))
        painter.setPen(QPen(QColor(self._theme.border_strong), 1))
        painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 8, 8)


class DesktopNotice:
    """The desktop's notification area, where there is one and the window is not in front."""

    def __init__(self, window: QWidget) -> None:
        self._window = window
        self._tray: QSystemTrayIcon | None = None

    def say(self, title: str, text: str) -> None:
        """Tell that something is done."""
        if self._window.isActiveWindow() or not QSystemTrayIcon.isSystemTrayAvailable():
            QApplication.alert(self._window)
            return
        if self._tray is None:
            self._tray = QSystemTrayIcon(self._window.windowIcon(), self._window)
            self._tray.messageClicked.connect(self._window.activateWindow)
        self._tray.show()
        self._tray.showMessage(title, text, self._window.windowIcon())

    def close(self) -> None:
        """Leave the notification area."""
        if self._tray is not None:
            self._tray.hide()
