"""Opens the page Benchmark in a real window, and runs a test on the scripted engine."""

from __future__ import annotations

from collections.abc import Callable

from pytestqt.qtbot import QtBot

from desktop.ui.benchmark.page import BenchmarkPage
from desktop.ui.benchmark.tab import BenchmarkTab
from desktop.ui.benchmark.wish import Wish
from desktop.ui.main_window import MainWindow
from tests.ui.conftest import WAIT

QUICK = Wish(levels="1, 2", warmup=0, rounds=2, cold=False)
DOCUMENT = {
    "started": "2026-11-30T10:00:00", "engine": {"name": "e", "model": "", "device": "d",
                                                 "versions": {}},
    "plan": {"rounds": 1, "gain": None}, "workload": {"pages": 1, "unique": False}}
PAGE = {"text": "word " * 20, "delta": 5, "rate": 400, "prompt_tokens": 100}

Open = Callable[..., tuple[MainWindow, BenchmarkTab, BenchmarkPage]]


def opened(window: MainWindow, qtbot: QtBot) -> tuple[MainWindow, BenchmarkTab, BenchmarkPage]:
    window.actions_["benchmark_page"].trigger()
    tab = window.commands.benchmark
    qtbot.waitUntil(lambda: tab.page is not None, timeout=WAIT)
    assert tab.page is not None
    return window, tab, tab.page


def run(tab: BenchmarkTab, page: BenchmarkPage, qtbot: QtBot, wish: Wish = QUICK) -> None:
    """A test from beginning to end."""
    page.form.set_wish(wish)
    with qtbot.waitSignal(tab.measuring.kept, timeout=WAIT):
        tab.start()
    qtbot.waitUntil(lambda: not tab.measuring.running, timeout=WAIT)
    page.draw_now()
