"""A blank page is found; a page with anything to read on it never is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from desktop.intake.bitmap import Bitmap
from desktop.intake.blank import is_blank
from tests.intake import pdfs
from tests.intake.drawing import bitmap

_SIZE = (1240, 1754)
_PAPERS = {"white": (255, 255, 255), "yellowed": (214, 190, 140), "grey": (170, 170, 165),
           "black": (20, 20, 24)}


def _paper(name: str, seed: int = 1) -> Image.Image:
    """A scanned empty sheet: grain, uneven light."""
    dice = np.random.default_rng(seed)
    width, height = _SIZE
    sheet = np.empty((height, width, 3), np.float32)
    sheet[:] = _PAPERS[name]
    light = np.linspace(-8, 8, width)[None, :, None] + np.linspace(-6, 6, height)[:, None, None]
    sheet += light + dice.normal(0, 3, (height, width, 1))
    return Image.fromarray(np.clip(sheet, 0, 255).astype(np.uint8))


def _blank(image: Image.Image) -> bool:
    return is_blank(Bitmap.of(image))


def _written(paper: Image.Image, text: str, *, ink: int = 40, size: int = 28,
             at: tuple[int, int] = (600, 1650)) -> Image.Image:
    page = paper.copy()
    ImageDraw.Draw(page).text(at, text, fill=(ink,) * 3, font_size=size)
    return page


@pytest.mark.parametrize("paper", _PAPERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_empty_sheets(paper: str, seed: int) -> None:
    assert _blank(_paper(paper, seed))


def test_a_sheet_with_a_dark_edge_and_a_shadow_of_the_binding() -> None:
    sheet = _paper("white")
    draw = ImageDraw.Draw(sheet)
    draw.rectangle((0, 0, 60, _SIZE[1]), fill=(10, 10, 10))
    draw.rectangle((0, _SIZE[1] - 45, *_SIZE), fill=(0, 0, 0))
    shadow = Image.linear_gradient("L").rotate(90).resize((120, _SIZE[1]))
    sheet.paste(ImageChops.multiply(sheet.crop((60, 0, 180, _SIZE[1])),
                                    Image.merge("RGB", (shadow,) * 3)), (60, 0))
    assert _blank(sheet)


def test_specks_are_nothing_to_read() -> None:
    sheet = _paper("yellowed")
    draw = ImageDraw.Draw(sheet)
    dice = np.random.default_rng(4)
    for _speck in range(60):
        x, y = int(dice.integers(0, _SIZE[0])), int(dice.integers(0, _SIZE[1]))
        draw.ellipse((x, y, x + 2, y + 2), fill=(60, 50, 40))
    assert _blank(sheet)


def test_what_shows_through_from_the_back_is_nothing_to_read() -> None:
    sheet = _paper("yellowed")
    back = Image.new("L", _SIZE, 255)
    draw = ImageDraw.Draw(back)
    for row in range(150, 1600, 50):
        draw.text((120, row), "what is printed on the other side of the leaf " * 2, fill=0,
                  font_size=30)
    back = back.transpose(Image.Transpose.FLIP_LEFT_RIGHT).filter(ImageFilter.GaussianBlur(3))
    faint = back.point(lambda value: 238 + value // 15)
    assert _blank(ImageChops.multiply(sheet, Image.merge("RGB", (faint,) * 3)))


@pytest.mark.parametrize("paper", _PAPERS)
@pytest.mark.parametrize("text", ["7", "- 12 -", "Blank", "iv"])
def test_a_page_number_alone_is_something_to_read(paper: str, text: str) -> None:
    ink = 235 if paper == "black" else 40
    assert not _blank(_written(_paper(paper), text, ink=ink))


@pytest.mark.parametrize("ink", [60, 120, 180])
def test_pale_writing(ink: int) -> None:
    assert not _blank(_written(_paper("white"), "faint pencil", ink=ink, at=(200, 400)))


def test_writing_in_any_colour() -> None:
    for colour in ((255, 255, 0), (0, 255, 0), (255, 0, 255), (0, 255, 255), (255, 160, 160)):
        page = Image.new("RGB", _SIZE, "white")
        ImageDraw.Draw(page).text((200, 400), "colour", fill=colour, font_size=30)
        assert not _blank(page), colour


def test_pictures_are_not_blank() -> None:
    gradient = Image.linear_gradient("L").resize(_SIZE).convert("RGB")
    assert not _blank(gradient)
    photo = _paper("white")
    photo.paste(Image.radial_gradient("L").resize((900, 900)).convert("RGB"), (150, 300))
    assert not _blank(photo)


@pytest.mark.parametrize("size", [(1, 1), (3, 2000), (2000, 3), (12, 12), (199, 1), (201, 201)])
def test_any_size(size: tuple[int, int]) -> None:
    assert _blank(Image.new("RGB", size, (240, 240, 230)))


def test_small_pictures_are_blank_only_if_even() -> None:
    icon = Image.new("RGB", (16, 16), "white")
    icon.putpixel((4, 4), (0, 0, 0))
    assert not _blank(icon)


def test_samples(samples: Path) -> None:
    assert is_blank(bitmap(samples / "blank.png"))
    assert is_blank(bitmap(samples / "blank.pdf", 1))
    assert not is_blank(bitmap(samples / "blank.pdf", 2))
    for name in ("scan.jpg", "scan.png", "scan_table.png", "bilevel.png", "scanned.pdf",
                 "white_on_transparent.png", "drawing.svg", "chinese.pdf", "twenty_pages.pdf"):
        assert not is_blank(bitmap(samples / name)), name


def test_a_drawn_page_is_blank_only_if_of_one_tone(tmp_path: Path) -> None:
    nothing = pdfs.one_page(tmp_path / "0.pdf", "")
    ground = pdfs.one_page(tmp_path / "1.pdf", "0.8 0.9 1 rg 0 0 300 400 re f")
    square = pdfs.one_page(tmp_path / "2.pdf", "0 0 40 40 re f")
    far = pdfs.one_page(tmp_path / "3.pdf", "BT /F 9 Tf 2000 2000 Td (x) Tj ET",
                        page="/MediaBox[0 0 6000 6000]")
    assert [is_blank(bitmap(path, max_pixels=4_000_000))
            for path in (nothing, ground, square, far)] == [True, True, False, False]
