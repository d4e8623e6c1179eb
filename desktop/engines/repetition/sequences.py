"""Sequences of ids: whether they repeat themselves, whether they are but a few."""

from __future__ import annotations

from collections import Counter, deque
from typing import Deque, Dict, List, Tuple


class Period:
    """Follows the shortest distance at which a sequence of ids repeats itself."""

    __slots__ = ("context", "ids", "last", "length", "matched", "new", "short", "streak")

    def __init__(self, ids: List[int], context: int) -> None:
        self.ids = ids
        self.context = context
        self.last: Dict[Tuple[int, ...], int] = {}
        self.length = 0
        """Ids in one turn; 0: no repetition."""
        self.matched = 0
        """Ids equal to those one turn before, without a break."""
        self.short = self.streak = 0
        """The nearest distance of the last context, and for how many ids it has been the same:
        finds a short period inside a long one that happens to hold as well."""
        self.new = True
        """Whether the last context was never seen before."""

    def push(self) -> None:
        """An id was appended."""
        ids, size = self.ids, len(self.ids)
        if self.length and ids[-1] == ids[-1 - self.length]:
            self.matched += 1
        else:
            self.length = self.matched = 0
        if size < self.context:
            return
        key = tuple(ids[-self.context:])
        before = self.last.get(key)
        self.last[key] = size
        self.new = before is None
        if before is None:
            self.short = self.streak = 0
            return
        distance = size - before
        if distance == self.short:
            self.streak += 1
        else:
            self.short, self.streak = distance, self.context
        if not self.length:
            self.length, self.matched = distance, self.context


class Few:
    """How many different ones are among the last so many."""

    __slots__ = ("_counts", "_last", "_most", "weight")

    def __init__(self, most: int) -> None:
        self._most = most
        self._last: Deque[Tuple[int, int]] = deque()
        self._counts: Counter[int] = Counter()
        self.weight = 0
        """Sum of what was added with them."""

    @property
    def different(self) -> int:
        return len(self._counts)

    def add(self, item: int, weight: int = 0) -> bool:
        """Whether there are so many by now."""
        self._last.append((item, weight))
        self._counts[item] += 1
        self.weight += weight
        if len(self._last) > self._most:
            old, lost = self._last.popleft()
            self.weight -= lost
            self._counts[old] -= 1
            if not self._counts[old]:
                del self._counts[old]
        return len(self._last) == self._most

    def clear(self) -> None:
        if self._last:
            self._last.clear()
            self._counts.clear()
            self.weight = 0
