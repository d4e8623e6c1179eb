"""Figures, and the text that the layout model takes into their regions."""

from __future__ import annotations

from desktop.engines.embedded import figures
from desktop.engines.embedded.layout import Found
from tests.engines.embedded.pages import Page

ROW = "Most of the words in this row are quite short ones"
REGION = (90.0, 300.0, 910.0, 700.0)


def test_a_caption_below_its_figure_is_no_part_of_it() -> None:
    lines = Page().line("120", x=300, y=400).line("Figure 5. Annual counts of cranes",
                                                  y=666).line("at the lake.", y=690).lines()
    boxes, within = figures.parted(REGION, lines)
    assert [box[:3] for box in boxes] == [(90.0, 300.0, 910.0)]
    assert boxes[0][3] < 646
    assert [line.text for line in within] == ["120"]


def test_captions_beside_each_other_part_their_figures() -> None:
    page = Page().line("Figure 5. Annual counts.", y=690)
    page.line("Figure 6. Discharge.", x=520, y=690).column([ROW] * 5, y=800)
    written = page.written([Found("figure", REGION, 0.9)])
    assert [label for label, _ in written].count("image") == 2
    assert [text for label, text in written if label == "image_caption"] == [
        "Figure 5. Annual counts.", "Figure 6. Discharge."]


def test_labels_inside_a_figure_stay_in_it() -> None:
    lines = Page().line("Figure out the rest", x=300, y=500).line("0.5", x=300, y=600).lines()
    assert figures.parted(REGION, lines) == ([REGION], lines)


def test_a_formula_of_words_is_text() -> None:
    page = Page().column([ROW] * 4, y=400)
    assert [label for label, _ in page.written([Found("equation", REGION, 0.9)])] == ["text"]
