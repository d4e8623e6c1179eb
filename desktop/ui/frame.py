"""What the window is made of: views, docks and bars, their place, their words and colours.

It knows neither where events come from nor what actions do.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QSettings, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QIcon, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QLabel, QMainWindow, QStackedWidget, QTabWidget, QToolButton, QWidget

from desktop import paths
from desktop.errors import Problem
from desktop.i18n import N_, _
from desktop.jobs import events as e
from desktop.jobs.session import Session
from desktop.ui.actions import Actions
from desktop.ui.bridge import Bridge
from desktop.ui.controller import ReviewController
from desktop.ui.dock import Dock
from desktop.ui.engine_use import EngineUse
from desktop.ui.models.queue import QueueModel
from desktop.ui.panels.log import LogPanel
from desktop.ui.panels.problems import ProblemsModel, ProblemsPanel
from desktop.ui.panels.settings import SettingsPanel
from desktop.ui.status import FigureBar
from desktop.ui.tasks import Tasks
from desktop.ui.texts import say, say_again
from desktop.ui.theme import Appearance, Theme, icon
from desktop.ui.toasts import DesktopNotice, Toast
from desktop.ui.topbar import TopBar
from desktop.ui.views.empty import EmptyArea
from desktop.ui.views.queue import QueueView
from desktop.ui.views.thumbnails import Thumbnails

if TYPE_CHECKING:
    from desktop.ui.review.pane import ReviewPane

_LAYOUT = 1
"""Version of the docks' lay-out; a saved one of another version is not restored."""
SMALLEST = QSize(800, 560)


class Frame(QMainWindow):
    """Everything a person sees. Owns no documents."""

    closed = Signal()
    """The person closed the window; it is hidden, and everything behind it can end."""

    def __init__(self, session: Session, appearance: Appearance,
                 loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.setObjectName("main")
        self.setWindowTitle("Verso")
        self.setWindowIcon(QIcon(str(paths.resources() / "icons" / "verso.svg")))
        self.setAcceptDrops(True)
        self.setMinimumSize(SMALLEST)
        self.session = session
        self.appearance = appearance
        theme = appearance.theme
        self.state = e.ProgressView(e.RunState.PAUSED)
        """What the session said last of the run, and of the engine below."""
        self.engine = e.EngineView(session.values["engine"], e.EngineState.OFF)

        self.bridge = Bridge(session, self)
        self.tasks = Tasks(loop, self.show_problem)
        self.use = EngineUse(session, self._say_waiting)
        self.measuring_shown = False
        """Whether the page Benchmark is in front."""
        self.model = QueueModel(self)
        self.problems = ProblemsModel(self)
        self.actions_ = Actions(self, theme)
        self.thumbnails = Thumbnails(session, self)
        self.controller = ReviewController(session, self.bridge, self.model, self.tasks, self)

        self._build_centre(theme)
        self._build_docks(theme)
        self.top = TopBar(self.actions_, theme)
        self.setMenuWidget(self.top)
        self.figures = FigureBar(theme)
        self.statusBar().setSizeGripEnabled(False)
        self.statusBar().addPermanentWidget(self.figures, 1)
        self.toast = Toast(self.centre, theme)
        self.notice = DesktopNotice(self)
        self._restore()
        self.close_messages.setIcon(icon("x", theme, "secondary"))

    _first_show = False
    _narrow = False
    _folded = False
    _docks: QByteArray | None = None
    """How docks were before the page Benchmark came to the front."""
    _away: tuple[Dock, ...] = ()

    # --- building
    def _build_centre(self, theme: Theme) -> None:
        self._stack = QStackedWidget()
        self.empty = EmptyArea(theme)
        self.placeholder = QLabel()
        self._stack.addWidget(self.empty)
        self._stack.addWidget(self.placeholder)
        # The conversion, and beside it what else the window is for.
        self.centre = QStackedWidget()
        self.centre.addWidget(self._stack)
        self.setCentralWidget(self.centre)
        self.pane: ReviewPane | None = None

    def _build_docks(self, theme: Theme) -> None:
        self.queue = QueueView(self.model, self.thumbnails, theme)
        self.settings = SettingsPanel(self.session.values, theme)
        self.problem_list = ProblemsPanel(self.problems, theme)
        self.log = LogPanel(theme)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(self.problem_list, _("Problems"))
        self.tabs.addTab(self.log, _("Log"))
        self.queue_dock = Dock("queue-dock", _("Queue"), self.queue, theme, self)
        self.settings_dock = Dock("settings-dock", _("Run settings"), self.settings, theme, self)
        self.bottom_dock = Dock("bottom-dock", _("Messages"), self.tabs, theme, self)
        area = Qt.DockWidgetArea
        self.addDockWidget(area.LeftDockWidgetArea, self.queue_dock)
        self.addDockWidget(area.RightDockWidgetArea, self.settings_dock)
        self.addDockWidget(area.BottomDockWidgetArea, self.bottom_dock)
        self.setCorner(Qt.Corner.BottomLeftCorner, area.LeftDockWidgetArea)
        self.setCorner(Qt.Corner.BottomRightCorner, area.RightDockWidgetArea)
        self.bottom_dock.hide()
        unit = self.fontMetrics().horizontalAdvance("x")
        self.queue.setMinimumWidth(unit * 30)
        self.settings.setMinimumWidth(unit * 34)
        # Its tabs name it; a second line of title would only take room from the page.
        self.bottom_dock.setTitleBarWidget(QWidget())
        self.close_messages = QToolButton()
        say(self.close_messages, toolTip=N_("Close"), accessibleName=N_("Close messages"))
        self.close_messages.setIconSize(QSize(12, 12))
        self.close_messages.clicked.connect(self.bottom_dock.hide)
        self.tabs.setCornerWidget(self.close_messages)

    def create_review(self) -> None:
        """Make the review pane. Apart from the rest because Chromium takes a while to start:
        the window is seen before."""
        if self.pane is not None:
            return
        from desktop.ui.review.pane import ReviewPane

        pane = ReviewPane()
        pane.apply_theme(self.appearance.theme)
        pane.set_following(self.controller.follow)
        pane.status_message.connect(lambda text: self.statusBar().showMessage(text, 4000))
        self._stack.addWidget(pane)
        if self._stack.currentWidget() is self.placeholder:
            self._stack.setCurrentWidget(pane)
        self._stack.removeWidget(self.placeholder)
        self.placeholder.deleteLater()
        self.pane = pane
        pane.set_furniture(self.session.values["furniture"])
        self.controller.attach(pane)

    def load_rendering(self) -> None:
        """Start Chromium before the first page needs it."""
        if self.pane is not None:
            self.pane.result.start_rendering()

    def retranslate(self) -> None:
        """Name everything in the current language."""
        say_again(self)
        self.actions_.retranslate()
        self.top.retranslate()
        self.figures.retranslate()
        self.settings.retranslate()
        self.queue_dock.set_title(_("Queue"))
        self.settings_dock.set_title(_("Run settings"))
        self.bottom_dock.set_title(_("Messages"))
        self.tabs.setTabText(0, _("Problems"))
        self.tabs.setTabText(1, _("Log"))
        self.queue.viewport().update()
        self.log.retranslate()
        if self.pane is not None:
            self.pane.retranslate()
        self.controller.retranslate()

    # --- showing things
    def bring_up_benchmark(self, wanted: bool) -> None:
        """Make room for the page Benchmark, or bring the conversion back with its docks."""
        if wanted == self.measuring_shown:
            return
        self.measuring_shown = wanted
        if wanted:
            self._docks = self.saveState(_LAYOUT)
            self._away = tuple(dock for dock in (self.queue_dock, self.settings_dock)
                               if not dock.isHidden())
            for dock in self._away:
                dock.hide()
        else:
            self.settings_dock.hide()
            for dock in self._away:
                dock.show()
            self._away, self._docks = (), None
            self.centre.setCurrentWidget(self._stack)
            self._make_room()
        self.top.show_benchmark(wanted)
        self.actions_.show_benchmark(wanted)
        self.toast.raise_()

    def _say_waiting(self) -> None:
        self.toast.say(_("The throughput is being measured: the engine reads again when that has "
                         "ended."))

    def show_problem(self, problem: Problem) -> None:
        """Say a problem of something that was asked for, in the window."""
        self.toast.say(problem.line(), "error")

    def show_bottom(self, panel: QWidget) -> None:
        """Open the dock of messages at PANEL, or close it when it shows PANEL already."""
        if self.bottom_dock.isVisible() and self.tabs.currentWidget() is panel:
            self.bottom_dock.hide()
            return
        self.tabs.setCurrentWidget(panel)
        self.bottom_dock.show()
        self.bottom_dock.raise_()
        panel.setFocus()

    def panes(self) -> list[QWidget]:
        """The parts F6 walks through, those that are visible."""
        parts: list[QWidget | None] = [self.top.button("add"), self.queue]
        if self.measuring_shown:
            parts = [self.top.button("start_pause"), *self.benchmark_panes()]
        elif self._stack.currentWidget() is self.empty:
            parts.append(self.empty.add)
        elif self.pane is not None:
            parts += [getattr(self.pane, "canvas", None), getattr(self.pane, "result", None)]
        parts += [self.settings, self.tabs.currentWidget()]
        return [part for part in parts if part is not None and part.isVisible()]

    def benchmark_panes(self) -> list[QWidget]:
        """The parts of the page Benchmark."""
        return []

    def apply_theme(self, theme: Theme) -> None:
        """Tint everything by THEME; palette and style sheet are in place already."""
        self.actions_.apply_theme(theme)
        for part in (self.top, self.queue, self.settings, self.problem_list, self.log,
                     self.figures, self.toast, self.empty, self.queue_dock, self.settings_dock,
                     self.bottom_dock):
            part.apply_theme(theme)
        self.close_messages.setIcon(icon("x", theme, "secondary"))
        if self.pane is not None:
            self.pane.apply_theme(theme)

    # --- coming and going
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._first_show:
            # Sizes of docks hold only once the window has its own.
            self._first_show = False
            QTimer.singleShot(0, self.usual_sizes)
        self.top.refit()

    def usual_sizes(self) -> None:
        """Give the docks the sizes they have before a person changes them."""
        unit = self.fontMetrics().horizontalAdvance("x")
        # Also with large text the page keeps at least half of the window.
        most = self.width() // 4
        self.resizeDocks([self.queue_dock, self.settings_dock],
                         [min(unit * 45, most), min(unit * 42, most)],
                         Qt.Orientation.Horizontal)
        self.resizeDocks([self.bottom_dock], [200], Qt.Orientation.Vertical)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._make_room()

    def _make_room(self) -> None:
        """Fold the run settings away where they would take the page's room, and bring them
        back with it; a person who opens them all the same has them."""
        unit = self.fontMetrics().horizontalAdvance("x")
        narrow = self.width() < unit * 195
        if narrow == self._narrow or self.measuring_shown:
            return
        self._narrow = narrow
        if narrow and not self.settings_dock.isHidden():
            self._folded = True
            self.settings_dock.hide()
        elif not narrow and self._folded:
            self._folded = False
            self.settings_dock.show()

    def _layout_file(self) -> QSettings:
        return QSettings(str(paths.config_dir() / "window.ini"), QSettings.Format.IniFormat)

    def _restore(self) -> None:
        saved = self._layout_file()
        geometry = saved.value("geometry")
        if geometry is None or not self.restoreGeometry(geometry):
            room = self.screen().availableSize()
            self.resize(min(1440, room.width()), min(900, room.height()))
        state = saved.value("docks")
        self._first_show = state is None or not self.restoreState(state, _LAYOUT)
        self._folded = saved.value("folded", "false") == "true"
        self.settings.set_advanced(saved.value("advanced", "false") == "true")

    def save_layout(self) -> None:
        """Keep place, size and docks for the next start."""
        saved = self._layout_file()
        saved.setValue("geometry", self.saveGeometry())
        saved.setValue("docks", self._docks or self.saveState(_LAYOUT))
        saved.setValue("advanced", "true" if self.settings.advanced_open else "false")
        saved.setValue("folded", "true" if self._folded else "false")
        saved.sync()

    def bring_to_front(self, _files: object = None) -> None:
        """Show the window above others, wherever it is."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()
