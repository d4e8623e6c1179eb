"""The grid of a table, from drawn rules or from how its pieces of text are aligned; as HTML."""

from __future__ import annotations

import html as escaping
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from desktop.engines.embedded.blocks import rows
from desktop.engines.embedded.model import Block, Box, Line, Word, overlap


@dataclass
class Cell:
    """A cell: where it begins, how many rows and columns it takes, its pieces of text."""

    row: int
    column: int
    rowspan: int = 1
    colspan: int = 1
    lines: list[Line] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text, rows of it joined by a space."""
        return " ".join(" ".join(line.text for line in row) for row in rows(self.lines)).strip()


def grid_of(block: Block) -> list[Cell]:
    """The cells of a table, row by row from left to right."""
    pieces = _pieces(block.lines)
    if not pieces:
        return []
    columns = _columns(pieces)
    table = _merged(rows(pieces), columns)
    cells: list[Cell] = []
    for index, row in enumerate(table):
        at: dict[int, Cell] = {}
        for piece in row:
            first, last = _span(piece.box, columns)
            cell = at.get(first)
            if cell is None:
                cell = at[first] = Cell(index, first, 1, last - first + 1)
            cell.colspan = max(cell.colspan, last - first + 1)
            cell.lines.append(piece)
        column = 0
        while column < len(columns) + 1:
            cell = at.get(column) or Cell(index, column)
            following = [c for c in at if c > column]
            if following:
                cell.colspan = min(cell.colspan, min(following) - column)
            cells.append(cell)
            column += cell.colspan
    return cells


def html(cells: Sequence[Cell]) -> str:
    """The cells as an HTML table on one line."""
    out: list[str] = ["<table>"]
    row = -1
    for cell in cells:
        if cell.row != row:
            out.append("</tr><tr>" if row >= 0 else "<tr>")
            row = cell.row
        span = (f' rowspan="{cell.rowspan}"' if cell.rowspan > 1 else "") + (
            f' colspan="{cell.colspan}"' if cell.colspan > 1 else "")
        out.append(f"<td{span}>{escaping.escape(cell.text, quote=False)}</td>")
    out.append("</tr></table>" if row >= 0 else "</table>")
    return "".join(out)


def _pieces(lines: Sequence[Line]) -> list[Line]:
    """Lines cut at gaps that are wider than those between words."""
    pieces: list[Line] = []
    for line in lines:
        group: list[Word] = []
        for word in line.words:
            if group and word.box[0] - group[-1].box[2] > 0.9 * line.size:
                pieces.append(_piece(line, group))
                group = []
            group.append(word)
        if group:
            pieces.append(_piece(line, group))
    return pieces


def _piece(line: Line, words: Sequence[Word]) -> Line:
    box: Box = (words[0].box[0], min(w.box[1] for w in words), words[-1].box[2],
                max(w.box[3] for w in words))
    return Line(box, line.size, list(words), style=line.style, confidence=line.confidence)


def _columns(pieces: Sequence[Line]) -> list[float]:
    """The x of the borders between columns: where hardly any row has text."""
    table = rows(pieces)
    several = [row for row in table if len(row) > 1] or table
    events = sorted({piece.box[0] for row in several for piece in row}
                    | {piece.box[2] for row in several for piece in row})
    most = max(1, round(0.12 * len(several)))
    borders: list[float] = []
    start: float | None = None
    for left, right in pairwise(events):
        x = (left + right) / 2
        crossing = sum(any(p.box[0] < x < p.box[2] for p in row) for row in several)
        if crossing < most or (crossing == 0):
            start = left if start is None else start
            end = right
        elif start is not None:
            borders.append((start + end) / 2)
            start = None
    size = min(piece.size for piece in pieces)
    kept: list[float] = []
    for x in borders:
        if not kept or x - kept[-1] > 0.5 * size:
            kept.append(x)
    return kept


def _span(box: Box, columns: Sequence[float]) -> tuple[int, int]:
    """First and last column that BOX covers."""
    first = sum(x <= box[0] + 2 for x in columns)
    last = sum(x < box[2] - 2 for x in columns)
    return first, max(first, last)


def _merged(table: list[list[Line]], columns: Sequence[float]) -> list[list[Line]]:
    """Rows that only go on with the cells above put with them."""
    merged: list[list[Line]] = []
    for row in table:
        if merged:
            above = merged[-1]
            bottom = max(p.box[3] for p in above)
            gap = min(p.box[1] for p in row) - bottom
            first = min(_span(p.box, columns)[0] for p in row)
            covered = all(any(overlap(p.box[0], p.box[2], q.box[0], q.box[2]) > 0
                              for q in above) for p in row)
            if first > 0 and covered and gap < 0.25 * row[0].size and len(row) < len(above) / 2:
                above.extend(row)
                continue
        merged.append(list(row))
    return merged
