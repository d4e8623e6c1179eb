"""Which page next. Pure decisions; the session carries them out.

A page passes through a bounded *window*: it is drawn, handed to the engine, read. No more pages
are in it than the engine works on and a few that are drawn ahead, so a document of any length
needs the same memory and disk.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from desktop.jobs.records import PageKey

PREFETCH = 2
"""Pages drawn ahead of those the engine works on."""

MAX_DEATHS = 3
"""A page whose worker died this often is given up."""

ALONE_AFTER = 2
"""A page whose worker died this often is read alone, so that it takes no other down with it."""


class Queue(Protocol):
    """The waiting pages, as the journal has them."""

    def next_waiting(self, skip: Collection[PageKey], limit: int) -> list[PageKey]:
        """The first LIMIT waiting pages in queue order, without SKIP."""
        ...

    def is_waiting(self, key: PageKey) -> bool:
        """Whether this page may be read now."""
        ...


@dataclass(frozen=True)
class Candidate:
    """A page in the window. DEATHS: how often the worker died while it read the page."""

    key: PageKey
    deaths: int = 0

    @property
    def alone(self) -> bool:
        """Whether it is suspected of killing the worker."""
        return self.deaths >= ALONE_AFTER


def given_up(deaths: int) -> bool:
    """Whether a page whose worker died DEATHS times is not tried again."""
    return deaths >= MAX_DEATHS


def window_size(capacity: int) -> int:
    """How many pages may be in the window when the engine reads CAPACITY pages at once."""
    return max(1, capacity) + PREFETCH


def to_begin(queue: Queue, active: Collection[PageKey], window: int,
             looked_at: PageKey | None = None) -> list[PageKey]:
    """The pages to take into the window now, most urgent first.

    ACTIVE are those in it. The page LOOKED_AT goes first, then queue order; it is the one page
    that may enter a window that is just full, because a person waits for it.
    """
    chosen = []
    if (looked_at is not None and looked_at not in active and len(active) <= window
            and queue.is_waiting(looked_at)):
        chosen.append(looked_at)
    room = window - len(active) - len(chosen)
    if room > 0:
        chosen += queue.next_waiting([*active, *chosen], room)
    return chosen


def to_put_back(queue: Queue, active: Collection[PageKey], unbegun: Collection[PageKey],
                window: int, looked_at: PageKey | None = None) -> PageKey | None:
    """The page of those UNBEGUN by the engine that makes room for the page LOOKED_AT; None when
    none has to. Somebody who leafs through a document must not fill the window."""
    if looked_at is None or looked_at in active or len(active) <= window or not unbegun:
        return None
    return max(unbegun) if queue.is_waiting(looked_at) else None


def to_submit(drawn: Sequence[Candidate], submitted: Sequence[Candidate],
              looked_at: PageKey | None = None) -> list[PageKey]:
    """Those of the DRAWN pages to hand to the engine now, in order.

    SUBMITTED are with the engine already. A suspected page waits until it can be alone, and
    while it is with the engine nothing else is.
    """
    if any(candidate.alone for candidate in submitted):
        return []
    order = sorted(drawn, key=lambda candidate: (candidate.key != looked_at, candidate.key))
    chosen: list[PageKey] = []
    for candidate in order:
        if candidate.alone:
            if not submitted and not chosen:
                return [candidate.key]
            break
        chosen.append(candidate.key)
    return chosen
