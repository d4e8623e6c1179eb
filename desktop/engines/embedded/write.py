"""Blocks → grounded Markdown, as the model writes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from desktop.engines.embedded import tables
from desktop.engines.embedded.blocks import rows
from desktop.engines.embedded.model import Block, Box, Line
from desktop.engines.embedded.refine import BULLET, NUMBER, marked

_CJK = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u30ff]")
_KEPT_HYPHEN = frozenset({"non", "self", "well", "co", "pre", "post", "anti", "multi", "semi",
                          "cross", "high", "low", "long", "short", "so", "e"})


def tag(label: str, box: tuple[int, int, int, int]) -> str:
    """The grounding of a block."""
    x1, y1, x2, y2 = box
    return f"<|ref|>{label}<|/ref|><|det|>[[{x1}, {y1}, {x2}, {y2}]]<|/det|>\n"


def grid(box: Box, width: float, height: float) -> tuple[int, int, int, int]:
    """BOX in 0–999 of the page's sides."""
    def scaled(value: float, side: float) -> int:
        return min(999, max(0, round(value / max(side, 1.0) * 999)))
    x1, y1 = scaled(box[0], width), scaled(box[1], height)
    return x1, y1, max(x1, scaled(box[2], width)), max(y1, scaled(box[3], height))


def markdown(block: Block) -> str:
    """The content of BLOCK without its tag; "" for a picture."""
    if block.label == "image":
        return ""
    if block.label == "table":
        return tables.html(tables.grid_of(block))
    if block.label in ("title", "sub_title"):
        return "#" * max(1, block.level or 2) + " " + paragraph(block.lines)
    if block.label == "list":
        return _items(block.lines)
    if block.label in ("table_caption", "image_caption", "header", "footer", "page_number",
                       "equation_image"):
        return paragraph(block.lines)
    text = paragraph(block.lines)
    return re.sub(r"^(#{1,6}|[-+*]|>|\d+[.)])(?=\s|$)", lambda m: _guarded(m.group(1)), text)


def _guarded(mark: str) -> str:
    """A mark at the start of a paragraph that is no list or heading."""
    return mark[:-1] + "\\" + mark[-1] if mark[-1] in ".)" else "\\" + mark


def _items(lines: Sequence[Line]) -> str:
    items: list[list[Line]] = []
    for line in lines:
        if marked(line) or not items:
            items.append([])
        items[-1].append(line)
    left = min(item[0].box[0] for item in items)
    written: list[str] = []
    for item in items:
        text = paragraph(item)
        depth = min(3, int((item[0].box[0] - left) / max(1.5 * item[0].size, 1.0)))
        if match := BULLET.match(text):
            text = "- " + text[match.end():].lstrip()
        elif match := NUMBER.match(text):
            number = match.group(1)
            rest = text[match.end():].lstrip()
            text = f"{number} {rest}" if number[:-1].isdigit() else f"- {number} {rest}"
        written.append("   " * depth + text)
    return "\n".join(written)


def paragraph(lines: Iterable[Line]) -> str:
    """The lines as one, with hyphens at line ends resolved and Markdown's own signs guarded."""
    text = ""
    for row in rows(list(lines)):
        piece = " ".join(line.text for line in row).strip()
        if piece:
            text = joined(text, piece)
    return guard(text)


def joined(before: str, after: str) -> str:
    """Two lines as one text."""
    if not before:
        return after
    if before[-1] in "-\u00ad\u2010" and len(before) > 1 and before[-2].isalpha():
        first = re.split(r"[\s-]", before[:-1])[-1].lower()
        if after[0].islower() and first not in _KEPT_HYPHEN:
            return before[:-1] + after
        return before + after
    if _CJK.match(before[-1]) and _CJK.match(after[0]):
        return before + after
    return before + " " + after


def guard(text: str) -> str:
    """TEXT with the signs that Markdown or HTML would take for their own made literal."""
    text = re.sub(r"&(?=#?\w+;)", "&amp;", text)
    text = re.sub(r"<(?=[A-Za-z/!?|])", "&lt;", text)
    text = re.sub(r"(?<![\w*])\*(?=\S[^*]*\*)", r"\\*", text)
    return re.sub(r"(?<![\w_])_(?=[^_\s][^_]*_(?!\w))", r"\\_", text)
