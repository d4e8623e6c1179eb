"""PDF and the other paged formats as bitmaps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pymupdf
import pytest

from desktop.intake.errors import (
    PasswordNeeded,
    Unreadable,
    WrongPassword,
)
from tests.intake import pdfs
from tests.intake.drawing import bitmap, difference, image, source

_BLOCK = "0 0 1 rg 0 0 60 30 re f"
"""Blue, in the lower left corner of the page's own coordinates."""


def _blue(path: Path, **values: object) -> tuple[tuple[int, int], str]:
    """Size of the bitmap and the corner in which the blue block is."""
    picture = image(path, **values)
    pixels = np.asarray(picture).astype(int)
    rows, columns = np.nonzero((pixels[:, :, 2] - pixels[:, :, 0]) > 100)
    assert rows.size, "no blue"
    vertical = "upper" if rows.mean() < picture.height / 2 else "lower"
    return picture.size, f"{vertical} {'left' if columns.mean() < picture.width / 2 else 'right'}"


@pytest.mark.parametrize(("rotate", "size", "corner"), [
    (0, (600, 800), "lower left"), (90, (800, 600), "upper left"),
    (180, (600, 800), "upper right"), (270, (800, 600), "lower right"),
    (-90, (800, 600), "lower right"), (450, (800, 600), "upper left")])
def test_rotate_is_applied(tmp_path: Path, rotate: int, size: tuple[int, int],
                           corner: str) -> None:
    path = pdfs.one_page(tmp_path / "x.pdf", _BLOCK, page=f"/Rotate {rotate}")
    assert _blue(path) == (size, corner)


@pytest.mark.parametrize(("clockwise", "size", "corner"), [
    (90, (800, 600), "upper left"), (180, (600, 800), "upper right"),
    (270, (800, 600), "lower right")])
def test_a_further_turn(tmp_path: Path, clockwise: int, size: tuple[int, int],
                        corner: str) -> None:
    path = pdfs.one_page(tmp_path / "x.pdf", _BLOCK)
    assert _blue(path, clockwise=clockwise) == (size, corner)


@pytest.mark.parametrize(("boxes", "size"), [
    ("/MediaBox[0 0 300 400]/CropBox[0 0 100 200]", (200, 400)),
    ("/MediaBox[300 400 0 0]", (600, 800)),
    ("/MediaBox[-50 -60 250 340]", (600, 800)),
    ("/MediaBox[0 0 30 40]/UserUnit 10", (600, 800)),
    ("/MediaBox[0 0 300 400]/CropBox[0 0 900 900]", (600, 800)),
    ("/MediaBox[0 0 0 0]", (1224, 1584)),
    ("/MediaBox[]", (1224, 1584)),
])
def test_boxes(tmp_path: Path, boxes: str, size: tuple[int, int]) -> None:
    path = pdfs.one_page(tmp_path / "x.pdf", _BLOCK, page=boxes)
    assert image(path).size == size


def test_cropped_and_turned_together(samples: Path) -> None:
    assert image(samples / "rotated_cropped.pdf", dpi=72).size == (200, 400)


@pytest.mark.parametrize("dpi", [36, 72, 100, 144, 300])
def test_resolution(tmp_path: Path, dpi: int) -> None:
    drawn = bitmap(pdfs.one_page(tmp_path / "x.pdf", _BLOCK), dpi=dpi)
    assert drawn.width == pytest.approx(300 * dpi / 72, abs=1)
    assert drawn.dpi == pytest.approx(dpi)


@pytest.mark.parametrize("page", ["/MediaBox[0 0 14400 14400]/UserUnit 10",
                                  "/MediaBox[0 0 200 14000]", "/MediaBox[0 0 9000000 3]"])
@pytest.mark.parametrize("dpi", [144, 600])
def test_the_resolution_is_lowered_before_drawing(tmp_path: Path, page: str, dpi: int) -> None:
    path = pdfs.one_page(tmp_path / "x.pdf", _BLOCK, page=page)
    drawn = bitmap(path, dpi=dpi, max_pixels=2_000_000)
    assert drawn.width * drawn.height <= 2_000_000
    assert drawn.lowered
    assert drawn.dpi < dpi


def test_thumbnails(samples: Path) -> None:
    drawn = bitmap(samples / "twenty_pages.pdf", 20, max_side=128)
    assert max(drawn.width, drawn.height) in (128, 129)
    assert not drawn.lowered


def test_annotations_and_form_fields_are_drawn(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page(width=300, height=400)
    page.draw_rect((0, 0, 1, 1), color=(0.99, 0.99, 0.99))
    page.add_rect_annot((20, 20, 120, 80)).update(fill_color=(0, 0, 1))
    field = pymupdf.Widget()
    field.field_name, field.field_type = "name", pymupdf.PDF_WIDGET_TYPE_TEXT
    field.rect, field.field_value = pymupdf.Rect(20, 200, 280, 240), "WRITTEN"
    field.text_fontsize = 24
    page.add_widget(field)
    document.save(tmp_path / "x.pdf")
    drawn = np.asarray(image(tmp_path / "x.pdf")).astype(int)
    assert tuple(drawn[100, 140]) == (0, 0, 255)
    assert drawn[400:480, 40:560].min() < 100


def test_transparency_is_drawn_on_white(tmp_path: Path) -> None:
    path = pdfs.one_page(tmp_path / "x.pdf", "/G gs 0 0 0 rg 0 0 300 400 re f",
                         resources="/ExtGState<</G<</ca 0.5>>>>")
    picture = image(path)
    assert picture.getpixel((5, 5)) == pytest.approx((128, 128, 128), abs=2)


# --- passwords --------------------------------------------------------------------------------


def test_a_password_is_needed_and_checked(samples: Path) -> None:
    path = samples / "encrypted.pdf"
    with pytest.raises(PasswordNeeded):
        source(path)
    for wrong in ("", "Verso", "\udcff"):
        with pytest.raises(WrongPassword):
            source(path, wrong)
    opened = source(path, "verso")
    assert opened.encrypted
    assert opened.pages == 2
    drawn = image(path, 1, password="verso")
    assert min(low for low, _high in drawn.getextrema()) < 100, "nothing drawn"


def test_an_owner_password_does_not_lock(tmp_path: Path) -> None:
    document = pymupdf.open()
    document.new_page().insert_text((72, 72), "free to read")
    document.save(tmp_path / "x.pdf", encryption=pymupdf.PDF_ENCRYPT_AES_256, owner_pw="owner",
                  permissions=0)
    opened = source(tmp_path / "x.pdf")
    assert not opened.encrypted
    assert image(tmp_path / "x.pdf").getextrema()[0][0] < 100


def test_a_password_for_a_document_without_one_is_ignored(samples: Path) -> None:
    assert source(samples / "twenty_pages.pdf", "needless").pages == 20


# --- damage -----------------------------------------------------------------------------------


def test_a_document_that_ends_after_its_header(samples: Path) -> None:
    with pytest.raises(Unreadable) as caught:
        source(samples / "header_only.pdf")
    assert caught.value.detail


def test_a_page_that_has_lost_its_content_is_not_taken_for_empty(samples: Path) -> None:
    assert bitmap(samples / "broken.pdf", 1).damage, "cut off"
    assert bitmap(samples / "broken.pdf", 3).damage, "gone"
    assert not bitmap(samples / "twenty_pages.pdf", 3).damage


def test_a_page_tree_that_lies_about_its_length(tmp_path: Path) -> None:
    path = pdfs.write(tmp_path / "x.pdf", "<</Type/Catalog/Pages 2 0 R>>",
                      "<</Type/Pages/Count 99999/Kids[3 0 R]>>",
                      "<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 400]>>")
    with pytest.raises(Unreadable):
        source(path)


def test_a_page_that_is_not_there(tmp_path: Path) -> None:
    path = pdfs.write(tmp_path / "x.pdf", "<</Type/Catalog/Pages 2 0 R>>",
                      "<</Type/Pages/Count 2/Kids[3 0 R 9 0 R]>>",
                      "<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 400]>>", "null", "null")
    assert source(path).pages == 2
    assert not bitmap(path, 1).damage
    assert bitmap(path, 2).damage


# --- other formats ----------------------------------------------------------------------------


def test_svg_and_comics(samples: Path) -> None:
    assert source(samples / "drawing.svg").pages == 1
    assert min(low for low, _high in image(samples / "drawing.svg").getextrema()) < 100
    assert source(samples / "comic.cbz").pages == 2
    assert difference(image(samples / "comic.cbz", 1), image(samples / "comic.cbz", 2)) > 0


def test_books_are_laid_out_as_pages(tmp_path: Path) -> None:
    import zipfile

    path = tmp_path / "book.epub"
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr("META-INF/container.xml",
                      '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:'
                      'container"><rootfiles><rootfile full-path="b.opf" media-type='
                      '"application/oebps-package+xml"/></rootfiles></container>')
        book.writestr("b.opf", '<package xmlns="http://www.idpf.org/2007/opf" version="2.0">'
                      '<manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
                      '</manifest><spine><itemref idref="a"/></spine></package>')
        book.writestr("a.xhtml", '<html xmlns="http://www.w3.org/1999/xhtml"><body>'
                      + "<p>A paragraph of the book.</p>" * 200 + "</body></html>")
    opened = source(path)
    assert opened.pages > 3
    drawn = bitmap(path, 2, words=b"x")
    assert drawn.words is not None
    assert "paragraph" in {word.text for word in drawn.words.words}


def test_many_pages_are_drawn_alike_before_and_after_the_document_is_opened_anew(
        samples: Path) -> None:
    from desktop.intake import wire
    from desktop.intake.paged import PagedFile

    opened = PagedFile(str(samples / "twenty_pages.pdf").encode(), "pdf", None)
    request = wire.DrawPage(b"", None, 7, 72, 24_000_000, 0, 0, b"", b"", 60)
    first = opened.draw(request).image().tobytes()
    for _page in range(80):
        opened.relax()
        assert opened.draw(request).image().tobytes() == first
    opened.close()
