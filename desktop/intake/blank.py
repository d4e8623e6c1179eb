"""Whether there is anything to read or to look at on a page.

A page that is wrongly called blank is lost, one that is wrongly called written costs a little
time: every doubt says "not blank".
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from numpy.typing import NDArray

from desktop.intake.bitmap import Bitmap

_LOOKED_AT = 950_000
"""Pixels that are looked at: a letter page at about 100 to the inch."""
_TINY = 200
"""Sides up to this many pixels hold no paper to be judged: only an even one is blank."""
_EVEN = 16
"""Range of brightness (0–255) within which a page is one tone."""
_STROKE = 9
"""Pixels: what is thinner than this may be a stroke; shadows and dark edges are wider."""
_CELL = 8
"""Pixels; strokes are counted in squares of two by two cells, which overlap."""
_INK = 14
"""Strokes' pixels in a square from which it is more than a speck: most of a small digit."""
_FAINT, _STRONG = 20, 56
"""Contrasts (0–255) between which a stroke must stand out, by how rough the paper is."""
_ROUGH = 3.0
_PICTURE = 60
"""Range of brightness of large areas from which there is a picture."""
_MARGIN = 0.12
"""Share of each side where shadows and the scanner's dark edges are expected."""

_Grey = NDArray[np.uint8]


def is_blank(bitmap: Bitmap) -> bool:
    """True for even paper, specks, shadows, dark edges and bleed-through aside."""
    if bitmap.has_text:
        return False
    if bitmap.drawn:
        return all(bounds[1] - bounds[0] < _EVEN for bounds in
                   cast("tuple[tuple[int, int], ...]", bitmap.image().getextrema()))
    pixels = np.frombuffer(bitmap.pixels, np.uint8).reshape(bitmap.height, bitmap.width, 3)
    step = max(1, round(math.sqrt(bitmap.width * bitmap.height / _LOOKED_AT)))
    sample = pixels[::step, ::step]
    green = np.ascontiguousarray(sample[:, :, 1])
    # Green alone tells nearly always; only what seems blank is looked at in every colour.
    if _written(green):
        return False
    darkest = np.minimum(np.minimum(sample[:, :, 0], sample[:, :, 2]), green)
    return not _written(darkest)


def _written(grey: _Grey) -> bool:
    """Whether there are strokes or a picture in GREY, of about ``_LOOKED_AT`` pixels."""
    if int(grey.max()) - int(grey.min()) < _EVEN:
        return False
    if max(grey.shape) <= _TINY or spread(grey) >= _PICTURE:
        return True
    return stroke_cells(grey) > 0 or stroke_cells(~grey) > 0


def stroke_cells(grey: _Grey) -> int:
    """In how many squares (of about 4 mm) there are strokes darker than what is around them."""
    strokes = _closed(grey) - grey
    rough = int(np.percentile(strokes[::4, ::4], 90))
    ink = strokes > np.clip(_ROUGH * rough, _FAINT, _STRONG)
    sums = np.pad(_sums(ink), ((0, 1), (0, 1)))
    squares = sums[:-1, :-1] + sums[1:, :-1] + sums[:-1, 1:] + sums[1:, 1:]
    return int((squares >= _INK).sum())


def spread(grey: _Grey) -> int:
    """The range of brightness (0–255) away from the edges; strokes alone leave it small."""
    height, width = grey.shape
    top, left = int(height * _MARGIN), int(width * _MARGIN)
    low, high = np.percentile(grey[top:height - top:4, left:width - left:4], (2, 98))
    return int(high - low)


def _closed(grey: _Grey) -> _Grey:
    """GREY without the dark structures that are thinner than ``_STROKE`` pixels."""
    return ~_widest(~_widest(grey))


def _widest(grey: _Grey) -> _Grey:
    """The maximum of the square of ``_STROKE`` pixels around each pixel."""
    for axis in (0, 1):
        if grey.shape[axis] > _STROKE:
            grey = _run(grey, axis)
    return grey


def _run(grey: _Grey, axis: int) -> _Grey:
    # Maxima of 2, 4, 8 pixels from each other, then of 9.
    half = _STROKE // 2
    padding = [(0, 0), (0, 0)]
    padding[axis] = (half, half)
    wide = np.pad(grey, padding)
    reach = 1
    while reach * 2 <= _STROKE:
        wide = np.maximum(_from(wide, axis, 0, reach), _from(wide, axis, reach, 0))
        reach *= 2
    rest = _STROKE - reach
    return np.maximum(_from(wide, axis, 0, rest), _from(wide, axis, rest, 0))


def _from(grey: _Grey, axis: int, start: int, end: int) -> _Grey:
    """GREY without START rows (or columns) at its beginning and END at its end."""
    length = grey.shape[axis]
    return grey[start:length - end] if axis == 0 else grey[:, start:length - end]


def _sums(ink: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many pixels of each cell are set."""
    height, width = ink.shape
    padded = np.pad(ink, ((0, -height % _CELL), (0, -width % _CELL)))
    rows, columns = padded.shape[0] // _CELL, padded.shape[1] // _CELL
    sums: NDArray[np.int64] = padded.reshape(rows, _CELL, columns, _CELL).sum(axis=(1, 3))
    return sums
