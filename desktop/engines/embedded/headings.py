"""Levels of headings from their sizes across the page."""

from __future__ import annotations

from collections.abc import Sequence

from desktop.engines.embedded.model import Block


def set_levels(blocks: Sequence[Block], body: float) -> None:
    """Give every heading of BLOCKS (in reading order) a level from 1, by size.

    Only a heading well above the body size is a title (level 1); others begin at 2.
    """
    headings = [b for b in blocks if b.label in ("title", "sub_title") and b.lines]
    if not headings:
        return
    sizes = {id(b): sum(line.size for line in b.lines) / len(b.lines) for b in headings}
    steps: list[float] = []
    for size in sorted(sizes.values(), reverse=True):
        if not steps or size < 0.88 * steps[-1]:
            steps.append(size)
    largest = steps[0] > 1.35 * body
    for block in headings:
        level = next(i for i, step in enumerate(steps) if sizes[id(block)] >= 0.88 * step)
        block.level = min(6, level + (1 if largest else 2))
        block.label = "title" if block.level == 1 else "sub_title"
