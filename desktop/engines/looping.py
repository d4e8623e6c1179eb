"""The loop guard: notices, while a page's output streams, that it repeats itself without end.

Language models that read pages fall into loops: a word or a sentence again and again, rows of a
table that is never closed, counters (``Col837|Col838|``), empty boxes that march down the page
and begin again at its top. Documents repeat themselves as well: equal rows in a price list, dot
leaders, ruled lines, refrains, a form's empty lines. What tells them apart is *how much*: a page
has an area, and so a largest number of rows, lines and letters. Every limit here stands for
something that a page cannot hold, and so is the price of a loop: the text written until the
limit is passed.

Four watchers share one stream of tokens (words, numbers, tags, single characters):

* **periods** – the text's end is one unit said over and over, equal to the letter
  (:data:`ROWS` … :data:`REPEATED_LETTERS`), or equal but for numbers that each grow by the same
  step (:data:`COUNTED_ROWS` …);
* **poverty** – many words of one line, or many rows or lines in sequence, are but a few different
  ones in any order; or hardly any of the last many words say what was not said before;
* **places** – blocks that were read before are read again at the same place, or equal blocks
  stand one below the other at equal distances, more than a page holds;
* **staleness** (:meth:`LoopGuard.stale`) – for an output that has used up nearly all its tokens:
  whether its end still says anything new.

Looking at every token costs some microseconds a character, too much beside an engine that writes
ten thousand a second. So a gate comes first: text is compressed as it comes, and the watchers see
it, from its beginning, once a stretch of it says next to nothing new. Prose never gets there.

Time is linear in the text, whatever the text; how it is cut into pieces changes nothing. Runs on
Python 3.10 with the standard library alone.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter, deque
from typing import Deque, Dict, List, NamedTuple, Optional, Set, Tuple

# --- equal to the letter

ROWS = 120
"""Equal rows of a table. A4 holds 297 mm / 2.5 mm (the smallest print that is read) ≈ 119."""
LEAST_ROWS = 64
"""Allowed however small the table's box is said to be: boxes are the model's word, too."""
LINES = 120
"""Equal lines (code, ruled lines, ASCII tables), for the same reason."""
CELLS = 150
"""Equal cells with no row's end between them; a table of that many columns cannot be read."""
SYMBOLS = 1600
"""Characters in one line with no letter in them: dot leaders, underscores, rows of zeros. The
longest printed line is some 250 characters; half a dozen of them may be joined into one."""
PHRASES = ((16, 300), (8, 900))
"""(times, letters): what is repeated within a line, without a line break or a cell's end. Nothing
printed says one thing 16 times over; refrains and forms have their line breaks. Words of fewer
than :data:`SHORT_WORDS` letters on average (chords, codes) count as :data:`SYMBOLS`."""
SHORT_WORDS = 2.0
REPEATED_LETTERS = ((12, 3000), (4, 6000))
"""(times, letters) of anything repeated, lines and rows included: a full page has 3000 letters,
the fullest (a newspaper) three times as many, and not one that says a single thing twelve times.
A sheet of 33 equal address labels has 2600."""
REPEATED_BLOCKS = 6
"""Times that the same blocks may be said to be at exactly the same places."""

# --- equal but for numbers that count on

COUNTED_ROWS = 200
"""Rows or lines: numbered empty rows, conversion tables, answer sheets of 200 questions."""
COUNTED_CELLS = 72
"""Cells with letters (``Week 1`` … ``Week 53``) with no row's end between them."""
COUNTED_NUMBERS = 300
"""Plain numbers in sequence within a line or a row."""
COUNTED_PHRASES = 150
"""Phrases within a line."""
_UNEVEN = 0.05
"""Share of numbers that may break step (a lost digit, a turn of the page)."""

# --- few different ones

WORDS, DIFFERENT_WORDS, WORD_LENGTH = 100, 8, 3.0
"""Of so many words in one line or cell at most so many different ones, of so many letters on
average: prose has 60 and more. The length spares codes (``k2 p2``), notes and codons."""
UNITS, DIFFERENT_UNITS = 160, 6
"""The same for rows and for lines: more than a page has of them, in any order."""
RECENT, NEW_SHARE = 1500, 0.03
"""Of so many words, in rows and lines too, this share must begin something new. A page of prose
has a third as many words; a grid of 30 × 40 that only says yes and no has 1200."""

# --- blocks

REPLAYS = 12
"""Blocks of equal content at the place of an earlier one."""
REPLAYED_LETTERS = (3, 600)
"""(blocks, letters): text read again where it was read before."""
MARCH = 64
"""Equal blocks of one size, one below the other at equal distances: a page has 50 lines."""
MARCHING_TEXT = (24, 25)
"""(blocks, letters each): the same with a sentence in each."""
EQUAL_BLOCKS = (24, 200)
"""(times, blocks): equal blocks, or groups of them, in a row, wherever they are. A chart of icons
has as many; a year's calendar has 365, in groups of a month said twelve times."""

# --- near the limit

STALE_WINDOW, STALE_SHARE = 800, 0.06
"""Of so many tokens, this share must begin something new; tables of numbers have 30 % and more."""

# --- the gate

STRETCH = 128
"""Characters that are compressed together; two such stretches are judged at a time."""
REPETITIVE = 0.28
"""Compressed size over size, from which down text may be a loop: prose has 0.4 and more, loops
with the most variety (five words shuffled) 0.22."""
_FOLD = bytes(48 if 48 < byte < 58 else byte for byte in range(256))
"""Numbers that count on look as good as new: to the gate all digits are equal."""
_OVERHEAD = 5
"""Bytes that the end of each stretch costs."""

_K = 6
"""Tokens that make up a context."""
_KEPT = 64
"""Units after which a word, or a run of spaces, is cut: a token has a bounded length."""

_TOKEN = re.compile(r"""
    (?P<newline>\n)
  | (?P<space>[^\S\n]{1,256})
  | (?P<tag><[^<>\n]{1,200}>)
  | (?P<number>\d{1,18})
  | (?P<glyph>[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])
  | (?P<mark>&\#?\w{1,10}; | \\[A-Za-z]{1,32})
  | (?P<word>[^\W\d_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]
             [^\W\d_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0300-\u036f]{0,63})
  | (?P<other>.)
""", re.VERBOSE | re.DOTALL)
_ENTITY_BEGUN = re.compile(r"&#?\w{0,10}\Z")
_TAG_LIMIT = 202
_SPACES = 256
_PAGE_MARK = re.compile(r"(?:<--- ?Page Split ?--->|--- Page \d+ ---)\s*\Z")

_ROW_END, _CELL_END = "</tr>", ("</td>", "</th>", "|")
_DET, _DET_END, _REF, _REF_END = "<|det|>", "<|/det|>", "<|ref|>", "<|/ref|>"


class Loop(NamedTuple):
    """What was noticed."""

    kind: str
    """phrase, symbols, lines, rows, cells, letters, blocks, counter, words, recent, replay or
    march."""
    at: int
    """Characters of the output by then."""


class _Unit(NamedTuple):
    """What one turn of a repetition holds."""

    letters: int = 0
    """A sign of Chinese or Japanese writing counts as a word of :data:`WORD_LENGTH`."""
    words: int = 0
    rows: int = 0
    cells: int = 0
    lines: int = 0
    blocks: int = 0


class _Tokens:
    """The stream so far. One entry a token in every list."""

    __slots__ = ("ends", "exact", "names", "shape", "units", "values")

    def __init__(self) -> None:
        self.exact: List[int] = []
        """Equal for equal tokens."""
        self.shape: List[int] = []
        """The same with all numbers equal."""
        self.values: List[Optional[int]] = []
        """A number's value."""
        self.ends: List[int] = []
        """Characters up to the token's end."""
        self.units: List[_Unit] = []
        """What it adds to the unit it is in; shared between equal tokens."""
        self.names: Dict[str, Tuple[int, _Unit]] = {}


class _Period:
    """Follows the shortest distance at which a sequence of ids repeats itself."""

    __slots__ = ("context", "ids", "last", "length", "matched", "new", "short", "streak")

    def __init__(self, ids: List[int], context: int) -> None:
        self.ids = ids
        self.context = context
        self.last: Dict[Tuple[int, ...], int] = {}
        self.length = 0
        """Ids in one turn; 0: no repetition."""
        self.matched = 0
        """Ids equal to those one turn before, without a break."""
        self.short = self.streak = 0
        """The nearest distance of the last context, and for how many ids it has been the same:
        finds a short period inside a long one that happens to hold as well."""
        self.new = True
        """Whether the last context was never seen before."""

    def push(self) -> None:
        """An id was appended."""
        ids, size = self.ids, len(self.ids)
        if self.length and ids[-1] == ids[-1 - self.length]:
            self.matched += 1
        else:
            self.length = self.matched = 0
        if size < self.context:
            return
        key = tuple(ids[-self.context:])
        before = self.last.get(key)
        self.last[key] = size
        self.new = before is None
        if before is None:
            self.short = self.streak = 0
            return
        distance = size - before
        if distance == self.short:
            self.streak += 1
        else:
            self.short, self.streak = distance, self.context
        if not self.length:
            self.length, self.matched = distance, self.context


class LoopGuard:
    """Watches the output of one page (or of one part of it)."""

    def __init__(self) -> None:
        self.loop: Optional[Loop] = None
        """What was noticed; stays."""
        self._watchers: Optional[_Watchers] = None
        """Nobody, as long as the gate is shut."""
        self._pieces: List[str] = []
        self._waiting = ""
        """The stretch that is not complete."""
        self._compressor = zlib.compressobj(6)
        self._before = 1.0

    def feed(self, text: str) -> Optional[Loop]:
        """Take the next piece of output; the loop, once there is one."""
        if self.loop is None:
            if self._watchers is not None:
                self.loop = self._watchers.feed(text)
            else:
                self._waiting += text
                if len(self._waiting) >= STRETCH:
                    self._compress()
        return self.loop

    def stale(self) -> bool:
        """Whether the end of the output says hardly anything that was not said before: for one
        that is at its limit, where no page is long enough to tell."""
        return self._watchers is not None and self._watchers.stale()

    def _compress(self) -> None:
        waiting = self._waiting
        at = 0
        while len(waiting) - at >= STRETCH:
            stretch = waiting[at:at + STRETCH]
            at += STRETCH
            data = stretch.encode("utf-8", "replace").translate(_FOLD)
            packed = (len(self._compressor.compress(data))
                      + len(self._compressor.flush(zlib.Z_SYNC_FLUSH)) - _OVERHEAD)
            share = packed / len(data)
            self._pieces.append(stretch)
            if share + self._before < 2 * REPETITIVE:
                self._watchers = _Watchers()
                self.loop = self._watchers.feed("".join((*self._pieces, waiting[at:])))
                self._pieces.clear()
                self._waiting = ""
                return
            self._before = share
        self._waiting = waiting[at:]


class _Watchers:
    """Look at every token of an output."""

    def __init__(self) -> None:
        self.loop: Optional[Loop] = None
        self._rest = ""
        self._characters = 0
        self._tokens = _Tokens()
        self._exact = _Period(self._tokens.exact, _K)
        self._shape = _Period(self._tokens.shape, _K)
        self._steps: List[Optional[int]] = []
        """By how much a number grew since one turn before."""
        self._numbers = self._uneven = self._moving = 0
        """Of the current counted repetition: its numbers, those out of step, those that grow."""
        self._turn = (0, 0)
        """Period and length of the counted repetition that these figures are about."""
        self._words = _Few(WORDS)
        self._rows = _Few(UNITS)
        self._lines = _Few(UNITS)
        self._row = self._line = 0
        """Digests of the row and the line being written."""
        self._recent: Deque[bool] = deque(maxlen=RECENT)
        self._recent_new = 0
        self._tail: Deque[bool] = deque(maxlen=STALE_WINDOW)
        self._tail_new = 0
        self._blocks = _Blocks()

    def feed(self, text: str) -> Optional[Loop]:
        """Take the next piece of output; the loop, once there is one."""
        if self.loop is not None:
            return self.loop
        buffer = self._rest + text
        size, at = len(buffer), 0
        while at < size:
            match = _TOKEN.match(buffer, at)
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
            rest = buffer[at + 1:at + _TAG_LIMIT]
            return len(buffer) - at < _TAG_LIMIT and not any(c in rest for c in "<>\n")
        return buffer[at] == "&" and _ENTITY_BEGUN.match(buffer, at) is not None

    # --- one token
    def _take(self, kind: str, text: str) -> None:
        if kind == "space" and len(text) < _SPACES:
            return
        tokens = self._tokens
        known = tokens.names.get(text)
        if known is None:
            known = tokens.names[text] = (len(tokens.names) + 1, _unit(kind, text))
        number, unit = known
        tokens.exact.append(number)
        tokens.shape.append(0 if kind == "number" else number)
        tokens.values.append(int(text) if kind == "number" else None)
        tokens.ends.append(self._characters)
        found = self._blocks.token(kind, text, number, unit.letters)
        tokens.units.append(_BLOCK if self._blocks.stripped_end else unit)
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
        if matched % length and matched % 64:
            return  # Once a turn is enough, and costs no more than the turn did.
        unit = _sum(self._tokens.units, length)
        times = matched / length + 1
        whole = matched + length
        letters = unit.letters * times
        kind = ""
        if unit.blocks:
            kind = "blocks" if times >= REPEATED_BLOCKS else ""
        elif unit.rows:
            kind = "rows" if unit.rows * times > self._most_rows() else ""
        elif unit.lines:
            kind = "lines" if unit.lines * times > LINES else ""
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

    def _most_rows(self) -> int:
        """Rows that the box of the table has room for."""
        height = self._blocks.height
        return max(LEAST_ROWS, ROWS * height // 999) if height else ROWS

    def _counted(self) -> None:
        shape, tokens = self._shape, self._tokens
        length = shape.length
        value = tokens.values[-1]
        if not length or shape.matched <= _K or self._turn[0] != length:
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
                or not self._moving or self._uneven > 1 + _UNEVEN * self._numbers):
            return
        unit = _sum(tokens.units, length)
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

    def _poor(self, kind: str, text: str, number: int, unit: _Unit) -> None:
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
            if text == _ROW_END:
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


class _Few:
    """How many different ones are among the last so many."""

    __slots__ = ("_counts", "_last", "_most", "weight")

    def __init__(self, most: int) -> None:
        self._most = most
        self._last: Deque[Tuple[int, int]] = deque()
        self._counts: Counter[int] = Counter()
        self.weight = 0
        """Sum of what was added with them."""

    @property
    def different(self) -> int:
        return len(self._counts)

    def add(self, item: int, weight: int = 0) -> bool:
        """Whether there are so many by now."""
        self._last.append((item, weight))
        self._counts[item] += 1
        self.weight += weight
        if len(self._last) > self._most:
            old, lost = self._last.popleft()
            self.weight -= lost
            self._counts[old] -= 1
            if not self._counts[old]:
                del self._counts[old]
        return len(self._last) == self._most

    def clear(self) -> None:
        if self._last:
            self._last.clear()
            self._counts.clear()
            self.weight = 0


class _Blocks:
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
        self._line_before = (0, 0)
        """Content and letters before the line."""
        self._mark = ""
        """The line so far, as long as it could be a mark between pages."""
        self._seen: Set[Tuple[int, ...]] = set()
        self._replays = self._replayed = 0
        self._ids: List[int] = []
        self._sizes: List[int] = []
        self._period = _Period(self._ids, 2)
        self._march = 0
        self._last: Tuple[int, ...] = ()
        self._last_box: Tuple[int, ...] = ()
        self._pace = 0

    def token(self, kind: str, text: str, number: int, letters: int) -> str:
        """Take a token; the kind of loop that a block completes."""
        self.stripped_end = False
        if self._inside is not None:
            return self._in_box(kind, text)
        if text == _REF:
            found = self._close()
            self._in_ref, self._label, self._line = True, 0, -1
            return found
        if text == _REF_END:
            self._in_ref = False
            return ""
        if text == _DET:
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
            self._line_before = (self._content, self._letters)
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
        self._letters += letters
        return ""

    def _stripped_tag(self) -> str:
        self._content, self._letters = self._line_before
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
        if (text == _DET_END or kind == "newline" or len(self._inside) > 400
                or (self._stripped and self._brackets <= 0)):
            box = self._inside
            self._inside = None
            self.stripped_end = self._stripped
            self._box = tuple(box[:4]) if len(box) >= 4 else ()
            self.height = abs(self._box[3] - self._box[1]) if self._box else 0
            self._open, self._content, self._letters = True, 0, 0
            self._line = -1
        return ""

    def _close(self) -> str:
        """The current block is complete."""
        if not self._open:
            self._content, self._letters = 0, 0
            return ""
        self._open, self.height = False, 0
        found = self._replay() or self._parade()
        self._content = self._letters = 0
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
        cells = [(self._label, self._content, wide, high, x, y)
                 for x in range(x1 // wide, max(x1, x2 - 1) // wide + 1)
                 for y in range(y1 // high, max(y1, y2 - 1) // high + 1)]
        taken = sum(cell in self._seen for cell in cells)
        self._seen.update(cells)
        if taken >= 0.75 * len(cells):
            self._replays += 1
            self._replayed += self._letters
        blocks, letters = REPLAYED_LETTERS
        if self._replays >= REPLAYS or (self._replays >= blocks and self._replayed >= letters):
            return "replay"
        return ""

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


_NONE = _Unit()
_BLOCK = _Unit(blocks=1)


def _unit(kind: str, text: str) -> _Unit:
    if kind == "newline":
        return _Unit(lines=1)
    if kind == "tag":
        return (_Unit(rows=1) if text == _ROW_END else _Unit(cells=1) if text in _CELL_END
                else _Unit(blocks=1) if text == _DET else _NONE)
    if text in _CELL_END:
        return _Unit(cells=1)
    if kind == "glyph":
        return _Unit(letters=int(WORD_LENGTH), words=1)
    # One letter again and again is a line of that letter, and no word.
    if kind == "word" and (len(text) == 1 or len(set(text)) > 1):
        return _Unit(letters=len(text), words=1)
    return _NONE


def _sum(units: List[_Unit], length: int) -> _Unit:
    """What the last LENGTH tokens hold together."""
    letters = words = rows = cells = lines = blocks = 0
    for unit in units[-length:]:
        if unit is not _NONE:
            letters += unit.letters
            words += unit.words
            rows += unit.rows
            cells += unit.cells
            lines += unit.lines
            blocks += unit.blocks
    return _Unit(letters, words, rows, cells, lines, blocks)
