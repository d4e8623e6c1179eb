"""The one thing every page becomes: 8-bit RGB pixels, and its file."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field, replace
from typing import cast

from PIL import Image

from desktop.intake.words import PageWords

_TURNS = {
    90: Image.Transpose.ROTATE_270,  # Pillow counts anticlockwise
    180: Image.Transpose.ROTATE_180,
    270: Image.Transpose.ROTATE_90,
}


@dataclass
class Bitmap:
    """Upright RGB pixels, row by row without padding, WIDTH × HEIGHT × 3 bytes."""

    width: int
    height: int
    pixels: bytes | memoryview
    dpi: float = 0.0
    lowered: bool = False
    damage: str = ""
    """What a library said about parts that are missing; "" where nothing is."""
    has_text: bool = False
    """There is visible text in its text layer: it cannot be blank."""
    drawn: bool = False
    """Drawn by a program, without any picture: its paper is of exactly one tone."""
    words: PageWords | None = field(default=None, repr=False)
    owner: object = field(default=None, repr=False)
    """What PIXELS is a view of; kept alive with it."""

    @classmethod
    def of(cls, image: Image.Image, dpi: float = 0.0, lowered: bool = False,
           damage: str = "") -> Bitmap:
        """An RGB image's pixels."""
        return cls(image.width, image.height, image.tobytes(), dpi, lowered, damage)

    def image(self) -> Image.Image:
        """The pixels as a Pillow image that shares them."""
        # Pillow takes any buffer, its annotation names fewer.
        pixels = cast(bytes, self.pixels)
        return Image.frombuffer("RGB", (self.width, self.height), pixels, "raw", "RGB", 0, 1)

    def turned(self, clockwise: int) -> Bitmap:
        """The bitmap turned by 0, 90, 180 or 270 degrees, pixel for pixel; words with it."""
        if clockwise % 360 == 0:
            return self
        image = self.image().transpose(_TURNS[clockwise % 360])
        return replace(self, width=image.width, height=image.height, pixels=image.tobytes(),
                       owner=None)

    def write(self, path: bytes) -> None:
        """Write a binary PPM to PATH, whole or not at all; raises OSError."""
        part = path + b".part"
        try:
            with open(part, "wb") as file:
                file.write(b"P6\n%d %d\n255\n" % (self.width, self.height))
                file.write(self.pixels)
            os.replace(part, path)
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part)
            raise
