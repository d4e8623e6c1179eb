"""Throughput and latency against the pages at once, drawn by pyqtgraph.

They are drawn when a figure changed – at the end of a round –, not at every beat of a running test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor, QFont, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from desktop.benchmark.reference import ASCEND_A2
from desktop.i18n import N_, _
from desktop.ui.benchmark.figures import Figure, Row, Shown, number
from desktop.ui.texts import say
from desktop.ui.theme import colour
from desktop.ui.tokens import Theme

OTHER_LIGHT, OTHER_DARK = "#b45309", "#e0a458"
"""Colour of the second run of a comparison."""

MEASURES = (("output", N_("Output tokens/s")), ("total", N_("Total tokens/s")),
            ("pages", N_("Pages/s")), ("chars", N_("Characters/s")))
_MOST_TICKS = 9


def place(concurrency: float) -> float:
    """Where a number of pages at once stands: doubling is always the same way."""
    return math.log2(max(concurrency, 1e-9))


def still(plot: pg.PlotWidget) -> None:
    """Take from PLOT what is not for these pages: moving, menus, its own export."""
    plot.setFrameShape(QFrame.Shape.NoFrame)
    plot.setMenuEnabled(False)
    plot.setMouseEnabled(False, False)
    plot.hideButtons()
    plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    for action in plot.scene().contextMenu:
        action.deleteLater()
    plot.scene().contextMenu = []


class Chart(QFrame):
    """A card with a title and a plot whose horizontal axis is the pages at once."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "card")
        self._theme = theme
        self.shown = Shown()
        self.other: Shown | None = None
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 8)
        column.setSpacing(4)
        self.head = QHBoxLayout()
        self.head.setSpacing(8)
        column.addLayout(self.head)
        self.plot = pg.PlotWidget()
        still(self.plot)
        self.plot.setMinimumHeight(120)
        self.plot.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        item = self.plot.getPlotItem()
        item.setClipToView(False)
        for side in ("left", "bottom"):
            axis = item.getAxis(side)
            axis.enableAutoSIPrefix(False)
            axis.setStyle(tickLength=0, tickTextOffset=6, hideOverlappingLabels=False)
            axis.setZValue(-1)  # its grid is behind the points
        column.addWidget(self.plot, 1)
        self.caption = QLabel()
        say(self.caption, text=N_("pages at once"))
        self.caption.setProperty("role", "secondary")
        font = self.caption.font()
        font.setPointSizeF(font.pointSizeF() * 0.85)
        self.caption.setFont(font)
        self.caption.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        column.addWidget(self.caption)
        self._small = QFont(font)
        self._build()
        self.apply_theme(theme)

    def _build(self) -> None:
        """Make what is drawn, once."""
        raise NotImplementedError

    def _draw(self) -> None:
        """Give it the figures."""
        raise NotImplementedError

    def _tint(self) -> None:
        """Give it the theme's colours."""
        raise NotImplementedError

    def set_shown(self, shown: Shown, other: Shown | None = None) -> None:
        """Draw SHOWN, and OTHER beside it."""
        self.shown, self.other = shown, other
        self._draw()

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._theme = theme
        self.plot.setBackground(theme.surface)
        item = self.plot.getPlotItem()
        grid = QColor(theme.border)
        for side in ("left", "bottom"):
            axis = item.getAxis(side)
            axis.setTextPen(colour(theme, "secondary"))
            axis.setPen(QPen(grid, 1))
            axis.setTickPen(QPen(grid, 1))
            axis.setTickFont(self._small)
        item.getAxis("left").setGrid(90)
        for side in ("left", "bottom"):  # the grid's line at zero is the axis
            item.getAxis(side).setPen(QPen(Qt.PenStyle.NoPen))
        self._tint()
        self._draw()

    def retranslate(self) -> None:
        """Say everything in the current language."""
        self._draw()

    # --- for both charts
    def _pen(self, token: str, width: float = 2.0,
             style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
        pen = QPen(colour(self._theme, token), width, style)
        pen.setCosmetic(True)
        return pen

    def _other_pen(self) -> QPen:
        pen = QPen(QColor(OTHER_DARK if self._theme.dark else OTHER_LIGHT), 2.0)
        pen.setCosmetic(True)
        return pen

    def _levels(self) -> list[int]:
        found = {row.concurrency for shown in (self.shown, self.other) if shown is not None
                 for row in shown.rows if row.continuous}
        return sorted(found)

    def _frame(self, levels: Sequence[int], most: float) -> None:
        """Ranges and ticks."""
        item = self.plot.getPlotItem()
        low, high = (place(levels[0]), place(levels[-1])) if levels else (0.0, 3.0)
        if high - low < 1:
            low, high = low - 0.5, high + 0.5
        margin = 0.04 * (high - low)
        self._left, self._right = low - margin, high + margin
        self._top = 1.25 * most if most > 0 else 1.0
        item.setXRange(self._left, self._right, padding=0)
        # Room below zero: pyqtgraph leaves a label out that would stick out of the axis.
        item.setYRange(-0.06 * self._top, self._top, padding=0)
        item.getAxis("bottom").setTicks([ticks(levels, self._right - self._left)])
        # Ticks by hand on the left too: three or four, and nothing that has to be searched for.
        item.getAxis("left").setTicks([[(value, number_of_axis(value))
                                        for value in steps(self._top)] if most > 0 else []])

    def _draw_points(self, rows: Sequence[Row], heights: Sequence[float]) -> None:
        """Full where a level has ended, open where it runs."""
        for points, ended in ((self.points, True), (self.open_points, False)):
            some = [(place(row.concurrency), height, row)
                    for row, height in zip(rows, heights, strict=True) if bool(row.ended) is ended]
            points.setData([one[0] for one in some], [one[1] for one in some],
                           data=[one[2] for one in some])

    def _tip_of(self, x: float, y: float, data: object) -> str:
        return self._tip(data) if isinstance(data, Row) else ""

    def _tip(self, row: Row) -> str:
        """A point in words."""
        raise NotImplementedError

    points: pg.ScatterPlotItem
    open_points: pg.ScatterPlotItem

    def _xy(self, rows: Sequence[Row],
            values: Sequence[float | None]) -> tuple[list[float], list[float]]:
        pairs = sorted((place(row.concurrency), value)
                       for row, value in zip(rows, values, strict=True) if value is not None)
        return [x for x, _y in pairs], [y for _x, y in pairs]


def ticks(levels: Sequence[int], width: float) -> list[tuple[float, str]]:
    """Levels that are named below the axis: all, or as many as have room."""
    found: list[tuple[float, str]] = []
    least = width / _MOST_TICKS * 0.7
    for level in levels:
        at = place(level)
        if found and at - found[-1][0] < least and level != levels[-1]:
            continue
        if found and at - found[-1][0] < least:
            found.pop()
        found.append((at, str(level)))
    return found


def steps(top: float) -> list[float]:
    """Round values from 0 to TOP, about four."""
    rough = top / 4
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * size for factor in (1, 2, 2.5, 5, 10) if factor * size >= rough)
    return [step * place for place in range(int(top / step) + 1)]


def number_of_axis(value: float) -> str:
    """A tick's value without needless zeros."""
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


class ThroughputChart(Chart):
    """Means with their deviation, the knee, the published curve."""

    measured = Signal(str)
    """Another measure was chosen."""

    def _build(self) -> None:
        self.measure = QComboBox()
        say(self.measure, accessibleName=N_("Measure of the chart"))
        self.measure.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.measure.activated.connect(self._chosen)
        self._by_person = ""
        self.head.addWidget(self.measure)
        self.head.addStretch(1)
        self.legend = QLabel()
        self.legend.setTextFormat(Qt.TextFormat.RichText)
        self.legend.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.legend.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.head.addWidget(self.legend, 4)
        self.reference = pg.PlotCurveItem(antialias=True)
        self.other_curve = pg.PlotCurveItem(antialias=True)
        self.other_points = pg.ScatterPlotItem(symbol="s", size=8, pxMode=True)
        self.bars = pg.ErrorBarItem(beam=0.0)
        self.curve = pg.PlotCurveItem(antialias=True)
        self.points = pg.ScatterPlotItem(size=8, pxMode=True, hoverable=True, tip=self._tip_of)
        self.open_points = pg.ScatterPlotItem(size=8, pxMode=True)
        self.knee_line = pg.InfiniteLine(angle=90)
        self.knee_text = pg.TextItem()
        self.reference_text = pg.TextItem()
        for part in (self.reference, self.other_curve, self.other_points, self.bars, self.curve,
                     self.points, self.open_points, self.knee_line, self.knee_text,
                     self.reference_text):
            self.plot.addItem(part)
        for text in (self.knee_text, self.reference_text):
            text.setFont(self._small)
        self._fill_measures()

    def _tint(self) -> None:
        self.reference.setPen(self._pen("secondary", 1.5, Qt.PenStyle.DashLine))
        self.curve.setPen(self._pen("accent"))
        for points, token in ((self.points, "accent"), (self.open_points, "surface")):
            points.setPen(self._pen("accent"))
            points.setBrush(colour(self._theme, token))
        self.other_points.setPen(self._other_pen())
        self.other_points.setBrush(self._other_pen().color())
        self.other_curve.setPen(self._other_pen())
        self.bars.setOpts(pen=self._pen("accent", 1.5))
        self.knee_line.setPen(self._pen("warning", 1.5, Qt.PenStyle.DashLine))
        self.knee_text.setColor(colour(self._theme, "warning"))
        self.reference_text.setColor(colour(self._theme, "secondary"))

    def _fill_measures(self) -> None:
        tokens = self.shown.by_tokens
        keys = [key for key, _title in MEASURES if tokens or key in ("pages", "chars")]
        if [self.measure.itemData(row) for row in range(self.measure.count())] != keys:
            self.measure.clear()
            for key, title in MEASURES:
                if key in keys:
                    self.measure.addItem(_(title), key)
        self.measure.setCurrentIndex(max(0, self.measure.findData(self._by_person)))

    def _chosen(self) -> None:
        self._by_person = self.measure.currentData()
        self._draw()
        self.measured.emit(self._by_person)

    def retranslate(self) -> None:
        self.measure.clear()
        super().retranslate()

    def _figure(self, row: Row) -> Figure:
        found = getattr(row, str(self.measure.currentData()))
        assert isinstance(found, Figure)
        return found

    def _draw(self) -> None:
        self._fill_measures()
        rows = [row for row in self.shown.rows
                if row.continuous and self._figure(row).mean is not None]
        rows.sort(key=lambda row: row.concurrency)
        means = [self._figure(row).mean or 0.0 for row in rows]
        others = [row for row in (self.other.rows if self.other else ())
                  if row.continuous and self._figure(row).mean is not None]
        levels = self._levels()
        key = self.measure.currentData()
        has_reference = key in ("output", "total") and bool(levels)
        published = {point.concurrency: point.output_tps if key == "output" else point.total_tps
                     for point in ASCEND_A2.points} if has_reference else {}
        shown_to = levels[-1] if levels else 1
        upper = [value for level, value in published.items() if level <= 2 * shown_to]
        tops = [self._figure(row).mean or 0.0 for row in others]
        tops += [mean + (self._figure(row).sd or 0.0)
                 for row, mean in zip(rows, means, strict=True)]
        self._frame(levels, max([*tops, *(upper if means or tops else ())], default=0.0))
        self.reference.setData([place(level) for level in published], list(published.values()))
        xs = [place(row.concurrency) for row in rows]
        self.curve.setData(xs, means)
        deviations = np.array([self._figure(row).sd or 0.0 for row in rows])
        self.bars.setData(x=np.array(xs), y=np.array(means), height=2 * deviations)
        self._draw_points(rows, means)
        other_xs, other_ys = self._xy(others, [self._figure(row).mean for row in others])
        self.other_curve.setData(other_xs, other_ys)
        self.other_points.setData(other_xs, other_ys)
        self._draw_knee()
        self._draw_reference_text(published)
        self._draw_legend()
        self._describe(rows)

    def _tip(self, row: Row) -> str:
        return _("{n} at once: {figure}").format(n=row.concurrency, figure=self._figure(row).text)

    def _draw_knee(self) -> None:
        knee, best = self.shown.knee, self.shown.best
        at = next((row for row in self.shown.rows if row.continuous and row.ended
                   and row.concurrency == knee), None)
        there = knee is not None and at is not None and bool(at.speed) and bool(best)
        self.knee_line.setVisible(there)
        self.knee_text.setVisible(there)
        if not there or at is None or knee is None:
            return
        self.knee_line.setPos(place(knee))
        self.knee_text.setText(_("knee: {n} · {percent} % of the best").format(
            n=knee, percent=round(100 * (at.speed or 0.0) / (best or 1.0))))
        right = place(knee) > (self._left + self._right) / 2
        self.knee_text.setAnchor((1.0 if right else 0.0, 0.0))
        self.knee_text.setPos(place(knee), self._top)

    def _draw_reference_text(self, published: dict[int, float]) -> None:
        xs = [place(level) for level in published]
        self.reference_text.setVisible(bool(xs) and xs[0] < self._right)
        if not self.reference_text.isVisible():
            return
        at = min(xs[-1], self._right)
        knee = self.shown.knee
        if knee is not None and 0 < at - place(knee) < 0.35 * (self._right - self._left):
            at = max(place(knee) - 0.02 * (self._right - self._left), xs[0])
        height = float(np.interp(at, xs, list(published.values())))
        self.reference_text.setText(ASCEND_A2.title)
        low = height < 0.5 * self._top
        self.reference_text.setAnchor((1.0, 1.0 if low else 0.0))
        self.reference_text.setPos(at, height)
        self.reference_text.setToolTip(ASCEND_A2.source)

    def _draw_legend(self) -> None:
        if self.other is None:
            self.legend.setText("")
            return
        other = self._other_pen().color().name()
        self.legend.setText(
            f'<span style="color:{self._theme.accent}">●</span> {_plain(self.shown.short)}'
            f' &nbsp; <span style="color:{other}">■</span> {_plain(self.other.short)}')
        self.legend.setToolTip(f"● {self.shown.title}\n■ {self.other.title}")

    def _describe(self, rows: Sequence[Row]) -> None:
        """The chart in words, for those who do not see it."""
        self.plot.setAccessibleName(_("Throughput against pages at once: {measure}").format(
            measure=self.measure.currentText()))
        said = "; ".join(self._tip(row) for row in rows)
        if self.shown.knee is not None:
            said += ". " + _("The knee is at {n}.").format(n=self.shown.knee)
        self.plot.setAccessibleDescription(said)


class _Elided(QLabel):
    """A remark that ends in dots where room is short; all of it is in its tip."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self._message = message
        self.setProperty("role", "secondary")
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.retranslate()

    def retranslate(self) -> None:
        """Say it in the current language."""
        said = _(self._message)
        self.setToolTip(said)
        self.setAccessibleName(said)
        self.setText(self.fontMetrics().elidedText(
            said, Qt.TextElideMode.ElideRight, max(0, self.width() - 2)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.retranslate()


class LatencyChart(Chart):
    """A page's time: the middle, and a band to the slowest hundredth."""

    def _build(self) -> None:
        self.title = QLabel()
        say(self.title, text=N_("Page latency, seconds"))
        font = self.title.font()
        font.setBold(True)
        self.title.setFont(font)
        self.note = _Elided(N_("line p50, band to p99, dotted: first output"))
        self.head.addWidget(self.title)
        self.head.addWidget(self.note, 1)
        self._low = pg.PlotCurveItem(antialias=True)
        self._high = pg.PlotCurveItem(antialias=True)
        self.band = pg.FillBetweenItem(self._low, self._high)
        self.first = pg.PlotCurveItem(antialias=True)
        self.other_curve = pg.PlotCurveItem(antialias=True)
        self.other_points = pg.ScatterPlotItem(symbol="s", size=8, pxMode=True)
        self.curve = pg.PlotCurveItem(antialias=True)
        self.points = pg.ScatterPlotItem(size=8, pxMode=True, hoverable=True, tip=self._tip_of)
        self.open_points = pg.ScatterPlotItem(size=8, pxMode=True)
        self.knee_line = pg.InfiniteLine(angle=90)
        for part in (self._low, self._high, self.band, self.first, self.other_curve,
                     self.other_points, self.curve, self.points, self.open_points,
                     self.knee_line):
            self.plot.addItem(part)

    def _tint(self) -> None:
        nothing = QPen(Qt.PenStyle.NoPen)
        self._low.setPen(nothing)
        self._high.setPen(nothing)
        ground = QColor(self._theme.accent)
        ground.setAlpha(45)
        self.band.setBrush(ground)
        self.first.setPen(self._pen("secondary", 1.5, Qt.PenStyle.DotLine))
        self.curve.setPen(self._pen("accent"))
        for points, token in ((self.points, "accent"), (self.open_points, "surface")):
            points.setPen(self._pen("accent"))
            points.setBrush(colour(self._theme, token))
        self.other_points.setPen(self._other_pen())
        self.other_points.setBrush(self._other_pen().color())
        self.other_curve.setPen(self._other_pen())
        self.knee_line.setPen(self._pen("warning", 1.5, Qt.PenStyle.DashLine))

    def retranslate(self) -> None:
        self.note.retranslate()
        super().retranslate()

    def _draw(self) -> None:
        rows = sorted((row for row in self.shown.rows if row.continuous and row.latency),
                      key=lambda row: row.concurrency)
        others = [row for row in (self.other.rows if self.other else ())
                  if row.continuous and row.latency]
        tops = [row.latency.p99 for row in rows if row.latency]
        tops += [row.latency.p50 for row in others if row.latency]
        self._frame(self._levels(), max(tops, default=0.0))
        xs = [place(row.concurrency) for row in rows]
        middle = [row.latency.p50 if row.latency else 0.0 for row in rows]
        self._low.setData(xs, middle)
        self._high.setData(xs, [row.latency.p99 if row.latency else 0.0 for row in rows])
        self.curve.setData(xs, middle)
        self._draw_points(rows, middle)
        self.first.setData(*self._xy(rows, [row.ttft.p50 if row.ttft else None for row in rows]))
        other_xs, other_ys = self._xy(
            others, [row.latency.p50 if row.latency else None for row in others])
        self.other_curve.setData(other_xs, other_ys)
        self.other_points.setData(other_xs, other_ys)
        knee = self.shown.knee
        self.knee_line.setVisible(knee is not None)
        if knee is not None:
            self.knee_line.setPos(place(knee))
        self.plot.setAccessibleName(_("Page latency against pages at once"))
        self.plot.setAccessibleDescription("; ".join(self._tip(row) for row in rows))

    def _tip(self, row: Row) -> str:
        return _("{n} at once: {figure} s (p50 / p90 / p99)").format(
            n=row.concurrency, figure=row.latency.text if row.latency else number(0))


def _plain(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
