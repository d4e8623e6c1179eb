"""The page Benchmark in a window of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pytestqt.qtbot import QtBot

from desktop.ui.benchmark.page import BenchmarkPage
from desktop.ui.benchmark.tab import BenchmarkTab
from desktop.ui.main_window import MainWindow
from tests.ui.benchmark.driving import PAGE, Open, opened
from tests.ui.conftest import WAIT


@pytest.fixture
def bench(script: Callable[..., None], request: pytest.FixtureRequest,
          qtbot: QtBot) -> Iterator[Open]:
    """``bench(pages=[…])``: a window of its own with the page in front."""
    made: list[BenchmarkTab] = []

    def call(**content: object) -> tuple[MainWindow, BenchmarkTab, BenchmarkPage]:
        script(**{"capacity": 8, "model": "m-1", "pages": [PAGE], **content})
        found = opened(request.getfixturevalue("window"), qtbot)
        made.append(found[1])
        return found

    yield call
    for tab in made:
        tab.measuring.cancel()
        qtbot.waitUntil(lambda tab=tab: not tab.measuring.running, timeout=WAIT)
