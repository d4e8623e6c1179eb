"""Speeds and the time left, against a clock of the test's own."""

from __future__ import annotations

import pytest

from desktop.jobs.events import ProgressView, RunState
from desktop.jobs.progress import PAGE_WINDOW, Progress


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def view(progress: Progress, finished: int = 0, total: int = 100,
         run: RunState = RunState.RUNNING) -> ProgressView:
    return progress.view(run, total, finished, 1)


def test_nothing_is_told_before_anything_happened(clock: Clock) -> None:
    progress = Progress(clock)
    assert view(progress) == ProgressView(RunState.RUNNING, 100, 0, 1, 0.0, 0.0, -1.0)
    progress.begin()
    clock.now += 5
    assert view(progress).seconds_left == -1.0


def test_steady_pages(clock: Clock) -> None:
    progress = Progress(clock)
    progress.begin()
    for _ in range(20):
        clock.now += 2
        progress.tokens(300)
        progress.page()
    told = view(progress, 20)
    assert told.pages_per_minute == pytest.approx(30)
    assert told.seconds_left == pytest.approx(80 * 2)
    assert told.tokens_per_second == pytest.approx(150, rel=0.25)


def test_only_what_happened_lately_counts(clock: Clock) -> None:
    progress = Progress(clock)
    progress.begin()
    for _ in range(100):
        clock.now += 1
        progress.page()
    clock.now += PAGE_WINDOW / 2
    slow = view(progress, 100, 200)
    clock.now += PAGE_WINDOW
    assert view(progress, 100, 200).pages_per_minute == 0
    assert 0 < slow.pages_per_minute < 60


def test_a_pause_tells_no_time_and_the_next_run_starts_anew(clock: Clock) -> None:
    progress = Progress(clock)
    progress.begin()
    for _ in range(5):
        clock.now += 1
        progress.page()
    assert view(progress, 5, run=RunState.PAUSED).seconds_left == -1.0
    progress.end()
    clock.now += 3600
    progress.begin()
    for _ in range(4):
        clock.now += 10
        progress.page()
    assert view(progress, 9).pages_per_minute == pytest.approx(6)


def test_a_flood_of_deltas_needs_no_memory(clock: Clock) -> None:
    progress = Progress(clock)
    progress.begin()
    for _ in range(20_000):
        clock.now += 0.0005
        progress.tokens(1)
    assert len(progress._tokens) <= 101
    assert view(progress).tokens_per_second == pytest.approx(2000, rel=0.05)
