"""What only the pixels tell: bold print and drawn marks."""

from __future__ import annotations

import cv2
import numpy as np
import pymupdf
import pytest

from desktop.engines.embedded import bullets, emphasis
from desktop.engines.embedded.model import BOLD, Line, Pixels, Word

TEXTS = ["the quick brown fox jumps", "over the lazy dog and then", "sleeps until the evening",
         "when it jumps once again", "over the very same dog"]


def _page(bold: int | None = None, *, dark: bool = False) -> tuple[Pixels, list[Line]]:
    """A page of TEXTS, the BOLDth of them in bold print; each line is boxed as it is found."""
    document = pymupdf.open()
    page = document.new_page(width=450, height=250)
    lines = []
    for number, text in enumerate(TEXTS):
        y, font = 30 + 40 * number, "hebo" if number == bold else "helv"
        page.insert_text((50, y), text, fontsize=20, fontname=font)
        width = pymupdf.get_text_length(text, font, 20)
        box = (100.0, 2 * y - 34.0, 100.0 + 2 * width, 2 * y + 14.0)
        lines.append(Line(box, 40, [Word(text, box)]))
    pixmap = page.get_pixmap(matrix=pymupdf.Matrix(2, 2), colorspace=pymupdf.csGRAY)
    image = np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.width).copy()
    return (255 - image if dark else image), lines


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("read", [False, True])
def test_heavier_strokes_are_bold(dark: bool, read: bool) -> None:
    image, lines = _page(3, dark=dark)
    if not read:
        for line in lines:
            line.words = []
    emphasis.set_bold(lines, image)
    assert [bool(line.style & BOLD) for line in lines] == [False, False, False, True, False]


def test_nothing_is_bold_where_all_is_alike() -> None:
    image, lines = _page()
    emphasis.set_bold(lines, image)
    assert not any(line.style for line in lines)


@pytest.mark.parametrize("shape", ["disc", "circle", "square"])
def test_a_lone_spot_before_a_line_is_a_bullet(shape: str) -> None:
    image, lines = _page()
    y = 60 + 80 - 14
    if shape == "square":
        cv2.rectangle(image, (66, y - 6), (78, y + 6), 0, -1)
    else:
        cv2.circle(image, (72, y), 7, 0, -1 if shape == "disc" else 2, cv2.LINE_AA)
    bullets.mark(lines, image)
    assert [line.bullet for line in lines] == [False, True, False, False, False]


@pytest.mark.parametrize("mark", ["bar", "two", "big", "high"])
def test_other_marks_are_no_bullets(mark: str) -> None:
    image, lines = _page()
    y = 60 + 80 - 14
    if mark == "bar":
        cv2.rectangle(image, (70, 0), (73, 400), 0, -1)
    elif mark == "two":
        cv2.circle(image, (50, y), 6, 0, -1)
        cv2.circle(image, (75, y), 6, 0, -1)
    elif mark == "big":
        cv2.rectangle(image, (40, y - 22), (80, y + 22), 0, -1)
    else:
        cv2.circle(image, (72, y - 16), 3, 0, -1)
    bullets.mark(lines, image)
    assert not any(line.bullet for line in lines)


def test_a_spot_that_belongs_to_another_line_is_no_bullet() -> None:
    image, lines = _page()
    cv2.circle(image, (72, 126), 6, 0, -1)
    lines.append(Line((30.0, 106.0, 82.0, 154.0), 40, [Word("a.", (30.0, 106.0, 82.0, 154.0))]))
    bullets.mark(lines, image)
    assert not any(line.bullet for line in lines)
