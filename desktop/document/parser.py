"""Grounded Markdown → blocks, while it streams.

Linear time, incremental, never raises whatever the text: a partial tag is held back until it is
clear what it is. Any split of a text into deltas gives the same blocks as the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from desktop.document.model import Block


class StreamParser:
    """Feeds on deltas of one page's output."""

    @property
    def blocks(self) -> Sequence[Block]:
        """All blocks so far, in order."""
        raise NotImplementedError

    def feed(self, delta: str) -> tuple[int, ...]:
        """Take the next piece; the indices of blocks that are new or changed, ascending."""
        raise NotImplementedError

    def finish(self) -> tuple[int, ...]:
        """No more comes: what was held back is text now, every block is closed."""
        raise NotImplementedError


def parse(text: str) -> tuple[Block, ...]:
    """The blocks of a whole output."""
    parser = StreamParser()
    parser.feed(text)
    parser.finish()
    return tuple(parser.blocks)
