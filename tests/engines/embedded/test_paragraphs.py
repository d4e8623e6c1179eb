"""Text cut into paragraphs, lists, lines and listings."""

from __future__ import annotations

import pytest

from desktop.engines.embedded import paragraphs, refine
from desktop.engines.embedded.model import MONOSPACE
from desktop.engines.embedded.text import joined
from tests.engines.embedded.pages import Page

FULL = "Most of the words in this row are quite short ones"
"""50 characters: a row that fills its column."""


def test_filled_rows_are_one_paragraph() -> None:
    assert Page().column([FULL, FULL, "and it ends here."]).written() == [
        ("text", f"{FULL} {FULL} and it ends here.")]


def test_a_short_last_row_ends_a_paragraph() -> None:
    texts = [text for _, text in Page().column(
        [FULL, "It ends here.", FULL, "and so on."]).written()]
    assert texts == [f"{FULL} It ends here.", f"{FULL} and so on."]


def test_an_indented_first_row_begins_a_paragraph() -> None:
    page = Page().line(FULL, y=100).line(FULL[:-4] + "end.", y=126)
    page.line(FULL[:45], x=140, y=152).line(FULL, y=178)
    assert len(page.written()) == 2


def test_more_room_than_between_rows_parts_paragraphs() -> None:
    page = Page().column([FULL, FULL, FULL]).column([FULL, FULL], y=190)
    assert [text.count("Most") for _, text in page.written()] == [3, 2]


def test_hanging_indents_begin_where_a_row_stands_out() -> None:
    page = Page()
    for number in range(3):
        page.line("Author, A. " + FULL[:39], y=100 + number * 52)
        page.line("of a title.", x=140, y=126 + number * 52)
    assert [text[:10] for _, text in page.written()] == ["Author, A."] * 3


def test_references_are_parted_by_their_numbers() -> None:
    page = Page().column(["[1] " + FULL[:45], "rest of the first", "[2] " + FULL[:45], "rest"])
    assert [text[:3] for _, text in page.written()] == ["[1]", "[2]"]


@pytest.mark.parametrize("lines", [
    ["Miller and Sons", "12 Mill Lane", "Leeds LS1 4AB", "United Kingdom of Great Britain"],
    ["The mill that stood beside the river", "is gone", "and nobody knows where to"]])
def test_short_lines_stay_lines(lines: list[str]) -> None:
    assert Page().column(lines).written() == [("text", "  \n".join(lines))]


def test_entries_that_end_with_numbers_are_lines() -> None:
    lines = ["birds, migrating, 79", "boat, lost, 212, 213", "bread, rye, 123, 154, 186"]
    assert Page().column(lines).written() == [("text", "  \n".join(lines))]


def test_two_paragraphs_of_one_row_each() -> None:
    page = Page().line(FULL[:41] + "end.", y=300).line("The next one follows it.", y=337)
    assert len(page.written()) == 2


def test_narrow_rows_beside_a_picture_are_no_lines_of_their_own() -> None:
    page = Page().column([FULL[:24]] * 4).column([FULL] * 4, y=204)
    (_, text), = page.written()
    assert "\n" not in text


def test_entries_with_leaders_are_lines_without_them() -> None:
    page = Page().column(["Introduction ............................ 1",
                          "The valley ............................. 17",
                          "Results . . . . . . . . . . . . . . . . 105"])
    assert page.written() == [("text", "Introduction 1  \nThe valley 17  \nResults 105")]


def test_entries_without_leaders_keep_their_page_numbers() -> None:
    page = Page().line("Preface", y=100).line("v", x=640, y=100)
    for number in range(3):
        page.line(f"{number + 1}.1 Chapter {'.' * 40} {number + 11}", y=126 + 26 * number)
    assert page.written()[0][1].split("  \n")[0] == "Preface v"


def test_dots_that_lead_nowhere_stay() -> None:
    assert paragraphs.without_leader("and then.... he wrote on") == "and then.... he wrote on"
    assert paragraphs.without_leader("Name: ______________") == "Name: ______________"


def test_items_and_their_continuation() -> None:
    page = Page().column(["• " + FULL[:45]]).line("goes on here", x=115, y=126)
    page.line("• the second", y=152).line("no item at all", y=230)
    assert page.written() == [
        ("list", f"- {FULL[:45]} goes on here\n- the second"), ("text", "no item at all")]


def test_a_number_in_running_text_begins_no_item() -> None:
    page = Page().column([FULL, "15. of March " + FULL[:39], FULL])
    assert [label for label, _ in page.written()] == ["text"]


def test_numbered_items() -> None:
    page = Page().column(["1. the first", "2. the second", "3. the third"])
    assert page.written() == [("list", "1. the first\n2. the second\n3. the third")]


def test_boxes_to_tick_are_items() -> None:
    page = Page().column(["☐ Reduced card", "☒ Family card"])
    assert page.written() == [("list", "- Reduced card\n- Family card")]


def test_a_listing_keeps_lines_indentation_and_empty_lines() -> None:
    page = Page()
    for y, x, text in ((100, 100, "def half(image):"), (126, 140, "return image[::2]"),
                       (178, 100, "half(picture)")):
        page.line(text, x, y, style=MONOSPACE, gap=0.5)
    page.line(FULL, y=300).line(FULL, y=326).line(FULL, y=352)
    assert page.written()[0] == (
        "code", "```\ndef half(image):\n    return image[::2]\n\nhalf(picture)\n```")


def test_a_typewritten_page_is_no_listing() -> None:
    page = Page().column([FULL, FULL], style=MONOSPACE)
    assert [label for label, _ in page.written()] == ["text"]


@pytest.mark.parametrize(("text", "label"), [
    ("Table 3: Weekly schedule", "table_caption"), ("Table 3 lists the weeks.", ""),
    ("Figure 2. Discharge", "image_caption"), ("Fig. 4a – The mill", "image_caption"),
    ("表3-1 主要原材料", "table_caption"), ("Abbildung 7", "image_caption"),
    ("Рис. 2. Схема", "image_caption"), ("Figures are given below.", ""), ("Table of contents", ""),
    ("Tableau II – Effectifs", "table_caption")])
def test_captions(text: str, label: str) -> None:
    assert refine.caption(text) == label


def test_a_caption_at_the_top_of_the_page_is_no_running_header() -> None:
    page = Page().line("Table 5. Accuracy of four models.", y=60).column([FULL] * 4, y=300)
    assert page.written()[0][0] == "table_caption"


def test_a_caption_close_below_a_paragraph_is_cut_off() -> None:
    page = Page().column([FULL, FULL, "ends here."]).line("Table 3. Parameters.", y=194)
    assert [label for label, _ in page.written()] == ["text", "table_caption"]


@pytest.mark.parametrize(("pieces", "text"), [
    (["organi-", "sations"], "organisations"), (["rule-", "based"], "rule-based"),
    (["open-", "data_v2"], "open-data_v2"), (["dix-", "huit ans"], "dix-huit ans"),
    (["well-", "known"], "well-known"), (["Saint-", "Denis"], "Saint-Denis")])
def test_hyphens_at_the_end_of_a_row(pieces: list[str], text: str) -> None:
    assert joined(pieces) == text


def test_in_rows_of_one_length_a_shorter_one_is_the_last() -> None:
    rows = [FULL, FULL, "without a point at the end of the par", FULL, FULL, FULL, "the end"]
    assert len(Page().column(rows).written()) == 2


def test_a_mark_that_a_tab_parts_from_its_text_belongs_to_it() -> None:
    page = Page()
    for number, text in enumerate(["the first", "the second"]):
        page.line("•", x=100, y=100 + 26 * number).line(text, x=140, y=100 + 26 * number)
    assert page.written() == [("list", "- the first\n- the second")]


def test_an_address_in_typewriter_face_is_no_code() -> None:
    page = Page().column([FULL] * 4).line("{one,two}@example.org", y=260, style=MONOSPACE)
    assert [label for label, _ in page.written()] == ["text", "text"]
