"""Figures and formulas: what in their regions is text after all, and where captions part them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from desktop.engines.embedded import refine
from desktop.engines.embedded.model import Block, Box, Line, area, inside, overlap

_NEAR = 0.6
"""Sizes between two lines of one caption."""


def parted(box: Box, lines: Sequence[Line]) -> tuple[list[Box], list[Line]]:
    """The pictures in a region that its captions leave, and those of LINES that are in them.

    Captions that were taken into the region stay text: below or above their picture, and beside
    each other where there are several.
    """
    captions = [_caption(line, lines) for line in lines
                if refine.caption(line.text) == "image_caption"]
    if not captions:
        return [box], list(lines)
    x1, y1, x2, y2 = box
    tops = min(line.box[1] for caption in captions for line in caption)
    feet = max(line.box[3] for caption in captions for line in caption)
    size = captions[0][0].size
    if y2 - feet < 2 * size and tops - y1 > 2 * size:
        y2 = tops - 2
    elif tops - y1 < 2 * size and y2 - feet > 2 * size:
        y1 = feet + 2
    else:
        return [box], list(lines)
    captions.sort(key=lambda caption: caption[0].box[0])
    edges = [x1]
    for left, right in pairwise(captions):
        if max(line.box[2] for line in left) > right[0].box[0]:
            return [box], list(lines)
        edges.append(right[0].box[0] - size)
    edges.append(x2)
    boxes = [(a, y1, b, y2) for a, b in pairwise(edges)]
    kept = {id(line) for caption in captions for line in caption}
    return boxes, [line for line in lines if id(line) not in kept]


def _caption(first: Line, lines: Sequence[Line]) -> list[Line]:
    """FIRST and the lines below it that go on with its caption."""
    caption = [first]
    for line in sorted(lines, key=lambda line: line.box[1]):
        last = caption[-1]
        if (line is not first and -0.3 * last.size < line.box[1] - last.box[3] < _NEAR * last.size
                and overlap(line.box[0], line.box[2], last.box[0], last.box[2]) > 0
                and 0.9 < line.size / last.size < 1.1):
            caption.append(line)
    return caption


def worded(lines: Sequence[Line]) -> bool:
    """Whether LINES, if their text is known, are of words rather than of signs."""
    words = [word.text for line in lines for word in line.words]
    long = sum(len(word) for word in words if sum(map(str.isalpha, word)) > 2)
    return any(line.leftwards for line in lines) or (
        len(words) > 5 and long > 0.75 * sum(map(len, words)))


def _covered(lines: Sequence[Line], box: Box) -> float:
    return sum(area(line.box) for line in lines) / max(1.0, area(box))


def running_text(lines: Sequence[Line], box: Box, page: float, *, all_there_is: bool) -> bool:
    """Whether a region the model takes for a picture is in truth full of text; PAGE is the
    page's area, ALL_THERE_IS says that the page has no other lines."""
    if not lines:
        return False
    if area(box) > 0.55 * page and len(lines) >= 3:
        return True
    covered = _covered(lines, box)
    if all_there_is and covered > 0.05:
        return True
    long = [line for line in lines if line.box[2] - line.box[0] > 12 * line.size]
    return len(long) >= 3 and covered > 0.2


def unseen(images: Iterable[Box], blocks: Sequence[Block], lines: Sequence[Line], width: float,
           height: float) -> list[Box]:
    """Places of IMAGES put on a digital page that are in none of BLOCKS."""
    found: list[Box] = []
    page = width * height
    taken = [b.box for b in blocks if b.label in ("image", "table")]
    for box in images:
        box = (max(0.0, box[0]), max(0.0, box[1]), min(width, box[2]),
               min(height, box[3]))
        if not 0.002 * page < area(box) < 0.7 * page or min(
                box[2] - box[0], box[3] - box[1]) < 0.02 * width:
            continue
        if any(inside(box, b) > 0.5 or inside(b, box) > 0.5 for b in [*taken, *found]):
            continue
        if any(inside(line.box, box) > 0.5 for line in lines):
            continue
        found.append(box)
    return found
