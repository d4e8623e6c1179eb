"""Vertical and right-to-left text, soft hyphens."""

from __future__ import annotations

import pytest

from desktop.engines.embedded import scripts, textlayer, write
from desktop.engines.embedded.model import Block, Line, union
from desktop.intake.words import Word
from tests.engines.embedded.pages import Page, layer


def _columns(texts: list[str], size: float = 20, pitch: float = 40) -> list[list[Word]]:
    """Each character is a line of its own, as it comes from vertical text."""
    groups: list[list[Word]] = []
    for number, text in enumerate(texts):
        x = 800 - number * pitch
        for place, c in enumerate(text):
            y = 100 + place * size
            groups.append([Word(c, (x, y, x + size, y + size), len(groups), size, 0, 0)])
    return groups


def test_vertical_text_is_read_in_columns_from_the_right() -> None:
    texts = ["吾輩は猫である名前はまだ無い", "どこで生れたかとんと見当が", "つかぬ"]
    lines = textlayer.lines_of(layer(*_columns(texts)))
    assert [line.text for line in lines] == texts
    assert all(line.vertical for line in lines)
    assert write.paragraph(lines) == "".join(texts)


def test_a_column_of_single_characters_in_a_table_is_not_vertical_text() -> None:
    groups = _columns(["是否是否是否"])
    prose = Page().line("The services of the library are listed below with their state.")
    groups.append(prose.words)
    assert not any(line.vertical for line in textlayer.lines_of(layer(*groups)))


def test_leftward_lines_are_whole_and_in_order() -> None:
    page = [Word("مدينة", (700, 100, 780, 130), 0, 20, 0, 0),
            Word("جديدة", (600, 100, 690, 130), 0, 20, 0, 0),
            Word("اليوم", (500, 100, 590, 130), 0, 20, 0, 0)]
    lines = textlayer.lines_of(layer(page))
    assert [line.text for line in lines] == ["مدينة جديدة اليوم"]
    assert lines[0].leftwards


def test_the_point_at_the_left_end_of_a_leftward_line_comes_last() -> None:
    page = [Word(".مدينة", (480, 100, 780, 130), 0, 20, 0, 0),
            Word("جديدة", (600, 100, 690, 130), 0, 20, 0, 0)]
    line, = textlayer.lines_of(layer(page))
    assert line.text == "مدينة جديدة."
    assert line.words[0].box[0] > 690


def test_pieces_of_a_leftward_line_are_one_line_in_the_order_of_reading() -> None:
    right = [Word("مكتبة", (700, 100, 780, 130), 0, 20, 0, 0),
             Word("Python", (620, 100, 690, 130), 0, 20, 0, 0)]
    left = [Word("سهلة", (560, 100, 612, 130), 1, 20, 0, 0),
            Word("جدا", (500, 100, 550, 130), 1, 20, 0, 0)]
    far = [Word("هامش", (100, 100, 180, 130), 2, 20, 0, 0)]
    lines = textlayer.lines_of(layer(right, left, far))
    assert [line.text for line in lines] == ["مكتبة Python سهلة جدا", "هامش"]


def test_arabic_numbers_are_turned_back() -> None:
    page = [Word("٢١", (187, 100, 199, 120), 0, 20, 0, 0),
            Word("–", (202, 100, 208, 120), 0, 20, 0, 0),
            Word("٩", (210, 100, 216, 120), 0, 20, 0, 0)]
    assert textlayer.lines_of(layer(page))[0].text == "٩ – ١٢"


def test_cells_of_a_leftward_table_are_in_the_order_of_reading() -> None:
    lines: list[Line] = []
    for row, (first, second, third) in enumerate([("القسم", "الصباح", "المساء"),
                                                  ("الأطفال", "١", "٢"), ("الأرشيف", "٣", "٤")]):
        for x, text in ((700, first), (400, second), (100, third)):
            box = (x, 100 + 40 * row, x + 100, 120 + 40 * row)
            lines += textlayer.lines_of(layer([Word(text, box, 0, 20, 0, 0)]))
    html = write.markdown(Block("table", union([line.box for line in lines]), lines))
    assert html.index("القسم") < html.index("الصباح") < html.index("المساء")
    assert html.index("الأطفال") < html.index("١") < html.index("٢")


@pytest.mark.parametrize(("text", "leftwards"), [
    ("שלום עולם", True), ("مرحبا", True), ("hello", False), ("12", False), ("", False),
    ("مرحبا بكم في Verso", True)])
def test_direction(text: str, leftwards: bool) -> None:
    assert scripts.leftwards(text) is leftwards


def test_soft_hyphens_inside_words_are_dropped() -> None:
    page = Page().line("the light\u00adhouse keep\u00ader is well-known")
    assert page.lines()[0].text == "the lighthouse keeper is well-known"


def test_a_soft_hyphen_that_is_the_only_hyphen_of_an_old_font_is_one() -> None:
    page = Page().line("the state of the art is well\u00adknown " + "and so on " * 9)
    assert "well-known" in page.lines()[0].text


@pytest.mark.parametrize("end", ["\u00ad", "-\u00ad", "\u00ad\u2010"])
def test_a_word_broken_at_a_soft_hyphen_is_put_together(end: str) -> None:
    page = Page().line(f"the appli{end}", y=100).line("cant paid-up", y=126)
    assert write.paragraph(page.lines()) == "the applicant paid-up"
