"""Pages that are read in parts: where to cut them, and the bitmaps of the parts.

A page many times as tall as wide would be squashed into the model's few tiles, so it is read in
slices of about a page's shape; a page whose output looped is read once more in two halves.
Neighbouring parts overlap: by a gap in the content where there is one, so that no line is cut,
else by some lines, so that each is whole in one of the two. What the parts say is put together
again by :mod:`desktop.engines.merging`.

Pillow is imported when a page is cut; runs on Python 3.10.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from array import array
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Sequence, Tuple

from desktop.engines.visual_tokens import TILE, visual_tokens
from desktop.errors import VersoError
from desktop.i18n import N_

if TYPE_CHECKING:
    from PIL import Image

Rect = Tuple[int, int, int, int]
"""x1, y1, x2, y2 in pixels, right and bottom exclusive."""

LONG = 3.0
"""Sides' ratio from which a page may be sliced: below, the model's grids come close to it."""
SHRUNK = 0.75
"""… if the model would see it smaller than that, or"""
DISTORTED = 1.6
"""… stretched more one way than the other by this factor."""
SHAPE = 1.5
"""Length of a slice over its width: the model's largest grid, two tiles by three."""
SEARCH = 0.3
"""Share of a slice's width within which a gap is looked for; neighbours overlap by it at first."""
OVERLAP = 0.12
"""Overlap where there is no gap: some lines of text."""
MOST = 64
"""Parts of one page; a longer page has longer parts."""
_LEAST_HALF = 64
"""Pixels a part must have for halves of it to say more."""
_GAP = 5
"""Pixels of a gap at least."""
_CHANGE = 40
"""Levels by which a pixel differs from its neighbour where there is content."""


class NotCut(VersoError):
    """The page's bitmap could not be read, or no room was left for its parts."""

    code = "engine.parts"
    message = N_("The page could not be cut into parts.")
    hint = N_("Free some disk space and read the page again, or switch “Slice very long pages” "
              "off.")


class Size(NamedTuple):
    """Pixels of a whole page."""

    width: int
    height: int


def needed(width: int, height: int, crop: str = "auto") -> tuple[Rect, ...]:
    """The slices, in reading order, of a page of WIDTH × HEIGHT pixels that the model would see
    squashed; empty for any other. CROP is the setting's value (auto, off)."""
    long, short = max(width, height), min(width, height)
    if short < _LEAST_HALF or long < LONG * short:
        return ()
    across, down, _ = visual_tokens(width, height, crop)
    scales = ((across * TILE / width, down * TILE / height) if across
              else (min(1.0, TILE / long),) * 2)
    if min(scales) >= SHRUNK and max(scales) <= DISTORTED * min(scales):
        return ()
    return _along(width, height, min(MOST, max(2, round(long / (SHAPE * short)))))


def halves(width: int, height: int, wide: bool | None = None) -> tuple[Rect, ...]:
    """Two overlapping halves, one above the other, or side by side (WIDE; None: where the page
    is wider than tall); empty where they would be too small."""
    if max(width, height) < 2 * _LEAST_HALF or min(width, height) <= 0:
        return ()
    return _along(width, height, 2, width > 1.2 * height if wide is None else wide)


def _along(width: int, height: int, count: int, wide: bool | None = None) -> tuple[Rect, ...]:
    """COUNT equal parts with the overlap in which a gap is looked for."""
    wide = width > height if wide is None else wide
    long, short = (width, height) if wide else (height, width)
    step = long / count
    half = min(SEARCH * short, SEARCH * step) / 2
    spans = [(max(0, round(n * step - half)), min(long, round((n + 1) * step + half)))
             for n in range(count)]
    return tuple((a, 0, b, height) if wide else (0, a, width, b) for a, b in spans)


class Sheet:
    """The bitmap of a page, open for being cut. Slow for large pages: for a thread."""

    def __init__(self, path: str) -> None:
        """Open the binary PPM at PATH; raises :class:`NotCut`."""
        from PIL import Image

        self._path = Path(path)
        try:
            data = self._path.read_bytes()
            magic, width, height, depth = data[:64].split(maxsplit=4)[:4]
            if magic != b"P6" or depth != b"255":
                raise ValueError(f"{path}: not an 8-bit binary PPM")
            at = 0
            for field in (magic, width, height, depth):
                at = data.index(field, at) + len(field)
            # Not Image.open: pages larger than what Pillow takes for an attack are welcome here.
            self._image: Image.Image = Image.frombuffer("RGB", (int(width), int(height)),
                                           data[at + 1:], "raw", "RGB", 0, 1)
        except (OSError, ValueError) as error:
            raise NotCut(detail=str(error)) from error
        self.size = Size(*self._image.size)

    def turn(self, clockwise: int) -> None:
        """Turn the page upright."""
        if clockwise % 360:
            self._image = self._image.rotate(-clockwise, expand=True)
            self.size = Size(*self._image.size)

    def fit(self, rects: Sequence[Rect]) -> tuple[Rect, ...]:
        """RECTS with their overlaps narrowed to a gap in the content, or to a few lines."""
        fitted = [list(rect) for rect in rects]
        for before, after in itertools.pairwise(fitted):
            axis = 0 if after[0] > before[0] else 1
            low, high = after[axis], before[axis + 2]
            if low >= high:
                continue
            gap = self._gap(axis, low, high)
            if gap is None:
                short = self.size[1 - axis]
                half = min(OVERLAP * short, high - low) / 2
                middle = (low + high) / 2
                gap = round(middle - half), round(middle + half)
            after[axis], before[axis + 2] = gap
        return tuple((a, b, c, d) for a, b, c, d in fitted)

    def write(self, rect: Rect) -> Path:
        """The part RECT as a new binary PPM beside the page's, to be deleted by the caller;
        raises :class:`NotCut`."""
        part = self._image.crop(rect)
        for folder in (str(self._path.parent), tempfile.gettempdir()):
            try:
                handle, name = tempfile.mkstemp(".ppm", f"{self._path.stem}-part-", folder)
            except OSError:
                continue
            try:
                with os.fdopen(handle, "wb") as file:
                    part.save(file, "PPM")
            except OSError as error:
                os.unlink(name)
                raise NotCut(detail=str(error)) from error
            return Path(name)
        raise NotCut(detail=f"no folder for parts of {self._path}")

    def _gap(self, axis: int, low: int, high: int) -> tuple[int, int] | None:
        """The best band without content between LOW and HIGH along AXIS; None: there is none.

        Without content is where a line of pixels differs from the one before in hardly any: so
        rules and frames that run along the page do no harm.
        """
        from PIL import Image, ImageChops

        box = (low, 0, high, self.size.height) if axis == 0 else (0, low, self.size.width, high)
        band = self._image.crop(box).convert("L")
        if axis == 0:
            band = band.transpose(Image.Transpose.TRANSPOSE)
        width, height = band.size
        change = ImageChops.difference(
            band.crop((0, 1, width, height)), band.crop((0, 0, width, height - 1)))
        marked = change.point([255 if level > _CHANGE else 0 for level in range(256)])
        share = marked.convert("F").resize((1, height - 1), Image.Resampling.BOX)
        busy = [value * width / 255 > 2 for value in array("f", share.tobytes())]
        best: tuple[float, int, int] | None = None
        start = 0
        for row, stop in enumerate([*busy, True]):
            if not stop:
                continue
            length = row - start
            if length >= _GAP:
                # A wide gap is the better one, and so is one near the middle.
                score = length - 0.1 * abs((start + row) / 2 - height / 2)
                if best is None or score > best[0]:
                    best = score, start, row
            start = row + 1
        return None if best is None else (low + best[1], low + best[2] + 1)
