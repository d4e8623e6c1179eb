"""What the doctor found, as a page: a verdict above, then groups of rows, each with what was looked
at, what was found, a verdict in a word with its colour, and what helps.

It is shown at once and filled when the answer is there; asked again, the last answer stays in
sight until the next one comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from desktop.doctor.diagnosis import Diagnosis
from desktop.doctor.marks import Mark, Row, worst
from desktop.doctor.rows import Group, Verdict
from desktop.errors import Problem
from desktop.i18n import _
from desktop.ui.panels.captions import set_role
from desktop.ui.remedies import Remedy, remedy
from desktop.ui.theme import pixmap
from desktop.ui.tokens import Theme

_LOOK = {Mark.GOOD: ("circle-check", "ok"), Mark.NOTE: ("info", "secondary"),
         Mark.DOUBT: ("triangle-alert", "warning"), Mark.WRONG: ("circle-x", "error")}
_ICON = 16
_HEAD_ICON = 24
_TITLE = 22
"""Width of a row's title, in letters."""
_VERDICT = 14
"""Width of its verdict, in letters."""
_AT_ONCE = 3
"""Rows that are made in one turn of the window's loop: some ten milliseconds."""
_PAUSE = 5
"""Milliseconds between them, in which it answers."""


@dataclass(frozen=True)
class Shown:
    """An examination, ready to be shown, copied and kept."""

    found: Diagnosis
    verdict: Verdict
    groups: tuple[Group, ...]
    text: str
    """As in a terminal."""


class RowFrame(QFrame):
    """One row; the arrow keys go from row to row."""

    def __init__(self, row: Row, theme: Theme, act: Callable[[Remedy], None],
                 step: Callable[[RowFrame, int], None]) -> None:
        super().__init__()
        self.row = row
        self._step = step
        self.setProperty("role", "row")
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setAccessibleName(" ".join(row.lines()))
        across = QHBoxLayout(self)
        across.setContentsMargins(12, 7, 12, 7)
        across.setSpacing(8)
        top = Qt.AlignmentFlag.AlignTop
        letter = self.fontMetrics().averageCharWidth()
        name, tone = _LOOK[row.mark]
        picture = QLabel()
        picture.setPixmap(pixmap(name, getattr(theme, tone), _ICON, self.devicePixelRatioF()))
        picture.setFixedWidth(_ICON)
        across.addWidget(picture, 0, top)
        title = _words(row.title, "secondary")
        title.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        title.setFixedWidth(letter * _TITLE)
        across.addWidget(title, 0, top)
        words = QVBoxLayout()
        words.setSpacing(3)
        if row.found:
            words.addWidget(_words(row.found))
        for note in row.notes:
            words.addWidget(_words(note, "secondary"))
        for problem in row.problems:
            self._problem(problem, words, row, act, "" if row.mark is Mark.NOTE else tone)
        if row.hint and not row.problems:
            words.addWidget(_words(row.hint, "secondary"))
        across.addLayout(words, 1)
        self.verdict = QLabel(row.verdict)
        self.verdict.setProperty("role", tone)
        self.verdict.setAlignment(Qt.AlignmentFlag.AlignRight | top)
        self.verdict.setMinimumWidth(letter * _VERDICT)
        across.addWidget(self.verdict, 0, top)

    def _problem(self, problem: Problem, words: QVBoxLayout, row: Row,
                 act: Callable[[Remedy], None], role: str) -> None:
        if problem.message != row.found:
            words.addWidget(_words(problem.message, role))
        if problem.hint:
            words.addWidget(_words(problem.hint, "secondary"))
        offer = remedy(problem)
        if offer is not None and offer.action != "examine":
            button = QPushButton(offer.text)
            button.setAutoDefault(False)
            button.clicked.connect(lambda: act(offer))
            line = QHBoxLayout()
            line.setContentsMargins(0, 3, 0, 3)
            line.addWidget(button)
            line.addStretch(1)
            words.addLayout(line)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        by = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}.get(Qt.Key(event.key()))
        if by is not None:
            self._step(self, by)
        elif event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText("\n".join(self.row.lines()))
        else:
            super().keyPressEvent(event)


class ExaminationDialog(QDialog):
    """See the module. What it asks for is carried out by who made it."""

    again_wanted = Signal()
    save_wanted = Signal()
    remedy_wanted = Signal(object)
    """A Remedy."""
    complete = Signal()
    """The answer is in sight, to its last row."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(_("Examine this machine"))
        self.setWindowFlag(Qt.WindowType.WindowMaximizeButtonHint, True)
        self._theme = theme
        self.shown: Shown | None = None
        self.rows: list[RowFrame] = []
        self._mark = Mark.NOTE
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._head())
        self.progress = QProgressBar()
        self.progress.setRange(0, 0)
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName(_("Examining"))
        self.progress.setFixedHeight(4)
        policy = self.progress.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.progress.setSizePolicy(policy)
        column.addWidget(self.progress)
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._area.setAccessibleName(_("What was found"))
        column.addWidget(self._area, 1)
        column.addWidget(self._foot())
        QShortcut(QKeySequence(Qt.Key.Key_F5), self, self._again)
        self._size()
        self._area.setWidget(_empty())
        self.wait(_("Examining this machine"), "")

    def _size(self) -> None:
        """As large as reads well, with a rim of the window behind it in sight."""
        parent = self.parentWidget()
        room = self.screen().availableSize()
        if parent is not None:
            room = room.boundedTo(parent.size())
        letter = self.fontMetrics().averageCharWidth()
        self.resize(min(letter * 150, room.width() - 80), max(420, room.height() - 120))

    def _head(self) -> QWidget:
        head = QWidget()
        across = QHBoxLayout(head)
        across.setContentsMargins(20, 16, 20, 14)
        across.setSpacing(12)
        self._picture = QLabel()
        self._picture.setFixedSize(_HEAD_ICON, _HEAD_ICON)
        across.addWidget(self._picture, 0, Qt.AlignmentFlag.AlignTop)
        words = QVBoxLayout()
        words.setSpacing(2)
        self.summary = _words("")
        font = self.summary.font()
        font.setPointSizeF(font.pointSizeF() * 1.2)
        font.setBold(True)
        self.summary.setFont(font)
        self.more = _words("", "secondary")
        words.addWidget(self.summary)
        words.addWidget(self.more)
        across.addLayout(words, 1)
        return head

    def _foot(self) -> QWidget:
        foot = QWidget()
        across = QHBoxLayout(foot)
        across.setContentsMargins(20, 12, 20, 14)
        across.setSpacing(8)
        self.again = QPushButton(_("Examine again"))
        self.again.setToolTip(_("Examine again (F5)"))
        self.copy = QPushButton(_("Copy as text"))
        self.save = QPushButton(_("Save as JSON…"))
        for button in (self.again, self.copy, self.save):
            button.setAutoDefault(False)
            across.addWidget(button)
        self.again.clicked.connect(self._again)
        self.copy.clicked.connect(
            lambda: QGuiApplication.clipboard().setText(self.shown.text if self.shown else ""))
        self.save.clicked.connect(self.save_wanted)
        across.addStretch(1)
        buttons = QDialogButtonBox()
        close = buttons.addButton(_("Close"), QDialogButtonBox.ButtonRole.RejectRole)
        close.setAutoDefault(False)
        buttons.rejected.connect(self.reject)
        across.addWidget(buttons)
        return foot

    # --- what is shown
    def wait(self, text: str, step: str) -> None:
        """Say TEXT and the STEP at hand while an answer is on its way."""
        self.summary.setText(text)
        self._set_more(step)
        self.progress.show()
        self._set_mark(Mark.NOTE)
        self._enable(False)

    def set_step(self, step: str) -> None:
        """What is being looked at now."""
        if not self.progress.isHidden():
            self._set_more(step)

    def show_examination(self, shown: Shown) -> None:
        """Show the answer."""
        self.shown = shown
        self.summary.setText(shown.verdict.text)
        self._set_more(shown.verdict.more, _tone(shown.groups))
        self._set_mark(shown.verdict.mark)
        self.progress.hide()
        self._enable(True)
        self._fill(shown.groups)

    def show_failure(self, problem: Problem) -> None:
        """Say why there is no answer; it can be asked again."""
        self.summary.setText(problem.message)
        self._set_more(problem.hint)
        self._set_mark(Mark.WRONG)
        self.progress.hide()
        self._enable(True)

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._theme = theme
        self._set_mark(self._mark)
        if self.shown is not None:
            self._fill(self.shown.groups)

    def _fill(self, groups: tuple[Group, ...]) -> None:
        focused = any(row.hasFocus() for row in self.rows)
        place = self._area.verticalScrollBar().value()
        self.rows = []
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(20, 4, 20, 16)
        column.setSpacing(6)
        column.addStretch(1)
        self._area.setWidget(body)
        steps = self._pieces(groups, column)

        def add() -> None:
            """A few rows a turn: the window answers in between."""
            if self._area.widget() is not body:
                return  # another answer has come
            if next(steps, False):
                QTimer.singleShot(_PAUSE, body, add)
                return
            if self.rows:  # the others are reached by the arrow keys
                self.rows[0].setFocusPolicy(Qt.FocusPolicy.StrongFocus)
                if focused:
                    self.rows[0].setFocus()
            self._area.verticalScrollBar().setValue(place)
            self.complete.emit()

        add()

    def _pieces(self, groups: tuple[Group, ...], column: QVBoxLayout) -> Iterator[bool]:
        """Puts GROUPS into COLUMN, :data:`_AT_ONCE` rows between two looks at the clock."""
        for group in groups:
            heading = QLabel(group.title)
            heading.setProperty("role", "heading")
            heading.setContentsMargins(2, 8, 0, 0)
            card = QFrame()
            card.setProperty("role", "card")
            card.setAccessibleName(group.title)
            inside = QVBoxLayout(card)
            inside.setContentsMargins(1, 1, 1, 1)
            inside.setSpacing(0)
            for place, widget in enumerate((heading, card), column.count() - 1):
                column.insertWidget(place, widget)
            for number, row in enumerate(group.rows):
                if number:
                    line = QFrame()
                    line.setProperty("role", "line")
                    inside.addWidget(line)
                made = RowFrame(row, self._theme, self.remedy_wanted.emit, self._step)
                inside.addWidget(made)
                self.rows.append(made)
                if len(self.rows) % _AT_ONCE == 0:
                    yield True

    def _step(self, row: RowFrame, by: int) -> None:
        """Focus the row after or before ROW."""
        number = self.rows.index(row) + by
        if 0 <= number < len(self.rows):
            self.rows[number].setFocus(Qt.FocusReason.OtherFocusReason)
            self._area.ensureWidgetVisible(self.rows[number], 0, 24)

    def _set_more(self, text: str, role: str = "secondary") -> None:
        self.more.setText(text)
        set_role(self.more, role)

    def _set_mark(self, mark: Mark) -> None:
        self._mark = mark
        # Nothing is known yet: it is being looked at.
        name, tone = ("search", "secondary") if mark is Mark.NOTE else _LOOK[mark]
        self._picture.setPixmap(pixmap(name, getattr(self._theme, tone), _HEAD_ICON,
                                       self.devicePixelRatioF()))
        self._picture.setAccessibleName({Mark.GOOD: _("good"), Mark.WRONG: _("wrong")}.get(
            mark, ""))

    def _enable(self, done: bool) -> None:
        self.again.setEnabled(done)
        for button in (self.copy, self.save):
            button.setEnabled(done and self.shown is not None)
        body = self._area.widget()
        if body is not None:  # the last answer, until the next one is there
            body.setEnabled(done)

    def _again(self) -> None:
        if self.again.isEnabled():
            self.again_wanted.emit()


def _tone(groups: tuple[Group, ...]) -> str:
    """The colour of what there is to do."""
    mark = worst(group.mark for group in groups)
    return _LOOK[mark][1] if mark in (Mark.DOUBT, Mark.WRONG) else "secondary"


class _Words(QLabel):
    """Wraps; asks for no more width than it gets."""

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.fontMetrics().height())


def _empty() -> QWidget:
    """What stands there before the first answer."""
    empty = QWidget()
    column = QVBoxLayout(empty)
    column.setContentsMargins(56, 8, 56, 16)
    column.addWidget(_words(_(
        "Devices, drivers, libraries, versions, memory, disks, servers and model files are looked "
        "at, as an engine would use them. Nothing is changed. It takes some seconds, and up to "
        "some minutes where vLLM is loaded for it or a server does not answer."), "secondary"))
    column.addStretch(1)
    return empty


def _words(text: str, role: str = "") -> QLabel:
    label = _Words(text)
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    label.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
    policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    policy.setHeightForWidth(True)
    label.setSizePolicy(policy)
    if role:
        set_role(label, role)
    return label
