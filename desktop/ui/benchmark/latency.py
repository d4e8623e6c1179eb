"""A page's time against the pages at once: the middle, and a band to the slowest hundredth."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPen
from PySide6.QtWidgets import QLabel

from desktop.i18n import N_, _
from desktop.ui.benchmark.chart import Chart, place
from desktop.ui.benchmark.elided import ElidedLabel
from desktop.ui.benchmark.figures import Row, number
from desktop.ui.texts import say


class LatencyChart(Chart):
    """A page's time: the middle, and a band to the slowest hundredth."""

    def _build(self) -> None:
        self.title = QLabel()
        say(self.title, text=N_("Page latency, seconds"))
        font = self.title.font()
        font.setBold(True)
        self.title.setFont(font)
        self.note = ElidedLabel()
        say(self.note, text=N_("line p50, band to p99, dotted: first output"))
        self.note.setProperty("role", "secondary")
        self.note.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.head.addWidget(self.title)
        self.head.addWidget(self.note, 1)
        self._low = pg.PlotCurveItem(antialias=True)
        self._high = pg.PlotCurveItem(antialias=True)
        self.band = pg.FillBetweenItem(self._low, self._high)
        self.first = pg.PlotCurveItem(antialias=True)
        for part in (self._low, self._high, self.band, self.first, self.other_curve,
                     self.other_points, self.curve, self.points, self.open_points,
                     self.knee_line):
            self.plot.addItem(part)

    def _tint(self) -> None:
        super()._tint()
        nothing = QPen(Qt.PenStyle.NoPen)
        self._low.setPen(nothing)
        self._high.setPen(nothing)
        ground = QColor(self._theme.accent)
        ground.setAlpha(45)
        self.band.setBrush(ground)
        self.first.setPen(self._pen("secondary", 1.5, Qt.PenStyle.DotLine))

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
        knee = self.shown.reached
        self.knee_line.setVisible(knee is not None)
        if knee is not None:
            self.knee_line.setPos(place(knee))
        self.plot.setAccessibleName(_("Page latency against pages at once"))
        self.plot.setAccessibleDescription("; ".join(self._tip(row) for row in rows))

    def _tip(self, row: Row) -> str:
        return _("{n} at once: {figure} s (p50 / p90 / p99)").format(
            n=row.concurrency, figure=row.latency.text if row.latency else number(0))
