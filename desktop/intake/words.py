"""A digital page's own words, as they cross to the engine: one msgpack file a page.

All coordinates are pixels of the upright bitmap (floats, origin top left), turned with it.
Runs on Python 3.10 with msgspec alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import List, Tuple

import msgspec

BOLD, ITALIC, SUPERSCRIPT, MONOSPACE = 1, 2, 4, 8
"""Bits of :attr:`Word.style`."""


class Word(msgspec.Struct, frozen=True, array_like=True):
    """One word of the text layer."""

    text: str
    box: Tuple[float, float, float, float]
    line: int
    """Running number of the text line it belongs to; words of a line come in reading order."""
    size: float
    """Font size in pixels."""
    style: int
    font: int
    """Index into :attr:`PageWords.fonts`."""


class PageWords(msgspec.Struct, frozen=True, array_like=True):
    """The text layer of one page.

    ``rules`` are thin horizontal or vertical lines drawn on the page (table borders) and
    ``images`` the places of pictures, both as boxes. ``hidden`` is the share (0–1) of words that
    are drawn invisibly, as OCR layers of scans are.
    """

    words: List[Word]
    fonts: List[str]
    rules: List[Tuple[float, float, float, float]]
    images: List[Tuple[float, float, float, float]]
    hidden: float = 0.0


def save(words: PageWords, path: Path) -> None:
    """Write WORDS to PATH."""
    path.write_bytes(msgspec.msgpack.encode(words))


def load(path: Path) -> PageWords:
    """Read the words kept in PATH."""
    return msgspec.msgpack.decode(path.read_bytes(), type=PageWords)
