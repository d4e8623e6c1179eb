"""What both charts are made of: a card, a plot by pyqtgraph, the pages at once as its axis.

They are drawn when a figure changed – at the end of a round –, not at every beat of a running test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QPen
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from desktop.i18n import N_
from desktop.ui.benchmark.figures import Row, Shown
from desktop.ui.texts import say
from desktop.ui.theme import colour
from desktop.ui.tokens import Theme

OTHER_LIGHT, OTHER_DARK = "#b45309", "#e0a458"
"""Colour of the second run of a comparison."""

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
        self._left, self._right, self._top = 0.0, 1.0, 1.0
        # What both draw; each puts them between what it has of its own.
        self.curve = pg.PlotCurveItem(antialias=True)
        self.points = pg.ScatterPlotItem(size=8, pxMode=True, hoverable=True, tip=self._tip_of)
        self.open_points = pg.ScatterPlotItem(size=8, pxMode=True)
        self.other_curve = pg.PlotCurveItem(antialias=True)
        self.other_points = pg.ScatterPlotItem(symbol="s", size=8, pxMode=True)
        self.knee_line = pg.InfiniteLine(angle=90)
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
        self.curve.setPen(self._pen("accent"))
        for points, token in ((self.points, "accent"), (self.open_points, "surface")):
            points.setPen(self._pen("accent"))
            points.setBrush(colour(self._theme, token))
        self.other_points.setPen(self._other_pen())
        self.other_points.setBrush(self._other_pen().color())
        self.other_curve.setPen(self._other_pen())
        self.knee_line.setPen(self._pen("warning", 1.5, Qt.PenStyle.DashLine))

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
