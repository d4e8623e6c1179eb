"""The application's end of the worker: start, submit, cancel, restart, close."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from desktop.errors import Problem
from desktop.protocol.messages import AnyEvent, SubmitPage


@dataclass(frozen=True)
class WorkerDied:
    """The worker is gone. PAGES were submitted and not finished, in order of submission: they
    are the caller's again. RESTART_IN: seconds until it is started again, None when it is not."""

    problem: Problem
    pages: tuple[str, ...]
    restart_in: float | None


ClientEvent = AnyEvent | WorkerDied


class EngineClient:
    """One worker process with one engine, kept alive. Thread-safe; no call blocks.

    A worker that dies is started again after a pause that doubles with each death in a row
    (reset by a finished page); the engine is loaded again with the same settings. A start that
    takes longer than ``ready_seconds`` is given up. After too many deaths in a row, or when the
    engine says that starting again cannot help, it stays down until :meth:`start`.
    """

    def __init__(self, on_event: Callable[[ClientEvent], None],
                 *, interpreter: str | None = None) -> None:
        """ON_EVENT is called on the client's reader thread. INTERPRETER: the Python that runs
        the worker, None for this one."""
        raise NotImplementedError

    def start(self, engine: str, settings: dict[str, Any]) -> None:
        """Start (or restart with other settings) the worker and load ENGINE."""
        raise NotImplementedError

    def submit(self, page: SubmitPage) -> None:
        """Hand over a page; events about it follow. Before EngineReady it waits in the worker."""
        raise NotImplementedError

    def cancel(self, page_id: str) -> None:
        """Stop a page; it ends with PageFinished(finish="cancelled")."""
        raise NotImplementedError

    def raise_page(self, page_id: str) -> None:
        """A submitted page is wanted first."""
        raise NotImplementedError

    def set_concurrency(self, pages: int) -> None:
        """At most this many pages at once; 0: the engine's own choice."""
        raise NotImplementedError

    def close(self, timeout: float = 5.0) -> None:
        """Ask, then TERM, then KILL; blocks until no process of the worker's group is left."""
        raise NotImplementedError
