"""The figures of the status bar; where room is short the less needed ones go first."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QToolButton, QWidget

from desktop.i18n import _, ngettext
from desktop.jobs.events import EngineState, EngineView, ProgressView, RunState
from desktop.ui import words
from desktop.ui.theme import icon
from desktop.ui.tokens import Theme

# From the first to go to the last.
_GIVE_WAY = ("pages", "tokens", "flight", "device", "left")


class FigureBar(QWidget):
    """Engine and device, in flight, tokens/s, pages/min, done of total, time left, problems."""

    problems_wanted = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 0, 4, 0)
        row.setSpacing(20)
        self._labels: dict[str, QLabel] = {}
        for key in ("test", "device", "flight", "tokens", "pages", "done", "left"):
            label = QLabel()
            label.setProperty("role", "secondary")
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
            self._labels[key] = label
            row.addWidget(label)
        row.addStretch(1)
        self.problems = QToolButton()
        self.problems.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.problems.setIconSize(QSize(14, 14))
        self.problems.clicked.connect(self.problems_wanted)
        row.addWidget(self.problems)
        self._count = 0
        self._progress = ProgressView(RunState.PAUSED)
        self._engine: EngineView | None = None
        self._measured = False
        self._write()
        self._write_problems()

    def minimumSizeHint(self) -> QSize:
        return QSize(200, super().minimumSizeHint().height())

    def set_progress(self, progress: ProgressView) -> None:
        """Show PROGRESS."""
        self._progress = progress
        self._write()

    def set_engine(self, engine: EngineView) -> None:
        """Show the engine's device and memory."""
        self._engine = engine
        self._write()

    def set_measured(self, measured: bool) -> None:
        """Say that a test has the engine's device."""
        self._measured = measured
        self._write()

    def set_problems(self, count: int) -> None:
        """Show how many problems there are."""
        if count != self._count:
            self._count = count
            self._write_problems()

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._theme = theme
        self._write_problems()

    def retranslate(self) -> None:
        """Write everything in the current language."""
        self._write()
        self._write_problems()

    def _texts(self) -> dict[str, str]:
        progress, texts = self._progress, dict.fromkeys(self._labels, "")
        ready = self._engine.ready if self._engine else None
        if self._measured:
            texts["test"] = _("throughput is measured, conversion is paused")
        if ready is not None and self._engine and self._engine.state is EngineState.READY:
            parts = [ready.device]
            if ready.memory_total:
                parts.append(f"{ready.memory_used / (1 << 30):.1f} / "
                             f"{words.bytes_of(ready.memory_total)}")
            elif ready.memory_used:
                parts.append(words.bytes_of(ready.memory_used))
            texts["device"] = words.DOT.join(part for part in parts if part)
        if progress.in_flight:
            texts["flight"] = _("{n} in flight").format(n=progress.in_flight)
        if progress.tokens_per_second >= 0.5 and progress.in_flight:
            texts["tokens"] = _("{n} tokens/s").format(
                n=words.count_of(round(progress.tokens_per_second)))
        if progress.pages_per_minute > 0 and progress.in_flight:
            texts["pages"] = _("{n} pages/min").format(n=f"{progress.pages_per_minute:.3g}")
        if progress.total:
            texts["done"] = _("{n} of {total} pages").format(
                n=words.count_of(progress.finished), total=words.count_of(progress.total))
        if progress.run is RunState.RUNNING and progress.seconds_left > 0:
            texts["left"] = _("{time} left").format(time=words.seconds_of(progress.seconds_left))
        elif progress.run is RunState.PAUSED and progress.finished < progress.total:
            texts["left"] = _("paused")
        return texts

    def _write(self) -> None:
        changed = False
        for key, text in self._texts().items():
            label = self._labels[key]
            if label.text() == text:
                continue
            appeared = bool(label.text()) != bool(text)
            label.setText(text)
            # A figure that gets shorter leaves its room: what stands beside it does not jump.
            wide = label.fontMetrics().horizontalAdvance(text) + 2
            least = max(label.minimumWidth(), wide) if text else 0
            if appeared or least != label.minimumWidth():
                label.setFixedWidth(least)
                changed = True
        if changed:
            self._fit()

    def _write_problems(self) -> None:
        self.problems.setText(ngettext("{n} problem", "{n} problems", self._count).format(
            n=words.count_of(self._count)))
        self.problems.setToolTip(_("Show problems (Alt+P)"))
        self.problems.setVisible(self._count > 0)
        self.problems.setIcon(icon("triangle-alert", self._theme, "warning"))
        self._fit()

    def _fit(self) -> None:
        shown = {key for key, label in self._labels.items() if label.text()}
        spare = self.width() - 24
        if self._count:
            spare -= self.problems.sizeHint().width() + 20

        def needed() -> int:
            return sum(self._labels[key].minimumWidth() + 20 for key in shown)

        for key in _GIVE_WAY:
            if needed() <= spare:
                break
            shown.discard(key)
        for key, label in self._labels.items():
            label.setVisible(key in shown)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
