"""Memory, utilization, temperature and slowing down of each device while a test runs."""

from __future__ import annotations

from itertools import islice

import pyqtgraph as pg
from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtGui import QColor, QPen, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from desktop.i18n import N_, _
from desktop.ui.benchmark.chart import still
from desktop.ui.benchmark.readings import Device, Readings
from desktop.ui.panels.captions import small
from desktop.ui.texts import say
from desktop.ui.theme import colour
from desktop.ui.tokens import Theme

_HEADINGS = (N_("Device"), N_("Name"), N_("Busy"), N_("Memory"), N_("Temperature"), N_("Power"),
             N_("Slowed down"))
_COLOURS = ("#0072b2", "#d98e04", "#1a9e5c", "#7b4fb5", "#cc3311", "#33a0c4", "#996633", "#888888")
"""Of the first eight devices; told apart by everybody."""
_MOST_POINTS = 300
_MOST_LINES = 4
_INTERVAL_MS = 4_000
"""Between two drawings while a test runs."""


class _Plot(QFrame):
    """Percent over seconds, a line a device."""

    def __init__(self, title: str, theme: Theme) -> None:
        super().__init__()
        self.setProperty("role", "card")
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 8, 10, 6)
        column.setSpacing(2)
        heading = small(QLabel())
        say(heading, text=title)
        column.addWidget(heading)
        self.plot = pg.PlotWidget()
        still(self.plot)
        self.plot.setMinimumHeight(64)
        say(self.plot, accessibleName=title)
        item = self.plot.getPlotItem()
        item.setYRange(-8, 112, padding=0)
        item.getAxis("left").setTicks([[(0, "0"), (50, "50"), (100, "100 %")]])
        self._font = heading.font()
        column.addWidget(self.plot, 1)
        self.curves: dict[str, pg.PlotCurveItem] = {}
        self.apply_theme(theme)

    def apply_theme(self, theme: Theme) -> None:
        self.plot.setBackground(theme.surface)
        for side in ("left", "bottom"):
            axis = self.plot.getPlotItem().getAxis(side)
            axis.setTextPen(colour(theme, "secondary"))
            axis.setPen(QPen(QColor(theme.border), 1))
            axis.setTickFont(self._font)
            axis.setStyle(tickLength=0)

    def draw(self, devices: list[Device], memory: bool) -> None:
        for gone in set(self.curves) - {one.key for one in devices}:
            self.plot.removeItem(self.curves.pop(gone))
        for place, device in enumerate(devices[:len(_COLOURS)]):
            curve = self.curves.get(device.key)
            if curve is None:
                pen = QPen(QColor(_COLOURS[place]), 1.5)
                pen.setCosmetic(True)
                curve = self.curves[device.key] = pg.PlotCurveItem(pen=pen, connect="finite")
                self.plot.addItem(curve)
            line = device.memory if memory else device.busy
            skip = max(0, len(line) - _MOST_POINTS)
            curve.setData(list(islice(device.at, skip, None)), list(islice(line, skip, None)))


class DevicesPanel(QWidget):
    """A table, and two plots. Draws only while it is seen."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 8, 0, 0)
        column.setSpacing(8)
        self.table = QTableWidget(0, len(_HEADINGS))
        say(self.table, accessibleName=N_("Devices"))
        self.table.verticalHeader().hide()
        self.table.setShowGrid(False)
        self.table.setProperty("figures", True)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setTabKeyNavigation(False)
        self.table.setIconSize(QSize(10, 10))
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setHighlightSections(False)
        self.empty = QLabel()
        say(self.empty, text=N_("Devices are looked at about once a second while a level runs."))
        self.empty.setProperty("role", "secondary")
        column.addWidget(self.empty)
        column.addWidget(self.table)
        row = QHBoxLayout()
        row.setSpacing(8)
        self.busy = _Plot(N_("Busy, percent over seconds"), theme)
        self.memory = _Plot(N_("Memory, percent over seconds"), theme)
        row.addWidget(self.busy)
        row.addWidget(self.memory)
        column.addLayout(row, 1)
        self.readings = Readings()
        self._running = False
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_INTERVAL_MS)
        self._soon.timeout.connect(self.refresh)
        self.retranslate()
        self.refresh()

    def set_readings(self, readings: Readings) -> None:
        """Show another run's."""
        self.readings = readings
        self.refresh()

    def set_running(self, running: bool) -> None:
        """Whether there is a state of now."""
        self._running = running
        self.refresh()

    def refresh_soon(self) -> None:
        """There is more to draw; that is done every few seconds, for it would cost more than all
        the rest of a running test."""
        if self.isVisible() and not self._soon.isActive():
            self._soon.start()

    def refresh(self) -> None:
        """Draw what there is, when it is seen."""
        if not self.isVisible():
            return
        devices = list(self.readings.devices.values())
        self.empty.setVisible(not devices)
        for part in (self.table, self.busy, self.memory):
            part.setVisible(bool(devices))
        self.table.setRowCount(len(devices))
        for line, device in enumerate(devices):
            for place, said in enumerate(device.cells(self._running)):
                item = self.table.item(line, place)
                if item is None:
                    item = QTableWidgetItem()
                    self.table.setItem(line, place, item)
                    if place == 0 and line < len(_COLOURS):
                        item.setData(Qt.ItemDataRole.DecorationRole, QColor(_COLOURS[line]))
                if item.text() != said:
                    item.setText(said)
        self._fit()
        self.busy.draw(devices, memory=False)
        self.memory.draw(devices, memory=True)

    def _fit(self) -> None:
        """The table is as high as a few devices; plots have the rest."""
        lines = min(self.table.rowCount(), _MOST_LINES)
        high = (self.table.horizontalHeader().sizeHint().height()
                + sum(self.table.rowHeight(line) for line in range(lines)) + 2)
        if self.table.horizontalScrollBar().maximum():
            high += self.table.horizontalScrollBar().sizeHint().height()
        if high != self.table.height():
            self.table.setFixedHeight(high)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        for part in (self.busy, self.memory):
            part.apply_theme(theme)

    def retranslate(self) -> None:
        """Say everything in the current language."""
        self.table.setHorizontalHeaderLabels([_(title) for title in _HEADINGS])
        self.refresh()
