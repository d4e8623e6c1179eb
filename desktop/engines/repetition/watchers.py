"""The watchers: they look at every token of an output."""

from __future__ import annotations

from collections import deque
from typing import Deque, List, NamedTuple, Optional

from desktop.engines.repetition.blocks import Blocks
from desktop.engines.repetition.limits import (
    CELLS,
    COUNTED_CELLS,
    COUNTED_NUMBERS,
    COUNTED_PHRASES,
    COUNTED_ROWS,
    DIFFERENT_UNITS,
    DIFFERENT_WORDS,
    FILLED,
    LEAST_ROWS,
    LINES,
    NEW_SHARE,
    PHRASES,
    RECENT,
    REPEATED_BLOCKS,
    REPEATED_LETTERS,
    ROWS,
    SHORT_WORDS,
    STALE_SHARE,
    STALE_WINDOW,
    SYMBOLS,
    UNEVEN,
    UNITS,
    WORD_LENGTH,
    WORDS,
)
from desktop.engines.repetition.sequences import Few, Period
from desktop.engines.repetition.tokens import (
    BLOCK,
    ENTITY_BEGUN,
    ROW_END,
    SPACES,
    TAG_LIMIT,
    TOKEN,
    Tokens,
    Unit,
    total,
    unit_of,
)

CONTEXT = 6
"""Tokens that make up a context."""


class Loop(NamedTuple):
    """What was noticed."""

    kind: str
    """phrase, symbols, lines, rows, cells, letters, blocks, counter, words, recent, replay or
    march."""
    at: int
    """Characters of the output by then."""


class Watchers:
    """Look at every token of an output."""

    def __init__(self) -> None:
        self.loop: Optional[Loop] = None
        self._rest = ""
        self._characters = 0
        self._tokens = Tokens()
        self._exact = Period(self._tokens.exact, CONTEXT)
        self._shape = Period(self._tokens.shape, CONTEXT)
        self._steps: List[Optional[int]] = []
        """By how much a number grew since one turn before."""
        self._numbers = self._uneven = self._moving = 0
        """Of the current counted repetition: its numbers, those out of step, those that grow."""
        self._turn = (0, 0)
        """Period and length of the counted repetition that these figures are about."""
        self._words = Few(WORDS)
        self._rows = Few(UNITS)
        self._lines = Few(UNITS)
        self._row = self._line = 0
        """Digests of the row and the line being written."""
        self._recent: Deque[bool] = deque(maxlen=RECENT)
        self._recent_new = 0
        self._tail: Deque[bool] = deque(maxlen=STALE_WINDOW)
        self._tail_new = 0
        self._blocks = Blocks()

    def feed(self, text: str) -> Optional[Loop]:
        """Take the next piece of output; the loop, once there is one."""
        if self.loop is not None:
            return self.loop
        buffer = self._rest + text
        size, at = len(buffer), 0
        while at < size:
            match = TOKEN.match(buffer, at)
            assert match is not None
            end, kind = match.end(), match.lastgroup
            if end == size and kind != "newline":
                break  # It may go on.
            if kind == "other" and self._begun(buffer, at):
                break
            self._characters += end - at
            at = end
            self._take(kind or "", match.group())
            if self.loop is not None:
                break
        self._rest = buffer[at:]
        return self.loop

    def stale(self) -> bool:
        """See :meth:`LoopGuard.stale`."""
        return (len(self._tail) == STALE_WINDOW
                and self._tail_new < STALE_SHARE * STALE_WINDOW)

    @staticmethod
    def _begun(buffer: str, at: int) -> bool:
        """Whether a single character may turn out to be the beginning of a longer token."""
        if buffer[at] == "<":
            rest = buffer[at + 1:at + TAG_LIMIT]
            return len(buffer) - at < TAG_LIMIT and not any(c in rest for c in "<>\n")
        return buffer[at] == "&" and ENTITY_BEGUN.match(buffer, at) is not None

    # --- one token
    def _take(self, kind: str, text: str) -> None:
        if kind == "space" and len(text) < SPACES:
            return
        tokens = self._tokens
        known = tokens.names.get(text)
        if known is None:
            known = tokens.names[text] = (len(tokens.names) + 1, unit_of(kind, text))
        number, unit = known
        tokens.exact.append(number)
        tokens.shape.append(0 if kind == "number" else number)
        tokens.values.append(int(text) if kind == "number" else None)
        tokens.ends.append(self._characters)
        found = self._blocks.token(kind, text, number, unit.letters)
        tokens.units.append(BLOCK if self._blocks.stripped_end else unit)
        if found:
            self._found(found)
        self._exact.push()
        self._shape.push()
        self._novelty(unit.letters > 0)
        self._periodic()
        self._counted()
        self._poor(kind, text, number, unit)

    def _found(self, kind: str) -> None:
        if self.loop is None:
            self.loop = Loop(kind, self._characters)

    # --- periods
    def _periodic(self) -> None:
        exact = self._exact
        if exact.length and exact.matched >= 3 * exact.length:
            self._weigh(exact.length, exact.matched)
        if exact.short and exact.short < exact.length and exact.streak >= 3 * exact.short:
            self._weigh(exact.short, exact.streak)

    def _weigh(self, length: int, matched: int) -> None:
        """Whether MATCHED tokens of period LENGTH are more than documents have."""
        if matched % length:
            return  # Once a turn is enough, and costs no more than the turn did.
        unit = total(self._tokens.units, length)
        times = matched / length + 1
        whole = matched + length
        letters = unit.letters * times
        filled = unit.letters or unit.numbers
        kind = ""
        if unit.blocks:
            kind = "blocks" if times >= REPEATED_BLOCKS else ""
        elif unit.rows:
            kind = "rows" if unit.rows * times > self._most_rows(filled) else ""
        elif unit.lines:
            worded = unit.letters >= WORD_LENGTH * unit.lines  # and not a stave, a tablature
            kind = "lines" if unit.lines * times > LINES * (FILLED if worded else 1) else ""
        elif unit.cells:
            kind = "cells" if unit.cells * times > CELLS else ""
        elif unit.letters < SHORT_WORDS * unit.words or not unit.letters:
            ends = self._tokens.ends
            written = ends[-1] - (ends[-1 - whole] if whole < len(ends) else 0)
            kind = "symbols" if written > SYMBOLS else ""
        elif any(times >= least and letters >= most for least, most in PHRASES):
            kind = "phrase"
        if not kind and any(times >= least and letters >= most
                            for least, most in REPEATED_LETTERS):
            kind = "letters"
        if kind:
            self._found(kind)

    def _most_rows(self, filled: int) -> float:
        """Rows that the box of the table has room for."""
        most = ROWS * (FILLED if filled else 1)
        height = self._blocks.height
        return max(LEAST_ROWS, most * height / 999) if height else most

    def _counted(self) -> None:
        shape, tokens = self._shape, self._tokens
        length = shape.length
        value = tokens.values[-1]
        if not length or shape.matched <= CONTEXT or self._turn[0] != length:
            self._numbers = self._uneven = self._moving = 0
            self._turn = (length, 0)
        step: Optional[int] = None
        if length and value is not None:
            before = tokens.values[-1 - length]
            if before is not None:
                step = value - before
                last = self._steps[-length] if length <= len(self._steps) else None
                self._numbers += 1
                self._moving += step != 0
                if last is not None and step != last:
                    self._uneven += 1
        self._steps.append(step)
        if (not length or shape.matched < 3 * length or shape.matched % length
                or not self._moving or self._uneven > 1 + UNEVEN * self._numbers):
            return
        unit = total(tokens.units, length)
        if unit.blocks:
            return  # Boxes count on by nature.
        times = shape.matched / length + 1
        if unit.rows or unit.lines:
            most, count = COUNTED_ROWS, times * (unit.rows or unit.lines)
        elif unit.cells and unit.letters:
            most, count = COUNTED_CELLS, times * unit.cells
        elif unit.letters:
            most, count = COUNTED_PHRASES, times
        else:
            most, count = COUNTED_NUMBERS, times
        if count > most:
            self._found("counter")

    # --- poverty
    def _novelty(self, worded: bool) -> None:
        new = self._exact.new
        if len(self._tail) == STALE_WINDOW:
            self._tail_new -= self._tail[0]
        self._tail.append(new)
        self._tail_new += new
        if not worded:
            return
        if len(self._recent) == RECENT:
            self._recent_new -= self._recent[0]
        self._recent.append(new)
        self._recent_new += new
        if len(self._recent) == RECENT and self._recent_new < NEW_SHARE * RECENT:
            self._found("recent")

    def _poor(self, kind: str, text: str, number: int, unit: Unit) -> None:
        if kind == "newline":
            self._words.clear()
            if self._line:
                if self._lines.add(self._line) and self._lines.different <= DIFFERENT_UNITS:
                    self._found("lines")
                self._line = 0
            return
        self._line = hash((self._line, number))
        if kind == "tag":
            self._words.clear()
            if text == ROW_END:
                if self._rows.add(self._row) and self._rows.different <= DIFFERENT_UNITS:
                    self._found("rows")
                self._row = 0
                return
        elif text == "|":
            self._words.clear()
        elif (kind in ("word", "glyph", "number")
              # Numbers are words as well: "Art. 5, Art. 12, Art. 31" says three things.
              and self._words.add(number, unit.letters)
              and self._words.different <= DIFFERENT_WORDS
              and self._words.weight >= WORD_LENGTH * WORDS):
            self._found("words")
        self._row = hash((self._row, number))
