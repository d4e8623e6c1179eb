"""Two runs side by side: their levels, and what else was different."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from desktop.benchmark.history import Comparison, LevelCompared
from desktop.i18n import N_, _
from desktop.ui.benchmark.chart import OTHER_DARK, OTHER_LIGHT
from desktop.ui.benchmark.figures import NONE, Shown, number, strategy_words
from desktop.ui.panels.captions import label, small
from desktop.ui.texts import say
from desktop.ui.tokens import Theme

_HEADINGS = (N_("At once"), N_("Difference"), N_("Output tokens/s"), N_("Pages/s"),
             N_("Page p50, s"))
_DIFFERENCE = 1
_TOKENS = 2
_NAMES = {
    "name": N_("engine"), "model": N_("model"), "device": N_("device"), "verso": N_("Verso"),
    "processor": N_("processor"), "unique": N_("copies marked"), "drawing": N_("drawing")}


class ComparisonPanel(QWidget):
    """What the run shown (●) is by the one it is held against (■)."""

    ended = Signal()
    """A person does not want to compare any more."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._found: Comparison | None = None
        self._runs = (Shown(), Shown())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 8, 0, 0)
        column.setSpacing(8)
        row = QHBoxLayout()
        row.setSpacing(8)
        self.about = label("", "secondary")
        self.about.setTextFormat(Qt.TextFormat.RichText)
        self.close_button = QPushButton()
        say(self.close_button, text=N_("End comparison"))
        self.close_button.clicked.connect(self.ended)
        row.addWidget(self.about, 1)
        row.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)
        column.addLayout(row)
        both = QHBoxLayout()
        both.setSpacing(12)
        self.table = self._made(len(_HEADINGS), N_("Levels of both tests"))
        both.addWidget(self.table, 3)
        right = QVBoxLayout()
        right.setSpacing(4)
        self.more = small(label("", "secondary"))
        right.addWidget(self.more)
        self.differences = self._made(3, N_("What else was different"))
        right.addWidget(self.differences, 1)
        right.addStretch(0)
        both.addLayout(right, 2)
        column.addLayout(both, 1)
        self.retranslate()

    @staticmethod
    def _made(columns: int, name: str) -> QTableWidget:
        table = QTableWidget(0, columns)
        say(table, accessibleName=name)
        table.verticalHeader().hide()
        table.setShowGrid(False)
        table.setProperty("figures", True)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setTabKeyNavigation(False)
        header = table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setHighlightSections(False)
        return table

    def set_comparison(self, found: Comparison, shown: Shown, other: Shown) -> None:
        """FOUND: SHOWN, the later run, by OTHER."""
        self._found, self._runs = found, (shown, other)
        self._fill()

    def _fill(self) -> None:
        found = self._found
        if found is None:
            return
        self._say_which(found)
        self.table.setRowCount(len(found.levels))
        for line, level in enumerate(found.levels):
            for place, cell in enumerate(_cells(level)):
                item = QTableWidgetItem(cell)
                if place == _DIFFERENCE and level.firm and level.speed is not None:
                    item.setForeground(QColor(
                        self._theme.ok if level.speed > 1 else self._theme.error))
                self.table.setItem(line, place, item)
        self.table.setColumnHidden(_TOKENS, bool(found.levels) and all(
            level.output_tps == (None, None) for level in found.levels))
        self.more.setText(_("What else was different:") if found.differences
                          else _("Engine, settings and versions were the same."))
        self.differences.setVisible(bool(found.differences))
        self.differences.setRowCount(len(found.differences))
        for line, (what, before, after) in enumerate(found.differences):
            name = _(_NAMES[what]) if what in _NAMES else what
            for place, cell in enumerate((name, before, after)):
                item = QTableWidgetItem(cell)
                item.setToolTip(cell)
                self.differences.setItem(line, place, item)

    def _say_which(self, found: Comparison) -> None:
        colours = (self._theme.accent, OTHER_DARK if self._theme.dark else OTHER_LIGHT)
        first, second = (
            f'<span style="color:{colour}">{mark}</span> {escape(run.title)}'
            for mark, colour, run in zip("●■", colours, self._runs, strict=True))
        said = _("{first} &nbsp; against &nbsp; {second}").format(first=first, second=second)
        wrong = ""
        if not found.same_pages:
            wrong = _("They did not read the same pages: their figures cannot be compared "
                      "level by level.")
        elif not found.levels:
            wrong = _("They have no level in common.")
        if wrong:
            said += f'<br><span style="color:{self._theme.warning}">{escape(wrong)}</span>'
        self.about.setText(said)

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._theme = theme
        self._fill()

    def retranslate(self) -> None:
        """Say everything in the current language."""
        self.table.setHorizontalHeaderLabels([_(title) for title in _HEADINGS])
        self.differences.setHorizontalHeaderLabels(["", "■", "●"])
        self._fill()


def _cells(level: LevelCompared) -> tuple[str, ...]:
    return (str(level.concurrency) if level.strategy == "continuous"
            else strategy_words(level.strategy),
            difference(level), _pair(level.output_tps), _pair(level.pages_per_s),
            _pair((_seconds(level.latency_p50[0]), _seconds(level.latency_p50[1]))))


def difference(level: LevelCompared) -> str:
    """How much faster the run shown was, and whether that is more than chance."""
    if level.speed is None:
        return NONE
    percent = round(100 * abs(level.speed - 1))
    if level.speed >= 2:
        said = _("{n} times as fast").format(n=number(level.speed))
    elif not percent:
        said = _("as fast")
    elif level.speed > 1:
        said = _("{n} % faster").format(n=percent)
    else:
        said = _("{n} % slower").format(n=percent)
    return said if level.firm else _("{difference}, within the scatter").format(difference=said)


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _pair(values: tuple[float | None, float | None]) -> str:
    if values[0] is None and values[1] is None:
        return NONE
    return " → ".join(NONE if value is None else number(value) for value in values)
