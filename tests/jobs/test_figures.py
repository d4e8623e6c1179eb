"""Crops: the right pixels, the right way up."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from desktop.document.model import Block
from desktop.jobs.figures import MAX_CROPS, Figures, crop
from desktop.jobs.records import PageKey
from desktop.protocol.messages import Box

SIZE = (97, 61)
TURN_BACK = {0: None, 90: Image.Transpose.ROTATE_90, 180: Image.Transpose.ROTATE_180,
             270: Image.Transpose.ROTATE_270}


def upright() -> Image.Image:
    """Every pixel tells where it is."""
    image = Image.new("RGB", SIZE)
    image.putdata([(x, y, 7) for y in range(SIZE[1]) for x in range(SIZE[0])])
    return image


def bitmap(tmp_path: Path, clockwise: int = 0) -> Path:
    """A PPM that has to be turned CLOCKWISE to be :func:`upright`."""
    image = upright()
    back = TURN_BACK[clockwise]
    path = tmp_path / f"page-{clockwise}.ppm"
    (image.transpose(back) if back is not None else image).save(path)
    return path


@pytest.mark.parametrize("clockwise", [0, 90, 180, 270])
@pytest.mark.parametrize("box", [(0, 0, 999, 999), (100, 200, 500, 700), (0, 900, 999, 999),
                                 (990, 0, 999, 10)])
def test_a_crop_shows_what_the_box_of_the_upright_page_holds(
        tmp_path: Path, clockwise: int, box: Box) -> None:
    image = crop(bitmap(tmp_path, clockwise), box, clockwise)
    assert image is not None
    left, top, red = image.getpixel((0, 0))
    right, bottom, _ = image.getpixel((image.width - 1, image.height - 1))
    assert red == 7
    assert (right - left + 1, bottom - top + 1) == image.size
    for pixel, part, size in ((left, box[0], SIZE[0]), (top, box[1], SIZE[1]),
                              (right + 1, box[2], SIZE[0]), (bottom + 1, box[3], SIZE[1])):
        assert abs(pixel - part / 999 * size) <= 1


def test_all_crops_of_a_page(tmp_path: Path) -> None:
    figures = Figures(tmp_path / "crops")
    key = PageKey(4, 2)
    blocks = [
        Block(0, "text", ((0, 0, 999, 100),), "no crop"),
        Block(1, "image", ((0, 0, 400, 400), (300, 300, 600, 999)), ""),
        Block(2, "image", (), ""),
        Block(3, "equation_image", ((500, 500, 600, 600),), "raw"),
        Block(4, "image", ((500, 0, 500, 0),), ""),
    ]
    done = figures.cut(key, blocks, bitmap(tmp_path), 0)
    assert done[:2] == (1, 3)
    with Image.open(figures.path(key, 1)) as image:
        assert image.format == "PNG"
        assert image.width == pytest.approx(97 * 0.6, abs=2)  # both boxes in one
        assert image.height == 61
    assert {path.name for path in (tmp_path / "crops" / "4").iterdir()} == {
        f"2-b{index + 1}.png" for index in done}

    other = PageKey(4, 22)
    figures.cut(other, blocks[1:2], bitmap(tmp_path), 0)
    figures.delete(key)
    assert not figures.path(key, 1).exists()
    assert figures.path(other, 1).exists()
    figures.delete_document(4)
    assert not (tmp_path / "crops" / "4").exists()


def test_output_that_loops_does_not_fill_the_disk(tmp_path: Path) -> None:
    blocks = [Block(index, "image", ((0, 0, 10, 10),), "") for index in range(1000)]
    assert len(Figures(tmp_path).cut(PageKey(1, 1), blocks, bitmap(tmp_path), 0)) == MAX_CROPS
