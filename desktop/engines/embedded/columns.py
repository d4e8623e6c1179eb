"""Where the columns of a table part."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from desktop.engines.embedded.model import Box, Line
from desktop.engines.embedded.pieces import Rules, place


def columns_of(table: Sequence[Sequence[Line]], rules: Rules, box: Box,
             size: float) -> list[float]:
    """The x of the borders between columns."""
    most = max(len(row) for row in table)
    dense = [row for row in table if len(row) >= max(2, 0.5 * most)] or list(table)
    places = [[place(piece) for piece in row] for row in dense]
    events = sorted({edge for row in places for p in row for edge in (p[0], p[2])})
    allowed = 0.2 * len(dense)
    gaps: list[tuple[float, float]] = []
    for left, right in pairwise(events):
        x = (left + right) / 2
        crossing = sum(any(p[0] < x < p[2] for p in row) for row in places)
        if crossing <= allowed:
            if gaps and gaps[-1][1] == left:
                gaps[-1] = (gaps[-1][0], right)
            else:
                gaps.append((left, right))
    gaps = [part for index in range(len(gaps)) for part in _around(gaps, index, places, size)]
    gaps = [(a, b) for a, b in gaps if b - a >= 0.22 * size and _parts(places, (a + b) / 2)]
    borders = [(a + b) / 2 for a, b in gaps]
    height = box[3] - box[1]
    for x, length in gathered(rules.down, size):
        if length < 0.25 * height or not box[0] + size < x < box[2] - size:
            continue
        near = [i for i, (a, b) in enumerate(gaps) if a - 0.5 * size < x < b + 0.5 * size]
        if near:
            borders[near[0]] = x
        elif not any(abs(x - other) < 0.8 * size for other in borders):
            borders.append(x)
    return _framed(sorted(borders), places, rules, box, size)


def _framed(borders: list[float], places: Sequence[Sequence[Box]], rules: Rules, box: Box,
            size: float) -> list[float]:
    """BORDERS without those between two vertical rules that part no two texts of one row."""
    drawn = [x for x, length in gathered(rules.down, size) if length >= 0.25 * (box[3] - box[1])]
    inner = [x for x in drawn if box[0] + size < x < box[2] - size]
    if len(inner) < 2:
        return borders
    edges = [float("-inf"), *inner, float("inf")]
    kept: list[float] = []
    for border in borders:
        if any(abs(border - x) < size for x in inner):
            kept.append(border)
            continue
        low = max(x for x in edges if x <= border)
        high = min(x for x in edges if x > border)
        if any(any(low - 2 <= p[0] and p[2] <= border for p in row)
               and any(border <= p[0] and p[2] <= high + 2 for p in row) for row in places):
            kept.append(border)
    return kept


def _around(gaps: Sequence[tuple[float, float]], index: int,
            places: Sequence[Sequence[Box]], size: float) -> list[tuple[float, float]]:
    """A gap that few rows cross, cut around columns that hold text in those few rows only.

    A piece inside the gap is a column of its own where its row has a text in the columns on
    both sides as well; otherwise it is only set off from its column's numbers.
    """
    low, high = gaps[index]
    before = gaps[index - 1][1] - size if index else float("-inf")
    after = gaps[index + 1][0] + size if index + 1 < len(gaps) else float("inf")
    within: list[tuple[float, float]] = []
    for row in places:
        inner = [(p[0], p[2]) for p in row if low < p[0] and p[2] < high]
        middles = [(p[0] + p[2]) / 2 for p in row if not (low < p[0] and p[2] < high)]
        if inner and any(before < x < low + size for x in middles) and any(
                high - size < x < after for x in middles):
            within += inner
    parts: list[tuple[float, float]] = []
    start = low
    for left, right in sorted(within):
        if left > start:
            parts.append((start, left))
        start = max(start, right)
    return [*parts, (start, high)]


def _parts(places: Sequence[Sequence[Box]], x: float) -> bool:
    """Whether some row has text on both sides of X."""
    return any(any(p[2] <= x + 1 for p in row) and any(p[0] >= x - 1 for p in row)
               for row in places)


def gathered(down: Sequence[tuple[float, float, float]],
              size: float) -> list[tuple[float, float]]:
    """Vertical rules by place: x and the length covered there."""
    found: list[list[tuple[float, float, float]]] = []
    for rule in down:
        if found and rule[0] - found[-1][-1][0] < 0.4 * size:
            found[-1].append(rule)
        else:
            found.append([rule])
    return [(sum(r[0] for r in group) / len(group),
             _covered([(r[1], r[2]) for r in group])) for group in found]


def _covered(intervals: Sequence[tuple[float, float]]) -> float:
    total, end = 0.0, float("-inf")
    for low, high in sorted(intervals):
        total += max(0.0, high - max(low, end))
        end = max(end, high)
    return total


def span(piece: Line, borders: Sequence[float]) -> tuple[int, int]:
    """First and last column that PIECE covers by more than its edge."""
    box = place(piece)
    slack = min(0.35 * piece.size, (box[2] - box[0]) / 3)
    first = sum(x <= box[0] + slack for x in borders)
    last = sum(x < box[2] - slack for x in borders)
    return first, max(first, last)
