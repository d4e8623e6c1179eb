"""What a page costs DeepSeek-OCR-2 in visual tokens ("crop mode").

A page that is larger than one tile is stretched to a grid of 768-pixel tiles beside a 1024-pixel
view of the whole; a smaller one, or any page with crop mode off, is one padded view.
Pure Python; runs on 3.10.
"""

from __future__ import annotations

from typing import NamedTuple

TILE = 768
"""Pixels of a tile's side."""
VIEW_TOKENS = 257
"""The view of the whole page, with its separator."""
TILE_TOKENS = 144
MOST_TILES = 6

_GRIDS = sorted(
    ((w, h) for w in range(1, MOST_TILES + 1) for h in range(1, MOST_TILES + 1)
     if 2 <= w * h <= MOST_TILES),
    key=lambda grid: grid[0] * grid[1],
)


class Cost(NamedTuple):
    """Tiles across and down (0 × 0: none, the one view is all) and the tokens in sum."""

    across: int
    down: int
    tokens: int


def visual_tokens(width: int, height: int, crop: str = "auto") -> Cost:
    """The cost of a page of WIDTH × HEIGHT pixels; CROP is the setting's value (auto, off).

    Raises ValueError for a size that is not positive.
    """
    if width <= 0 or height <= 0:
        raise ValueError(f"not a page size: {width} × {height}")
    if crop == "off" or (width <= TILE and height <= TILE):
        return Cost(0, 0, VIEW_TOKENS)
    across, down = _grid(width, height)
    return Cost(across, down, VIEW_TOKENS + TILE_TOKENS * across * down)


def _grid(width: int, height: int) -> tuple[int, int]:
    """The grid whose shape is closest; of two equally close, the later if the page fills it."""
    best, least = _GRIDS[0], float("inf")
    for across, down in _GRIDS:
        difference = abs(width / height - across / down)
        if difference < least:
            best, least = (across, down), difference
        elif difference == least and width * height > 0.5 * TILE * TILE * across * down:
            best = (across, down)
    return best
