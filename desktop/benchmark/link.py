"""The engine of a level: started, given pages, listened to, released."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from desktop.benchmark.clock import Clock
from desktop.benchmark.errors import EngineDiedMeasured, EngineSilent
from desktop.benchmark.feed import Ready, Source
from desktop.benchmark.records import Timing
from desktop.benchmark.sampling import Sample
from desktop.benchmark.tracking import Rates, Tracked
from desktop.client.client import ClientEvent, WorkerDied
from desktop.errors import RemoteProblem, VersoError
from desktop.i18n import _
from desktop.jobs.preparing import Prepared
from desktop.protocol.messages import (
    EngineFailed,
    EngineLoading,
    EngineReady,
    Hello,
    PageFinished,
    SubmitPage,
)
from desktop.settings import Values, setting

RELEASE = 20.0
"""Seconds for an engine to release what it holds between two levels."""
RELEASE_AT_ONCE = 2.0
"""Likewise when nobody wants to wait."""


class Client(Protocol):
    """The part of :class:`desktop.client.client.EngineClient` that is used."""

    def start(self, engine: str, settings: dict[str, Any], *,
              interpreter: str | None = None) -> None:
        """Start a worker with the engine."""

    def submit(self, page: SubmitPage) -> None:
        """Hand over a page."""

    def set_concurrency(self, pages: int) -> None:
        """At most so many at once."""

    def close(self, timeout: float = 5.0) -> None:
        """End the worker; blocks."""


class Sampling(Protocol):
    """Something that samples devices from ``start`` to ``stop``."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """End."""


@dataclass(frozen=True)
class Surroundings:
    """What a measurement works with; tests put in their own."""

    clock: Clock
    client: Callable[[Callable[[ClientEvent], None]], Client]
    """Makes a client that tells its events to a function, on any thread."""
    source: Source
    prepare: Callable[[Values, threading.Event], Prepared]
    """Interpreter and model; blocks; the event ends it early; raises VersoError."""
    sampling: Callable[[Callable[[Sample], None], Callable[[], int]], Sampling] | None = None
    """Makes a sampler that tells its samples to a function, on any thread, and asks for the
    worker's process id, 0: none."""


class LevelBroken(Exception):
    """The level cannot go on. HOPELESS: nor can any other, for the same reason."""

    def __init__(self, error: VersoError, *, hopeless: bool = False) -> None:
        super().__init__(str(error))
        self.error = error
        self.hopeless = hopeless


class EngineLink:
    """One engine at a time. Used in the loop's thread."""

    def __init__(self, surroundings: Surroundings, values: Values,
                 progress: Callable[[str, float], None]) -> None:
        """PROGRESS gets the steps of loading."""
        self._by = surroundings
        self._values = values
        self._progress = progress
        self._loop = asyncio.get_running_loop()
        self._clock = surroundings.clock
        self._client: Client | None = None
        self._loaded: asyncio.Future[EngineReady] | None = None
        self._running: dict[str, Tracked] = {}
        self._broken: VersoError | None = None
        self.ready: EngineReady | None = None
        """What the engine got that was started last."""
        self.pid = 0
        """Of the worker; 0: none runs."""
        self.rates = Rates(self._clock.now())
        self.cancel = threading.Event()
        """Set when nobody wants to wait any more."""

    @property
    def running(self) -> bool:
        """Whether there is an engine."""
        return self._client is not None

    @property
    def in_flight(self) -> int:
        """Pages that it reads."""
        return sum(bool(tracked.timing.started) for tracked in self._running.values())

    async def start(self, concurrency: int, most: int) -> float:
        """Start an engine in place of the one that runs, with room for MOST pages at once, and have
        it read CONCURRENCY; seconds until it was ready. Raises LevelBroken."""
        await self.release()
        values = self._values.with_(concurrency=most)
        begin = self._clock.now()
        try:
            prepared = await self._loop.run_in_executor(
                None, self._by.prepare, values, self.cancel)
        except VersoError as error:
            raise LevelBroken(error, hopeless=True) from error
        self._broken = self.ready = None
        self._loaded = self._loop.create_future()
        self._client = self._by.client(self._arrived)
        self._client.set_concurrency(concurrency)
        self._client.start(values["engine"], prepared.settings, interpreter=prepared.interpreter)
        self.ready = await self._loaded
        return self._clock.now() - begin

    def set_concurrency(self, concurrency: int) -> None:
        """From now on it reads as many pages at once."""
        assert self._client is not None
        self._client.set_concurrency(concurrency)

    def submit(self, page_id: str, ready: Ready, number: int) -> asyncio.Future[Timing]:
        """Hand over the NUMBERth page of a round; its end. Raises LevelBroken, now or there."""
        if self._broken is not None:
            raise LevelBroken(self._broken)
        assert self._client is not None
        assert ready.rendered is not None
        rendered = ready.rendered
        now = self._clock.now()
        tracked = Tracked(Timing(number, ready.page.name, now, drawing=ready.seconds), now)
        self._running[page_id] = tracked
        self._client.submit(SubmitPage(
            page_id, rendered.image, rendered.width, rendered.height, rendered.words,
            {**self._values.as_dict(), "source": "pdf" if rendered.paged else "image"},
            timed=True))
        return tracked.done

    def find_silent(self) -> None:
        """Break the level where nothing has been heard of a page for too long."""
        now, limit = self._clock.now(), float(self._values["stall_seconds"])
        # A page that waits its turn is silent as long as others are read.
        watched = [tracked for tracked in self._running.values() if tracked.timing.started] or list(
            self._running.values())
        if any(now - tracked.heard > limit for tracked in watched):
            declared = setting("stall_seconds")
            self._break(EngineSilent(seconds=f"{limit:g}", title=_(declared.title),
                                     flag=declared.flag))

    async def release(self) -> None:
        """End the engine, if one runs; its pages are nobody's any more."""
        client, self._client = self._client, None
        self.pid = 0
        for tracked in self._running.values():
            tracked.done.cancel()
        self._running.clear()
        if client is not None:
            await self._loop.run_in_executor(
                None, client.close, RELEASE_AT_ONCE if self.cancel.is_set() else RELEASE)

    # --- what it tells

    def _arrived(self, event: ClientEvent) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know
            self._loop.call_soon_threadsafe(self._handle, event)

    def _handle(self, event: ClientEvent) -> None:
        if self._client is None:
            return
        if isinstance(event, Hello):
            self.pid = event.pid
        elif isinstance(event, EngineLoading):
            self._progress(event.step, event.fraction)
        elif isinstance(event, EngineReady):
            if self._loaded is not None and not self._loaded.done():
                self._loaded.set_result(event)
        elif isinstance(event, EngineFailed):
            self._break(RemoteProblem(event.problem.problem()))
        elif isinstance(event, WorkerDied):
            self._break(RemoteProblem(event.problem) if self.ready is None
                        else EngineDiedMeasured(reason=event.problem.message,
                                                detail=event.problem.detail))
        else:
            self._handle_page(event, str(getattr(event, "page_id", "")))

    def _handle_page(self, event: object, page_id: str) -> None:
        tracked = self._running.get(page_id)
        if tracked is None:
            return
        tokens, characters = tracked.take(event, self._clock.now())
        self.rates.tokens += tokens
        self.rates.characters += characters
        if isinstance(event, PageFinished):
            del self._running[page_id]

    def _break(self, error: VersoError) -> None:
        """The engine is of no use any more: who waits for it hears of it. The first reason
        counts; what follows from it is known less exactly."""
        if self._broken is not None:
            return
        self._broken = error
        if self._loaded is not None and not self._loaded.done():
            self._loaded.set_exception(LevelBroken(error))
        for tracked in self._running.values():
            if not tracked.done.done():
                tracked.done.set_exception(LevelBroken(error))
        self._running.clear()
