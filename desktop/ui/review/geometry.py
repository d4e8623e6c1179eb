"""Where things of a page bitmap lie on the canvas: zoom, rotation, margins. Qt-free.

Three frames: *box* (0–999 of the upright page), *page* (pixels of the bitmap, origin top left),
*content* (logical pixels of the scrolled area: the page, turned and zoomed, with a margin round
it). The scroll position moves content under the viewport.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from desktop.protocol.messages import Box

MARGIN = 16
"""Logical pixels of ground round the page."""

_STRIPE = 4.0
"""A page that would fill its view only this much larger is not fitted as a whole."""

SMALLEST, LARGEST = 0.02, 16.0
"""Bounds of the zoom, in bitmap pixels to device pixels."""

_STEP = 2 ** 0.25
_ROUND = (0.05, 0.1, 0.25, 1 / 3, 0.5, 2 / 3, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)


class Rect(NamedTuple):
    """An upright rectangle; right and bottom are its far edges."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    def contains(self, x: float, y: float) -> bool:
        return self.left <= x <= self.right and self.top <= y <= self.bottom


@dataclass(frozen=True)
class Projection:
    """How a bitmap of WIDTH × HEIGHT pixels lies in a viewport.

    ``scale`` is logical pixels of the screen per bitmap pixel; ``rotation`` is clockwise degrees
    (0, 90, 180, 270) the page is turned by for looking at it.
    """

    width: int
    height: int
    viewport: tuple[int, int] = (1, 1)
    scale: float = 1.0
    rotation: int = 0

    @property
    def turned(self) -> tuple[int, int]:
        """Width and height of the bitmap as it is turned, in bitmap pixels."""
        if self.rotation % 180:
            return self.height, self.width
        return self.width, self.height

    @cached_property
    def page_size(self) -> tuple[float, float]:
        """Width and height of the drawn page, in logical pixels."""
        width, height = self.turned
        return width * self.scale, height * self.scale

    @cached_property
    def content_size(self) -> tuple[int, int]:
        """Width and height of the scrolled area; never smaller than the viewport."""
        width, height = self.page_size
        return (max(self.viewport[0], round(width) + 2 * MARGIN),
                max(self.viewport[1], round(height) + 2 * MARGIN))

    @property
    def scroll_range(self) -> tuple[int, int]:
        """The largest scroll position, horizontally and vertically."""
        width, height = self.content_size
        return width - self.viewport[0], height - self.viewport[1]

    @cached_property
    def origin(self) -> tuple[float, float]:
        """Top left of the page in content: centred where the page is smaller than the viewport."""
        width, height = self.page_size
        content = self.content_size
        return (content[0] - width) / 2, (content[1] - height) / 2

    def to_content(self, x: float, y: float) -> tuple[float, float]:
        """Page → content."""
        w, h = self.width, self.height
        if self.rotation == 90:
            x, y = h - y, x
        elif self.rotation == 180:
            x, y = w - x, h - y
        elif self.rotation == 270:
            x, y = y, w - x
        left, top = self.origin
        return left + x * self.scale, top + y * self.scale

    def to_page(self, x: float, y: float) -> tuple[float, float]:
        """Content → page; points beside the page give coordinates outside the bitmap."""
        left, top = self.origin
        x, y = (x - left) / self.scale, (y - top) / self.scale
        w, h = self.width, self.height
        if self.rotation == 90:
            return y, h - x
        if self.rotation == 180:
            return w - x, h - y
        if self.rotation == 270:
            return w - y, x
        return x, y

    def box(self, box: Box) -> Rect:
        """Box → content."""
        x1, y1 = self.to_content(box[0] / 999 * self.width, box[1] / 999 * self.height)
        x2, y2 = self.to_content(box[2] / 999 * self.width, box[3] / 999 * self.height)
        return Rect(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))

    def fit_page(self) -> float:
        """The scale at which the whole page shows."""
        return min(self.fit_width(), self._fit(1))

    def fit_width(self) -> float:
        """The scale at which the page is as wide as the viewport."""
        return self._fit(0)

    def fit_readable(self) -> float:
        """The whole page; of one so tall or so wide that it would be a stripe, its narrow side,
        at most at its own size."""
        whole, other = self.fit_page(), max(self.fit_width(), self._fit(1))
        return whole if other < _STRIPE * whole else max(whole, min(other, 1.0))

    def _fit(self, axis: int) -> float:
        room = max(8, self.viewport[axis] - 2 * MARGIN)
        return room / max(1, self.turned[axis])

    def zoomed(self, scale: float, at: tuple[float, float],
               scroll: tuple[int, int]) -> tuple[Projection, tuple[int, int]]:
        """Zoom to SCALE so that what is under AT (viewport) stays there, as far as it can.

        The new projection and the new scroll position.
        """
        point = self.to_page(at[0] + scroll[0], at[1] + scroll[1])
        result = replace(self, scale=scale)
        x, y = result.to_content(*point)
        most = result.scroll_range
        return result, (min(max(0, round(x - at[0])), most[0]),
                        min(max(0, round(y - at[1])), most[1]))


def clamp_zoom(zoom: float) -> float:
    """ZOOM within what the canvas allows."""
    return min(max(zoom, SMALLEST), LARGEST)


def next_zoom(zoom: float, direction: int) -> float:
    """The next round zoom above (+1) or below (−1) ZOOM."""
    if direction > 0:
        return next((step for step in _ROUND if step > zoom * 1.01), clamp_zoom(zoom * _STEP))
    return next((step for step in reversed(_ROUND) if step < zoom / 1.01),
                clamp_zoom(zoom / _STEP))
