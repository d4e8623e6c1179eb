"""A trace on a page that makes it another image for every cache, and no other page for a reader.

Small squares along the top edge stand for the bits of a serial number; in those that are set the
pixels are moved by a few of 255 steps. That is seen by any hash of the pixels, also after a JPEG
of good quality, and changes nothing that can be read.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from desktop.i18n import _

SQUARE = 8
"""Pixels: the block of a JPEG, so that the change is not spread."""
BITS = 24
STEP = 6
"""Of 255."""


def mark(path: Path, serial: int) -> None:
    """Change the binary PPM at PATH, in place, so that it stands for SERIAL (from 1; those that
    differ by 2**24 are equal). Raises ValueError for a page of less than 24 squares, OSError."""
    with open(path, "r+b") as file:
        header = file.read(64)
        fields = header.split(maxsplit=4)[:4]
        if len(fields) < 4 or fields[0] != b"P6" or fields[3] != b"255":
            raise ValueError(f"not an 8-bit binary PPM: {header[:16]!r}")
        width, height = int(fields[1]), int(fields[2])
        offset = 0
        for part in fields:
            offset = header.index(part, offset) + len(part)
        offset += 1
        across = max(1, width // SQUARE)
        if across * (height // SQUARE) < BITS:
            raise ValueError(_("{width} × {height} pixels are too few").format(
                width=width, height=height))
        with mmap.mmap(file.fileno(), 0) as data:
            for bit in range(BITS):
                if serial >> bit & 1:
                    _shift(data, offset, width, bit % across * SQUARE, bit // across * SQUARE)


def _shift(data: mmap.mmap, offset: int, width: int, left: int, top: int) -> None:
    for row in range(top, top + SQUARE):
        start = offset + (row * width + left) * 3
        pixels = data[start:start + SQUARE * 3]
        data[start:start + SQUARE * 3] = bytes(
            value - STEP if value >= 128 else value + STEP for value in pixels)
