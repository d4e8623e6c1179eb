"""The bar along the top: add, start, stop, retry, re-run, export; engine; menu of the window.

What is said in words gives way to icons alone, the least needed first, where room is short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QAction, QColor, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QSizePolicy, QToolButton, QWidget

from desktop.i18n import N_, _
from desktop.jobs.events import EngineView
from desktop.ui import words
from desktop.ui.actions import Actions
from desktop.ui.texts import say
from desktop.ui.theme import icon, pixmap
from desktop.ui.tokens import Theme

BESIDE = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
ICON_ONLY = Qt.ToolButtonStyle.ToolButtonIconOnly

# From the first that loses its words to the last.
_GIVE_WAY = ("rerun", "stop", "past", "retry", "export", "follow", "add")


class EnginePill(QToolButton):
    """Engine, device and state in words, with a dot in the state's colour."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("pill")
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        say(self, accessibleName=N_("Engine"))
        self._theme = theme
        self._tone = "secondary"
        self.full = ""
        self.brief = False

    def say(self, text: str, tone: str) -> None:
        """Show TEXT with a dot of TONE (a token of Theme)."""
        self.full, self._tone = text, tone
        self.setText(text)
        self.setAccessibleDescription(text)
        self.updateGeometry()
        self.update()

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self.text()) + 58, max(30, metrics.height() + 10))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme = self._theme
        area = self.rect().adjusted(1, 1, -1, -1)
        painter.setBrush(QColor(theme.hover if self.underMouse() else theme.surface))
        painter.setPen(QPen(QColor(theme.accent if self.hasFocus() else theme.border_strong),
                            2 if self.hasFocus() else 1))
        painter.drawRoundedRect(area, area.height() / 2, area.height() / 2)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(getattr(theme, self._tone)))
        middle = self.height() // 2
        painter.drawEllipse(13, middle - 4, 8, 8)
        painter.setPen(QColor(theme.text))
        painter.drawText(self.rect().adjusted(28, 0, -26, 0),
                         Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self.text())
        painter.drawPixmap(self.width() - 24, middle - 6, pixmap(
            "chevron-down", theme.secondary, 12, self.devicePixelRatioF()))


class Ways(QFrame):
    """The switch between the two things that the window is for."""

    def __init__(self, actions: Actions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "switch")
        row = QHBoxLayout(self)
        row.setContentsMargins(2, 2, 2, 2)
        row.setSpacing(2)
        for key in ("convert_page", "benchmark_page"):
            button = QToolButton()
            button.setDefaultAction(actions[key])
            button.setProperty("way", True)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            row.addWidget(button)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)


class TopBar(QWidget):
    """See the module."""

    export_about_to_show = Signal()

    def __init__(self, actions: Actions, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._actions = actions
        self._theme = theme
        self._buttons: dict[str, QToolButton] = {}
        self.row = QHBoxLayout(self)
        self.row.setContentsMargins(8, 6, 8, 6)
        self.row.setSpacing(4)
        self.add_menu = QMenu(self)
        for key in ("add_files", "add_folder", "paste", "screen"):
            self.add_menu.addAction(actions[key])
        self.add_menu.addSeparator()
        self.add_menu.addAction(actions["sample"])
        self._menu_button("add", "plus", self.add_menu)
        start = self._button("start_pause")
        start.setProperty("primary", True)
        for key in ("stop", "retry", "rerun"):
            self._button(key)
        self.export_menu = QMenu(self)
        self.export_menu.aboutToShow.connect(self.export_about_to_show)
        self._menu_button("export", "download", self.export_menu)
        self._button("past").hide()
        self.row.addStretch(1)
        self.ways = Ways(actions)
        self.row.addWidget(self.ways)
        self.row.addStretch(1)
        self._button("follow")
        self.pill = EnginePill(theme)
        self.pill.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.engine_menu = QMenu(self)
        self.pill.setMenu(self.engine_menu)
        self.row.addWidget(self.pill)
        self.gear_menu = QMenu(self)
        self._menu_button("gear", "settings", self.gear_menu)
        self._buttons["gear"].setToolButtonStyle(ICON_ONLY)
        self._engine: tuple[EngineView, str, bool] | None = None
        self.retranslate()
        self.apply_theme(theme)

    def _button(self, key: str) -> QToolButton:
        button = QToolButton()
        button.setDefaultAction(self._actions[key])
        return self._place(key, button)

    def _menu_button(self, key: str, icon_name: str, menu: QMenu) -> QToolButton:
        button = QToolButton()
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setProperty("menu", True)
        button.setProperty("icon_name", icon_name)
        button.setMenu(menu)
        return self._place(key, button)

    def _place(self, key: str, button: QToolButton) -> QToolButton:
        button.setToolButtonStyle(BESIDE)
        button.setIconSize(QSize(16, 16))
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._buttons[key] = button
        self.row.addWidget(button)
        return button

    def button(self, key: str) -> QToolButton:
        """The button of an action, or ``add``, ``export``, ``gear``."""
        return self._buttons[key]

    def retranslate(self) -> None:
        """Name everything in the current language."""
        for key, text in (("add", _("Add")), ("export", _("Export")), ("gear", _("Menu"))):
            self._buttons[key].setText(text)
            self._buttons[key].setToolTip(text)
            self._buttons[key].setAccessibleName(text)
        self._buttons["export"].setToolTip(self._actions["export"].toolTip())
        self._fit()

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._theme = theme
        for button in self._buttons.values():
            name = button.property("icon_name")
            if name:
                button.setIcon(icon(name, theme))
        self.pill.apply_theme(theme)

    def set_engine(self, engine: EngineView, title: str, measured: bool = False) -> None:
        """Show the engine's state; TITLE is its name. MEASURED: a test has its device."""
        self._engine = (engine, title, measured)
        self._fit()

    def set_engine_choices(self, choices: Sequence[tuple[str, str, bool]],
                           choose: Callable[[str], None], extra: Sequence[QAction]) -> None:
        """The pill's menu: (name, title, chosen) of every engine that can be used, and EXTRA."""
        self.engine_menu.clear()
        for name, title, chosen in choices:
            action = self.engine_menu.addAction(title)
            action.triggered.connect(partial(_call, choose, name))
            action.setCheckable(True)
            action.setChecked(chosen)
        self.engine_menu.addSeparator()
        self.engine_menu.addActions(list(extra))

    def show_benchmark(self, shown: bool) -> None:
        """The buttons of the page in front: SHOWN is Benchmark."""
        for key in ("add", "retry", "rerun", "follow"):
            self._buttons[key].setVisible(not shown)
        self._buttons["past"].setVisible(shown)
        self._fit()

    def refit(self) -> None:
        """Words or icons: called when a text changed."""
        self._fit()

    def _fit(self) -> None:
        if self._engine is not None:
            engine, title, measured = self._engine
            said = words.measured_words(title) if measured else words.engine_words(engine, title)
            self.pill.say(said.text, said.tone)
        shown = [key for key in self._buttons if not self._buttons[key].isHidden()]
        for key in shown:
            if key != "gear":
                self._buttons[key].setToolButtonStyle(BESIDE)
        for key in _GIVE_WAY:
            if self._needed(shown) <= self.width():
                return
            if key in shown:
                self._buttons[key].setToolButtonStyle(ICON_ONLY)
        if self._needed(shown) > self.width() and self._engine is not None:
            # The device is in the status bar too.
            self.pill.say(self.pill.full.split(words.DOT)[-1], self.pill._tone)

    def _needed(self, shown: Sequence[str]) -> int:
        widths = [self._buttons[key].sizeHint().width() for key in shown]
        widths += [self.pill.sizeHint().width(), self.ways.sizeHint().width()]
        margins = self.row.contentsMargins()
        return sum(widths) + self.row.spacing() * (len(widths) + 1) + (
            margins.left() + margins.right())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def minimumSizeHint(self) -> QSize:
        return QSize(320, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self._theme.window))
        painter.setPen(QColor(self._theme.border))
        painter.drawLine(0, self.height() - 1, self.width(), self.height() - 1)


def _call(choose: Callable[[str], None], name: str, _checked: bool = False) -> None:
    choose(name)
