"""What the worker's events say about the requests of a level."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque

from desktop.benchmark.records import Timing
from desktop.protocol.messages import (
    PageFinished,
    PageRestarted,
    PageStarted,
    PageText,
)

WINDOW = 2.0
"""Seconds that live rates are over."""


class Tracked:
    """One request that is under way; ``done`` gets its timing, or what broke the level."""

    def __init__(self, timing: Timing, heard: float) -> None:
        self.timing = timing
        self.heard = heard
        """When anything was last heard of it."""
        self.done: asyncio.Future[Timing] = asyncio.get_running_loop().create_future()
        self._text = hashlib.sha256()

    def take(self, event: object, now: float) -> tuple[int, int]:
        """Note EVENT; tokens and characters that it brought."""
        self.heard = now
        timing = self.timing
        if isinstance(event, PageText):
            self._text.update(event.text.encode("utf-8", "surrogatepass"))
            for at, tokens, characters in event.times or ((now, event.tokens, len(event.text)),):
                timing.times.append(at)
                timing.tokens.append(tokens)
                timing.characters.append(characters)
            return event.tokens, len(event.text)
        if isinstance(event, PageStarted):
            timing.started = event.at or now
        elif isinstance(event, PageRestarted):
            timing.restarts += 1
            self._text = hashlib.sha256()
            for column in (timing.times, timing.tokens, timing.characters):
                del column[:]
        elif isinstance(event, PageFinished):
            self._finish(event, now)
        return 0, 0

    def _finish(self, event: PageFinished, now: float) -> None:
        timing = self.timing
        timing.outcome = event.finish
        timing.problem = event.problem.problem() if event.problem is not None else None
        timing.ended = timing.started + event.seconds if timing.started else now
        timing.prompt_tokens = event.prompt_tokens
        # Tokens of what no longer holds were spent, but nobody has anything of them.
        timing.output_tokens = sum(timing.tokens) if timing.restarts else event.output_tokens
        timing.digest = self._text.hexdigest()[:16]
        if not self.done.done():
            self.done.set_result(timing)


class Rates:
    """Throughput of the last seconds."""

    def __init__(self, now: float) -> None:
        self._marks: deque[tuple[float, int, int, int]] = deque([(now, 0, 0, 0)])
        self.tokens = self.characters = self.pages = 0

    def look(self, now: float) -> tuple[float, float, float]:
        """Tokens, characters and pages a second over the last seconds."""
        while len(self._marks) > 1 and self._marks[1][0] <= now - WINDOW:
            self._marks.popleft()
        at, tokens, characters, pages = self._marks[0]
        self._marks.append((now, self.tokens, self.characters, self.pages))
        seconds = now - at
        if seconds <= 0:
            return 0.0, 0.0, 0.0
        return ((self.tokens - tokens) / seconds, (self.characters - characters) / seconds,
                (self.pages - pages) / seconds)
