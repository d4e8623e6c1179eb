"""What is seen of a test while it runs: its title, live figures, rows, devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from desktop.benchmark.plan import Plan
from desktop.i18n import _
from desktop.ui import words
from desktop.ui.benchmark.figures import Shown, strategy_words
from desktop.ui.benchmark.measuring import News, Phase
from desktop.ui.benchmark.readings import Readings

if TYPE_CHECKING:
    from desktop.ui.benchmark.page import BenchmarkPage

_CHARTS_MS = 1_000
"""Between two drawings of the charts while a test runs."""


class Following(QObject):
    """Shows deliveries of the measurement on PAGE."""

    def __init__(self, page: BenchmarkPage, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._page = page
        self.shown = Shown()
        """As far as the test is; the charts are drawn a little later."""
        self.readings = Readings()
        self._draw = QTimer(self)
        self._draw.setSingleShot(True)
        self._draw.setInterval(_CHARTS_MS)
        self._draw.timeout.connect(lambda: page.set_shown(self.shown))

    def begin(self) -> None:
        """Another test: nothing of it is known."""
        self.shown, self.readings = Shown(), Readings()
        page = self._page
        page.end_comparison()
        page.set_readings(self.readings)
        page.set_shown(self.shown)
        page.stack.setCurrentIndex(1)
        page.tabs.setCurrentIndex(0)
        page.live.begin()
        page.live.set_title(_("Opening the pages"))

    def stop(self) -> None:
        """The test has ended, or the window closes: nothing more is drawn from here."""
        self._draw.stop()

    def take(self, news: News, phase: Phase, plan: Plan) -> None:
        """Show NEWS of the test of PLAN."""
        page, live = self._page, self._page.live
        if news.rows:
            for index, row in sorted(news.rows.items()):
                self.shown = self.shown.with_row(index, row)
            page.set_rows(self.shown)
            if not self._draw.isActive():
                self._draw.start()
        if phase is Phase.RUNNING:
            title = title_of(news, plan)
            if title:
                live.set_title(title)
            if news.live is not None:
                live.show_live(news.live, _left(news))
        live.pulse.add(news.speeds)
        if news.samples:
            self.readings.add(news.samples)
            page.devices.refresh_soon()


def title_of(news: News, plan: Plan) -> str:
    """What is going on; "" where that did not change."""
    if news.round is not None:
        one = news.round
        at = _level_words(one.level.concurrency, str(one.level.strategy))
        return words.DOT.join(({
            "cold": _("Cold round"),
            "warm-up": _("Warm-up {n} of {total}").format(n=one.number, total=plan.warmup),
        }.get(one.kind, _("Round {n} of {total}").format(n=one.number, total=plan.rounds)), at))
    if news.progress is not None:
        step = news.progress.step or _("Engine starts")
        if news.progress.fraction >= 0:
            step += f" {news.progress.fraction:.0%}"
        return step
    if news.level is not None:
        return words.DOT.join((_("Engine starts"), _level_words(
            news.level.level.concurrency, str(news.level.level.strategy))))
    return ""


def _level_words(concurrency: int, strategy: str) -> str:
    if strategy == "continuous":
        return _("{n} at once").format(n=concurrency)
    return strategy_words(strategy)


def _left(news: News) -> float | None:
    """Seconds, from how long it took so far."""
    live = news.live
    if live is None or live.done < 4 or live.expected <= live.done:
        return None
    return live.at / live.done * (live.expected - live.done)
