"""Blocks → grounded Markdown, as the model writes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from desktop.engines.embedded import cells
from desktop.engines.embedded.model import Block, Box, Line, rows
from desktop.engines.embedded.paragraphs import BULLET, NUMBER, marked, without_leader
from desktop.engines.embedded.text import decoration, guard, guard_start, joined


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
    if block.label == "code":
        return _listing(block.lines)
    if block.label in ("table_caption", "image_caption", "header", "footer", "page_number",
                       "equation_image"):
        return paragraph(block.lines)
    if block.lined:
        return "  \n".join(guard_start(text) for row in rows(block.lines)
                           if (text := paragraph(row)))
    return guard_start(paragraph(block.lines))


def _listing(lines: Sequence[Line]) -> str:
    """Code in fences, its line breaks, empty lines and indentation kept."""
    table = rows(lines)
    left = min(row[0].box[0] for row in table)
    pitches = [b[0].box[3] - a[0].box[3] for a, b in pairwise(table)]
    usual = min(pitches, default=0.0)
    letter = _letter(lines)
    written: list[str] = []
    for row, pitch in zip(table, [0.0, *pitches], strict=True):
        written += [""] * min(3, round(pitch / usual) - 1 if usual > 0 else 0)
        text = ""
        for word in (word for line in row for word in line.words):
            # Where the word stands in characters, at least one space after the one before.
            place = round((word.box[0] - left) / letter) if letter else 0
            text += " " * max(place - len(text), 1 if text else 0) + word.text
        written.append(text)
    text = "\n".join(written)
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _letter(lines: Sequence[Line]) -> float:
    """The width of a character."""
    widths = [(word.box[2] - word.box[0]) / len(word.text) for line in lines
              for word in line.words if len(word.text) > 1]
    return median(widths) if widths else 0.0


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
            number = match.group().replace("、", ".").replace("．", ".")
            rest = text[match.end():].lstrip()
            text = f"{number} {rest}" if number[:-1].isdigit() else f"- {number} {rest}"
        else:
            text = f"- {text}"
        written.append("   " * depth + text)
    return "\n".join(written)


def paragraph(lines: Iterable[Line]) -> str:
    """The lines as running text, Markdown's own signs guarded, rows of dots left out."""
    texts = (" ".join(line.text for line in row) for row in rows(list(lines)))
    return guard(joined(without_leader(text) for text in texts if not decoration(text)))
