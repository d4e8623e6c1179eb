"""The line above the charts: what runs, how far it is, how fast it is now."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QSizePolicy, QWidget

from desktop.benchmark.events import Live
from desktop.i18n import N_, _
from desktop.ui import words
from desktop.ui.benchmark.elided import ElidedLabel
from desktop.ui.benchmark.figures import number
from desktop.ui.texts import say
from desktop.ui.tokens import Theme

_LAST = 120
"""Points of the throughput's line: a minute."""


class Pulse(QWidget):
    """The throughput of the last minute as a line."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.values: deque[float] = deque(maxlen=_LAST)
        self.setFixedSize(120, 24)
        # It is opaque: nothing behind it has to be drawn for it.
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        say(self, accessibleName=N_("Throughput of the last minute"))

    def add(self, values: Sequence[float]) -> None:
        """Go on with VALUES."""
        self.values.extend(values)
        self.update()

    def clear(self) -> None:
        """Begin anew."""
        self.values.clear()
        self.update()

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(120, 24)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self._theme.window))
        most = max(self.values, default=0.0)
        if len(self.values) < 2 or most <= 0:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self._theme.accent), 1.5))
        step = self.width() / (_LAST - 1)
        left = self.width() - step * (len(self.values) - 1)
        high = self.height() - 4
        painter.drawPolyline(QPolygonF([
            QPointF(left + step * place, 2 + high * (1 - value / most))
            for place, value in enumerate(self.values)]))


class Figures(QWidget):
    """A line of text that changes twice a second. No label: with each other text a label has the
    whole window laid out anew."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._text = ""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def text(self) -> str:
        """What it says."""
        return self._text

    def setText(self, text: str) -> None:
        """Say TEXT."""
        if text != self._text:
            self._text = text
            self.setAccessibleName(text)
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(100, self.fontMetrics().height())

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._theme = theme
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(QColor(self._theme.secondary))
        painter.drawText(
            self.rect(), Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft,
            self.fontMetrics().elidedText(self._text, Qt.TextElideMode.ElideRight, self.width()))


class LiveLine(QWidget):
    """Title, progress, figures."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        self.title = ElidedLabel()
        font = self.title.font()
        font.setBold(True)
        self.title.setFont(font)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        # Never as busy (0, 0): the style sheet's bar goes on being animated after that, which costs
        # more than all the rest of a running test.
        self.bar.setRange(0, 1000)
        self.bar.setFixedHeight(4)
        self.bar.setMinimumWidth(60)
        self.bar.setMaximumWidth(220)
        say(self.bar, accessibleName=N_("Progress of the test"))
        self.pulse = Pulse(theme)
        self.figures = Figures(theme)
        row.addWidget(self.title)
        row.addWidget(self.bar, 1)
        row.addWidget(self.pulse)
        row.addWidget(self.figures, 4)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.set_running(False)

    def set_running(self, running: bool) -> None:
        """Progress and figures are there while a test runs."""
        for part in (self.bar, self.pulse):
            part.setVisible(running)
        if not running:
            self.figures.setText("")

    def begin(self) -> None:
        """Another test."""
        self.pulse.clear()
        self.bar.setValue(0)
        self.figures.setText("")

    def set_title(self, said: str) -> None:
        """What is going on."""
        if said != self.title.text():
            self.title.setText(said)

    def show_live(self, live: Live, left: float | None) -> None:
        """The state of now; LEFT: seconds."""
        if live.expected:
            self.bar.setValue(min(1000, round(1000 * live.done / live.expected)))
        said = []
        if live.output_tps is not None:
            said.append(_("{n} tokens/s now").format(n=number(live.output_tps)))
        else:
            said.append(_("{n} characters/s now").format(n=number(live.chars_per_s)))
        said.append(_("{n} pages/s").format(n=number(live.pages_per_s)))
        said.append(_("{n} in flight").format(n=live.in_flight))
        said.append(_("{n} of {total} pages").format(
            n=words.count_of(live.done), total=words.count_of(max(live.done, live.expected))))
        if left is not None:
            said.append(_("{time} left").format(time=words.seconds_of(left)))
        self.figures.setText(words.DOT.join(said))
        self.figures.setToolTip(self.figures.text())

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self.pulse.apply_theme(theme)
        self.figures.apply_theme(theme)
