"""HTML tables → grids, however they are written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.document.tables import Cell, Table, tables_of


def grid(html: str) -> list[list[str]]:
    (table,) = tables_of(html)
    return table.grid()


def test_spans_take_their_places() -> None:
    html = ('<table><tr><th rowspan="2">A</th><th colspan="2">B</th></tr>'
            "<tr><td>c</td><td>d</td></tr><tr><td>e</td><td>f</td><td>g</td></tr></table>")
    (table,) = tables_of(html)
    assert table == Table(3, 3, (
        Cell(0, 0, 2, 1, "A", True), Cell(0, 1, 1, 2, "B", True), Cell(1, 1, 1, 1, "c"),
        Cell(1, 2, 1, 1, "d"), Cell(2, 0, 1, 1, "e"), Cell(2, 1, 1, 1, "f"),
        Cell(2, 2, 1, 1, "g")))
    assert table.tsv() == "A\tB\t\n\tc\td\ne\tf\tg"


@pytest.mark.parametrize(("html", "expected"), [
    ("<table><tr><td>a<td>b<tr><td>c", [["a", "b"], ["c", ""]]),
    ("<table><tr><tr><td>a</td></tr></table>", [["a"]]),
    ("<table><td>a</td><td>b</td></table>", [["a", "b"]]),
    ("<table>数值 66</table>", [["数值 66"]]),
    ('<table><td rowspan="2"># layers<td colspan="3">T</table>', [["# layers", "T", "", ""]]),
    ("<table><tr><td>a<br>b</td><td> x &lt; y &amp; z </td></tr></table>", [["a\nb", "x < y & z"]]),
    ("<table><tr><td><b>a</b> <i>b</i></td></tr></table>", [["a b"]]),
    ("<table><tr><td>a<table><tr><td>in</td></tr></table>b</td></tr></table>", [["a in b"]]),
    ('<table><tr><td colspan="0">a</td><td rowspan="x">b</td></tr></table>', [["a", "b"]]),
    ("<table></table>", []),
    ("<TABLE><TR><TD>a</TD></TR></TABLE>", [["a"]]),
    ("<table><tr><td>cut in a t</t", [["cut in a t"]]),
])
def test_broken_tables(html: str, expected: list[list[str]]) -> None:
    assert [[" ".join(t.split()) if "\n" not in t else t for t in row]
            for row in grid(html)] == expected


def test_tabs_and_line_breaks_do_not_break_tsv() -> None:
    (table,) = tables_of("<table><tr><td>a\tb<br>c</td><td>d</td></tr></table>")
    assert table.tsv() == "a b c\td"


def test_lying_spans_stay_small() -> None:
    html = ('<table><tr><td rowspan="999999999" colspan="999999999">a</td></tr>'
            "<tr><td>b</td></tr></table>")
    (table,) = tables_of(html)
    assert (table.rows, table.columns) == (2, 1000)
    assert table.cells[0] == Cell(0, 0, 2, 1000, "a")


def test_several_tables_with_text_between() -> None:
    assert [t.grid() for t in tables_of("x <table><td>1</table> y <table><td>2</table> z")] == [
        [["1"]], [["2"]]]


PIECES = ["<table>", "</table>", "<tr>", "</tr>", "<td>", "</td>", '<td rowspan="3">',
          '<td colspan="2">', '<th rowspan="2" colspan="2">', "x", " ", "<br>", "&lt;", "<"]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_cells_never_overlap_nor_leave_the_grid(html: str) -> None:
    for table in tables_of(html):
        places = [(row, column) for cell in table.cells
                  for row in range(cell.row, cell.row + cell.rows)
                  for column in range(cell.column, cell.column + cell.columns)]
        assert len(places) == len(set(places))
        assert all(row < table.rows and column < table.columns for row, column in places)
        assert [len(row) for row in table.grid()] == [table.columns] * table.rows
