"""An output as tokens: words, numbers, tags, single characters."""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from desktop.engines.repetition.limits import WORD_LENGTH

TOKEN = re.compile(r"""
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
ENTITY_BEGUN = re.compile(r"&#?\w{0,10}\Z")
TAG_LIMIT = 202
SPACES = 256

ROW_END, CELL_END = "</tr>", ("</td>", "</th>", "|")
DET, DET_END, REF, REF_END = "<|det|>", "<|/det|>", "<|ref|>", "<|/ref|>"


class Unit(NamedTuple):
    """What one turn of a repetition holds."""

    letters: int = 0
    """A sign of Chinese or Japanese writing counts as a word of :data:`WORD_LENGTH`."""
    words: int = 0
    numbers: int = 0
    rows: int = 0
    cells: int = 0
    lines: int = 0
    blocks: int = 0


NONE = Unit()
BLOCK = Unit(blocks=1)


class Tokens:
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
        self.units: List[Unit] = []
        """What it adds to the unit it is in; shared between equal tokens."""
        self.names: Dict[str, Tuple[int, Unit]] = {}


def unit_of(kind: str, text: str) -> Unit:
    if kind == "newline":
        return Unit(lines=1)
    if kind == "tag":
        return (Unit(rows=1) if text == ROW_END else Unit(cells=1) if text in CELL_END
                else Unit(blocks=1) if text == DET else NONE)
    if text in CELL_END:
        return Unit(cells=1)
    if kind == "glyph":
        return Unit(letters=int(WORD_LENGTH), words=1)
    if kind == "number":
        return Unit(numbers=1)
    # One letter again and again is a line of that letter, and no word.
    if kind == "word" and (len(text) == 1 or len(set(text)) > 1):
        return Unit(letters=len(text), words=1)
    return NONE


def total(units: List[Unit], length: int) -> Unit:
    """What the last LENGTH tokens hold together."""
    letters = words = numbers = rows = cells = lines = blocks = 0
    for unit in units[-length:]:
        if unit is not NONE:
            letters += unit.letters
            words += unit.words
            numbers += unit.numbers
            rows += unit.rows
            cells += unit.cells
            lines += unit.lines
            blocks += unit.blocks
    return Unit(letters, words, numbers, rows, cells, lines, blocks)
