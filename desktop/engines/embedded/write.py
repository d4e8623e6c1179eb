"""Blocks → grounded Markdown, as the model writes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from desktop.engines.embedded import cells
from desktop.engines.embedded.model import Block, Box, Line, rows
from desktop.engines.embedded.refine import BULLET, NUMBER, marked
from desktop.engines.embedded.text import guard, guard_start, joined


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
        found = cells.cells_of(block)
        if 2 * sum(line.leftwards for line in block.lines) > len(block.lines):
            found = cells.mirrored(found)
        return cells.html(found)
    if block.label in ("title", "sub_title"):
        return "#" * max(1, block.level or 2) + " " + paragraph(block.lines)
    if block.label == "list":
        return _items(block.lines)
    if block.label in ("table_caption", "image_caption", "header", "footer", "page_number",
                       "equation_image"):
        return paragraph(block.lines)
    return guard_start(paragraph(block.lines))


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
    """The lines as running text, Markdown's own signs guarded."""
    return guard(joined(" ".join(line.text for line in row) for row in rows(list(lines))))
