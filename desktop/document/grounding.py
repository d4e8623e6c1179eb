"""What the tags of grounded Markdown say: labels and boxes.

Everything here is lenient and never raises: the text comes from a language model.
"""

from __future__ import annotations

import re

from desktop.protocol.messages import Box

LABELS = frozenset({
    "title", "sub_title", "subtitle", "text", "paragraph", "list", "list_item",
    "table", "table_caption", "table_title", "table_footnote",
    "image", "image_caption", "image_footnote", "figure", "figure_caption", "figure_title",
    "chart", "chart_caption", "chart_title",
    "equation", "equation_image", "formula", "formula_number",
    "code", "code_caption", "algorithm", "reference", "references", "footnote", "caption",
    "header", "footer", "page_number", "page_footnote", "aside_text", "toc", "seal",
})
"""Labels the models are known to write. The set is open: other labels are kept as they are;
this list only decides doubtful cases (a recognised word in the place of a label)."""

_NUMBER = r"[-+]?\d+(?:\.\d*)?"
_QUAD = re.compile(
    rf"\[\s*({_NUMBER})\s*,\s*({_NUMBER})\s*,\s*({_NUMBER})\s*,\s*({_NUMBER})\s*\]"
)
_IDENTIFIER = re.compile(r"[a-z][a-z_]*")


def normalise(label: str) -> str:
    """A label as the rest of the program knows it: lower case, words joined by ``_``."""
    return "_".join(label.lower().split())


def is_identifier(label: str) -> bool:
    """Whether a text could be a label at all (not words of the page)."""
    return _IDENTIFIER.fullmatch(label) is not None


def is_caption(label: str) -> bool:
    """Whether a block of this label describes the figure or table beside it."""
    return label.endswith("caption") or label in {"figure_title", "table_title", "chart_title"}


def boxes_of(payload: str) -> tuple[Box, ...]:
    """The boxes of a det tag; what is not four numbers in brackets is no box.

    Coordinates are rounded to integers and clamped to 0–999; reversed corners are put in order.
    """
    return tuple(_box(match.groups()) for match in _QUAD.finditer(payload))


def _box(numbers: tuple[str, ...]) -> Box:
    x1, y1, x2, y2 = (_coordinate(number) for number in numbers)
    return (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))


def _coordinate(number: str) -> int:
    return round(min(max(float(number), 0.0), 999.0))
