"""Blocks that still grow, for the parser."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import overload

from desktop.document.model import Block
from desktop.protocol.messages import Box

_LEADING_BLANK = re.compile(r"(?:[ \t\r\f\v]*\n)+")
_GROUPS = (("<table", "</table"), (r"\[", r"\]"))
_SWITCHES = ("```", "$$")


class Draft:
    """A block that may still grow; its text is joined only when it is looked at."""

    __slots__ = ("_block", "_levels", "_seen", "boxes", "confidence", "filled", "guess", "index",
                 "label", "open", "pieces")

    def __init__(self, label: str, boxes: tuple[Box, ...], guess: str = "") -> None:
        self.index = -1
        self.label = label
        self.boxes = boxes
        self.guess = guess
        """The label as it was written, when it may turn out to be a recognised word."""
        self.pieces: list[str] = []
        self.filled = False
        self.open = True
        self.confidence: float | None = None
        self._block: Block | None = None
        self._seen = 0
        self._levels = [0, 0, 0, 0]

    def add(self, piece: str) -> None:
        """Append PIECE; costs the length of it."""
        self.pieces.append(piece)
        if not piece.isspace():
            self.filled = True
            self._block = None

    def touch(self) -> None:
        """Something but the text changed."""
        self._block = None

    def block(self) -> Block:
        """The block as it is now; made anew only when it changed."""
        if self._block is None:
            text = "".join(self.pieces)
            # Pieces that were examined for open groups stay as they are counted.
            self._seen = 1 if self._seen == len(self.pieces) and self._seen else 0
            if not self._seen:
                self._levels = [0, 0, 0, 0]
            self.pieces = [text]
            blank = _LEADING_BLANK.match(text)
            self._block = Block(
                self.index, self.label, self.boxes, text[blank.end() if blank else 0:].rstrip(),
                self.confidence, open=self.open,
            )
        return self._block

    def splits(self) -> bool:
        """Whether a blank line ends this block: untagged text outside of table, formula, code."""
        if self.label or self.boxes or not self.filled:
            return False
        new = "".join(self.pieces[self._seen:])
        self._seen = len(self.pieces)
        for position, (begin, end) in enumerate(_GROUPS):
            self._levels[position] += new.count(begin) - new.count(end)
        for position, switch in enumerate(_SWITCHES, len(_GROUPS)):
            self._levels[position] ^= new.count(switch) & 1
        return all(level <= 0 for level in self._levels)


class Blocks(Sequence[Block]):
    """The drafts as blocks, made when they are looked at."""

    def __init__(self, drafts: list[Draft]) -> None:
        self._drafts = drafts

    def __len__(self) -> int:
        return len(self._drafts)

    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Block]: ...
    def __getitem__(self, index: int | slice) -> Block | Sequence[Block]:
        if isinstance(index, slice):
            return [draft.block() for draft in self._drafts[index]]
        return self._drafts[index].block()
