"""What passes between the steps: words, lines, blocks. All coordinates are pixels of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Box = tuple[float, float, float, float]
"""x1, y1, x2, y2 in pixels of the upright page."""

Pixels = NDArray[np.uint8]
"""A page or a part of it: height × width × 3, RGB."""

BOLD, ITALIC, SUPERSCRIPT, MONOSPACE = 1, 2, 4, 8


@dataclass
class Word:
    """A word with its place."""

    text: str
    box: Box
    style: int = 0


@dataclass(eq=False)
class Line:
    """A piece of text on one baseline; it never reaches across a column gap.

    ``size`` is the font size in pixels (for recognised lines: the height of the ink, which is
    proportional to it). ``quad`` are the four corners where the line came from the pixels;
    ``words`` stay empty until it is recognised.
    """

    box: Box
    size: float
    words: list[Word] = field(default_factory=list)
    quad: NDArray[np.float32] | None = None
    style: int = 0
    confidence: float | None = None
    vertical: bool = False
    """Written from top to bottom, or turned by 90 degrees."""
    leftwards: bool = False
    """Written from right to left; its words are in the order in which they are read."""
    bullet: bool = False
    """A mark that is drawn, not written, stands before it."""

    @property
    def text(self) -> str:
        """Its words, with a space between two of them."""
        return " ".join(word.text for word in self.words)


@dataclass(eq=False)
class Block:
    """Lines that belong together; ``label`` is one of the labels of grounded Markdown."""

    label: str
    box: Box
    lines: list[Line] = field(default_factory=list)
    level: int = 0
    """Depth of a heading from 1; 0 is no heading."""
    rules: list[Box] = field(default_factory=list)
    """Drawn lines inside a table."""
    lined: bool = False
    """Its lines are lines of their own (an address, a poem), not filled one after the other."""

    @property
    def confidence(self) -> float | None:
        """Mean of its lines' confidences by their length; None where nothing is known."""
        known = [(line.confidence, len(line.text)) for line in self.lines
                 if line.confidence is not None]
        total = sum(length for _, length in known)
        return sum(value * length for value, length in known) / total if total else None


def rows(lines: Sequence[Line]) -> list[list[Line]]:
    """LINES that share a baseline, from top to bottom, each row in the order of reading."""
    if lines and all(line.vertical for line in lines):
        flat = [laid(line) for line in lines]
        back = {id(stand_in): line for stand_in, line in zip(flat, lines, strict=True)}
        return [[back[id(stand_in)] for stand_in in row] for row in rows(flat)]
    found: list[list[Line]] = []
    for line in sorted(lines, key=lambda item: item.box[1] + item.box[3]):
        middle = (line.box[1] + line.box[3]) / 2
        for row in found[-2:]:
            last = row[-1].box
            if overlap(last[1], last[3], line.box[1], line.box[3]) > 0.5 * min(
                    last[3] - last[1], line.box[3] - line.box[1]) and last[1] < middle < last[3]:
                row.append(line)
                break
        else:
            found.append([line])
    for row in found:
        if sum(line.leftwards for line in row) * 2 > len(row):
            row.sort(key=lambda item: -item.box[2])
        else:
            row.sort(key=lambda item: item.box[0])
    return found


def laid(line: Line) -> Line:
    """LINE or, in place of a vertical one, what stands where it would if the page were laid on
    its side so that columns from right to left are rows from top to bottom."""
    if not line.vertical:
        return line
    x1, y1, x2, y2 = line.box
    return Line((y1, -x2, y2, -x1), line.size, line.words, style=line.style,
                confidence=line.confidence)


def union(boxes: list[Box]) -> Box:
    """The smallest box around BOXES (at least one)."""
    return (min(b[0] for b in boxes), min(b[1] for b in boxes),
            max(b[2] for b in boxes), max(b[3] for b in boxes))


def overlap(a0: float, a1: float, b0: float, b1: float) -> float:
    """Length shared by two intervals; negative is the gap between them."""
    return min(a1, b1) - max(a0, b0)


def area(box: Box) -> float:
    """Area in square pixels; 0 for an empty box."""
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def shared(a: Box, b: Box) -> float:
    """Area that two boxes share."""
    return (max(0.0, overlap(a[0], a[2], b[0], b[2]))
            * max(0.0, overlap(a[1], a[3], b[1], b[3])))


def inside(inner: Box, outer: Box) -> float:
    """Share (0–1) of INNER's area that lies in OUTER."""
    whole = area(inner)
    return shared(inner, outer) / whole if whole > 0 else 0.0
