"""What became of a page, in words: in place of its text, and above text that needs a look."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QWidget

from desktop.i18n import _
from desktop.jobs.events import PageState, PageView
from desktop.ui import words
from desktop.ui.theme import LIGHT, Theme, colour, pixmap


def in_place_of_text(page: PageView) -> str:
    """What stands where the text of PAGE would be, while there is none."""
    state = page.state
    if state is PageState.FAILED:
        return page.problem.line() if page.problem else _("This page could not be read.")
    return {
        PageState.WAITING: _("This page has not been read yet."),
        PageState.RENDERING: _("This page is being drawn; it is read next."),
        PageState.READY: _("This page is read next."),
        PageState.STREAMING: _("This page is being read…"),
        PageState.BLANK: _("This page is blank."),
        PageState.CANCELLED: _("Reading was stopped before there was any text."),
        PageState.LOOP: _("The engine only repeated itself on this page."),
    }.get(state, _("No text was found on this page."))


def needs_a_look(page: PageView, damaged: bool) -> str:
    """Why PAGE should be compared with its picture; "" where nothing speaks against it."""
    said = []
    if damaged:
        said.append(_("The file is damaged here: parts of the page may be missing."))
    if page.state.suspicious and page.state not in (PageState.FAILED, PageState.EMPTY):
        # With no text at all the sentence in its place says it already.
        outcome = words.page_words(page).text
        hint = page.problem.hint if page.problem else ""
        said.append(f"{outcome[:1].upper()}{outcome[1:]}. {hint}".strip())
    elif page.state is PageState.FAILED and page.blocks and page.problem:
        said.append(page.problem.line())
    return " ".join(said)


class VerdictBar(QWidget):
    """One or two lines under the tabs; not there while there is nothing to say."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 12, 7)
        row.setSpacing(8)
        self._picture = QLabel()
        self.text = QLabel()
        self.text.setWordWrap(True)
        self.text.setTextFormat(Qt.TextFormat.PlainText)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        row.addWidget(self._picture, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self.text, 1)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        self.hide()

    def say(self, text: str) -> None:
        """Show TEXT; "" hides the bar."""
        self.text.setText(text)
        self.text.setAccessibleName(text)
        self.setVisible(bool(text))

    def apply_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._picture.setPixmap(pixmap("triangle-alert", theme.warning, 16,
                                       self.devicePixelRatioF()))
        self.update()

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(event.rect(), colour(self._theme, "window"))
        painter.fillRect(0, 0, 3, self.height(), colour(self._theme, "warning"))
        painter.fillRect(0, self.height() - 1, self.width(), 1, colour(self._theme, "border"))
