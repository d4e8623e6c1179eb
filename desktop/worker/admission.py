"""Which waiting page begins next.

In order of priority and arrival, as many at once as the limit says, and no more than what their
cost together may be (:attr:`desktop.engines.base.Engine.budget`). Three rules besides:

* A page that somebody looks at (priority 0, or raised) is the first. Where the limit is the
  engine's own choice it begins at once, one above the limit, never two: a person waits for it,
  and the engine works a little slower for everybody while it lasts. A limit that a person chose
  is kept. Nothing overtakes it.
* A page that is too large for what is left of the budget may be overtaken by smaller ones, so
  that the engine has something to do, but only :data:`PATIENCE` times: then everything waits
  until there is room for it.
* A page that alone costs more than the budget is read alone.

Runs on Python 3.10 with msgspec alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Dict, List, Optional

import msgspec

from desktop.protocol.messages import SubmitPage

PATIENCE = 8
"""Pages that may begin before one that came first and does not fit."""


class _Waiting:
    __slots__ = ("overtaken", "page", "rank")

    def __init__(self, page: SubmitPage, rank: int) -> None:
        self.page = page
        self.rank = page.priority, rank
        """The smallest is the next."""
        self.overtaken = 0

    @property
    def urgent(self) -> bool:
        return self.rank[0] <= 0


class Admission:
    """The pages that wait. Used in the loop's thread only."""

    def __init__(self) -> None:
        self._pages: Dict[str, _Waiting] = {}
        self._turn = 0
        self._express: Optional[str] = None
        """The page that was begun above the limit."""

    def __contains__(self, page_id: str) -> bool:
        return page_id in self._pages

    def add(self, page: SubmitPage) -> None:
        """A page waits; one of the same id gives way to it."""
        self._turn += 1
        self._pages[page.page_id] = _Waiting(page, self._turn)

    def remove(self, page_id: str) -> bool:
        """Forget a page; whether it waited."""
        return self._pages.pop(page_id, None) is not None

    def urge(self, page_id: str) -> None:
        """A page that waits is wanted before all others, also those that were before it."""
        waiting = self._pages.get(page_id)
        if waiting is not None:
            self._turn += 1
            waiting.rank = -1, -self._turn
            # The engine may have a queue of its own, too.
            waiting.page = msgspec.structs.replace(waiting.page, priority=0)

    def next(self, running: Mapping[str, int], limit: int, strict: bool, budget: int,
             cost: Callable[[SubmitPage], int]) -> Optional[SubmitPage]:
        """The page to begin now, taken out; None: none may.

        RUNNING: page id → cost of those that are read. LIMIT: most pages at once; STRICT: also
        for one that is looked at. BUDGET: most cost in sum, 0 for any.
        """
        if self._express not in running:
            self._express = None
        full = len(running) >= limit
        above = full and (strict or limit <= 0 or self._express is not None
                          or len(running) > limit)
        if not self._pages or above:
            return None
        order = sorted((one for page_id, one in self._pages.items() if page_id not in running),
                       key=lambda one: one.rank)
        chosen = self._fitting(order[:1] if full else order, running, budget, cost)
        if chosen is None or (full and not chosen.urgent):
            return None
        if full:
            self._express = chosen.page.page_id
        del self._pages[chosen.page.page_id]
        return chosen.page

    @staticmethod
    def _fitting(order: List[_Waiting], running: Mapping[str, int], budget: int,
                 cost: Callable[[SubmitPage], int]) -> Optional[_Waiting]:
        used = sum(running.values())
        passed: List[_Waiting] = []
        for waiting in order:
            if not running or budget <= 0 or used + cost(waiting.page) <= budget:
                for one in passed:
                    one.overtaken += 1
                return waiting
            if waiting.urgent or waiting.overtaken >= PATIENCE:
                return None
            passed.append(waiting)
        return None
