"""Tables in frames: what belongs to them, and their cells."""

from __future__ import annotations

from desktop.engines.embedded import cells, tables
from desktop.engines.embedded.model import Block, Box, Line, Word, union


def _line(text: str, x: float, y: float, size: float = 20) -> Line:
    words, left = [], x
    for word in text.split(" "):
        words.append(Word(word, (left, y, left + len(word) * size / 2, y + size)))
        left = words[-1].box[2] + size / 4
    return Line(union([word.box for word in words]), size, words)


def _frame(xs: list[float], ys: list[float]) -> list[Box]:
    """Rules without any thickness, as the edges of drawn rectangles are."""
    return ([(xs[0], y, xs[-1], y) for y in ys] + [(x, ys[0], x, ys[-1]) for x in xs])


def _grid(texts: list[list[str]], xs: list[float], top: float, pitch: float) -> list[Line]:
    return [_line(text, x + 10, top + 10 + pitch * r) for r, row in enumerate(texts)
            for x, text in zip(xs, row, strict=False) if text]


XS, YS = [100.0, 300.0, 500.0, 700.0], [100.0, 140.0, 180.0, 220.0]
TEXTS = [["Item", "Unit", "Price"], ["Helmet", "piece", "24.90"], ["Gloves", "pair", "8.50"]]


def test_rules_without_thickness_make_a_frame() -> None:
    lines = _grid(TEXTS, XS, 100, 40)
    found, free = tables.find(lines, [], _frame(XS, YS), 20)
    assert [table.box for table in found] == [(100, 100, 700, 220)]
    assert not free


def test_text_above_a_frame_is_not_in_the_table_that_the_model_sees() -> None:
    lines = _grid(TEXTS, XS, 100, 40)
    above = _line("Complete the table and answer all the questions", 100, 60)
    found, free = tables.find([above, *lines], [(90, 50, 710, 230)], _frame(XS, YS), 20)
    assert [len(table.lines) for table in found] == [9]
    assert free == [above]


def test_a_table_close_below_a_frame_is_another_one() -> None:
    lines = _grid(TEXTS, XS, 100, 40)
    below = _grid([["Order code", "MX-240"], ["Warranty", "36 months"]], [100, 420], 240, 40)
    found, _ = tables.find([*lines, *below], [(90, 90, 710, 330)], _frame(XS, YS), 20)
    assert [len(table.lines) for table in found] == [9, 4]


def test_a_gap_between_texts_is_no_column_where_rules_say_so() -> None:
    texts = [["Room", "A", "B"], ["", "first", "fourth"], ["", "x", "third"]]
    lines = _grid(texts, XS, 100, 40)
    lines.append(_line("right", 440, 150))
    lines = [line for line in lines if line.text != "first"]
    block = Block("table", (100, 100, 700, 220), lines, rules=_frame(XS, YS))
    found = cells.cells_of(block)
    assert max(cell.column + cell.colspan for cell in found) == 3


def test_a_row_that_no_vertical_rule_crosses_is_one_cell() -> None:
    texts = [["Item", "Unit", "Price"], ["Helmet", "piece", "24.90"], ["Tools", "", ""],
             ["Wrench", "piece", "129.00"], ["Level", "piece", "31.20"]]
    ys = [100.0, 140.0, 180.0, 220.0, 260.0, 300.0]
    rules = [(100.0, y, 700.0, y) for y in ys] + [(100, 100, 100, 300), (700, 100, 700, 300)]
    rules += [(x, a, x, b) for x in XS[1:3] for a, b in ((100, 180), (220, 300))]
    block = Block("table", (100, 100, 700, 300), _grid(texts, XS, 100, 40), rules=rules)
    found = {cell.text: cell.colspan for cell in cells.cells_of(block)}
    assert found["Tools"] == 3
    assert found["Wrench"] == 1


def test_rows_beside_a_heading_of_two_rows_are_headings() -> None:
    texts = [["Region", "Sales", ""], ["", "2022", "2023"], ["North", "1", "2"],
             ["South", "3", "4"], ["East", "5", "6"], ["West", "7", "8"]]
    ys = [100.0, 140.0, 180.0, 220.0, 260.0, 300.0, 340.0]
    rules = [(100.0, y, 700.0, y) for y in ys if y != 140] + [(300.0, 140.0, 700.0, 140.0)]
    rules += [(x, 100, x, 340) for x in (100.0, 300.0, 700.0)] + [(500.0, 140.0, 500.0, 340.0)]
    block = Block("table", (100, 100, 700, 340), _grid(texts, XS, 100, 40), rules=rules)
    found = {cell.text: cell for cell in cells.cells_of(block)}
    assert found["Region"].rowspan == 2
    assert found["2022"].heading
    assert not found["North"].heading
