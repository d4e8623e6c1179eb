"""What intake takes and gives: requests and answers as plain data."""

from __future__ import annotations

import enum
from pathlib import Path

import msgspec


class Kind(enum.Enum):
    """How a file is opened; decided by its content, never by its name."""

    PDF = "pdf"
    IMAGE = "image"
    DOCUMENT = "document"
    """Anything else MuPDF opens as pages: XPS, EPUB, CBZ, SVG."""


class SourceInfo(msgspec.Struct, frozen=True):
    """A file that can be read."""

    path: str
    kind: Kind
    pages: int
    encrypted: bool = False


class RenderRequest(msgspec.Struct, frozen=True):
    """One page to draw. NUMBER counts from 1; CLOCKWISE turns it further (0, 90, 180, 270)."""

    path: str
    number: int
    dpi: int = 144
    max_pixels: int = 24_000_000
    """The page is drawn at a lower resolution where it would be larger."""
    max_side: int = 0
    """Thumbnails: the longer side in pixels; 0 means: by dpi."""
    clockwise: int = 0
    password: str | None = None
    words: bool = False
    """Also write the page's own words (digital pages)."""
    seconds: float = 60.0


class RenderedPage(msgspec.Struct, frozen=True):
    """An upright 8-bit RGB bitmap in a file (binary PPM), owned by whoever asked for it."""

    image: str
    width: int
    height: int
    dpi: float
    """The resolution it was drawn at; for images their own, or 0."""
    words: str = ""
    """Path of the page's own words, "" where there are none."""
    blank: bool = False
    """Nothing to read on it: even paper, specks and shadows aside."""
    lowered: bool = False
    """Drawn below the resolution asked for, because of the pixel cap."""
    damaged: bool = False
    """The image file is cut off: this is what there is of it."""
    paged: bool = False
    """Of a document of pages; not of an image file."""

    def delete(self) -> None:
        """Remove its files."""
        for name in (self.image, self.words):
            if name:
                Path(name).unlink(missing_ok=True)
