"""Who has the engine: reading has it, unless a measurement borrowed its device.

Everything in the window that starts reading, or the engine, goes through here. While a measurement
runs that is noted, and done when the engine is given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from desktop.jobs.events import EngineState, ProgressView, RunState
from desktop.jobs.session import Session


class EngineUse:
    """Starts and stops reading."""

    def __init__(self, session: Session, on_wait: Callable[[], None]) -> None:
        """ON_WAIT is called where something was asked for that has to wait."""
        self._session = session
        self._on_wait = on_wait
        self.lent = False
        """Whether a measurement has the engine's device."""
        self._start = False
        self._load = False

    def start(self) -> None:
        """Read the waiting pages, now or once the engine is back."""
        if self.lent:
            self._start = True
            self._on_wait()
        else:
            self._session.start()

    def warm_up(self) -> None:
        """Load the engine, now or once its device is back."""
        if self.lent:
            self._load = True
            self._on_wait()
        else:
            self._session.warm_up()

    def pause(self) -> None:
        """Begin no further page."""
        self._start = False
        self._session.pause()

    def stop(self) -> None:
        """Stop the pages in flight."""
        self._start = False
        self._session.stop()

    async def lend(self, progress: ProgressView) -> None:
        """Stop reading and end the engine; returns when its device is free. PROGRESS: as the
        session said last."""
        self.lent = True
        self._start = progress.run is RunState.RUNNING and progress.finished < progress.total
        self._load = self._session.engine.state in (
            EngineState.READY, EngineState.LOADING, EngineState.RESTARTING)
        await asyncio.wrap_future(self._session.release_engine())

    def give_back(self) -> None:
        """Go on as before, and as was asked for meanwhile."""
        if not self.lent:
            return
        self.lent = False
        if self._start:
            self._session.start()
        if self._load:
            self._session.warm_up()
        self._start = self._load = False
