"""Where waiting meets Qt: coroutines on the window's loop, none of which fails unseen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from desktop.errors import Problem, VersoError, problem_of

log = logging.getLogger(__name__)


class Tasks:
    """Runs coroutines on LOOP; an error of one becomes a problem that ON_PROBLEM shows."""

    def __init__(self, loop: asyncio.AbstractEventLoop,
                 on_problem: Callable[[Problem], None]) -> None:
        self._loop = loop
        self._on_problem = on_problem
        self._running: set[asyncio.Task[Any]] = set()
        self._keyed: dict[str, asyncio.Task[Any]] = {}
        self._closed = False

    def spawn(self, work: Coroutine[Any, Any, Any], key: str = "") -> None:
        """Run WORK; one of the same KEY that still runs is cancelled first."""
        if self._closed:
            work.close()
            return
        if key and key in self._keyed:
            self._keyed.pop(key).cancel()
        task = self._loop.create_task(work)
        self._running.add(task)
        if key:
            self._keyed[key] = task
        task.add_done_callback(lambda done: self._done(done, key))

    def _done(self, task: asyncio.Task[Any], key: str) -> None:
        self._running.discard(task)
        if key and self._keyed.get(key) is task:
            del self._keyed[key]
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            return
        if not isinstance(error, VersoError):
            log.error("a task of the window failed", exc_info=error)
        if not self._closed:
            self._on_problem(problem_of(error))

    def close(self) -> None:
        """Cancel everything; nothing new is taken."""
        self._closed = True
        for task in list(self._running):
            task.cancel()
