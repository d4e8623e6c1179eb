"""What a block's text says about it: captions, page numbers, list items, headings' depth."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from desktop.engines.embedded.model import Block, Line, rows, union

CAPTION_TABLE = re.compile(r"^(table|tab\.|tabelle|tableau|tabla|表)\s*\d+", re.IGNORECASE)
CAPTION_IMAGE = re.compile(
    r"^(figure|fig\.|abbildung|abb\.|figura|图|図|그림)\s*\d+", re.IGNORECASE)
PAGE_NUMBER = re.compile(
    r"^(page|seite|p\.|第)?\s*[-–—·|]*\s*(\d{1,4}|[ivxlc]{1,7})\s*[-–—·|]*\s*(页|頁)?"
    r"(\s*(/|of|von|de)\s*\d{1,4})?$", re.IGNORECASE)
BULLET = re.compile(r"^[•●○▪■□◦‣⁃∙·*➢➤►▶✓✔–—-](?=\s|$)|^[•●▪■◦‣]")
NUMBER = re.compile(r"^(\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)])(?=\s|$)")
SECTION = re.compile(r"^(\d{1,2}(?:\.\d{1,2}){0,4})\.?\s+\S")


def refine(block: Block, height: float) -> list[Block]:
    """BLOCK, its text known now, with a better label, or cut into several."""
    text = block.lines[0].text if block.lines else ""
    whole = " ".join(line.text for line in block.lines).strip()
    if block.label in ("header", "footer") and PAGE_NUMBER.match(whole):
        block.label = "page_number"
    elif block.label in ("table_caption", "image_caption"):
        if CAPTION_TABLE.match(text):
            block.label = "table_caption"
        elif CAPTION_IMAGE.match(text):
            block.label = "image_caption"
    elif block.label in ("text", "sub_title"):
        near_edge = block.box[3] < 0.1 * height or block.box[1] > 0.9 * height
        if near_edge and PAGE_NUMBER.match(whole):
            block.label = "page_number"
        elif CAPTION_TABLE.match(text) and block.label == "text":
            block.label = "table_caption"
        elif CAPTION_IMAGE.match(text) and block.label == "text":
            block.label = "image_caption"
        elif block.label == "text":
            return _paragraphs(block)
        elif (not any(c.isalnum() for c in whole) or len(whole) > 160
              or re.match(r"^(https?://|www\.)", whole)):
            block.label = "text"
    return [block]


def marked(line: Line) -> bool:
    """Whether LINE begins a list item."""
    return bool(BULLET.match(line.text) or NUMBER.match(line.text))


def _paragraphs(block: Block) -> list[Block]:
    """A text block cut where a first line is indented or a short last line ended."""
    table = rows(block.lines)
    if len(table) < 2:
        return [block]
    left = min(row[0].box[0] for row in table)
    right = max(row[-1].box[2] for row in table)
    width = max(right - left, 1.0)
    groups: list[list[list[Line]]] = [[table[0]]]
    listed = marked(table[0][0])
    for before, row in pairwise(table):
        size = row[0].size
        indent = row[0].box[0] - before[0].box[0]
        first_indent = (before[0].box[0] - left < 0.6 * size and 0.7 * size < indent
                        and indent < 5 * size)
        short = before[-1].box[2] < right - max(0.12 * width, 2 * size)
        ended = before[-1].text.rstrip()[-1:] in tuple(".!?:;。！？：”\"")
        starts = marked(row[0])
        if starts or (not listed and ((first_indent and (short or ended))
                                      or (short and ended and width > 12 * size))):
            groups.append([row])
            listed = starts
        else:
            groups[-1].append(row)
    cut: list[Block] = []
    for group in groups:
        lines = [line for row in group for line in row]
        cut.append(Block("list" if marked(lines[0]) else "text",
                         union([line.box for line in lines]), lines))
    return _lists(cut)


def _lists(blocks: Sequence[Block]) -> list[Block]:
    """Neighbouring items joined to one list; a single numbered line is not yet a list."""
    joined: list[Block] = []
    for block in blocks:
        if joined and block.label == "list" and joined[-1].label == "list":
            joined[-1].lines.extend(block.lines)
            joined[-1].box = union([joined[-1].box, block.box])
        else:
            joined.append(block)
    for block in joined:
        if block.label == "list" and sum(marked(line) for line in block.lines) < 2 and not (
                BULLET.match(block.lines[0].text)):
            block.label = "text"
    return joined


def section_depth(text: str) -> int:
    """Depth of a numbered heading ("2.1 Method" is 2); 0 without a number."""
    match = SECTION.match(text)
    return match.group(1).count(".") + 1 if match else 0
