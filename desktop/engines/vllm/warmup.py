"""A page drawn in code: the engine reads it once before it says that it is ready.

What happens once in a process – kernels loaded, tokenizers copied, buffers grown – then happens
before the first page of a person's.
"""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageDraw

from desktop.protocol.messages import SubmitPage

SIZE = (1190, 1684)
"""Pixels of an A4 page at 144 dpi."""
SMALL = (540, 760)
"""One view without tiles."""
AT_ONCE = 12
"""Pages that a device reads together first: about as many as a step takes in (see
``arguments.BATCHED``). What many at once need beyond one page's is then there."""
TOKENS = 8
"""Output tokens of a warm-up page."""

_LINE = "The quick brown fox jumps over the lazy dog, and {number} others watch. " * 2


def draw(folder: Path, size: tuple[int, int] = SIZE) -> Path:
    """Write a page of text lines of SIZE as binary PPM into FOLDER; its path."""
    image = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(image)
    for number, top in enumerate(range(40, size[1] - 40, 24)):
        pen.text((40, top), _LINE.format(number=number), fill="black")
    path = folder / f"warm-{size[0]}x{size[1]}.ppm"
    image.save(path)
    return path


def page(path: Path, number: int, size: tuple[int, int] = SIZE) -> SubmitPage:
    """The page at PATH as the NUMBERth that is submitted."""
    return SubmitPage(f"warm-up-{size[0]}-{number}", str(path), *size,
                      settings={"max_tokens": TOKENS, "ngram": "off", "crop": "auto"})
