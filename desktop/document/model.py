"""What a page consists of once it has been read: blocks with a label, boxes and Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from desktop.protocol.messages import Box

FURNITURE = frozenset({"header", "footer", "page_number"})
"""Labels of what repeats on every page; left out of the Markdown unless asked for."""

NOISE = "noise"
"""Label of lines that a program logged into the output; kept, but never in the Markdown."""

CROPPED = frozenset({"image", "figure", "chart", "equation_image"})
"""Labels whose content is a crop of the page bitmap. ``equation_image`` is a formula that was
found but not transcribed (built-in engine): shown as a crop, its raw text kept as fallback."""


@dataclass(frozen=True)
class Block:
    """One block of a page, in reading order.

    ``label`` is an open set (title, sub_title, text, list, table, table_caption, image,
    image_caption, equation, equation_image, header, footer, page_number, …); "" is text that
    came without a tag. ``boxes`` are 0–999 of the upright page, clamped, x1 ≤ x2 and y1 ≤ y2;
    there may be none or several. ``markdown`` is the content without tags. ``open`` is True while
    the block may still grow.
    """

    index: int
    label: str
    boxes: tuple[Box, ...]
    markdown: str
    confidence: float | None = None
    edited: bool = False
    open: bool = False

    @property
    def id(self) -> str:
        """Unique within the page and stable while it streams."""
        return f"b{self.index + 1}"
