"""Reading order of blocks.

A before B where A stands above B in the same column, or where A's column is left of B's and
nothing that reaches over both stands between them; a topological sort of these relations gives
the order (T. M. Breuel, "High performance document layout analysis", 2003).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from desktop.engines.embedded.model import Box


def reading_order(boxes: Sequence[Box], right_to_left: bool = False) -> list[int]:
    """The indices of BOXES in the order in which a person reads them."""
    count = len(boxes)
    if count < 2:
        return list(range(count))
    table = np.array(boxes, np.float64)
    if right_to_left:
        table[:, [0, 2]] = -table[:, [2, 0]]
    x1, y1, x2, y2 = _shrunk(table)
    middle = (y1 + y2) / 2
    columns = (np.minimum(x2[:, None], x2) - np.maximum(x1[:, None], x1)) > 0
    above = columns & (middle[:, None] < middle[None, :])
    left = x2[:, None] <= x1[None, :]
    before = above.copy()
    for a in range(count):
        beside = np.flatnonzero(left[a] & ~columns[a])
        # A column that begins below B is not beside it (B is centred above columns).
        low = y1[a] >= y2[beside]
        reaches = (columns[a][:, None] & left[:, beside] & (y1[:, None] < y2[beside])).any(axis=0)
        beside = beside[~low | reaches]
        shared = columns[a] & columns[beside]
        between = (shared & (middle > np.minimum(middle[a], middle[beside])[:, None])
                   & (middle < np.maximum(middle[a], middle[beside])[:, None])
                   & (y1 >= np.minimum(y1[a], y1[beside])[:, None])
                   & (y2 <= np.maximum(y2[a], y2[beside])[:, None]))
        before[a, beside[~between.any(axis=1)]] = True
    np.fill_diagonal(before, False)
    return _sorted(before, x1, y1)


def _shrunk(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Columns of the boxes, a little smaller so that boxes that just touch do not overlap."""
    width, height = table[:, 2] - table[:, 0], table[:, 3] - table[:, 1]
    dx, dy = np.minimum(width * 0.04, 6), np.minimum(height * 0.1, 12)
    return table[:, 0] + dx, table[:, 1] + dy, table[:, 2] - dx, table[:, 3] - dy


def _sorted(before: NDArray[np.bool_], x1: NDArray[np.float64],
            y1: NDArray[np.float64]) -> list[int]:
    """Topological order; where relations contradict each other the upper block goes first."""
    waiting = before.sum(axis=0).astype(np.int64)
    left = set(range(len(x1)))
    order: list[int] = []
    while left:
        ready = [index for index in left if waiting[index] == 0]
        if ready:
            index = min(ready, key=lambda i: (y1[i] // 8, x1[i]))
        else:
            index = min(left, key=lambda i: (waiting[i], y1[i], x1[i]))
        order.append(index)
        left.discard(index)
        waiting -= before[index]
    return order
