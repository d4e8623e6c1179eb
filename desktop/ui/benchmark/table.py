"""The table: a row a level, its rounds under it."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QPersistentModelIndex, Qt, QTimer
from PySide6.QtGui import QColor, QFont, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
    QWidget,
)

from desktop.i18n import _
from desktop.ui.benchmark.columns import Column, columns_of
from desktop.ui.benchmark.figures import Row, Shown
from desktop.ui.texts import say
from desktop.ui.tokens import Theme

Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()
_WORDS = ("level", "remark")
"""Columns of words; figures stand at the right."""
_PADDING = 20
_GIVE_WAY = ("total", "busy", "cold")
"""Columns that a narrow window does without, in this order: the remark must be seen."""
_LEAST_REMARK = 96
"""Pixels."""
_LEVEL = 0
"""Internal id of a level; that of a round is its level's row and one."""


class LevelsModel(QAbstractItemModel):
    """Levels, and their rounds; TABLE: one of those of ``columns``."""

    def __init__(self, theme: Theme, table: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._table = table
        self.shown = Shown()
        self.columns: tuple[Column, ...] = columns_of(self.shown, table)
        self._knee: int | None = None
        self._reached = False
        self._main = "pages"
        """The column that levels are compared by. Both are asked for at each cell."""
        self._bold = QFont()
        self._bold.setBold(True)

    # --- what is shown
    def set_shown(self, shown: Shown) -> None:
        """Show another run, or this one with other figures."""
        columns = columns_of(shown, self._table)
        before, old_knee = self.shown, (self._knee, self._reached)
        self._reached = shown.reached is not None
        # While a test runs the fastest level is the last one, mostly: that says nothing yet.
        self._knee = shown.knee if self._reached or shown.document else None
        self._main = "output" if shown.by_tokens else "pages"
        if columns != self.columns or not _continues(before, shown):
            self.beginResetModel()
            self.shown, self.columns = shown, columns
            self.endResetModel()
            return
        for place, row in enumerate(shown.rows):
            if place >= len(before.rows):
                self.beginInsertRows(_NOWHERE, place, place)
                self.shown = Shown(shown.rows[:place + 1], shown.document, shown.name)
                self.endInsertRows()
            elif row is not before.rows[place] and row != before.rows[place]:
                self._replace(place, row)
        self.shown = shown
        if (self._knee, self._reached) != old_knee:
            last = len(self.columns) - 1
            for place, row in enumerate(shown.rows):  # only those that are marked, or were
                if row.continuous and row.concurrency in (self._knee, old_knee[0]):
                    self.dataChanged.emit(self.index(place, 0), self.index(place, last))

    def _replace(self, place: int, row: Row) -> None:
        have, wanted = len(self.shown.rows[place].rounds), len(row.rounds)
        parent = self.index(place, 0)
        if wanted > have:
            self.beginInsertRows(parent, have, wanted - 1)
            self.shown = self.shown.with_row(place, row)
            self.endInsertRows()
        elif wanted < have:
            self.beginRemoveRows(parent, wanted, have - 1)
            self.shown = self.shown.with_row(place, row)
            self.endRemoveRows()
        else:
            self.shown = self.shown.with_row(place, row)
        last = len(self.columns) - 1
        self.dataChanged.emit(parent, self.index(place, last))
        if wanted:
            self.dataChanged.emit(self.index(0, 0, parent), self.index(wanted - 1, last, parent))

    def apply_theme(self, theme: Theme) -> None:
        """Tint by THEME from now on."""
        self._theme = theme
        if self.shown.rows:
            self.dataChanged.emit(self.index(0, 0), self.index(
                len(self.shown.rows) - 1, len(self.columns) - 1),
                [Qt.ItemDataRole.ForegroundRole, Qt.ItemDataRole.BackgroundRole])

    def retranslate(self) -> None:
        """Say everything in the current language."""
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self.columns) - 1)
        self.layoutChanged.emit()

    # --- Qt's questions
    def index(self, row: int, column: int, parent: Index = _NOWHERE) -> QModelIndex:
        if not self.hasIndex(row, column, parent):
            return QModelIndex()
        return self.createIndex(row, column, parent.row() + 1 if parent.isValid() else _LEVEL)

    def parent(self, index: Index) -> QModelIndex:  # type: ignore[override]
        if not index.isValid() or index.internalId() == _LEVEL:
            return QModelIndex()
        return self.createIndex(index.internalId() - 1, 0, _LEVEL)

    def rowCount(self, parent: Index = _NOWHERE) -> int:
        if not parent.isValid():
            return len(self.shown.rows)
        if parent.column() or parent.internalId() != _LEVEL:
            return 0
        return len(self.shown.rows[parent.row()].rounds)

    def columnCount(self, parent: Index = _NOWHERE) -> int:
        return len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        column = self.columns[index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(column)
        if index.internalId() == _LEVEL:
            return self._of_level(self.shown.rows[index.row()], column, role)
        one = self.shown.rows[index.internalId() - 1].rounds[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return column.of_round(one)
        if role == Qt.ItemDataRole.ForegroundRole:
            return QColor(self._theme.secondary)
        return None

    def _of_level(self, row: Row, column: Column, role: int) -> Any:
        theme = self._theme
        knee = row.continuous and bool(row.ended) and row.concurrency == self._knee
        if role == Qt.ItemDataRole.DisplayRole:
            said = column.of_level(row)
            if knee and column.key == "level":
                said = (_("{n} · knee") if self._reached else _("{n} · fastest")).format(n=said)
            return said
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{_(column.title)}: {column.of_level(row)}"
        if role == Qt.ItemDataRole.BackgroundRole and knee:
            return QColor(theme.badge_warning)
        if role == Qt.ItemDataRole.ForegroundRole:
            if knee:
                return QColor(theme.on_badge_warning)
            if column.key == "remark" and row.ended:
                return QColor(theme.error if row.ended == "failed" else theme.warning)
            if not row.ended:
                return QColor(theme.link if column.key in ("level", "remark") else theme.text)
            if column.key in ("failed", "looped") and column.of_level(row) != "0":
                return QColor(theme.error)
        if role == Qt.ItemDataRole.FontRole and column.key == self._main:
            return self._bold
        if role == Qt.ItemDataRole.ToolTipRole:
            return row.error or (row.remark if column.key == "remark" else None)
        return None

    def headerData(self, section: int, orientation: Qt.Orientation,
                   role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal or section >= len(self.columns):
            return None
        column = self.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return _(column.title)
        if role == Qt.ItemDataRole.ToolTipRole:
            return _(column.tip)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(column)
        return None


def _side(column: Column) -> int:
    side = (Qt.AlignmentFlag.AlignLeft if column.key in _WORDS else Qt.AlignmentFlag.AlignRight)
    return int(side | Qt.AlignmentFlag.AlignVCenter)


def _continues(before: Shown, after: Shown) -> bool:
    """Whether AFTER is the same run a little later."""
    return (bool(before.rows) and len(after.rows) >= len(before.rows)
            and (before.document is after.document or not before.document)
            and all((old.strategy, old.concurrency) == (new.strategy, new.concurrency)
                    for old, new in zip(before.rows, after.rows, strict=False)))


class _Spaced(QStyledItemDelegate):
    """A remark begins at the left, behind a figure at the right: with room between them."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        if 0 < index.column() == index.model().columnCount() - 1:
            option = QStyleOptionViewItem(option)
            option.rect = option.rect.adjusted(8, 0, 0, 0)
        super().paint(painter, option, index)


class LevelsTable(QTreeView):
    """The view."""

    def __init__(self, model: LevelsModel, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        say(self, accessibleName=name)
        self.setObjectName("levels")
        self.setModel(model)
        self.setUniformRowHeights(True)
        self.setAllColumnsShowFocus(True)
        self.setAlternatingRowColors(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setItemDelegate(_Spaced(self))
        header = self.header()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setStretchLastSection(True)  # a remark has what is left, and ends in dots
        header.setHighlightSections(False)
        header.setMinimumSectionSize(48)
        self._fitted: tuple[Column, ...] = ()
        self._widths: dict[int, int] = {}
        self._measured: dict[int, Row] = {}
        """Rows whose width is known: only what changed is measured again."""
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(0)
        self._soon.timeout.connect(self.fit)
        for signal in (model.modelReset, model.rowsInserted, model.dataChanged):
            signal.connect(self._fit_soon)

    def drawRow(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        ground = index.data(Qt.ItemDataRole.BackgroundRole)
        if isinstance(ground, QColor):  # also where the rounds are folded out
            painter.fillRect(option.rect, ground)
        super().drawRow(painter, option, index)

    def _fit_soon(self, *_what: object) -> None:
        if not self._soon.isActive():
            self._soon.start()

    def fit(self) -> None:
        """Make the columns as wide as what levels say; never narrower while a run goes on."""
        model = self.model()
        assert isinstance(model, LevelsModel)
        columns, metrics = model.columns, self.fontMetrics()
        fresh = columns != self._fitted
        if fresh:
            self._fitted, self._measured = columns, {}
        rows = [row for place, row in enumerate(model.shown.rows)
                if self._measured.get(place) is not row]
        self._measured = dict(enumerate(model.shown.rows))
        for place, column in enumerate(columns[:-1]):
            texts = {column.of_level(row) for row in rows}
            # The longest one of many is the widest one, near enough: figures, mostly.
            longest = sorted(texts, key=len)[-3:]
            if fresh:
                longest.append(_(column.title))
            if not longest:
                continue
            wide = max(metrics.horizontalAdvance(text) for text in longest) + _PADDING
            if column.key == "level":
                wide = max(wide + metrics.horizontalAdvance(_("{n} · fastest").format(n="")),
                           metrics.horizontalAdvance(_("round {n}").format(n=20)) + 40) + 16
            elif column.key in ("output", "pages"):
                wide += 10  # it may be bold
            wide = min(wide, 420)
            if fresh:
                self.setColumnHidden(place, False)
            if fresh or self._width(place) < wide:
                self._widths[place] = wide
                self.setColumnWidth(place, wide)
        self._give_way()

    def _width(self, place: int) -> int:
        """Also of a column that is hidden."""
        return self._widths[place] if self.isColumnHidden(place) else self.columnWidth(place)

    def _give_way(self) -> None:
        """Hide what there is no room for."""
        columns = self._fitted
        keys = [column.key for column in columns]
        wanted = sum(self._width(place) for place in range(len(columns) - 1)) + _LEAST_REMARK
        for key in _GIVE_WAY:
            if key in keys:
                place = keys.index(key)
                hide = wanted > self.viewport().width()
                if hide:
                    wanted -= self._width(place)
                if hide != self.isColumnHidden(place):
                    self.setColumnHidden(place, hide)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._give_way()
