"""The page: form at the left; at the right the live line, two charts, tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QSplitter,
    QStackedWidget,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from desktop.benchmark.history import Comparison
from desktop.i18n import N_, _, ngettext
from desktop.ui.benchmark.columns import LEVELS, TIMES
from desktop.ui.benchmark.comparing import ComparisonPanel
from desktop.ui.benchmark.controls import in_window
from desktop.ui.benchmark.devices import DevicesPanel
from desktop.ui.benchmark.figures import Row, Shown, footnote, number, strategy_words
from desktop.ui.benchmark.form import Form
from desktop.ui.benchmark.latency import LatencyChart
from desktop.ui.benchmark.live import LiveLine
from desktop.ui.benchmark.notes import RemarksList
from desktop.ui.benchmark.readings import Readings
from desktop.ui.benchmark.table import LevelsModel, LevelsTable
from desktop.ui.benchmark.teaching import Teaching
from desktop.ui.benchmark.throughput import ThroughputChart
from desktop.ui.panels.captions import label, small
from desktop.ui.texts import say
from desktop.ui.theme import icon
from desktop.ui.tokens import Theme

_REASONS = 3
"""Why pages of a level failed, at most so many of them."""


class BenchmarkPage(QWidget):
    """Shows; what it is asked for, others do."""

    apply_wanted = Signal(int)
    """Use so many pages at once in the conversion."""
    copy_wanted = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.shown = Shown()
        self.other: Shown | None = None
        self._running = False
        self._due: list[ThroughputChart | LatencyChart] = []
        self._drawing = QTimer(self)
        self._drawing.setSingleShot(True)
        self._drawing.setInterval(15)
        self._drawing.timeout.connect(self._draw_next)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        self.form = Form(theme)
        row.addWidget(self.form)
        right = QWidget()
        column = QVBoxLayout(right)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(10)
        row.addWidget(right, 1)

        head = QHBoxLayout()
        head.setSpacing(8)
        self.live = LiveLine(theme)
        head.addWidget(self.live, 1)
        self.copy = QPushButton()
        say(self.copy, text=N_("Copy command"),
            toolTip=N_("Copy the command line that measures the same"))
        self.copy.clicked.connect(self.copy_wanted)
        self.apply = QPushButton()
        self.apply.clicked.connect(self._apply)
        head.addWidget(self.copy)
        head.addWidget(self.apply)
        column.addLayout(head)

        self.stack = QStackedWidget()
        self.teaching = Teaching(theme)
        self.stack.addWidget(self.teaching)
        self.stack.addWidget(self._results(theme))
        column.addWidget(self.stack, 1)
        self.note = small(label("", "secondary"))
        self.note.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column.addWidget(self.note)
        self.apply_theme(theme)
        self.set_shown(Shown())

    def _results(self, theme: Theme) -> QWidget:
        split = QSplitter(Qt.Orientation.Vertical)
        split.setChildrenCollapsible(False)
        self.charts = QWidget()
        self.charts.setMinimumHeight(190)
        row = QHBoxLayout(self.charts)
        row.setContentsMargins(0, 0, 0, 8)
        row.setSpacing(12)
        self.throughput = ThroughputChart(theme)
        self.latency = LatencyChart(theme)
        row.addWidget(self.throughput, 1)
        row.addWidget(self.latency, 1)
        split.addWidget(self.charts)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        say(self.tabs, accessibleName=N_("Figures"))
        self.tabs.tabBar().setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.model = LevelsModel(theme, LEVELS, self)
        self.table = LevelsTable(self.model, N_("Levels"))
        self.times_model = LevelsModel(theme, TIMES, self)
        self.times = LevelsTable(self.times_model, N_("Latency"))
        self.devices = DevicesPanel(theme)
        self.remarks = RemarksList(theme)
        self.comparison = ComparisonPanel(theme)
        self.comparison.ended.connect(self.end_comparison)
        for part in (self.table, self.times, self.devices, self.remarks, self.comparison):
            self.tabs.addTab(part, "")
        self._show_comparison(False)
        self.tabs.currentChanged.connect(self._show_times)
        self.tabs.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        split.addWidget(self.tabs)
        split.setStretchFactor(0, 5)
        split.setStretchFactor(1, 6)
        self.split = split
        return split

    # --- showing
    def set_shown(self, shown: Shown) -> None:
        """Show a run: its rows, and once it has ended its document."""
        self.shown = shown
        self.stack.setCurrentIndex(1 if shown.rows else 0)
        self.set_rows(shown)
        self._draw_soon()
        self.remarks.set_remarks(remarks_of(shown))
        self._name_tabs()
        self._name_apply()
        self.note.setText(footnote(shown.document))
        self.note.setVisible(bool(self.note.text()))

    def set_rows(self, shown: Shown) -> None:
        """Show them in the tables; charts and the rest follow with :meth:`set_shown`."""
        self.model.set_shown(shown)
        self._show_times()

    def _show_times(self) -> None:
        """Only while they are seen: a large run takes a moment."""
        if self.tabs.currentWidget() is self.times:
            self.times_model.set_shown(self.model.shown)

    def _show_comparison(self, shown: bool) -> None:
        self.tabs.setTabVisible(self.tabs.indexOf(self.comparison), shown)
        self.tabs.setCurrentWidget(self.comparison if shown else self.table)

    def _draw_soon(self) -> None:
        self._due = [self.throughput, self.latency]
        if not self._drawing.isActive():
            self._drawing.start()

    def _draw_next(self) -> None:
        """One after the other, so that the window answers in between."""
        if self._due:
            self._due.pop(0).set_shown(self.shown, self.other)
        if self._due:
            self._drawing.start()

    def draw_now(self) -> None:
        """What is still to be drawn."""
        while self._due:
            self._draw_next()

    def set_readings(self, readings: Readings) -> None:
        """Show the devices of another run."""
        self.devices.set_readings(readings)

    def compare(self, other: Shown, found: Comparison) -> None:
        """Hold the run shown against OTHER; FOUND: what the one shown is by it."""
        self.other = other
        self._draw_soon()
        self.comparison.set_comparison(found, self.shown, other)
        self._show_comparison(True)

    def set_running(self, running: bool) -> None:
        """A test runs: the form is as it was begun with, and the live line has all the room."""
        self._running = running
        self.live.set_running(running)
        self.devices.set_running(running)
        self.form.set_running(running)
        self.copy.setVisible(not running)
        self._name_apply()

    def end_comparison(self) -> None:
        """Show one run only."""
        if self.other is None:
            return
        self.other = None
        self._show_comparison(False)
        self._draw_soon()

    def recommended(self) -> int | None:
        """Pages at once to use: the knee, where there is one."""
        return self.shown.knee

    def _apply(self) -> None:
        found = self.recommended()
        if found is not None:
            self.apply_wanted.emit(found)

    def _name_apply(self) -> None:
        found = self.recommended()
        self.apply.setVisible(found is not None and not self._running)
        self.apply.setText(_("Use the knee"))
        if found is not None:
            self.apply.setText(_("Use {n} at once").format(n=found))
            tip = _("Read {n} pages at the same time in conversions").format(n=found)
            if self.shown.reached is None:
                tip += ". " + _("It was the fastest level; more may be faster still.")
            self.apply.setToolTip(tip)

    def _name_tabs(self) -> None:
        count = self.remarks.count()
        for place, said in enumerate((
                _("Levels"), _("Latency"), _("Devices"),
                ngettext("Remarks ({n})", "Remarks ({n})", count).format(n=count) if count
                else _("Remarks"), _("Comparison"))):
            if self.tabs.tabText(place) != said:
                self.tabs.setTabText(place, said)

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._theme = theme
        for part in (self.form, self.live, self.teaching, self.throughput, self.latency,
                     self.model, self.times_model, self.devices, self.remarks, self.comparison):
            part.apply_theme(theme)
        self.copy.setIcon(icon("copy", theme))
        self.apply.setIcon(icon("circle-check", theme))
        self.update()

    def retranslate(self) -> None:
        """Say everything in the current language; ``say_again`` has named what never changes."""
        for part in (self.form, self.throughput, self.latency, self.model, self.times_model,
                     self.devices, self.comparison):
            part.retranslate()
        self.remarks.set_remarks(remarks_of(self.shown))
        self._name_tabs()
        self._name_apply()
        self.note.setText(footnote(self.shown.document))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self._theme.window))
        painter.setPen(QColor(self._theme.border))
        painter.drawLine(self.form.width(), 0, self.form.width(), self.height())


def remarks_of(shown: Shown) -> list[tuple[str, str]]:
    """(tone, sentence): levels that failed, the warnings of the run."""
    errors: dict[str, list[Row]] = {}
    for row in shown.rows:
        if row.error:
            errors.setdefault(row.error, []).append(row)
    found = [("error", f"{_together(rows)}: {error}") for error, rows in errors.items()]
    found += [("warning", text) for row in shown.rows for text in _failures(row)]
    document = shown.document
    found += [("warning", in_window(text)) for text in document.get("warnings", ())]
    if document and shown.knee is not None and shown.reached is None:
        said = _("The most pages at once that were measured, {n}, were the fastest by more than "
                 "5 %: the knee was not reached.").format(n=shown.knee)
        if document["plan"]["gain"] is None:
            said += " " + _("Add levels, or have them raised until the gain falls under 5 %.")
        found.append(("info", said))
    first, *others = document.get("comparison") or [None]
    for row in others:
        if first is not None and row["ratio"] is not None:
            found.append(("info", _("{strategy}: {seconds} s a page, {ratio} times as fast as "
                                    "{first}, with {before} s").format(
                strategy=strategy_words(row["strategy"]), seconds=number(row["seconds_a_page"]),
                ratio=number(row["ratio"]), first=strategy_words(first["strategy"]),
                before=number(first["seconds_a_page"]))))
    return found


def _together(rows: Sequence[Row]) -> str:
    """Levels, in words."""
    if all(row.continuous for row in rows):
        return _("{n} at once").format(n=", ".join(str(row.concurrency) for row in rows))
    return ", ".join(row.at_once for row in rows)


def _failures(row: Row) -> Iterator[str]:
    """Why pages of a level failed."""
    for reason, count in row.reasons[:_REASONS]:
        yield f"{row.at_once}: " + ngettext(
            "{n} page failed: {reason}", "{n} pages failed: {reason}", count).format(
            n=count, reason=reason)
    more = sum(count for _reason, count in row.reasons[_REASONS:])
    if more:
        yield f"{row.at_once}: " + ngettext(
            "{n} more page failed for another reason.", "{n} more pages failed for other reasons.",
            more).format(n=more)
