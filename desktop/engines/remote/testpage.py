"""The page a server is tried with, drawn when it is needed."""

from __future__ import annotations

import base64
import functools
import io

from PIL import Image, ImageDraw, ImageFont

LARGE = (1190, 1684)
"""A4 at 144 dpi: two by three tiles."""
SMALL = (540, 764)
"""Less than one tile."""
WORD = "Verso"
"""Stands on it in large letters."""

_LINES = (
    "This page is sent to a server to see whether it reads pages as it should.",
    "It counts the tokens of a page, keeps the marks around a block of text,",
    "sends text as it is made, and holds on to no page once it has been read.",
    "1 + 2 = 3     4 + 5 = 9     6 + 7 = 13     8 + 9 = 17     10 + 11 = 21",
)


def draw(size: tuple[int, int]) -> Image.Image:
    """The page, SIZE pixels large."""
    width, height = size
    image = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(image)
    margin, top = width // 12, height // 14
    title = ImageFont.load_default(width / 14)
    text = ImageFont.load_default(width / 48)
    pen.text((margin, top), f"{WORD}: a test page", fill="black", font=title)
    top += height // 9
    for paragraph in range(5):
        for line in _LINES:
            pen.text((margin, top), line, fill="black", font=text)
            top += height // 44
        top += height // 40
        pen.text((margin, top), f"{paragraph + 1}.", fill="black", font=text)
    return image


@functools.lru_cache(maxsize=2)
def url(size: tuple[int, int]) -> str:
    """The page as a data URL."""
    file = io.BytesIO()
    draw(size).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")
