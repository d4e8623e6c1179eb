"""Draw a page in this process, for tests that look at pixels."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from PIL import Image

from desktop.intake import wire
from desktop.intake.bitmap import Bitmap
from desktop.intake.detect import detect
from desktop.intake.images import ImageSource
from desktop.intake.model import Kind
from desktop.intake.paged import PagedFile

_DEFAULTS: dict[str, Any] = {"dpi": 144, "max_pixels": 24_000_000, "max_side": 0, "clockwise": 0,
                             "words": b"", "seconds": 60.0}


def source(path: Path, password: str | None = None) -> ImageSource | PagedFile:
    """PATH, opened."""
    found = detect(path)
    if found.kind is Kind.IMAGE:
        return ImageSource(os.fsencode(path), 2048)
    return PagedFile(os.fsencode(path), found.format, password)


def bitmap(path: Path, number: int = 1, password: str | None = None, **values: Any) -> Bitmap:
    """A page, turned by ``clockwise`` as a drawing process does it."""
    request = wire.DrawPage(path=os.fsencode(path), password=password, number=number, image=b"",
                            **{**_DEFAULTS, **values})
    opened = source(path, password)
    try:
        return opened.draw(request).turned(request.clockwise)
    finally:
        opened.relax()


def image(path: Path, number: int = 1, **values: Any) -> Image.Image:
    """A page as a Pillow image."""
    drawn = bitmap(path, number, **values)
    copied = drawn.image().copy()
    assert copied.mode == "RGB"
    return copied


def difference(one: Image.Image, other: Image.Image) -> float:
    """Mean absolute difference of two images of one size, 0–255."""
    import numpy as np

    assert one.size == other.size
    a, b = (np.asarray(each.convert("RGB")).astype(np.int16) for each in (one, other))
    return float(np.abs(a - b).mean())
