"""A window that says what was found about something: facts, what is wrong, what to do.

Made for answers that take a while: it shows at once that it is looking, and can be asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from desktop.errors import Problem
from desktop.i18n import _
from desktop.ui.remedies import Remedy
from desktop.ui.theme import pixmap
from desktop.ui.tokens import Theme

_ICONS = {"ok": "circle-check", "warning": "triangle-alert", "error": "circle-x",
          "secondary": "info"}
_ICON = 16


@dataclass(frozen=True)
class Item:
    """One thing that was looked at. ``tone``: ok, warning, error, secondary."""

    tone: str
    title: str
    facts: Sequence[tuple[str, str]] = ()
    problems: Sequence[tuple[str, Problem]] = ()
    """With the tone of each."""
    notes: Sequence[str] = ()

    def lines(self) -> list[str]:
        """As plain text."""
        lines = [self.title]
        lines += [f"  {name}: {value}" for name, value in self.facts]
        lines += [f"  {problem.line()}" for _tone, problem in self.problems]
        return lines + [f"  {note}" for note in self.notes]


@dataclass(frozen=True)
class Found:
    """What is shown: a sentence, then one item after the other; REMEDY is offered as a button."""

    summary: str
    items: Sequence[Item] = field(default_factory=tuple)
    remedy: Remedy | None = None


class ReportDialog(QDialog):
    """Shows a :class:`Found`; AGAIN looks once more, ACT carries out its remedy."""

    def __init__(self, title: str, theme: Theme, parent: QWidget | None = None, *,
                 again: Callable[[], None] | None = None,
                 act: Callable[[Remedy], None] | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self.resize(640, 420)
        self._theme = theme
        self._act = act
        self.found: Found | None = None
        column = QVBoxLayout(self)
        column.setSpacing(12)
        self.summary = QLabel()
        self.summary.setWordWrap(True)
        self.summary.setTextFormat(Qt.TextFormat.PlainText)
        column.addWidget(self.summary)
        self.progress = QProgressBar()
        self.progress.setRange(0, 0)
        self.progress.setTextVisible(False)
        column.addWidget(self.progress)
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setAccessibleName(title)
        column.addWidget(self._area, 1)
        buttons = QDialogButtonBox()
        self.remedy = QPushButton()
        self.remedy.setProperty("primary", True)
        self.remedy.clicked.connect(self._remedy)
        self.again = QPushButton(_("Look again"))
        self.copy = QPushButton(_("Copy"))
        close = buttons.addButton(_("Close"), QDialogButtonBox.ButtonRole.RejectRole)
        close.setAutoDefault(False)
        for button in (self.remedy, self.again, self.copy):
            button.setAutoDefault(False)
            buttons.addButton(button, QDialogButtonBox.ButtonRole.ActionRole)
        self.again.setVisible(again is not None)
        if again is not None:
            self.again.clicked.connect(again)
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.text()))
        buttons.rejected.connect(self.reject)
        column.addWidget(buttons)
        self.wait("")

    def wait(self, text: str) -> None:
        """Say TEXT while an answer is on its way."""
        self.summary.setText(text)
        self.progress.show()
        self.again.setEnabled(False)
        self.copy.setEnabled(False)
        self.remedy.hide()
        self._area.setWidget(QWidget())

    def show_found(self, found: Found) -> None:
        """Show the answer."""
        self.found = found
        self.summary.setText(found.summary)
        self.progress.hide()
        self.again.setEnabled(True)
        self.copy.setEnabled(True)
        self.remedy.setVisible(found.remedy is not None and self._act is not None)
        self.remedy.setText(found.remedy.text if found.remedy else "")
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 8, 0)
        column.setSpacing(16)
        for item in found.items:
            column.addWidget(self._item(item))
        column.addStretch(1)
        self._area.setWidget(body)

    def text(self) -> str:
        """All of it as plain text, for the clipboard."""
        if self.found is None:
            return ""
        return "\n".join([self.found.summary,
                          *(line for item in self.found.items for line in item.lines())])

    def _remedy(self) -> None:
        if self.found is not None and self.found.remedy is not None and self._act is not None:
            self._act(self.found.remedy)

    def _item(self, item: Item) -> QWidget:
        box = QWidget()
        column = QVBoxLayout(box)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        head = _text(item.title)
        font = head.font()
        font.setBold(True)
        head.setFont(font)
        column.addLayout(self._with_icon(item.tone, head))
        if item.facts:
            grid = QGridLayout()
            grid.setContentsMargins(_ICON + 8, 0, 0, 0)
            grid.setHorizontalSpacing(16)
            grid.setVerticalSpacing(4)
            grid.setColumnStretch(1, 1)
            for row, (name, value) in enumerate(item.facts):
                title = QLabel(name)
                title.setProperty("role", "secondary")
                grid.addWidget(title, row, 0, Qt.AlignmentFlag.AlignTop)
                grid.addWidget(_text(value), row, 1)
            column.addLayout(grid)
        for tone, problem in item.problems:
            words = QVBoxLayout()
            words.setSpacing(2)
            words.addWidget(_text(problem.message))
            if problem.hint:
                words.addWidget(_text(problem.hint, "secondary"))
            row_ = QHBoxLayout()
            row_.setContentsMargins(_ICON + 8, 0, 0, 0)
            row_.setSpacing(8)
            row_.addWidget(self._icon(tone), 0, Qt.AlignmentFlag.AlignTop)
            row_.addLayout(words, 1)
            column.addLayout(row_)
        for note in item.notes:
            row_ = self._with_icon("secondary", _text(note, "secondary"))
            row_.setContentsMargins(_ICON + 8, 0, 0, 0)
            column.addLayout(row_)
        return box

    def _with_icon(self, tone: str, words: QWidget) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self._icon(tone), 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(words, 1)
        return row

    def _icon(self, tone: str) -> QLabel:
        picture = QLabel()
        picture.setPixmap(pixmap(_ICONS[tone], getattr(self._theme, tone), _ICON,
                                 self.devicePixelRatioF()))
        picture.setAccessibleName({"ok": _("good"), "warning": _("warning"),
                                   "error": _("wrong")}.get(tone, ""))
        picture.setFixedWidth(_ICON)
        return picture


class _Text(QLabel):
    """Wraps; asks for no more height than it has at the width it gets."""

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.fontMetrics().height())


def _text(text: str, role: str = "") -> QLabel:
    label = _Text(text)
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse
                                  | Qt.TextInteractionFlag.TextSelectableByKeyboard)
    policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    policy.setHeightForWidth(True)
    label.setSizePolicy(policy)
    if role:
        label.setProperty("role", role)
    return label
