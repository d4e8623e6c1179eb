"""What keeps the page and its text together: places told by block, not by pixels. Qt-free.

Both sides describe where their blocks lie as a list of :class:`Extent` in reading order. A
*place* names a block and how far through it (or the gap between two blocks); it means the same
on both sides, however unlike their lengths are. Scroll positions become places through a
*line*: at the top of the range it is the first line of the content, at the end the last, in
between it wanders evenly through the viewport. So both ends of one side meet both ends of the
other, and no block is out of reach.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from desktop.ui.review.geometry import Rect

REVEAL_MARGIN = 24
"""Pixels left free beside a block that is scrolled into view."""


@dataclass(frozen=True)
class Extent:
    """Where the block ID lies in its side's content; one rectangle or several, as it is read."""

    id: str
    pieces: tuple[Rect, ...]

    @property
    def top(self) -> float:
        return min(piece.top for piece in self.pieces)

    @property
    def bottom(self) -> float:
        return max(piece.bottom for piece in self.pieces)

    def point(self, fraction: float) -> tuple[float, float]:
        """The point FRACTION (0–1) of the way down through the pieces: middle x, y."""
        rest = min(max(fraction, 0.0), 1.0) * sum(piece.height for piece in self.pieces)
        for piece in self.pieces:
            if rest <= piece.height or piece is self.pieces[-1]:
                return (piece.left + piece.right) / 2, piece.top + min(rest, piece.height)
            rest -= piece.height
        raise ValueError("an extent has at least one piece")

    def fraction(self, index: int, y: float) -> float:
        """How far (0–1) through the block Y is, Y being within piece INDEX."""
        whole = sum(piece.height for piece in self.pieces)
        if whole <= 0:
            return 0.0
        before = sum(piece.height for piece in self.pieces[:index])
        piece = self.pieces[index]
        return (before + min(max(y - piece.top, 0.0), piece.height)) / whole


class Place(NamedTuple):
    """FRACTION of the way through the block, or through the gap from BEFORE to AFTER."""

    before: str
    after: str
    fraction: float


class Scroll(NamedTuple):
    """A scroll position: TOP of a VIEWPORT over CONTENT, all in the side's own unit."""

    top: float
    viewport: float
    content: float

    @property
    def most(self) -> float:
        """The largest top."""
        return max(0.0, self.content - self.viewport)

    @property
    def line(self) -> float:
        """The y in the content that this position stands for."""
        return self.top * self.content / self.most if self.most else 0.0

    def top_for(self, line: float) -> float:
        """The position that stands for LINE."""
        if not self.content:
            return 0.0
        return min(max(line * self.most / self.content, 0.0), self.most)

    def revealing(self, top: float, bottom: float) -> float:
        """The nearest position at which TOP–BOTTOM shows; its beginning where it is too tall."""
        margin = min(REVEAL_MARGIN, self.viewport / 8)
        first, last = top - margin, bottom + margin - self.viewport
        wanted = first if first <= last or self.top > first else max(self.top, last)
        return min(max(wanted, 0.0), self.most)

    def shows(self, top: float, bottom: float) -> bool:
        """Whether any of TOP–BOTTOM is within the viewport."""
        return bottom > self.top and top < self.top + self.viewport


def find_place(extents: Sequence[Extent], y: float, *, x: float | None = None,
               known: Container[str] | None = None) -> Place | None:
    """The place at height Y; X chooses among blocks side by side.

    Only blocks KNOWN to the other side are looked at (None: all). None where there is no block.
    """
    pieces = [(extent, index) for extent in extents
              if known is None or extent.id in known
              for index in range(len(extent.pieces))]
    if not pieces:
        return None
    if x is not None:
        column = [(e, i) for e, i in pieces if e.pieces[i].left <= x <= e.pieces[i].right]
        inside = _within(column, y)
        if inside is not None:
            return inside
    inside = _within(pieces, y, x)
    return inside if inside is not None else _between(pieces, y)


def position(extents: Sequence[Extent], place: Place) -> tuple[float, float] | None:
    """Where PLACE is among EXTENTS (x, y), or None where neither of its blocks is there."""
    by_id = {extent.id: extent for extent in extents}
    before, after = by_id.get(place.before), by_id.get(place.after)
    if before is None and after is None:
        return None
    if before is None or after is None:
        found = before or after
        assert found is not None
        return found.point(1.0 if before else 0.0)
    if before is after:
        return before.point(place.fraction)
    (x1, y1), (x2, y2) = before.point(1.0), after.point(0.0)
    return (x1 + (x2 - x1) * place.fraction, y1 + (y2 - y1) * place.fraction)


def block_at(extents: Sequence[Extent], x: float, y: float) -> str | None:
    """The block under a point; the smallest where several lie over each other."""
    hits = [(piece.width * piece.height, extent.id)
            for extent in extents for piece in extent.pieces if piece.contains(x, y)]
    return min(hits)[1] if hits else None


def neighbour(ids: Sequence[str], current: str | None, step: int) -> str | None:
    """The block STEP (+1, −1) further in reading order; the first or last from nowhere."""
    if not ids:
        return None
    if current not in ids:
        return ids[0] if step > 0 else ids[-1]
    return ids[min(max(ids.index(current) + step, 0), len(ids) - 1)]


def _within(pieces: Sequence[tuple[Extent, int]], y: float,
            x: float | None = None) -> Place | None:
    hits = [(e, i) for e, i in pieces if e.pieces[i].top <= y <= e.pieces[i].bottom]
    if not hits:
        return None
    if x is not None:
        extent, index = min(hits, key=lambda hit: _distance(hit[0].pieces[hit[1]], x))
    else:
        extent, index = hits[0]
    return Place(extent.id, extent.id, extent.fraction(index, y))


def _between(pieces: Sequence[tuple[Extent, int]], y: float) -> Place:
    above = [(e, i) for e, i in pieces if e.pieces[i].bottom < y]
    below = [(e, i) for e, i in pieces if e.pieces[i].top > y]
    last = max(above, key=lambda hit: hit[0].pieces[hit[1]].bottom, default=None)
    first = min(below, key=lambda hit: hit[0].pieces[hit[1]].top, default=None)
    if last is None or first is None:
        found = last or first
        assert found is not None, "a piece that is neither above nor below contains y"
        extent, index = found
        edge = extent.pieces[index].bottom if last else extent.pieces[index].top
        return Place(extent.id, extent.id, extent.fraction(index, edge))
    bottom, top = last[0].pieces[last[1]].bottom, first[0].pieces[first[1]].top
    share = (y - bottom) / (top - bottom) if top > bottom else 0.0
    order = [extent.id for extent, _ in pieces]
    following = order.index(first[0].id) > order.index(last[0].id)
    if last[0] is first[0] or not following:
        # Not neighbours in reading order (columns): the nearer edge.
        extent, index = last if share < 0.5 else first
        piece = extent.pieces[index]
        y = piece.bottom if share < 0.5 else piece.top
        return Place(extent.id, extent.id, extent.fraction(index, y))
    return Place(last[0].id, first[0].id, share)


def _distance(piece: Rect, x: float) -> float:
    return max(piece.left - x, x - piece.right, 0.0)
