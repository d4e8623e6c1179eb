"""A digital page's own words, in pixels of its bitmap."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pymupdf
import pytest

from desktop.intake import words
from desktop.intake.words import BOLD, ITALIC, MONOSPACE, PageWords
from tests.intake import pdfs
from tests.intake.drawing import bitmap

_LINE = "BT /F 20 Tf 30 300 Td (two words) Tj ET"


def _layer(path: Path, **values: object) -> PageWords:
    layer = bitmap(path, words=b"x", **values).words
    assert layer is not None
    return layer


def _texts(layer: PageWords) -> list[str]:
    return [word.text for word in layer.words]


@pytest.mark.parametrize("clockwise", [0, 90, 180, 270])
@pytest.mark.parametrize("page", ["", "/Rotate 90", "/Rotate 180", "/Rotate 270",
                                  "/MediaBox[-40 -40 260 360]/Rotate 90",
                                  "/CropBox[20 200 280 390]"])
def test_boxes_lie_on_the_ink(tmp_path: Path, page: str, clockwise: int) -> None:
    path = pdfs.one_page(tmp_path / "x.pdf", _LINE, page=page)
    drawn = bitmap(path, words=b"x", clockwise=clockwise)
    assert drawn.words is not None
    assert _texts(drawn.words) == ["two", "words"]
    ink = np.asarray(drawn.image().convert("L")) < 128
    for word in drawn.words.words:
        x1, y1, x2, y2 = (round(value) for value in word.box)
        assert ink[y1:y2, x1:x2].sum() > 50
        ink[y1 - 1:y2 + 1, x1 - 1:x2 + 1] = False
    assert not ink.any(), "ink outside the boxes"


def test_size_is_in_pixels(tmp_path: Path) -> None:
    path = pdfs.one_page(tmp_path / "x.pdf", _LINE)
    assert _layer(path).words[0].size == pytest.approx(40, abs=0.1)
    assert _layer(path, dpi=72).words[0].size == pytest.approx(20, abs=0.1)


def test_styles_and_fonts(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page()
    for row, font in enumerate(("helv", "hebo", "heit", "cour")):
        page.insert_text((50, 100 + 40 * row), f"word{row}", fontname=font, fontsize=14)
    document.save(tmp_path / "x.pdf")
    layer = _layer(tmp_path / "x.pdf")
    assert [word.style & (BOLD | ITALIC | MONOSPACE) for word in layer.words] == [
        0, BOLD, ITALIC, MONOSPACE]
    assert [layer.fonts[word.font] for word in layer.words] == [
        "Helvetica", "Helvetica-Bold", "Helvetica-Oblique", "Courier"]
    assert [word.line for word in layer.words] == [0, 1, 2, 3]


def test_a_word_in_two_fonts_is_one_word(tmp_path: Path) -> None:
    path = pdfs.one_page(
        tmp_path / "x.pdf",
        "BT /F 20 Tf 30 300 Td (Wor) Tj /B 20 Tf (ld) Tj /F 20 Tf ( and more) Tj ET",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Bold>>", resources="")
    data = path.read_bytes().replace(b"/Font<</F 5 0 R>>", b"/Font<</F 5 0 R/B 6 0 R>>")
    path.write_bytes(data)
    layer = _layer(path)
    assert _texts(layer) == ["World", "and", "more"]
    assert layer.words[0].style & BOLD == 0, "most of it is not bold"
    assert len({word.line for word in layer.words}) == 1


def test_letters_are_kept_in_logical_order(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page()
    page.insert_htmlbox((50, 50, 500, 200),
                        "<p>\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd</p>"
                        "<p>\u4f60\u597d\u4e16\u754c</p>")
    document.save(tmp_path / "x.pdf")
    assert _texts(_layer(tmp_path / "x.pdf")) == ["\u05e9\u05dc\u05d5\u05dd",
                                                  "\u05e2\u05d5\u05dc\u05dd",
                                                  "\u4f60\u597d\u4e16\u754c"]


def test_ligatures_come_as_letters(tmp_path: Path) -> None:
    document = pymupdf.open()
    document.new_page().insert_htmlbox((50, 50, 500, 200), "<p>of\ufb01ce \ufb02ow</p>")
    document.save(tmp_path / "x.pdf")
    assert _texts(_layer(tmp_path / "x.pdf")) == ["office", "flow"]


@pytest.mark.parametrize(("mode", "hidden"), [(0, 0.0), (1, 0.0), (2, 0.0), (3, 1.0)])
def test_invisible_words_are_counted(tmp_path: Path, mode: int, hidden: float) -> None:
    path = pdfs.one_page(tmp_path / "x.pdf", f"BT {mode} Tr /F 20 Tf 30 300 Td (two words) Tj ET")
    layer = _layer(path)
    assert _texts(layer) == ["two", "words"]
    assert layer.hidden == hidden


def test_half_of_the_words_invisible(tmp_path: Path) -> None:
    path = pdfs.one_page(tmp_path / "x.pdf",
                         f"{_LINE} BT 3 Tr /F 20 Tf 30 200 Td (two more) Tj ET")
    assert _layer(path).hidden == 0.5


_PICTURE = pdfs.stream("/Type/XObject/Subtype/Image/Width 1/Height 1/BitsPerComponent 8"
                       "/ColorSpace/DeviceGray", b"\xf0")


@pytest.mark.parametrize(("content", "hidden"), [
    (f"{_LINE} q 300 0 0 400 0 0 cm /I Do Q", 1.0),
    (f"q 300 0 0 400 0 0 cm /I Do Q {_LINE}", 0.0),
    (f"{_LINE} q 300 0 0 400 0 0 cm /I Do Q {_LINE}", 0.5),
    (f"{_LINE} q 100 0 0 100 0 0 cm /I Do Q", 0.0),
])
def test_words_under_a_picture_of_the_page_are_invisible(tmp_path: Path, content: str,
                                                         hidden: float) -> None:
    path = pdfs.one_page(tmp_path / "x.pdf", content, _PICTURE,
                         resources="/XObject<</I 6 0 R>>")
    layer = _layer(path)
    assert layer.hidden == hidden
    assert layer.images


def test_pictures_and_rules(tmp_path: Path) -> None:
    path = pdfs.one_page(
        tmp_path / "x.pdf",
        f"{_LINE} 20 50 m 280 50 l S  20 60 m 20 100 l S  100 100 50 40 re S"
        " 20 20 200 1 re f  0 0 1 rg 200 200 50 50 re f  q 50 0 0 20 10 370 cm /I Do Q",
        _PICTURE, resources="/XObject<</I 6 0 R>>")
    layer = _layer(path, dpi=72)
    assert layer.images == [pytest.approx((10, 10, 60, 30), abs=1)]
    rules = [tuple(round(value) for value in rule) for rule in layer.rules]
    horizontal = [rule for rule in rules if rule[3] - rule[1] <= 3]
    vertical = [rule for rule in rules if rule[2] - rule[0] <= 3]
    assert sum(rule[2] - rule[0] > 190 for rule in horizontal) == 2
    assert len(horizontal) == 4, "two lines and the box's upper and lower edge"
    assert len(vertical) == 3, "one line and the box's sides"


def test_a_drawing_of_very_many_paths_has_no_rules(tmp_path: Path) -> None:
    content = _LINE + "\n" + "\n".join(f"{x % 300} {x % 400} m {x % 300 + 9} {x % 400} l S"
                                       for x in range(41_000))
    layer = _layer(pdfs.one_page(tmp_path / "x.pdf", content))
    assert layer.rules == []
    assert _texts(layer) == ["two", "words"]


def test_words_off_the_page_are_left_out(tmp_path: Path) -> None:
    path = pdfs.one_page(tmp_path / "x.pdf",
                         f"{_LINE} BT /F 20 Tf 400 300 Td (outside) Tj ET "
                         "BT /F 20 Tf 30 900 Td (above) Tj ET")
    assert _texts(_layer(path)) == ["two", "words"]


def test_a_page_without_words_has_no_layer(tmp_path: Path, samples: Path) -> None:
    assert bitmap(samples / "scanned.pdf", words=b"x").words is None
    path = pdfs.one_page(tmp_path / "x.pdf", "BT /F 20 Tf 30 300 Td (   ) Tj ET")
    assert bitmap(path, words=b"x").words is None
    assert bitmap(samples / "scan.jpg", words=b"x").words is None


def test_a_rubbish_layer_is_told_as_it_is(samples: Path) -> None:
    assert _layer(samples / "garbled_text_layer.pdf").hidden == 1.0


def test_kept_in_a_file(tmp_path: Path, sample_pdf: Path) -> None:
    layer = _layer(sample_pdf)
    words.save(layer, tmp_path / "x.words")
    assert words.load(tmp_path / "x.words") == layer
    assert len(layer.words) > 50
