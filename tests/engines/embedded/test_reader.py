"""The built-in engine with its real models, on pages drawn in code."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from desktop.engines.base import Confidence, Oriented, Regions, Text
from desktop.engines.embedded import detect, models
from desktop.engines.embedded.bitmap import UnreadableBitmap
from desktop.engines.embedded.reader import PageReader
from desktop.intake.words import PageWords
from desktop.protocol.messages import SubmitPage
from tests.engines.embedded.drawing import Paper, plain, read

LEFT = ["The quick brown fox jumps over the lazy", "dog while the old clock on the wall strikes",
        "seven and nobody in the house is awake,", "which suits the fox perfectly well today."]
RIGHT = ["Meanwhile the printer in the corner hums", "and prints page after page of numbers that",
         "nobody will ever read, until the paper is", "used up and the lamp begins to blink red."]
TABLE = [["Fruit", "Count", "Price"], ["Apples", "12", "3.40"], ["Pears", "7", "2.15"],
         ["Cherries", "250", "9.99"]]


@pytest.fixture(scope="module")
def reader() -> PageReader:
    return PageReader(models.load(lambda step, fraction: None))


def columns() -> Paper:
    paper = Paper()
    paper.text(60, 90, "On foxes and printers", 24, "hebo")
    paper.paragraph(60, 140, LEFT)
    paper.paragraph(320, 140, RIGHT)
    return paper


def ruled_table(paper: Paper, x: float = 80, y: float = 200, wide: float = 120,
                high: float = 28) -> None:
    """TABLE under a heading that spans its last two columns, every cell framed."""
    rows = [["", "Amounts", ""], *TABLE]
    for r, row in enumerate(rows):
        for c, cell in enumerate(row):
            if r == 0 and c == 2:
                continue
            width = 2 * wide if r == 0 and c == 1 else wide
            left, top = x + c * wide, y + r * high
            paper.page.draw_rect((left, top, left + width, top + high), width=1)
            shift = width / 2 - 22 if r == 0 else 8
            paper.text(left + shift, top + high - 9, cell)


def test_words_of_the_page_are_used_as_they_are(reader: PageReader, tmp_path: Path) -> None:
    result = read(reader, columns().submit(tmp_path))
    assert result.finish == "complete"
    assert result.text.index("On foxes and printers") < result.text.index("The quick brown fox")
    assert " ".join(LEFT) in result.text
    assert result.text.index(LEFT[-1]) < result.text.index(RIGHT[0])
    assert result.of("title") == ["# On foxes and printers"]


def test_pixels_alone_give_the_same_text_in_the_same_order(reader: PageReader,
                                                           tmp_path: Path) -> None:
    digital = read(reader, columns().submit(tmp_path))
    seen = read(reader, columns().submit(tmp_path, words=False))
    flat = [re.sub(r"[^A-Za-z]", "", result.text) for result in (digital, seen)]
    assert flat[0] == flat[1]
    assert [label for label, _ in digital.blocks] == [label for label, _ in seen.blocks]


def test_boxes_come_before_any_text(reader: PageReader, tmp_path: Path) -> None:
    outputs = read(reader, columns().submit(tmp_path, words=False)).outputs
    kinds = [type(output) for output in outputs]
    assert kinds.index(Regions) < kinds.index(Text)
    assert kinds.count(Text) >= 3
    for found in (o for o in outputs if isinstance(o, Regions)):
        for region in found.regions:
            x1, y1, x2, y2 = region.box
            assert 0 <= x1 < x2 <= 999
            assert 0 <= y1 < y2 <= 999


def test_boxes_of_the_layout_come_before_the_lines_are_found(
        reader: PageReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs: list[object] = []
    before: list[object] = []
    find = detect.find

    def watched(*args: Any) -> Any:
        before.extend(outputs)
        return find(*args)

    monkeypatch.setattr(detect, "find", watched)
    for output in reader.read(columns().submit(tmp_path, words=False), lambda: False):
        outputs.append(output)
    assert [type(output) for output in before] == [Regions]
    better = [o for o in outputs if isinstance(o, Regions)][-1]
    # The last ones are those of the blocks that follow.
    written = "".join(o.text for o in outputs if isinstance(o, Text))
    x1, y1, x2, y2 = better.regions[0].box
    assert f"[[{x1}, {y1}, {x2}, {y2}]]" in written


def test_a_page_read_alone_says_the_same_as_beside_others(reader: PageReader,
                                                          tmp_path: Path) -> None:
    page = columns().submit(tmp_path, words=False)
    alone = read(reader, page)
    other = reader.read(page, lambda: False)
    next(other)
    assert read(reader, page).outputs == alone.outputs
    other.close()
    assert read(reader, page).outputs == alone.outputs


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_turned_page_is_turned_back(reader: PageReader, tmp_path: Path, turn: int) -> None:
    result = read(reader, columns().submit(tmp_path, turn=turn, words=False))
    assert result.outputs[0] == Oriented(360 - turn)
    assert "quick brown fox" in result.text


def test_a_very_long_line_is_read_in_parts(reader: PageReader, tmp_path: Path) -> None:
    paper = Paper(width=1400, height=500)
    text = " ".join([*LEFT, *RIGHT])
    paper.text(40, 120, text, 8)
    paper.text(40, 160, "A second line", 8)
    result = read(reader, paper.submit(tmp_path, words=False))
    assert text in result.text


def test_turning_can_be_switched_off(reader: PageReader, tmp_path: Path) -> None:
    page = columns().submit(tmp_path, turn=180, words=False, orientation=False)
    assert not any(isinstance(output, Oriented) for output in reader.read(page, lambda: False))


def shifted(layer: PageWords) -> PageWords:
    """Every letter replaced by the one before it, as broken fonts do."""
    return msgspec.structs.replace(layer, words=[
        msgspec.structs.replace(word, text="".join(chr(ord(c) - 1) for c in word.text))
        for word in layer.words])


def test_words_that_the_page_does_not_show_are_not_believed(reader: PageReader,
                                                            tmp_path: Path) -> None:
    page = columns().submit(tmp_path, change=shifted)
    assert "The quick brown fox" in read(reader, page).text
    always = msgspec.structs.replace(page, settings={"text_layer": "always"})
    assert "Sgd pthbj aqnvm enw" in read(reader, always).text


def test_one_garbled_font_does_not_spoil_a_page_whose_fonts_are_known(
        reader: PageReader, tmp_path: Path) -> None:
    def page(number: int, garbled: bool) -> SubmitPage:
        paper = Paper()
        paper.paragraph(60, 80, ["Words that were compared on the page before"] * 20)
        if garbled:
            paper.paragraph(60, 700, ["letters of another font in a chart"] * 3, 8, "tiro")

        def garble(layer: PageWords) -> PageWords:
            times = {i for i, font in enumerate(layer.fonts) if "Times" in font}
            assert bool(times) == garbled
            return msgspec.structs.replace(layer, words=[
                msgspec.structs.replace(word, text="#;<7>Q") if word.font in times else word
                for word in layer.words])

        return msgspec.structs.replace(paper.submit(tmp_path, change=garble),
                                       page_id=f"4711-{number}")

    read(reader, page(1, False))
    result = read(reader, page(2, True))
    assert result.text.count("compared on the page before") == 20
    assert not [o for o in result.outputs if isinstance(o, Confidence)]


def test_text_that_is_only_in_pictures_of_a_digital_page_is_read(reader: PageReader,
                                                                 tmp_path: Path) -> None:
    picture = columns().page.get_pixmap(dpi=144, alpha=False)
    paper = Paper()
    paper.text(60, 60, "A slide of a screenshot", 20)
    paper.page.insert_image((60, 90, 535, 780), pixmap=picture)
    result = read(reader, paper.submit(tmp_path))
    assert "A slide of a screenshot" in result.text
    assert "The quick brown fox" in result.text


def test_what_cannot_be_read_is_kept_as_a_picture_and_marked(reader: PageReader,
                                                             tmp_path: Path) -> None:
    page = plain(tmp_path, 600, 800)
    image = Path(page.image)
    data = bytearray(image.read_bytes())
    # A few blots, no text.
    for row in range(300, 330):
        start = len(data) - 3 * 600 * (800 - row) + 3 * 200
        data[start:start + 3 * 60] = bytes(3 * 60)
    image.write_bytes(data)
    result = read(reader, page)
    assert result.finish == "complete"
    assert [label for label, _ in result.blocks] == ["image"]
    assert [o.confidence < 0.5 for o in result.outputs if isinstance(o, Confidence)] == [True]


def test_a_picture_does_not_take_the_only_words_of_a_page(reader: PageReader,
                                                          tmp_path: Path) -> None:
    paper = Paper(295, 44)
    paper.text(30, 30, "This is a test file", 24)
    result = read(reader, paper.submit(tmp_path, words=False))
    assert "This is a test file" in result.text


def test_the_text_layer_can_be_ignored(reader: PageReader, tmp_path: Path) -> None:
    page = columns().submit(tmp_path, change=shifted, text_layer="never")
    assert "The quick brown fox" in read(reader, page).text


@pytest.mark.parametrize("words", [True, False], ids=["digital", "pixels"])
def test_a_framed_table_keeps_its_cells_and_spans(reader: PageReader, tmp_path: Path,
                                                  words: bool) -> None:
    paper = columns()
    ruled_table(paper, y=320)
    found = read(reader, paper.submit(tmp_path, words=words)).of("table")
    assert len(found) == 1
    table = re.sub(r"<(/?)th", r"<\1td", found[0])
    assert '<td colspan="2">Amounts</td>' in table
    for row in TABLE:
        assert "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" in table


def test_a_table_without_rules_is_found_by_its_alignment(reader: PageReader,
                                                         tmp_path: Path) -> None:
    paper = columns()
    for r, row in enumerate(TABLE):
        for x, cell in zip((90, 240, 380), row, strict=True):
            paper.text(x, 320 + 20 * r, cell)
    found = read(reader, paper.submit(tmp_path)).of("table")
    assert len(found) == 1
    assert "<td>Pears</td><td>7</td><td>2.15</td>" in found[0]


def test_headers_and_page_numbers_are_told_from_the_text(reader: PageReader,
                                                         tmp_path: Path) -> None:
    paper = columns()
    paper.text(60, 40, "Journal of Small Animals, vol. 3", 8)
    paper.text(295, 810, "17", 9)
    result = read(reader, paper.submit(tmp_path))
    assert result.of("header") == ["Journal of Small Animals, vol. 3"]
    assert result.of("page_number") == ["17"]


@pytest.mark.parametrize("words", [True, False])
def test_a_line_at_the_top_of_an_empty_page_is_its_text(reader: PageReader, tmp_path: Path,
                                                       words: bool) -> None:
    paper = Paper()
    paper.text(72, 50, "The only line of this page", 11)
    result = read(reader, paper.submit(tmp_path, words=words))
    (label, content), = result.blocks
    assert label in ("text", "title", "sub_title")
    assert content.strip("# ") == "The only line of this page"


def test_confidence_of_recognised_blocks(reader: PageReader, tmp_path: Path) -> None:
    outputs = read(reader, columns().submit(tmp_path, words=False)).outputs
    values = [o.confidence for o in outputs if type(o).__name__ == "Confidence"]
    texts = [o for o in outputs if isinstance(o, Text)]
    assert len(values) == len(texts)
    assert all(0.8 < value <= 1 for value in values)


@pytest.mark.parametrize(("width", "height"), [(1, 1), (16, 16), (2000, 3), (3, 2000), (600, 800)])
@pytest.mark.parametrize("value", [255, 0, 128])
def test_an_even_page_is_blank(reader: PageReader, tmp_path: Path, width: int, height: int,
                               value: int) -> None:
    assert read(reader, plain(tmp_path, width, height, value)).finish == "blank"


def test_white_on_dark_is_read(reader: PageReader, tmp_path: Path) -> None:
    paper = Paper(400, 300)
    paper.page.draw_rect((0, 0, 400, 300), fill=(0.1, 0.1, 0.3), color=None)
    for i, line in enumerate(LEFT):
        paper.text(40, 80 + 30 * i, line, 14, color=(1, 1, 1))
    assert "jumps over the lazy" in read(reader, paper.submit(tmp_path, words=False)).text


def test_a_very_long_page_is_read_from_top_to_bottom(reader: PageReader, tmp_path: Path) -> None:
    paper = Paper(300, 2400)
    names = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel"]
    for i, name in enumerate(names):
        paper.text(40, 150 + 280 * i, f"Station {name} reports", 13)
    text = read(reader, paper.submit(tmp_path, words=False)).text
    places = [text.find(name) for name in names]
    assert -1 not in places
    assert places == sorted(places)


def test_stops_within_a_few_lines_once_cancelled(reader: PageReader, tmp_path: Path) -> None:
    paper = Paper()
    for i in range(40):
        paper.text(60, 60 + 18 * i, LEFT[i % 4])
    page = paper.submit(tmp_path, words=False)
    stop = threading.Event()
    outputs = []
    for output in reader.read(page, stop.is_set):
        outputs.append(output)
        if isinstance(output, Regions):
            stop.set()
    assert isinstance(outputs[-1], Regions)


def test_a_missing_or_short_bitmap_is_a_clear_error(reader: PageReader, tmp_path: Path) -> None:
    page = SubmitPage("p", str(tmp_path / "gone.ppm"), 10, 10)
    with pytest.raises(UnreadableBitmap):
        read(reader, page)
    short = tmp_path / "short.ppm"
    short.write_bytes(b"P6 10 10 255\n1234")
    with pytest.raises(UnreadableBitmap):
        read(reader, msgspec.structs.replace(page, image=str(short)))


def test_literal_tokens_of_the_format_do_not_break_it(reader: PageReader, tmp_path: Path) -> None:
    paper = columns()
    paper.text(60, 400, "A page about <|ref|>title<|/ref|> and <table> tags.")
    result = read(reader, paper.submit(tmp_path))
    assert "&lt;|ref|>title" in result.text
    assert "&lt;table>" in result.text
