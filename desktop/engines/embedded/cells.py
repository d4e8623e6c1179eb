"""The cells of a table, from drawn rules and from how its pieces of text are aligned."""

from __future__ import annotations

import html as escaping
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

from desktop.engines.embedded.columns import columns_of, gathered, span
from desktop.engines.embedded.model import BOLD, Block, Box, Line, overlap, rows
from desktop.engines.embedded.pieces import Rules, cut, place, rules_of, text_rows
from desktop.engines.embedded.text import joined


@dataclass
class Cell:
    """A cell: where it begins, how many rows and columns it takes, its pieces of text."""

    row: int
    column: int
    rowspan: int = 1
    colspan: int = 1
    heading: bool = False
    lines: list[Line] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text of all its lines."""
        return joined(" ".join(line.text for line in row) for row in rows(self.lines))


def cells_of(block: Block) -> list[Cell]:
    """The cells of a table, row by row from left to right; spanned places are left out."""
    rules = rules_of(block.rules)
    pieces = cut(block.lines, rules)
    if not pieces:
        return []
    size = median(piece.size for piece in pieces)
    table = text_rows(pieces)
    borders = columns_of(table, rules, block.box, size)
    table = _logical_rows(table, borders, rules, size)
    edges = _edges(table)
    owner = _spans(table, borders, rules, edges, block.box, size)
    cells = _cells(table, borders, owner)
    headings = _heading_rows(table, rules, len(borders) + 1)
    if headings == 1:
        # What a heading of the first row reaches down to is a row of headings too.
        headings = max([1, *(cell.rowspan for cell in cells if cell.row == 0)])
        headings = headings if headings < len(table) / 2 else 1
    for cell in cells:
        cell.heading = cell.row < headings
    return cells


def mirrored(cells: Sequence[Cell]) -> list[Cell]:
    """The cells of a table that is read from right to left."""
    count = max((cell.column + cell.colspan for cell in cells), default=0)
    turned = [replace(cell, column=count - cell.column - cell.colspan) for cell in cells]
    return sorted(turned, key=lambda cell: (cell.row, cell.column))


def html(cells: Sequence[Cell]) -> str:
    """The cells as an HTML table on one line."""
    out = ["<table>"]
    row = -1
    for cell in cells:
        while cell.row > row:
            out.append("</tr><tr>" if row >= 0 else "<tr>")
            row += 1
        span = (f' rowspan="{cell.rowspan}"' if cell.rowspan > 1 else "") + (
            f' colspan="{cell.colspan}"' if cell.colspan > 1 else "")
        kind = "th" if cell.heading else "td"
        out.append(f"<{kind}{span}>{escaping.escape(cell.text, quote=False)}</{kind}>")
    out.append("</tr></table>" if row >= 0 else "</table>")
    return "".join(out)


# --- rows -------------------------------------------------------------------------------------


def _logical_rows(table: list[list[Line]], borders: Sequence[float], rules: Rules,
                  size: float) -> list[list[Line]]:
    """Rows of text put together where a cell goes over several lines."""
    count = len(borders) + 1
    filled = [len({span(piece, borders)[0] for piece in row}) for row in table]
    stub = [any(span(piece, borders)[0] == 0 for piece in row) for row in table]
    feet = [max(place(piece)[3] for piece in row) for row in table]
    steps = [b - a for a, b in pairwise(feet)]
    pitch = median(steps) if steps else 0.0
    bands = _bands(table, rules)
    lattice = any(length > 0.5 * (feet[-1] - feet[0]) and borders
                  and abs(min(borders, key=lambda b: abs(b - x)) - x) < size
                  for x, length in gathered(rules.down, size))
    ruled = len(set(bands)) >= (2 if lattice else 4)
    merged: list[list[Line]] = [list(table[0])]
    last_full = filled[0]
    for i in range(1, len(table)):
        together = False
        same = bands[i] == bands[i - 1]
        if ruled and same and (lattice or bands[i] != bands[0]):
            band = [j for j in range(len(table)) if bands[j] == bands[i]]
            records = sum(filled[j] >= max(2, 0.5 * count) and stub[j] for j in band)
            together = records < 2 and not (
                filled[i - 1] < filled[i] and feet[i - 1] <= feet[i] - 0.9 * size
                and _groups_columns(table[i - 1], table[i], borders, rules, size))
        elif same:
            tight = steps[i - 1] < 1.45 * size
            loose = pitch > 1.6 * size
            first = min(span(piece, borders)[0] for piece in table[i])
            alone = filled[i] <= max(1, last_full // 3)
            under = all(any(overlap(p.box[0], p.box[2], q.box[0], q.box[2]) > 0
                            for q in merged[-1]) for p in table[i])
            together = alone and under and tight and (loose or (first > 0 and filled[i] == 1
                                                                and _goes_on(table[i][0])))
        if together:
            merged[-1].extend(table[i])
        else:
            merged.append(list(table[i]))
            last_full = filled[i]
    return merged


def _groups_columns(above: Sequence[Line], row: Sequence[Line], borders: Sequence[float],
                    rules: Rules, size: float) -> bool:
    """Whether a piece of ABOVE heads several columns of ROW: no rule parts them beside it."""
    taken = {span(piece, borders)[0] for piece in row}
    for piece in above:
        first, last = span(piece, borders)
        edge = (piece.box[1], piece.box[3])
        while first > 0 and not _wall(borders[first - 1], edge, rules, size):
            first -= 1
        while last < len(borders) and not _wall(borders[last], edge, rules, size):
            last += 1
        if sum(first <= column <= last for column in taken) >= 2:
            return True
    return False


def _goes_on(piece: Line) -> bool:
    """Whether a piece of text reads like the rest of the one above."""
    text = piece.text
    return text[:1].islower() or text[:1] in "(&,/"


def _bands(table: Sequence[Sequence[Line]], rules: Rules) -> list[int]:
    """For each row of text the number of horizontal rules above it."""
    ys: list[float] = []
    for y, _, _ in rules.across:
        if not ys or y - ys[-1] > 3:
            ys.append(y)
    middles = [median((place(p)[1] + place(p)[3]) / 2 for p in row) for row in table]
    return [sum(y < middle for y in ys) for middle in middles]


def _edges(table: Sequence[Sequence[Line]]) -> list[tuple[float, float]]:
    """Top and bottom of each row."""
    return [(min(place(p)[1] for p in row), max(place(p)[3] for p in row)) for row in table]


# --- spans ------------------------------------------------------------------------------------

_Owner = dict[tuple[int, int], tuple[int, int]]


def _spans(table: Sequence[Sequence[Line]], borders: Sequence[float], rules: Rules,
           edges: Sequence[tuple[float, float]], box: Box, size: float) -> _Owner:
    """Which cell (row, column) each place of the grid belongs to."""
    count = len(borders) + 1
    sides = [box[0], *borders, box[2]]
    content = _content(table, borders, sides)
    owner: _Owner = {(r, c): (r, c) for r in range(len(table)) for c in range(count)}
    start: list[set[int]] = []
    for r, row in enumerate(table):
        spans = [span(piece, borders) for piece in row]
        start.append({c for first, last in spans for c in range(first, last + 1)})
        for first, last in spans:
            _join(owner, r, first, last)
    first_dense = next((r for r, taken in enumerate(start)
                        if len(taken) >= max(2, 0.7 * count)), len(table))
    for r in range(min(first_dense, 4)):
        if r + 1 < len(table):
            _heading_spans(owner, r, table[r], borders, sides, content, start, rules, edges, size)
    _section_rows(owner, start, borders, rules, edges, size)
    if len({round(x) for x, _, _ in rules.down}) >= 3:
        _rowspans(owner, start, sides, rules, edges, size)
    return owner


def _section_rows(owner: _Owner, taken: Sequence[set[int]], borders: Sequence[float],
                  rules: Rules, edges: Sequence[tuple[float, float]], size: float) -> None:
    """A row with text in its first column only, which the vertical rules of the others leave out,
    is one cell."""
    walled = [[_wall(x, edge, rules, size) for x in borders] for edge in edges]
    usual = all(sum(row[i] for row in walled) >= 0.5 * len(walled) for i in range(len(borders)))
    for r, row in enumerate(walled):
        if borders and usual and taken[r] == {0} and not any(row):
            _join(owner, r, 0, len(borders))


def _join(owner: _Owner, row: int, first: int, last: int) -> None:
    head = owner[row, first]
    for column in range(first, last + 1):
        owner[row, column] = head


def _heading_spans(owner: _Owner, r: int, row: Sequence[Line], borders: Sequence[float],
                   sides: Sequence[float], content: Sequence[tuple[float, float]],
                   taken: Sequence[set[int]], rules: Rules,
                   edges: Sequence[tuple[float, float]], size: float) -> None:
    """A heading that stands centred over several columns covers them."""
    count = len(borders) + 1
    below = edges[r + 1][0] + size if r + 1 < len(edges) else edges[r][1] + size
    under = [rule for rule in rules.across
             if edges[r][1] - 0.3 * size < rule[0] < below]
    for piece in row:
        first, last = span(piece, borders)
        at = place(piece)
        middle = (at[0] + at[2]) / 2
        line = next((rule for rule in under if rule[1] - size < at[0]
                     and at[2] < rule[2] + size
                     and rule[2] - rule[1] < 0.9 * (sides[-1] - sides[0])), None)
        if line is not None:
            covered = [c for c in range(count)
                       if line[1] - size < (sides[c] + sides[c + 1]) / 2 < line[2] + size]
            if covered and all(c not in taken[r] or first <= c <= last for c in covered):
                _join(owner, r, min(*covered, first), max(*covered, last))
            continue
        low, high = first, last
        while low > 0 and low - 1 not in taken[r] and not _wall(
                sides[low], edges[r], rules, size):
            low -= 1
        while high < count - 1 and high + 1 not in taken[r] and not _wall(
                sides[high + 1], edges[r], rules, size):
            high += 1
        walls = [_wall(sides[at], edges[r], rules, size) for at in (low, high + 1)]
        if high - low < 0.7 * count and any(walls) and (walls[0] or low == 0) and (
                walls[1] or high == count - 1):
            _join(owner, r, low, high)
            continue
        # Of all runs around the piece the one whose middle is nearest to the piece's own.
        below_it = _contents(r, taken)
        runs = [(a, b) for a in range(low, first + 1) for b in range(last, high + 1)
                if all(c in below_it for c in range(a, b + 1))]
        if not runs:
            continue

        def off(run: tuple[int, int], middle: float = middle) -> tuple[float, int]:
            centre = (content[run[0]][0] + content[run[1]][1]) / 2
            return round(abs(centre - middle) / (0.8 * size)), run[0] - run[1]

        a, b = min(runs, key=off)
        if b - a <= 5 or b - a < 0.7 * count:
            _join(owner, r, a, b)


def _content(table: Sequence[Sequence[Line]], borders: Sequence[float],
             sides: Sequence[float]) -> list[tuple[float, float]]:
    """Where the text of each column begins and ends (its sides where it has none)."""
    extents = [(float("inf"), float("-inf"))] * (len(sides) - 1)
    for row in table:
        for piece in row:
            first, last = span(piece, borders)
            if first == last:
                at = place(piece)
                extents[first] = (min(extents[first][0], at[0]),
                                  max(extents[first][1], at[2]))
    return [extent if extent[0] <= extent[1] else (sides[i], sides[i + 1])
            for i, extent in enumerate(extents)]


def _heading_rows(table: Sequence[Sequence[Line]], rules: Rules, count: int) -> int:
    """How many rows at the top name the columns."""
    if len(table) < 2:
        return 0
    bands = _bands(table, rules)
    top = sum(band == bands[0] for band in bands)
    if top <= (1 if count < 3 else max(2, len(table) // 3)) and top < len(table):
        # With a rule under every row only the first is sure to be a heading.
        return top
    bold = [all(piece.style & BOLD for piece in row) for row in table]
    if bold[0] and not all(bold):
        return bold.index(False)
    numbers = [sum(any(c.isdigit() for c in piece.text) for piece in row) for row in table]
    return int(numbers[0] == 0 and sum(numbers) > 0 and len(table[0]) >= count / 2)


def _contents(r: int, taken: Sequence[set[int]]) -> set[int]:
    """Columns that have text just below row R."""
    return set().union(*taken[r + 1:r + 3])


def _wall(x: float, edge: tuple[float, float], rules: Rules, size: float) -> bool:
    """Whether a vertical rule stands at X beside the row."""
    return any(abs(rx - x) < 0.8 * size and overlap(y1, y2, edge[0], edge[1])
               > 0.6 * (edge[1] - edge[0]) for rx, y1, y2 in rules.down)


def _rowspans(owner: _Owner, taken: Sequence[set[int]], sides: Sequence[float], rules: Rules,
              edges: Sequence[tuple[float, float]], size: float) -> None:
    """Cells that go on below where other columns have a rule and theirs has none."""
    for r, ((_, bottom), (top, _)) in enumerate(pairwise(edges)):
        between = [rule for rule in rules.across
                   if min(bottom, top) - 0.5 * size < rule[0] < max(bottom, top) + 0.5 * size]
        if not between:
            continue
        for c in range(len(sides) - 1):
            middle, width = (sides[c] + sides[c + 1]) / 2, sides[c + 1] - sides[c]
            if any(x1 - 2 <= middle <= x2 + 2 for _, x1, x2 in between) or width < size:
                continue
            above, below = owner[r, c], owner[r + 1, c]
            if above[1] == below[1] == c and not (c in taken[r] and c in taken[r + 1]):
                for place, head in list(owner.items()):
                    if head == below:
                        owner[place] = above


def _cells(table: Sequence[Sequence[Line]], borders: Sequence[float],
           owner: _Owner) -> list[Cell]:
    cells: dict[tuple[int, int], Cell] = {}
    for (row, column), head in sorted(owner.items()):
        cell = cells.setdefault(head, Cell(*head))
        cell.rowspan = max(cell.rowspan, row - head[0] + 1)
        cell.colspan = max(cell.colspan, column - head[1] + 1)
    for r, pieces in enumerate(table):
        for piece in pieces:
            cells[owner[r, span(piece, borders)[0]]].lines.append(piece)
    return [cells[head] for head in sorted(cells)]
