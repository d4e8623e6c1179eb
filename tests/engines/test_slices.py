"""Where pages are cut into parts, and the bitmaps of the parts."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from desktop.engines import slices
from desktop.engines.slices import NotCut, Rect, Sheet


def sheet(folder: Path, image: Image.Image) -> Sheet:
    path = folder / "page.ppm"
    image.save(path, "PPM")
    return Sheet(str(path))


def written(width: int, height: int, lines: list[tuple[int, int]], *, frame: bool = False,
            ) -> Image.Image:
    """A page with something like text in LINES (top, bottom)."""
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    dice = random.Random(1)
    for top, bottom in lines:
        for y in range(top, min(bottom, height)):
            draw.point([(x, y) for x in range(20, width - 20) if dice.random() < 0.3], "black")
    if frame:
        draw.rectangle((2, 0, width - 3, height - 1), outline="black", width=3)
    return image


def covered(rects: tuple[Rect, ...], width: int, height: int) -> bool:
    """Whether RECTS follow one another without a hole, within the page and overlapping."""
    axis = 0 if rects[0][3] == height else 1
    assert rects[0][axis] == 0
    assert rects[-1][axis + 2] == (width, height)[axis]
    assert all(rect[1 - axis] == 0 and rect[3 - axis] == (width, height)[1 - axis]
               for rect in rects)
    return all(after[axis] < before[axis + 2] <= after[axis + 2]
               for before, after in itertools.pairwise(rects))


@pytest.mark.parametrize(("size", "count"), [
    ((1190, 1684), 0), ((1684, 1190), 0), ((2480, 3508), 0), ((768, 2304), 0),
    ((945, 6000), 0),  # a long receipt: the model's grid of one by six shows it as it is
    ((551, 16520), 20), ((16520, 551), 20), ((1280, 8000), 4), ((5000, 500), 7),
    ((2, 100_000), 0), ((1, 1), 0), ((0, 0), 0)])
def test_which_pages_are_sliced(size: tuple[int, int], count: int) -> None:
    rects = slices.needed(*size)
    assert len(rects) == count
    if rects:
        assert covered(rects, *size)
        assert all(0.5 < max(c - a, d - b) / min(c - a, d - b) / slices.SHAPE < 2
                   for a, b, c, d in rects)


def test_a_page_sent_as_one_small_view_needs_more_slices() -> None:
    assert slices.needed(700, 2400) == ()
    assert len(slices.needed(700, 2400, "off")) == 2


@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_parts_leave_nothing_out(width: int, height: int) -> None:
    for rects in (slices.needed(width, height), slices.halves(width, height),
                  slices.halves(width, height, wide=True)):
        if rects and rects[0][2] - rects[0][0] > 3 and rects[0][3] - rects[0][1] > 3:
            assert covered(rects, width, height)
    assert len(slices.halves(width, height)) in (0, 2)
    assert len(slices.needed(width, height)) <= slices.MOST


def test_halves_lie_as_the_page_does() -> None:
    upper, lower = slices.halves(1000, 1400)
    assert (upper[:3], lower[2:]) == ((0, 0, 1000), (1000, 1400))
    left, right = slices.halves(2000, 1400)
    assert (left[3], right[1]) == (1400, 0)
    assert slices.halves(100, 100) == ()


@pytest.mark.parametrize("frame", [False, True])
@pytest.mark.parametrize("sideways", [False, True])
def test_the_cut_goes_through_a_gap(tmp_path: Path, frame: bool, sideways: bool) -> None:
    lines = [(top, top + 22) for top in range(20, 960, 30) if not 470 <= top <= 530]
    image = written(600, 1000, lines, frame=frame)
    if sideways:
        image = image.transpose(Image.Transpose.TRANSPOSE)
    page = sheet(tmp_path, image)
    before, after = page.fit(slices.halves(*page.size, wide=sideways))
    axis = 0 if sideways else 1
    assert (after[axis], before[axis + 2]) == (462, 560)  # the gap, all of it



def test_without_a_gap_some_lines_are_in_both_parts(tmp_path: Path) -> None:
    page = sheet(tmp_path, Image.effect_noise((600, 1000), 90).convert("RGB"))
    before, after = page.fit(slices.halves(600, 1000))
    assert 60 <= before[3] - after[1] <= 90
    assert after[1] < 500 < before[3]


def test_parts_are_what_the_page_shows_there(tmp_path: Path) -> None:
    image = Image.effect_noise((120, 400), 90).convert("RGB")
    page = sheet(tmp_path, image)
    path = page.write((0, 100, 120, 200))
    assert path.parent == tmp_path
    with Image.open(path) as part:
        assert part.tobytes() == image.crop((0, 100, 120, 200)).tobytes()
    page.turn(90)
    assert page.size == (400, 120)
    with Image.open(page.write((0, 0, 400, 60))) as part:
        turned = image.transpose(Image.Transpose.ROTATE_270)
        assert part.tobytes() == turned.crop((0, 0, 400, 60)).tobytes()


@pytest.mark.parametrize("content", [b"", b"P6\n", b"P5\n3 3\n255\n123456789", b"P6\n9 9\n255\n1",
                                     b"\x89PNG\r\n", b"P6 a b 255\n"])
def test_what_is_no_bitmap(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "page.ppm"
    path.write_bytes(content)
    with pytest.raises(NotCut):
        Sheet(str(path))
    with pytest.raises(NotCut):
        Sheet(str(tmp_path / "missing.ppm"))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 970), min_size=1, max_size=30))
def test_fitted_parts_leave_nothing_out(tmp_path_factory: pytest.TempPathFactory,
                                        tops: list[int]) -> None:
    page = sheet(tmp_path_factory.mktemp("fit"),
                 written(300, 1000, [(top, top + 25) for top in tops]))
    rects = page.fit(slices.halves(300, 1000))
    assert covered(rects, 300, 1000)
