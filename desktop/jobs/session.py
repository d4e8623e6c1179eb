"""The one object both front ends use: journal, intake and engine behind a few calls.

The session has a thread of its own. Every public method may be called from any thread and
returns at once; what takes time comes back as a ``concurrent.futures.Future``. Listeners are
called on the session's thread with lists of events and must return quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

from desktop.intake.model import RenderedPage
from desktop.jobs.events import DocumentResult, PageResult, SessionEvent
from desktop.settings import Values

Listener = Callable[[Sequence[SessionEvent]], None]


class Session:
    """Documents in, Markdown out, nothing lost in between."""

    def __init__(self, journal: Path, cache: Path, values: Values,
                 *, interpreter: str | None = None) -> None:
        """Open (or create) the journal; nothing runs until :meth:`start`.

        The engine is loaded when the first page needs it or by :meth:`warm_up`.
        """
        raise NotImplementedError

    # --- listening
    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call LISTENER with every batch of events from now on; the first batch describes
        everything there is. Returns the function that ends it."""
        raise NotImplementedError

    # --- the queue
    def add(self, paths: Sequence[Path], *, page_range: str = "") -> Future[list[int]]:
        """Queue files and folders (walked); the ids of the documents, in order."""
        raise NotImplementedError

    def remove(self, document_ids: Sequence[int]) -> None:
        """Take documents out of the queue with their results (the files stay untouched)."""
        raise NotImplementedError

    def unlock(self, document_id: int, password: str) -> Future[bool]:
        """Try PASSWORD on an encrypted document; kept in memory only."""
        raise NotImplementedError

    def set_page_range(self, document_id: int, page_range: str) -> Future[None]:
        """Change which pages are read ("1-3,7"; "" is all); raises BadPageRange."""
        raise NotImplementedError

    # --- running
    def start(self) -> None:
        """Read the waiting pages, now and as they come."""
        raise NotImplementedError

    def pause(self) -> None:
        """Begin no further page; those in flight end."""
        raise NotImplementedError

    def stop(self) -> None:
        """Pause and cancel the pages in flight; they wait again."""
        raise NotImplementedError

    def retry_failed(self) -> int:
        """Queue every suspicious page again; how many."""
        raise NotImplementedError

    def rerun(self, page_ids: Sequence[str]) -> None:
        """Read these pages again, whatever their state."""
        raise NotImplementedError

    def look_at(self, page_id: str | None) -> None:
        """The page a person looks at: it goes first."""
        raise NotImplementedError

    def warm_up(self) -> None:
        """Load the chosen engine before a page needs it."""
        raise NotImplementedError

    # --- settings
    @property
    def values(self) -> Values:
        """The values in force."""
        raise NotImplementedError

    def set_values(self, values: Values) -> None:
        """Use VALUES from now on; a change that needs it restarts the engine between pages."""
        raise NotImplementedError

    # --- results
    def page_result(self, page_id: str) -> Future[PageResult]:
        """Everything there is of a page, also while it streams."""
        raise NotImplementedError

    def document_result(self, document_id: int) -> Future[DocumentResult]:
        """Everything there is of a document, for an export."""
        raise NotImplementedError

    def bitmap(self, page_id: str) -> Future[RenderedPage]:
        """The upright bitmap that engine and canvas share, drawn again if need be. The caller
        deletes it."""
        raise NotImplementedError

    def thumbnail(self, page_id: str, side: int) -> Future[RenderedPage]:
        """A small bitmap, SIDE pixels long; drawn when nothing more urgent waits."""
        raise NotImplementedError

    # --- the end
    def wait(self, timeout: float | None = None) -> bool:
        """Block until nothing is left to do (command line); False when TIMEOUT s ran out."""
        raise NotImplementedError

    def close(self) -> None:
        """End engine and helpers in order; the journal holds everything for the next start."""
        raise NotImplementedError
