"""How fast it goes and how long it takes, from what happened lately."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from desktop.jobs.events import ProgressView, RunState

TOKEN_WINDOW = 10.0
"""Seconds over which tokens a second are averaged."""

PAGE_WINDOW = 120.0
"""Seconds over which pages a minute are averaged."""

MIN_PAGES = 2
"""Pages that must be done before a time left is told."""


class Progress:
    """Counts tokens and pages against a clock (seconds, monotonic)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tokens: deque[tuple[float, int]] = deque()
        self._pages: deque[float] = deque()
        self._began: float | None = None

    def begin(self) -> None:
        """Pages are being read from now on."""
        if self._began is None:
            self._began = self._clock()

    def end(self) -> None:
        """Nothing is being read any more; speeds start anew with the next page."""
        self._began = None
        self._tokens.clear()
        self._pages.clear()

    def tokens(self, count: int) -> None:
        """COUNT tokens arrived."""
        if count:
            now = self._clock()
            # One entry for each tenth of a second, however fast they come.
            if self._tokens and now - self._tokens[-1][0] < 0.1:
                self._tokens[-1] = (self._tokens[-1][0], self._tokens[-1][1] + count)
            else:
                self._tokens.append((now, count))

    def page(self) -> None:
        """A page was finished."""
        self._pages.append(self._clock())

    def view(self, run: RunState, total: int, finished: int, in_flight: int) -> ProgressView:
        """The figures now."""
        now = self._clock()
        while self._tokens and self._tokens[0][0] < now - TOKEN_WINDOW:
            self._tokens.popleft()
        while self._pages and self._pages[0] < now - PAGE_WINDOW:
            self._pages.popleft()
        if self._began is None:
            return ProgressView(run, total, finished, in_flight)
        running = max(now - self._began, 1e-3)
        tokens = sum(count for _, count in self._tokens) / min(max(running, 1.0), TOKEN_WINDOW)
        per_second = len(self._pages) / min(running, PAGE_WINDOW)
        left = -1.0
        if run is RunState.RUNNING and len(self._pages) >= MIN_PAGES:
            left = (total - finished) / per_second
        return ProgressView(run, total, finished, in_flight, tokens, per_second * 60, left)
