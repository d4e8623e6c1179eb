"""Where tables stand on a page: by the layout model, by drawn rules, by alignment."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from desktop.engines.embedded.model import (
    Block,
    Box,
    Line,
    area,
    inside,
    overlap,
    rows,
    shared,
    union,
)

_TOUCH = 4.0
"""Pixels within which two rules meet."""


def find(lines: Sequence[Line], proposed: Sequence[Box], rules: Sequence[Box],
         body: float) -> tuple[list[Block], list[Line]]:
    """The tables among LINES, and the lines outside of them.

    PROPOSED are the layout model's tables, RULES the drawn lines of the page.
    """
    candidates = [(box, "rules") for box in _lattices(rules, body)]
    candidates += [(box, "model") for box in proposed]
    candidates += [(box, "between") for box in _between(rules, lines, body)]
    tables: list[Block] = []
    framed: set[int] = set()
    free = list(lines)
    for box, source in candidates:
        known = next((t for t in tables if shared(t.box, box) > 0.5 * min(
            area(t.box), area(box))), None)
        within = [line for line in free if inside(line.box, box) > 0.6]
        if known is not None:
            if source == "model" and within and area(box) < 3 * area(known.box):
                beyond = [line for line in within if line.box[1] > known.box[3] - 2
                          or line.box[3] < known.box[1] + 2] if id(known) in framed else []
                if beyond and not _continues(known, beyond, body):
                    within = _without(within, beyond)
                    if tabular(beyond) and _cellular(beyond):
                        # A table of its own stands close to the framed one.
                        tables.append(Block("table", union([x.box for x in beyond])))
                        _take(tables[-1], beyond)
                        free = _without(free, beyond)
                _take(known, within)
                free = _without(free, within)
            continue
        if not tabular(within) or (source == "between" and not _cellular(within)):
            continue
        if source == "rules" and _prose(within):
            continue
        table = Block("table", box if source == "rules" else union([x.box for x in within]))
        _take(table, within)
        free = _without(free, within)
        tables.append(table)
        if source == "rules":
            framed.add(id(table))
    for table in tables:
        _take(table, taken := _along(table, free, rules))
        free = _without(free, taken)
        _take(table, taken := _heads(table, free, body))
        free = _without(free, taken)
    for group in _aligned(free, body):
        table = Block("table", union([x.box for x in group]))
        _take(table, group)
        free = _without(free, group)
        _take(table, taken := _heads(table, free, body))
        free = _without(free, taken)
        tables.append(table)
    for table in tables:
        x1, y1, x2, y2 = table.box
        table.rules = [rule for rule in rules
                       if x1 - 8 <= (rule[0] + rule[2]) / 2 <= x2 + 8
                       and y1 - 12 <= (rule[1] + rule[3]) / 2 <= y2 + 12]
    return tables, free


def _continues(table: Block, lines: Sequence[Line], body: float) -> bool:
    """Whether LINES beyond the frame of TABLE stand in its columns."""
    starts = [line.box[0] for line in table.lines]
    fitting = sum(any(abs(line.box[0] - x) < 0.6 * body for x in starts) for line in lines)
    return tabular(lines) and fitting > 0.8 * len(lines)


def tabular(lines: Sequence[Line]) -> bool:
    """Whether LINES stand in at least two rows, two of which have several pieces."""
    found = rows(lines)
    return len(found) >= 2 and sum(len(row) > 1 for row in found) >= 2


def _take(table: Block, lines: Sequence[Line]) -> None:
    if lines:
        table.lines.extend(lines)
        table.box = union([table.box, *(line.box for line in lines)])


def _without(lines: Sequence[Line], taken: Sequence[Line]) -> list[Line]:
    gone = set(map(id, taken))
    return [line for line in lines if id(line) not in gone]


def _cellular(lines: Sequence[Line]) -> bool:
    """Mostly short pieces beside each other, not columns of prose."""
    found = rows(lines)
    return (sum(len(row) > 1 for row in found) >= 0.5 * len(found)
            and median(line.box[2] - line.box[0] for line in lines) < 14 * median(
                line.size for line in lines))


def _prose(lines: Sequence[Line]) -> bool:
    """Whether a framed part of the page holds columns of running text rather than cells."""
    found = rows(lines)
    long = [line for line in lines if line.box[2] - line.box[0] > 25 * line.size]
    return len(long) > 0.5 * len(lines) and sum(len(row) > 1 for row in found) < 0.4 * len(found)


# --- rules ------------------------------------------------------------------------------------


def _lattices(rules: Sequence[Box], body: float) -> list[Box]:
    """Boxes of rules that cross each other into at least two cells each way, or rows of them."""
    long = [rule for rule in rules if max(rule[2] - rule[0], rule[3] - rule[1]) > 1.2 * body]
    if len(long) > 1500:
        return []
    groups: list[list[Box]] = []
    boxes: list[Box] = []
    for rule in long:
        wide = (rule[0] - _TOUCH, rule[1] - _TOUCH, rule[2] + _TOUCH, rule[3] + _TOUCH)
        joined = [i for i, box in enumerate(boxes) if overlap(wide[0], wide[2], box[0], box[2]) >= 0
                  and overlap(wide[1], wide[3], box[1], box[3]) >= 0
                  and any(_meet(wide, other) for other in groups[i])]
        members = [rule]
        for i in reversed(joined):
            members += groups.pop(i)
            boxes.pop(i)
        groups.append(members)
        boxes.append(union(members))
    found: list[Box] = []
    for members, box in zip(groups, boxes, strict=True):
        xs = _distinct([(r[0] + r[2]) / 2 for r in members if r[3] - r[1] > r[2] - r[0]])
        ys = _distinct([(r[1] + r[3]) / 2 for r in members if r[3] - r[1] <= r[2] - r[0]])
        if (len(ys) >= 2 and len(xs) >= 3) or (len(ys) >= 3 and len(xs) >= 2):
            found.append(box)
    return found


def _meet(a: Box, b: Box) -> bool:
    return overlap(a[0], a[2], b[0], b[2]) >= 0 and overlap(a[1], a[3], b[1], b[3]) >= 0


def _distinct(values: Sequence[float]) -> list[float]:
    kept: list[float] = []
    for value in sorted(values):
        if not kept or value - kept[-1] > 2 * _TOUCH:
            kept.append(value)
    return kept


def _between(rules: Sequence[Box], lines: Sequence[Line], body: float) -> list[Box]:
    """Boxes between horizontal rules of the same width, as tables in papers have them."""
    across = sorted((r for r in rules if r[2] - r[0] > 8 * body and r[3] - r[1] < 4),
                    key=lambda r: r[1])
    found: list[Box] = []
    used: set[int] = set()
    for i, first in enumerate(across):
        if i in used:
            continue
        group = [j for j in range(i, len(across)) if abs(across[j][0] - first[0]) < 6
                 and abs(across[j][2] - first[2]) < 6]
        if len(group) >= 2:
            used.update(group)
            found.append((first[0], first[1], first[2], across[group[-1]][3]))
    return found


# --- alignment --------------------------------------------------------------------------------


def _along(table: Block, free: Sequence[Line], rules: Sequence[Box]) -> list[Line]:
    """Lines left or right of TABLE that its horizontal rules run along."""
    x1, y1, x2, y2 = table.box
    own = [r for r in rules if y1 - 4 <= r[1] and r[3] <= y2 + 4 and r[3] - r[1] < 4
           and overlap(r[0], r[2], x1, x2) > 0.6 * (x2 - x1)]
    if not own:
        return []
    left, right = min(r[0] for r in own), max(r[2] for r in own)
    return [line for line in free if line.box[0] >= left - 4 and line.box[2] <= right + 4
            and inside(line.box, (left - 4, y1 - 2, right + 4, y2 + 2)) > 0.6]


def _heads(table: Block, free: Sequence[Line], body: float) -> list[Line]:
    """Rows of column headings just above TABLE that were left out of it."""
    x1, y1, x2, _ = table.box
    taken: list[Line] = []
    near = [line for line in free if line.box[3] <= y1 + 0.5 * body
            and overlap(line.box[0], line.box[2], x1, x2) > 0.8 * (line.box[2] - line.box[0])]
    for row in reversed(rows(near)):
        top, foot = min(x.box[1] for x in row), max(x.box[3] for x in row)
        if y1 - foot > 0.9 * body or len(row) < 2 or any(
                x.box[2] - x.box[0] > 0.4 * (x2 - x1) for x in row):
            break
        taken += row
        y1 = top
    return taken


def _aligned(lines: Sequence[Line], body: float) -> list[list[Line]]:
    """Groups of rows of short pieces that stand in the same columns, without any rule."""
    upright = [line for line in lines if not line.vertical]
    groups: list[list[list[Line]]] = []
    current: list[list[Line]] = []

    def close() -> None:
        if _worth(current):
            groups.append(list(current))
        current.clear()

    for row in rows(upright):
        short = len(row) >= 2 and all(x.box[2] - x.box[0] < 14 * x.size for x in row)
        if not short:
            close()
            continue
        if current:
            last = current[-1]
            gap = min(x.box[1] for x in row) - max(x.box[3] for x in last)
            if gap > 1.6 * body or not _fits(last, row, body):
                close()
        current.append(row)
    close()
    return [[line for row in group for line in row] for group in groups]


def _fits(above: Sequence[Line], row: Sequence[Line], body: float) -> bool:
    """Whether most pieces of ROW stand under one of ABOVE, edge on edge or middle on middle."""
    def under(a: Line, b: Line) -> bool:
        return min(abs(a.box[0] - b.box[0]), abs(a.box[2] - b.box[2]),
                   abs(a.box[0] + a.box[2] - b.box[0] - b.box[2]) / 2) < 0.8 * body
    fitting = sum(any(under(a, b) for a in above) for b in row)
    return fitting >= max(2, 0.6 * min(len(row), len(above)))


def _worth(group: Sequence[Sequence[Line]]) -> bool:
    """Three rows of three columns, or a longer list of two with short second pieces."""
    if len(group) < 3:
        return False
    columns = median(len(row) for row in group)
    if columns >= 3:
        return True
    return len(group) >= 4 and all(
        line.box[2] - line.box[0] < 7 * line.size for row in group for line in row[1:])
