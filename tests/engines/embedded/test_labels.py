"""Headings, running headers and footers, and what only looks like them."""

from __future__ import annotations

from desktop.engines.embedded import blocks
from desktop.engines.embedded.layout import Found
from desktop.engines.embedded.model import BOLD
from tests.engines.embedded.pages import HEIGHT, Page

ROW = "Most of the words in this row are quite short ones"


def _body(page: Page, y: float, x: float = 100, rows: int = 5) -> Page:
    return page.column([ROW] * rows, x=x, y=y)


def test_bold_lines_and_larger_lines_are_headings() -> None:
    page = _body(Page().line("The mill", y=300, style=BOLD), 360)
    page = _body(page.line("The river", y=560, size=30), 620)
    assert page.written()[0] == ("sub_title", "## The mill") or page.written()[0][1][0] == "#"
    assert [label for label, _ in page.written()] == ["sub_title", "text", "title", "text"]


def test_a_line_in_capitals_is_a_heading() -> None:
    page = _body(Page().line("II. THE LOOMS", x=300, y=300), 360)
    assert [label for label, _ in page.written()] == ["sub_title", "text"]


def test_what_the_model_takes_for_a_heading_but_is_set_like_the_rest_is_text() -> None:
    page = _body(Page().line("Anna Miller and John Smith", y=300), 360)
    region = Found("title", (90, 270, 600, 310), 0.9)
    assert [label for label, _ in page.written([region])] == ["text", "text"]
    page = _body(Page().line("2.1 Anna Miller and John Smith", y=300), 360)
    assert [label for label, _ in page.written([region])] == ["sub_title", "text"]


def test_what_the_model_takes_for_a_caption_but_is_large_is_a_heading() -> None:
    page = _body(Page().line("Passengers by month", y=300, size=30), 360)
    region = Found("table_caption", (90, 260, 600, 310), 0.9)
    assert [label for label, _ in page.written([region])] == ["title", "text"]


def test_a_numbered_run_of_lines_is_a_list_and_no_headings() -> None:
    page = Page().column(["1. Prices of raw material", "2. Rates of exchange", "3. Staff"], y=300)
    regions = [Found("title", (90, 276 + 26 * i, 500, 302 + 26 * i), 0.9) for i in range(3)]
    page = _body(page, 420)
    assert [label for label, _ in page.written(regions)] == ["list", "text"]


def test_a_sentence_in_large_print_is_no_heading() -> None:
    page = Page().line("We stopped counting and only watched them fly by.", y=300, size=30)
    assert [label for label, _ in _body(page, 400).written()] == ["text", "text"]


def test_a_banner_at_the_top_is_no_running_header() -> None:
    page = Page().line("Pressure Transmitter", y=80, size=40)
    page.line("compact and robust", y=110)
    page = _body(page, 300)
    region = Found("header", (90, 30, 700, 115), 0.9)
    assert [label for label, _ in page.written([region])] == ["title", "text", "text"]


def test_a_lone_line_at_the_foot_is_a_footer_but_a_note_is_not() -> None:
    page = _body(_body(Page(), 300), 500).line("Valley Notes", y=HEIGHT - 40)
    assert page.written()[-1] == ("footer", "Valley Notes")
    page = _body(_body(Page(), 300), 500).line("* Corresponding author", y=HEIGHT - 40)
    assert page.written()[-1][0] != "footer"


def test_headings_in_the_margin_come_before_the_text_beside_them() -> None:
    page = Page()
    for number, head in enumerate(["Quiet hours", "Pets", "Damage"]):
        page.line(head, x=100, y=300 + 200 * number, style=BOLD)
        page = _body(page, 300 + 200 * number, x=350)
    assert [label for label, _ in page.written()] == ["sub_title", "text"] * 3


def test_large_print_across_the_text_parts_nothing() -> None:
    page = _body(Page(), 300, rows=12)
    page.line("DRAFT", x=110, y=580, size=200)
    assert [label for label, _ in page.written()] == ["text", "footer"]


def test_wide_leading_is_one_paragraph() -> None:
    page = Page().column([ROW] * 8, y=300, pitch=42)
    assert len(page.written()) == 1


def test_two_columns_that_begin_with_sections_are_read_one_after_the_other() -> None:
    page = Page().line("1 Introduction", x=100, y=300, size=26)
    page = _body(page.line("2 Methods", x=600, y=300, size=26), 340)
    page = _body(page, 340, x=600)
    texts = [block.lines[0].text for block in blocks.in_order(page.blocks())]
    assert texts[0] == "1 Introduction"
    assert texts[2] == "2 Methods"


def test_a_page_number_in_large_print_is_one() -> None:
    page = _body(Page(), 300).line("7", x=480, y=HEIGHT - 30, size=32)
    assert page.written()[-1] == ("page_number", "7")


def test_an_address_in_bold_print_is_no_heading() -> None:
    page = _body(Page().line("someone@example.org", y=300, style=BOLD), 360)
    assert [label for label, _ in page.written()] == ["text", "text"]


def test_pieces_in_one_line_with_a_running_header_are_a_part_of_it() -> None:
    page = _body(Page().line("Federal Register", x=100, y=60, style=BOLD), 200)
    page.line("Thursday, August 6", x=600, y=60)
    assert [label for label, _ in page.written()] == ["header", "header", "text"]
