"""The blocks of an output: read again where they were read before, or marching down the page."""

from __future__ import annotations

import re
from typing import List, Optional, Set, Tuple

from desktop.engines.repetition.limits import (
    COUNTED_REPLAYS,
    EQUAL_BLOCKS,
    MARCH,
    MARCHING_TEXT,
    REPEATED_LETTERS,
    REPLAYED_LETTERS,
    REPLAYS,
)
from desktop.engines.repetition.sequences import Period
from desktop.engines.repetition.tokens import DET, DET_END, REF, REF_END

_PAGE_MARK = re.compile(r"(?:<--- ?Page Split ?--->|--- Page \d+ ---)\s*\Z")


class Blocks:
    """Finds the blocks in the tokens: ``<|ref|>label<|/ref|><|det|>[[…]]<|/det|>``, or
    ``label[[…]]`` at the start of a line where a server took the special tokens away."""

    def __init__(self) -> None:
        self.height = 0
        """Of the current block's box (0–999); 0 where there is none."""
        self.stripped_end = False
        """Whether the last token ended a tag without special tokens."""
        self._open = False
        """Whether a block's content is being written."""
        self._inside: Optional[List[int]] = None
        """Coordinates of a box being written."""
        self._stripped = False
        """Whether that box's tag has no special tokens."""
        self._brackets = 0
        self._in_ref = False
        self._label = self._content = 0
        self._letters = 0
        self._box: Tuple[int, ...] = ()
        self._line = 0
        """Tokens on the line so far, as long as they could be a label; -1: they cannot."""
        self._line_digest = 0
        self._shape = 0
        """Digest of the content with all numbers equal."""
        self._line_before = (0, 0, 0)
        """Content, its shape and letters before the line."""
        self._mark = ""
        """The line so far, as long as it could be a mark between pages."""
        self._seen: Set[Tuple[int, ...]] = set()
        self._replays = self._replayed = self._counted = 0
        self._ids: List[int] = []
        self._sizes: List[int] = []
        self._period = Period(self._ids, 2)
        self._march = 0
        self._last: Tuple[int, ...] = ()
        self._last_box: Tuple[int, ...] = ()
        self._pace = 0

    def token(self, kind: str, text: str, number: int, letters: int) -> str:
        """Take a token; the kind of loop that a block completes."""
        self.stripped_end = False
        if self._inside is not None:
            return self._in_box(kind, text)
        if text == REF:
            found = self._close()
            self._in_ref, self._label, self._line = True, 0, -1
            return found
        if text == REF_END:
            self._in_ref = False
            return ""
        if text == DET:
            found = self._close() if self._open else ""
            self._inside, self._brackets, self._stripped = [], 0, False
            return found
        if self._in_ref and kind != "newline":
            self._label = hash((self._label, number))
            return ""
        if kind == "newline":
            self._in_ref = False
            if _PAGE_MARK.match(self._mark):
                self._seen.clear()  # What follows is another page's.
            self._line, self._line_digest, self._mark = 0, 0, ""
            self._line_before = (self._content, self._shape, self._letters)
            return ""
        if len(self._mark) < 24:
            self._mark += text if kind != "word" else text + " "
        if self._line >= 0:
            if text == "[" and self._line:
                self._line += 100
                if self._line > 200:
                    return self._stripped_tag()
            elif kind == "word" or text == "_":
                self._line_digest = hash((self._line_digest, number))
                self._line = self._line + 1 if self._line < 6 else -1
            else:
                self._line = -1
        self._content = hash((self._content, number))
        self._shape = hash((self._shape, 0 if kind == "number" else number))
        self._letters += letters
        return ""

    def _stripped_tag(self) -> str:
        self._content, self._shape, self._letters = self._line_before
        found = self._close()
        self._label = self._line_digest
        self._inside, self._brackets, self._stripped, self._line = [], 2, True, -1
        return found

    def _in_box(self, kind: str, text: str) -> str:
        assert self._inside is not None
        if kind == "number":
            self._inside.append(int(text))
        elif text in "[]":
            self._brackets += 1 if text == "[" else -1
        if (text == DET_END or kind == "newline" or len(self._inside) > 400
                or (self._stripped and self._brackets <= 0)):
            box = self._inside
            self._inside = None
            self.stripped_end = self._stripped
            self._box = tuple(box[:4]) if len(box) >= 4 else ()
            self.height = abs(self._box[3] - self._box[1]) if self._box else 0
            self._open, self._content, self._shape, self._letters = True, 0, 0, 0
            self._line = -1
        return ""

    def _close(self) -> str:
        """The current block is complete."""
        if not self._open:
            self._content = self._shape = self._letters = 0
            return ""
        self._open, self.height = False, 0
        found = self._replay() or self._parade()
        self._content = self._shape = self._letters = 0
        return found

    def _replay(self) -> str:
        if not self._box:
            return ""
        # Cells of a quarter to an eighth of the box's size, as a power of two: a box is a replay
        # where three of four of its cells were taken by blocks that say the same. Equal words
        # one below the other touch or overlap a little, and are not.
        x1, x2, y1, y2 = (value for pair in (sorted(self._box[::2]), sorted(self._box[1::2]))
                          for value in pair)
        wide, high = (1 << max(0, (low_high.bit_length() - 3)) for low_high in (x2 - x1, y2 - y1))
        across = range(x1 // wide, max(x1, x2 - 1) // wide + 1)
        down = range(y1 // high, max(y1, y2 - 1) // high + 1)
        if self._taken(self._content, wide, high, across, down):
            self._replays += 1
            self._replayed += self._letters
        elif self._shape != self._content and self._taken(self._shape, wide, high, across, down):
            self._counted += 1
            if self._counted >= COUNTED_REPLAYS:
                return "replay"
        blocks, letters = REPLAYED_LETTERS
        if self._replays >= REPLAYS or (self._replays >= blocks and self._replayed >= letters):
            return "replay"
        return ""

    def _taken(self, said: int, wide: int, high: int, across: range, down: range) -> bool:
        """Whether what is SAID was said at these cells before; from now on it was."""
        cells = [(self._label, said, wide, high, x, y) for x in across for y in down]
        taken = sum(cell in self._seen for cell in cells)
        self._seen.update(cells)
        return taken >= 0.75 * len(cells)

    def _parade(self) -> str:
        """Equal blocks one after the other."""
        self._ids.append(hash((self._label, self._content)))
        self._sizes.append(self._letters)
        period = self._period
        period.push()
        this = (self._label, self._content)
        box, last = self._box, self._last_box
        pace = box[1] - last[1] if box and last else 0
        if (this == self._last and box and last and pace and abs(pace - self._pace) <= 2
                and abs(box[0] - last[0]) <= 3 and abs(box[2] - last[2]) <= 3):
            self._march += 1
        else:
            self._march = 1
        if pace:
            self._pace = pace
        self._last, self._last_box = this, box
        blocks, letters = MARCHING_TEXT
        if self._march > MARCH or (self._march > blocks and self._letters >= letters):
            return "march"
        if period.length and not period.matched % period.length:
            times = period.matched / period.length + 1
            said = times * sum(self._sizes[-period.length:])
            least, most = EQUAL_BLOCKS
            if (times >= least and times * period.length > most) or any(
                    times >= least and said >= most for least, most in REPEATED_LETTERS):
                return "blocks"
        return ""
