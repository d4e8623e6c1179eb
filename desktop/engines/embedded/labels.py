"""What blocks of text are, by size, weight and place: headings, running headers and footers."""

from __future__ import annotations

from collections.abc import Sequence

from desktop.engines.embedded import refine
from desktop.engines.embedded.model import BOLD, ITALIC, Block, Box, Line, overlap, rows, union
from desktop.engines.embedded.paragraphs import NUMBER, marked

_MARGIN = 0.09
"""Share of the page's height in which headers and footers stand."""


def of(group: Sequence[Line], voted: str, body: float, width: float, height: float) -> str:
    """The label of a GROUP of lines of which the layout model says VOTED.

    BODY is the size in which most of the page is set, WIDTH and HEIGHT are the page's. Where the
    words are known already, size and weight are too, and count for more than the model.
    """
    known = any(line.words for line in group)
    text = " ".join(line.text for line in group).strip()
    size = sum(line.size for line in group) / len(group)
    count = len(rows(group))
    bold = all(line.style & BOLD for line in group)
    across = max(line.box[2] - line.box[0] for line in group)
    label = voted
    if label in ("header", "footer") and (
            not at_edge(_box(group), height) or size > (1.3 if known else 1.6) * body
            or (count > 2 and label == "header")):
        label = "text"
    if label in ("table_caption", "image_caption") and count <= 2 and not (
            known and refine.caption(text)) and (size > 1.25 * body or (
                known and bold and size > 1.05 * body)):
        label = "sub_title"
    if label not in ("text", "sub_title"):
        return label
    if count > 4 or not body:
        return "text"
    if known and any(marked(line) and not NUMBER.match(line.text) for line in group[:1]):
        return "text"
    if size > 1.3 * body or (bold and count <= 2 and across < 0.6 * width
                             and size > (0.85 if known else 0.95) * body):
        return "sub_title"
    if known and count == 1 and _capitals(text) and across < 0.6 * width:
        return "sub_title"
    if label == "sub_title":
        if size < 0.85 * body or (count > 2 and size < 1.15 * body):
            return "text"
        if known and size < 1.05 * body and not (
                refine.section_depth(text) or all(line.style & ITALIC for line in group)):
            return "text"
    return label


def _box(group: Sequence[Line]) -> Box:
    return union([line.box for line in group])


def _capitals(text: str) -> bool:
    """Whether TEXT is a phrase in capitals, as headings are, and not a code or a sum."""
    letters = [c for c in text if c.isalpha()]
    return (len(letters) > 5 and len(letters) > 0.7 * len(text.replace(" ", ""))
            and not any(c.islower() for c in letters) and any(c.isupper() for c in letters)
            and text[-1:] not in ".,;:")


def at_edge(box: Box, height: float) -> bool:
    """Whether a box stands where headers and footers do."""
    middle = (box[1] + box[3]) / 2
    return not 0.12 * height < middle < 0.88 * height


def numbered(blocks: Sequence[Block], body: float) -> list[Block]:
    """BLOCKS (in reading order) with what looked like headings, numbered, but follows one upon
    the other and is neither large nor bold, put together to a list."""
    joined: list[Block] = []
    run: list[Block] = []

    def close() -> None:
        if len(run) > 1:
            lines = [line for block in run for line in block.lines]
            joined.append(Block("text", union([line.box for line in lines]), lines))
        else:
            joined.extend(run)
        run.clear()

    for block in blocks:
        item = (block.label == "sub_title" and len(block.lines) == 1
                and NUMBER.match(block.lines[0].text) is not None
                and block.lines[0].size < 1.1 * body and not block.lines[0].style & BOLD)
        if run and (not item or block.box[1] - run[-1].box[3] > body
                    or abs(block.box[0] - run[-1].box[0]) > body):
            close()
        (run if item else joined).append(block)
    close()
    return joined


def furniture(blocks: list[Block], width: float, height: float, body: float) -> None:
    """Label what stands alone at the edges of the page; take back what the model put there
    wrongly."""
    texts = [b for b in blocks if b.lines]
    if not texts:
        return
    for block in texts:
        upright = not all(line.vertical for line in block.lines)
        edge = block.box[0] < 0.07 * width or block.box[2] > 0.93 * width
        if (not upright and edge and len(texts) > 2
                and block.box[2] - block.box[0] < 0.06 * width):
            block.label = "footer"
    others = [b for b in blocks if b.label not in ("header", "footer")]
    for block in list(others):
        if block.label not in ("text", "sub_title") or len(rows(block.lines)) > 2:
            continue
        size = max(line.size for line in block.lines)
        rest = [b for b in others if b is not block]
        if not rest or size > 1.25 * body:
            continue
        # Several that stand beside each other in the margin do not hide it from each other.
        above = min((b.box[1] for b in rest if b.box[3] > _MARGIN * height),
                    default=height)
        under = max((b.box[3] for b in rest if b.box[1] < (1 - _MARGIN) * height),
                    default=0.0)
        if block.box[3] < _MARGIN * height and above - block.box[3] > 1.2 * size:
            block.label = "header"
        elif block.box[1] > (1 - _MARGIN) * height and block.box[1] - under > 0.8 * size:
            block.label = "footer"
    heads = [b for b in texts if b.label == "sub_title"]
    for block in texts:
        if block.label == "header" and any(
                head.box[1] < block.box[1] and block.box[1] - head.box[3] < 3 * body
                and overlap(head.box[0], head.box[2], block.box[0], block.box[2]) > 0
                for head in heads):
            # What stands under a title belongs to it.
            block.label = "text"
    for label in ("header", "footer"):
        known = [b for b in texts if b.label == label]
        for block in texts:
            # What stands in one line with a running header is a part of it.
            if (block.label in ("text", "sub_title") and len(rows(block.lines)) == 1
                    and (block.box[3] < _MARGIN * height if label == "header"
                         else block.box[1] > (1 - _MARGIN) * height)
                    and any(overlap(other.box[1], other.box[3], block.box[1], block.box[3])
                            > 0.6 * (block.box[3] - block.box[1]) for other in known)):
                block.label = label
    if not any(b.label not in ("header", "footer", "image") for b in blocks):
        # Nothing runs over a page that says nothing else: what stands at its top is its text.
        for block in texts:
            if block.label == "header":
                block.label = "text"
