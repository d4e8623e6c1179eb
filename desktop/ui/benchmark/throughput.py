"""Throughput against the pages at once: means, deviations, the knee, the published curve."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QComboBox, QLabel, QSizePolicy

from desktop.benchmark.reference import ASCEND_A2
from desktop.i18n import N_, _
from desktop.ui.benchmark.chart import Chart, place
from desktop.ui.benchmark.figures import Figure, Row
from desktop.ui.texts import say
from desktop.ui.theme import colour

Floats = npt.NDArray[np.float64]

MEASURES = (("output", N_("Output tokens/s")), ("total", N_("Total tokens/s")),
            ("pages", N_("Pages/s")), ("chars", N_("Characters/s")))


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
        self.legend = QLabel()
        self.legend.setTextFormat(Qt.TextFormat.RichText)
        self.legend.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.legend.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.head.addWidget(self.legend, 1)
        self.reference = pg.PlotCurveItem(antialias=True)
        self.bars = pg.ErrorBarItem(beam=0.0)
        self.knee_text = pg.TextItem()
        self.reference_text = pg.TextItem()
        for part in (self.reference, self.other_curve, self.other_points, self.bars, self.curve,
                     self.points, self.open_points, self.knee_line, self.knee_text,
                     self.reference_text):
            self.plot.addItem(part)
        for text in (self.knee_text, self.reference_text):
            text.setFont(self._small)
        self._published: dict[int, float] = {}
        self._fill_measures()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._draw_legend()
        self._place_reference_text()

    def _tint(self) -> None:
        super()._tint()
        self.reference.setPen(self._pen("secondary", 1.5, Qt.PenStyle.DashLine))
        self.bars.setOpts(pen=self._pen("accent", 1.5))
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
        self._published = published
        self._draw_knee()
        self._place_reference_text()
        self._draw_legend()
        self._describe(rows)

    def _tip(self, row: Row) -> str:
        return _("{n} at once: {figure}").format(n=row.concurrency, figure=self._figure(row).text)

    def _draw_knee(self) -> None:
        knee, best = self.shown.reached, self.shown.best
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

    def _place_reference_text(self) -> None:
        """Beside its curve, where it meets nothing that was measured."""
        xs = [place(level) for level in self._published]
        view = self.plot.getViewBox().rect()
        there = bool(xs) and xs[0] < self._right and view.width() > 1 and view.height() > 1
        self.reference_text.setVisible(there)
        if not there:
            return
        self.reference_text.setText(ASCEND_A2.title)
        self.reference_text.setToolTip(ASCEND_A2.source)
        size = self.reference_text.boundingRect().size()
        wide = size.width() / view.width() * (self._right - self._left)
        high = size.height() / view.height() * 1.06 * self._top
        margin = 0.3 * high / self._top * (self._right - self._left)
        met_x, met_y = self._drawn()
        best: tuple[float, float, float] | None = None
        end = min(xs[-1], self._right)
        ends = np.linspace(end, max(xs[0] + wide, min(end, self._left + wide)), 12)
        # Close to the curve first, then with a gap that another curve may pass through.
        for far, right, above in product((0, 1, 2), ends, (True, False)):
            gap = 0.7 * far * high
            near = np.linspace(right - wide, right, 9)
            heights = np.interp(near, xs, list(self._published.values()))
            low = float(heights.max()) + gap if above else float(heights.min()) - high - gap
            around = ((met_x >= right - wide - margin) & (met_x <= right)
                      & (met_y >= low - 0.3 * high) & (met_y <= low + 1.3 * high))
            bad = 3.0 * far + np.count_nonzero(around)
            if low < -0.06 * self._top - 0.25 * high or low + high > self._top:
                bad += 1000.0
            if best is None or bad < best[0]:
                best = (bad, float(right), low)
        assert best is not None
        self.reference_text.setAnchor((1.0, 1.0))
        self.reference_text.setPos(best[1], best[2])

    def _drawn(self) -> tuple[Floats, Floats]:
        """Points (x, y) along everything that a label must not cover, in the chart's
        coordinates."""
        xs, ys = [np.empty(0)], [np.empty(0)]
        for curve in (self.curve, self.other_curve):
            at, heights = curve.getData()
            if at is not None and len(at):
                xs.append(np.linspace(at[0], min(at[-1], self._right), 200))
                ys.append(np.interp(xs[-1], at, heights))
        for row in self.shown.rows:
            figure = self._figure(row)
            if row.continuous and figure.mean is not None and figure.sd:
                xs.append(np.full(9, place(row.concurrency)))
                ys.append(figure.mean + figure.sd * np.linspace(-1, 1, 9))
        if self.knee_line.isVisible():
            xs.append(np.full(60, self.knee_line.value()))
            ys.append(np.linspace(0, self._top, 60))
        return np.concatenate(xs), np.concatenate(ys)

    def _draw_legend(self) -> None:
        if self.other is None:
            self.legend.setText("")
            return
        other = self._other_pen().color().name()
        metrics = self.legend.fontMetrics()
        room = (self.width() - self.measure.sizeHint().width() - 130) // 2
        names = [_plain(metrics.elidedText(each.short, Qt.TextElideMode.ElideRight, room))
                 for each in (self.shown, self.other)]
        self.legend.setText(
            f'<span style="color:{self._theme.accent}">●</span> {names[0]}'
            f' &nbsp; <span style="color:{other}">■</span> {names[1]}')
        self.legend.setToolTip(f"● {self.shown.title}\n■ {self.other.title}")

    def _describe(self, rows: Sequence[Row]) -> None:
        """The chart in words, for those who do not see it."""
        self.plot.setAccessibleName(_("Throughput against pages at once: {measure}").format(
            measure=self.measure.currentText()))
        said = "; ".join(self._tip(row) for row in rows)
        if self.shown.reached is not None:
            said += ". " + _("The knee is at {n}.").format(n=self.shown.reached)
        self.plot.setAccessibleDescription(said)


def _plain(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
