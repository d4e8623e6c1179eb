"""Lines and model regions → blocks: paragraphs, headings, tables, figures, furniture.

Works on geometry alone, so that boxes are known before any line is recognised; what the text
adds (list items, captions by their first word, page numbers) is done by ``refine``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from desktop.engines.embedded import figures, labels, tables
from desktop.engines.embedded.layout import Found
from desktop.engines.embedded.model import (
    BOLD,
    MONOSPACE,
    Block,
    Box,
    Line,
    area,
    inside,
    laid,
    overlap,
    rows,
    shared,
    union,
)
from desktop.engines.embedded.order import reading_order

LABELS = {
    "text": "text", "title": "sub_title", "figure": "image", "figure_caption": "image_caption",
    "table": "table", "table_caption": "table_caption", "header": "header", "footer": "footer",
    "reference": "text", "equation": "equation_image",
}
"""Classes of the layout model → labels of grounded Markdown."""

_CLAIMING = ("table", "figure", "equation")


@dataclass(frozen=True)
class Sheet:
    """What is known of a page before its lines are grouped."""

    width: float
    height: float
    regions: Sequence[Found]
    rules: Sequence[Box] = ()
    """Drawn lines, pieces of one line put together."""
    images: Sequence[Box] = ()


def build(lines: Sequence[Line], sheet: Sheet) -> list[Block]:
    """All blocks of a page in reading order."""
    regions = _tidied(sheet.regions, lines)
    body = body_size(lines)
    lines, under = _without_watermark(lines, body)
    blocks, free = _claimed(lines, regions, sheet, body)
    blocks += [Block("image", box) for box in figures.unseen(
        sheet.images, blocks, free, sheet.width, sheet.height)]
    paragraphs = [_labelled(group, regions, body, sheet) for group in _groups(free, regions)]
    blocks += paragraphs
    blocks += [Block("footer", line.box, [line]) for line in under]
    labels.furniture(blocks, sheet.width, sheet.height, body)
    return labels.numbered(in_order(blocks), body)


def _without_watermark(lines: Sequence[Line],
                       body: float) -> tuple[Sequence[Line], list[Line]]:
    """LINES without large print that runs across several others, and that print."""
    across = [line for line in lines if line.size > 2 * body and sum(
        line.box[0] < (x.box[0] + x.box[2]) / 2 < line.box[2]
        and line.box[1] < (x.box[1] + x.box[3]) / 2 < line.box[3] for x in lines) > 3]
    return [line for line in lines if line not in across] if across else lines, across


def body_size(lines: Sequence[Line]) -> float:
    """The size in which most of the text is set; 0 without lines."""
    if not lines:
        return 0.0
    sizes = np.array([line.size for line in lines])
    weights = np.array([max(1.0, (line.box[2] - line.box[0]) / max(line.size, 1.0))
                        for line in lines])
    order = np.argsort(sizes)
    running = np.cumsum(weights[order])
    return float(sizes[order][int(np.searchsorted(running, running[-1] / 2))])


def in_order(blocks: list[Block]) -> list[Block]:
    """BLOCKS in reading order: headers first, footers last, captions beside what they name."""
    top = [b for b in blocks if b.label == "header"]
    bottom = [b for b in blocks if b.label in ("footer", "page_number")]
    rest = [b for b in blocks if b.label not in ("header", "footer", "page_number")]
    vertical = [b for b in rest if b.lines and all(line.vertical for line in b.lines)]
    leftwards = [b for b in rest if 2 * sum(line.leftwards for line in b.lines) > len(b.lines)]
    from_right = max(len(vertical), len(leftwards)) > 0.6 * len(rest)
    main = [part[i] for part in _stacked(rest)
            for i in reading_order([_reach(b, part) for b in part], from_right)]
    top.sort(key=lambda b: (b.box[1], b.box[0]))
    bottom.sort(key=lambda b: (b.box[1], b.box[0]))
    return top + _with_captions(main) + bottom


def _reach(block: Block, others: Sequence[Block]) -> Box:
    """The box by which BLOCK is ordered: a heading is as wide as what it stands over."""
    if block.label not in ("title", "sub_title") or not block.lines:
        return block.box
    x1, y1, x2, y2 = block.box
    size = block.lines[0].size
    below = [b.box for b in others if b is not block and b.box[1] >= y2 - 0.5 * size
             and overlap(b.box[0], b.box[2], x1, x2) > 0]
    if below:
        nearest = min(below, key=lambda box: box[1])
        if nearest[1] - y2 < 1.5 * size and abs(nearest[0] - x1) < 2 * size:
            return min(x1, nearest[0]), y1, max(x2, nearest[2]), y2
    return block.box


_NUMBERED = re.compile(r"^(\d{1,3})[.)]?\s")


def _stacked(blocks: list[Block]) -> list[list[Block]]:
    """BLOCKS cut into parts that are read one below the other.

    Cards in rows have headings side by side that are numbered on from left to right; columns
    have not.
    """
    numbered = sorted(((int(match.group(1)), b) for b in blocks if b.label == "sub_title"
                       and b.lines and (match := _NUMBERED.match(b.lines[0].text))),
                      key=lambda pair: pair[0])
    cuts: list[float] = []
    for (one, a), (other, b) in pairwise(numbered):
        y = min(a.box[1], b.box[1])
        if (other == one + 1 and a.box[2] <= b.box[0]
                and abs(a.box[1] - b.box[1]) < 0.5 * a.lines[0].size
                and all(x.box[3] <= y + 2 or x.box[1] >= y - 2 for x in blocks)):
            cuts.append(y - 2)
    if len(cuts) < 2:
        # Two columns may well begin with two sections.
        cuts = _beside_text(blocks)
    edges = [float("-inf"), *sorted(cuts), float("inf")]
    return [[b for b in blocks if low <= b.box[1] < high] for low, high in pairwise(edges)]


def _beside_text(blocks: list[Block]) -> list[float]:
    """Where to cut so that headings in the margin come before the text they stand beside."""
    heads = [b for b in blocks if b.label == "sub_title" and b.lines]
    pairs: list[tuple[Block, Block]] = []
    for head in heads:
        beside = [b for b in blocks if b.label in ("text", "list", "table") and b.lines
                  and b.box[0] > head.box[2] and abs(b.lines[0].box[1] - head.box[1])
                  < head.lines[0].size]
        if len(beside) == 1:
            pairs.append((head, beside[0]))
    if len(pairs) < 2:
        return []
    edge = min(text.box[0] for _, text in pairs)
    first = min(head.box[1] for head, _ in pairs)
    margin = [b for b in blocks if b.box[2] <= edge and b.box[1] >= first - 2]
    if {id(b) for b in margin} != {id(head) for head, _ in pairs}:
        return []
    cuts = [min(head.box[1], text.box[1]) - 2 for head, text in pairs]
    return [y for y in cuts if not any(b.box[1] < y - 2 and b.box[3] > y + 4 for b in blocks)]


def _with_captions(blocks: list[Block]) -> list[Block]:
    """Captions moved next to the nearest table or figure that shares their column."""
    ordered = list(blocks)
    for caption in [b for b in blocks if b.label in ("table_caption", "image_caption")]:
        wanted = "table" if caption.label == "table_caption" else "image"
        partners = [b for b in ordered if b.label == wanted
                    and overlap(b.box[0], b.box[2], caption.box[0], caption.box[2]) > 0]
        if not partners:
            continue
        partner = min(partners, key=lambda b: -overlap(b.box[1], b.box[3], caption.box[1],
                                                       caption.box[3]))
        gap = -overlap(partner.box[1], partner.box[3], caption.box[1], caption.box[3])
        if gap > 3 * max(line.size for line in caption.lines):
            continue
        ordered.remove(caption)
        at = ordered.index(partner)
        ordered.insert(at if caption.box[1] < partner.box[1] else at + 1, caption)
    return ordered


def _tidied(found: Sequence[Found], lines: Sequence[Line]) -> list[Found]:
    """Regions that hold together: of two that cover the same place the better one stays."""
    kept: list[Found] = []
    for region in sorted(found, key=lambda r: -r.score):
        double = False
        for other in kept:
            common = shared(region.box, other.box)
            if common > 0.7 * min(area(region.box), area(other.box)) and (
                    other.label in _CLAIMING or region.label in _CLAIMING
                    or common > 0.7 * max(area(region.box), area(other.box))):
                double = True
        if not double:
            kept.append(region)
    return kept


def _claimed(lines: Sequence[Line], regions: list[Found], sheet: Sheet,
             body: float) -> tuple[list[Block], list[Line]]:
    """Tables, figures and formulas with the lines in them, and the lines that are left."""
    blocks, free = tables.find(lines, [r.box for r in regions if r.label == "table"],
                               sheet.rules, body)
    for region in regions:
        if region.label not in ("figure", "equation") or any(
                shared(region.box, b.box) > 0.5 * min(area(region.box), area(b.box))
                for b in blocks):
            continue
        within = [line for line in free if inside(line.box, region.box) > 0.6]
        if region.label == "equation":
            if not within or figures.worded(within):
                continue
            blocks.append(Block("equation_image", region.box, within))
        elif figures.running_text(within, region.box, sheet.width * sheet.height,
                                  all_there_is=len(within) == len(lines)):
            continue
        else:
            boxes, inner = figures.parted(region.box, within)
            blocks += [Block("image", box) for box in boxes]
            # A picture never takes the only words of a page with it.
            within = inner if len(inner) < len(lines) else []
        taken = set(map(id, within))
        free = [line for line in free if id(line) not in taken]
    return blocks, free


# --- grouping ---------------------------------------------------------------------------------


def _groups(lines: list[Line], regions: Sequence[Found]) -> list[list[Line]]:
    """Lines that belong to one paragraph or heading."""
    count = len(lines)
    if not count:
        return []
    region_of = [_region(line, regions) for line in lines]
    flat = [laid(line) for line in lines]
    leading = _leading(flat)
    parent = list(range(count))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    tops = np.array([line.box[1] for line in flat])
    feet = np.array([line.box[3] for line in flat])

    def near(i: int) -> list[int]:
        room = 3 * flat[i].size
        close = np.flatnonzero((feet > tops[i] - room) & (tops < feet[i] + room))
        return [int(j) for j in close]

    order = sorted(range(count), key=lambda i: flat[i].box[1])
    for position, a in enumerate(order):
        below: int | None = None
        for b in order[position + 1:]:
            if flat[b].box[1] - flat[a].box[3] > (
                    2.8 if lines[a].style & MONOSPACE else 1.6) * flat[a].size:
                break
            if lines[a].vertical != lines[b].vertical:
                continue
            wide = region_of[a] == region_of[b] >= 0 and flat[a].quad is None
            if _beside(flat[a], flat[b], wide) and not _gutter(flat, a, b, near(a)):
                if _same(region_of[a], region_of[b], regions):
                    parent[root(b)] = root(a)
            elif below is None and _under(flat[a], flat[b]):
                below = b
                if (_same(region_of[a], region_of[b], regions)
                        and not _bridging(flat, a, b, near(a), region_of)
                        and _alike(flat[a], flat[b], leading)):
                    parent[root(b)] = root(a)
    groups: dict[int, list[Line]] = {}
    for i in range(count):
        groups.setdefault(root(i), []).append(lines[i])
    return [[line for row in rows(group) for line in row] for group in groups.values()]


def _region(line: Line, regions: Sequence[Found]) -> int:
    """Index of the region that LINE lies in, or -1."""
    best, most = -1, 0.5
    for index, region in enumerate(regions):
        if region.label in _CLAIMING:
            continue
        value = inside(line.box, region.box)
        if value > most:
            best, most = index, value + 0.05
    return best


def _same(a: int, b: int, regions: Sequence[Found]) -> bool:
    if a == b or a < 0 or b < 0:
        return True
    return LABELS[regions[a].label] == LABELS[regions[b].label] and (
        shared(regions[a].box, regions[b].box)
        > 0.3 * min(area(regions[a].box), area(regions[b].box)))


_GAP, _GAP_SEEN, _GAP_FILLED = 1.1, 0.7, 2.2
"""Sizes of the type between two pieces of one line (a number and its heading, an equation): of a
text layer, and of lines found in the pixels."""


def _beside(a: Line, b: Line, wide: bool) -> bool:
    """Two pieces of one line of text; WIDE where they are sure to be in one paragraph, whose words
    may be set far apart to fill the line."""
    if a.vertical:
        return False
    lower = min(a.box[3] - a.box[1], b.box[3] - b.box[1])
    return (overlap(a.box[1], a.box[3], b.box[1], b.box[3]) > 0.6 * lower
            and -overlap(a.box[0], a.box[2], b.box[0], b.box[2])
            < (_GAP_FILLED if wide else _GAP if a.quad is None else _GAP_SEEN)
            * min(a.size, b.size))


def _gutter(lines: Sequence[Line], a: int, b: int, close: Sequence[int]) -> bool:
    """Whether the gap between two lines beside each other goes on above or below.

    CLOSE are the lines that stand about as high as A.
    """
    left, right = sorted((lines[a], lines[b]), key=lambda line: line.box[0])
    x = (left.box[2] + right.box[0]) / 2
    size = min(left.size, right.size)
    near = [line for line in (lines[i] for i in close if i not in (a, b))
            if -2.2 * size < overlap(line.box[1], line.box[3], left.box[1], left.box[3])
            < 0.8 * size]
    # Boxes of lines found in the pixels reach a little over their ink.
    spare = 0.0 if left.quad is None else 0.35 * size
    inks = [(line.box[0] + spare, line.box[2] - spare) for line in near]
    before = any(x - 2.5 * size < end <= x for _, end in inks)
    behind = any(x <= start < x + 2.5 * size for start, _ in inks)
    crossing = sum(start < x < end for start, end in inks)
    return before and behind and crossing <= 0.25 * len(inks)


def _bridging(lines: Sequence[Line], a: int, b: int, close: Sequence[int],
              region_of: Sequence[int]) -> bool:
    """Whether line B, below A, reaches under the next column too (or was found across both)."""
    above, line = lines[a].box, lines[b].box
    if line[2] - line[0] < 1.5 * (above[2] - above[0]):
        return False
    others = [i for i, c in ((i, lines[i]) for i in close if i not in (a, b))
              if overlap(c.box[1], c.box[3], above[1], above[3]) > 0.5 * (c.box[3] - c.box[1])
              and overlap(c.box[0], c.box[2], line[0], line[2]) > 0.6 * (c.box[2] - c.box[0])]
    left = [i for i in others if lines[i].box[2] <= above[2]]
    right = [i for i in others if lines[i].box[2] > above[2]]
    nearest = [*sorted(left, key=lambda i: -lines[i].box[2])[:1],
               *sorted(right, key=lambda i: lines[i].box[0])[:1]]
    rest = [i for i in close if i != b]
    return any(_gutter(lines, a, i, rest) or not _beside(lines[a], lines[i], (
        lines[i].quad is None)) for i in nearest)


def _under(a: Line, b: Line) -> bool:
    """B is the next line below A in the same column."""
    common = overlap(a.box[0], a.box[2], b.box[0], b.box[2])
    return (common > 0.3 * min(a.box[2] - a.box[0], b.box[2] - b.box[0])
            and (b.box[1] + b.box[3]) / 2 > a.box[3] - 0.2 * a.size)


def _leading(lines: Sequence[Line]) -> float:
    """The usual room between two long lines of text in sizes, where it is wide; else 0."""
    long = sorted((line for line in lines if line.box[2] - line.box[0] > 12 * line.size),
                  key=lambda line: line.box[1])
    gaps: list[float] = []
    for position, line in enumerate(long):
        below = next((other for other in long[position + 1:position + 12]
                      if _under(line, other)), None)
        if below is not None and max(line.size, below.size) < 1.1 * min(line.size, below.size):
            gaps.append((below.box[1] - line.box[3]) / line.size)
    usual = float(np.median(gaps)) if len(gaps) > 4 else 0.0
    return 1.1 * usual + 0.05 if 0.6 < usual < 1.4 else 0.0


def _alike(a: Line, b: Line, leading: float) -> bool:
    """Close enough, and set alike, to be one paragraph."""
    size = min(a.size, b.size)
    larger = 1.1 if a.words and b.words else 1.4
    if max(a.size, b.size) > larger * size or (a.style ^ b.style) & (BOLD | MONOSPACE):
        return False
    # The empty lines of a listing belong to it.
    return b.box[1] - a.box[3] < (2.7 if a.style & MONOSPACE else max(0.75, leading)) * size


# --- labels -----------------------------------------------------------------------------------


def _labelled(group: list[Line], regions: Sequence[Found], body: float, sheet: Sheet) -> Block:
    votes: dict[str, float] = {}
    for line in group:
        index = _region(line, regions)
        label = LABELS[regions[index].label] if index >= 0 else "text"
        votes[label] = votes.get(label, 0.0) + line.box[2] - line.box[0]
    voted = max(votes, key=lambda name: votes[name])
    return Block(labels.of(group, voted, body, sheet.width, sheet.height),
                 union([x.box for x in group]), group)
