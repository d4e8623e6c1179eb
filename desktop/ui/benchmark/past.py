"""The list of tests that were made: show one, compare two, rename, forget."""

from __future__ import annotations

import time
from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from desktop.i18n import N_, _
from desktop.jobs.benchmarks import BenchmarkRow
from desktop.ui import words
from desktop.ui.benchmark.figures import NONE, number
from desktop.ui.texts import say

_HEADINGS = (N_("When"), N_("Name"), N_("Engine"), N_("Device"), N_("Levels"), N_("Fastest"),
             N_("Ended"))
_NAME = 1
_AROUND = 40
"""Pixels beside the table, and at the edge of a narrow window, as the next."""
_EDGE = 24
_ENDED = {"complete": N_("complete"), "interrupted": N_("stopped"), "time cap": N_("time cap"),
          "failed": N_("failed")}


class PastDialog(QDialog):
    """Rows come by :meth:`set_rows`; ids of runs go out."""

    show_wanted = Signal(int)
    compare_wanted = Signal(int, int)
    """The one that is shown, and the one it is held against (the earlier)."""
    renamed = Signal(int, str)
    removed = Signal(list)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(_("Earlier tests"))
        self._window = parent
        self.resize(900, 440)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(12)
        self.hint = QLabel()
        self.hint.setProperty("role", "secondary")
        self.hint.setWordWrap(True)
        self.hint.setText(_("Choose one to show it, or two to compare them. A double click on the "
                            "name changes it."))
        column.addWidget(self.hint)
        self.table = QTableWidget(0, len(_HEADINGS))
        say(self.table, accessibleName=N_("Earlier tests"))
        self.table.setHorizontalHeaderLabels([_(title) for title in _HEADINGS])
        self.table.verticalHeader().hide()
        self.table.setShowGrid(False)
        self.table.setProperty("figures", True)
        self.table.setTabKeyNavigation(False)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setStretchLastSection(True)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setHighlightSections(False)
        column.addWidget(self.table, 1)
        row = QHBoxLayout()
        row.setSpacing(8)
        self.show_button = QPushButton(_("Show"))
        self.show_button.setProperty("primary", True)
        self.compare_button = QPushButton(_("Compare"))
        self.rename_button = QPushButton(_("Rename"))
        self.remove_button = QPushButton(_("Forget"))
        self.show_button.setDefault(True)
        self.remove_button.setToolTip(_("Take the chosen tests out of the history"))
        close = QPushButton(_("Close"))
        for button in (self.show_button, self.compare_button, self.rename_button,
                       self.remove_button):
            button.setAutoDefault(False)
            row.addWidget(button)
        close.setAutoDefault(False)
        row.addStretch(1)
        row.addWidget(close)
        column.addLayout(row)
        self.show_button.clicked.connect(self._show)
        self.compare_button.clicked.connect(self._compare)
        self.rename_button.clicked.connect(self._rename)
        self.remove_button.clicked.connect(lambda: self.removed.emit(self.chosen()))
        close.clicked.connect(self.close)
        self.table.itemSelectionChanged.connect(self._enable)
        self.table.itemChanged.connect(self._changed)
        self.table.cellDoubleClicked.connect(
            lambda _row, place: None if place == _NAME else self._show())
        self._filling = False
        self._ids: list[int] = []
        self._enable()

    def set_rows(self, rows: Sequence[BenchmarkRow]) -> None:
        """ROWS: the newest first."""
        self._filling = True
        self._ids = [one.id for one in rows]
        self.table.setRowCount(len(rows))
        for line, one in enumerate(rows):
            speed = NONE if not one.concurrency else _("{speed} {unit} at {n} at once").format(
                speed=number(one.speed), unit=_unit(one.unit), n=one.concurrency)
            cells = (time.strftime("%Y-%m-%d %H:%M", time.localtime(one.started)), one.name,
                     one.model or one.engine, one.device, words.count_of(one.levels), speed,
                     _(_ENDED.get(one.ended, one.ended)))
            for place, said in enumerate(cells):
                item = QTableWidgetItem(said)
                if place != _NAME:
                    item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEditable)
                self.table.setItem(line, place, item)
        header = self.table.horizontalHeader()
        header.setStretchLastSection(False)  # while it is on, that one keeps the width it had
        self.table.resizeColumnsToContents()
        self.table.setColumnWidth(_NAME, max(140, self.table.columnWidth(_NAME)))
        self._filling = False
        self._fit()
        if not rows:
            self.hint.setText(_("No test was made yet."))
        elif not self.chosen():
            self.table.selectRow(0)
        self._enable()

    def _fit(self) -> None:
        """As wide as the rows need, but not wider than the window."""
        header = self.table.horizontalHeader()
        wide = header.length() + self.table.verticalScrollBar().sizeHint().width() + _AROUND
        most = self._window.size() - QSize(_EDGE, _EDGE) if self._window else QSize(wide, 440)
        self.resize(QSize(max(self.width(), wide), self.height()).boundedTo(most))
        header.setStretchLastSection(True)

    def chosen(self) -> list[int]:
        """Ids of the chosen ones, the newest first."""
        lines = sorted({index.row() for index in self.table.selectedIndexes()})
        return [self._ids[line] for line in lines]

    def _enable(self) -> None:
        count = len(self.chosen())
        self.show_button.setEnabled(count == 1)
        self.compare_button.setEnabled(count == 2)
        self.rename_button.setEnabled(count == 1)
        self.remove_button.setEnabled(count > 0)

    def _show(self) -> None:
        if len(self.chosen()) == 1:
            self.show_wanted.emit(self.chosen()[0])

    def _compare(self) -> None:
        newer, older = self.chosen()
        self.compare_wanted.emit(newer, older)

    def _rename(self) -> None:
        line = self._ids.index(self.chosen()[0])
        self.table.setCurrentCell(line, _NAME)
        item = self.table.item(line, _NAME)
        if item is not None:
            self.table.editItem(item)

    def _changed(self, item: QTableWidgetItem) -> None:
        if not self._filling and item.column() == _NAME:
            self.renamed.emit(self._ids[item.row()], item.text().strip())


def _unit(unit: str) -> str:
    return _("tokens/s") if unit == "tok/s" else _("pages/s")
