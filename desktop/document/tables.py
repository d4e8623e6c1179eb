"""HTML tables → a grid of cells, for copying them and for spreadsheets.

Tables as models write them: unclosed, cells without rows, text without cells, spans that lie.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

_MOST_COLUMNS = 1000
"""More columns than this come from a span that lies (HTML has the same limit)."""
_CUT_TAG = re.compile(r"</?[a-zA-Z][^<>]*\Z")
_BREAKS = frozenset({"br", "p", "div", "li", "tr"})


@dataclass(frozen=True)
class Cell:
    """A cell with the place of its upper left corner, counted from 0."""

    row: int
    column: int
    rows: int
    columns: int
    text: str
    header: bool = False


@dataclass(frozen=True)
class Table:
    """A table whose cells neither overlap nor leave the grid of ROWS × COLUMNS."""

    rows: int
    columns: int
    cells: tuple[Cell, ...]

    def grid(self) -> list[list[str]]:
        """The texts by row and column; a cell that spans several has its text in the first."""
        grid = [[""] * self.columns for _ in range(self.rows)]
        for cell in self.cells:
            grid[cell.row][cell.column] = cell.text
        return grid

    def tsv(self) -> str:
        """Tab-separated lines, as spreadsheets take them from the clipboard."""
        return "\n".join("\t".join(" ".join(text.split()) for text in row) for row in self.grid())


def tables_of(html: str) -> tuple[Table, ...]:
    """All tables in a text, in order; a table within a table counts as text of its cell."""
    reader = _Reader()
    reader.feed(_CUT_TAG.sub("", html))
    reader.close()
    reader.end_table()
    return tuple(reader.tables)


@dataclass
class _Raw:
    rows: int
    columns: int
    header: bool
    pieces: list[str] = field(default_factory=list)

    def text(self) -> str:
        lines = (" ".join(line.split()) for line in "".join(self.pieces).split("\n"))
        return "\n".join(line for line in lines if line)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: list[Table] = []
        self._depth = 0
        self._rows: list[list[_Raw]] = []
        self._cell: _Raw | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._depth += 1
            if self._depth == 1:
                self._rows, self._cell = [], None
        if self._depth != 1:
            if self._cell and tag in _BREAKS | {"td", "th"}:
                self._cell.pieces.append(" ")
        elif tag == "tr":
            self._cell = None
            self._rows.append([])
        elif tag in {"td", "th"}:
            values = dict(attrs)
            self._cell = _Raw(_span(values.get("rowspan")), _span(values.get("colspan")),
                              tag == "th")
            if not self._rows:
                self._rows.append([])
            self._rows[-1].append(self._cell)
        elif self._cell and tag in _BREAKS:
            self._cell.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "table" and self._depth:
            if self._depth == 1:
                self.end_table()
                return
            self._depth -= 1
            if self._cell:
                self._cell.pieces.append(" ")
        elif self._depth == 1 and tag in {"td", "th", "tr"}:
            self._cell = None

    def handle_data(self, data: str) -> None:
        if not self._depth:
            return
        if self._cell is None and data.strip():
            # Text between cells: a cell whose own tags were lost.
            self._cell = _Raw(1, 1, header=False)
            if not self._rows:
                self._rows.append([])
            self._rows[-1].append(self._cell)
        if self._cell:
            self._cell.pieces.append(data)

    def end_table(self) -> None:
        """The table ends here, if there is one."""
        if self._depth:
            self.tables.append(_placed([row for row in self._rows if row]))
        self._depth = 0
        self._cell = None
        self._rows = []


def _span(value: str | None) -> int:
    digits = (value or "").strip()
    return max(1, min(int(digits), _MOST_COLUMNS)) if digits.isdecimal() and digits.isascii() \
        and len(digits) < 10 else 1


def _placed(rows: list[list[_Raw]]) -> Table:
    cells: list[Cell] = []
    covered: dict[int, int] = {}
    """Column → the first row in which it is free again."""
    width = 0
    for row, raws in enumerate(rows):
        column = 0
        for raw in raws:
            while covered.get(column, 0) > row:
                column += 1
            if column >= _MOST_COLUMNS:
                break
            span = 1
            while (span < min(raw.columns, _MOST_COLUMNS - column)
                   and covered.get(column + span, 0) <= row):
                span += 1
            height = min(raw.rows, len(rows) - row)
            cells.append(Cell(row, column, height, span, raw.text(), raw.header))
            for taken in range(column, column + span):
                covered[taken] = row + height
            column += span
            width = max(width, column)
    return Table(len(rows), width, tuple(cells))
