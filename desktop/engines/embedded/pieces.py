"""The pieces of text in a table, and its drawn rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from desktop.engines.embedded.model import Box, Line, Word, rows, union

_WORD_GAP = 0.9
"""Font sizes between two words from which on they stand in two cells."""


@dataclass(frozen=True)
class Rules:
    """Drawn lines of a table: (position, from, to) of horizontal and of vertical ones."""

    across: list[tuple[float, float, float]]
    down: list[tuple[float, float, float]]


def rules_of(boxes: Sequence[Box]) -> Rules:
    across, down = [], []
    for x1, y1, x2, y2 in boxes:
        if x2 - x1 >= y2 - y1:
            across.append(((y1 + y2) / 2, x1, x2))
        else:
            down.append(((x1 + x2) / 2, y1, y2))
    return Rules(sorted(across), sorted(down))


def cut(lines: Sequence[Line], rules: Rules) -> list[Line]:
    """Lines cut at wide gaps and at vertical rules."""
    pieces: list[Line] = []
    for line in lines:
        group: list[Word] = []
        for word in line.words:
            if group and (word.box[0] - group[-1].box[2] > _WORD_GAP * line.size
                          or _ruled(group[-1], word, rules, line.size)):
                pieces.append(_piece(line, group))
                group = []
            group.append(word)
        if group:
            pieces.append(_piece(line, group))
    return pieces


def _ruled(left: Word, right: Word, rules: Rules, size: float) -> bool:
    low, high = (left.box[0] + left.box[2]) / 2, (right.box[0] + right.box[2]) / 2
    y = (left.box[1] + left.box[3]) / 2
    return any(low < x < high and y1 <= y <= y2 and abs(x - (left.box[2] + right.box[0]) / 2)
               < size for x, y1, y2 in rules.down)


def _piece(line: Line, words: Sequence[Word]) -> Line:
    return Line(union([word.box for word in words]), line.size, list(words), style=line.style,
                confidence=line.confidence, vertical=line.vertical)


def place(piece: Line) -> Box:
    """Where a piece counts: slanted or upright headings by their foot."""
    x1, y1, x2, y2 = piece.box
    if y2 - y1 <= 2.2 * piece.size:
        return piece.box
    if x2 - x1 > 1.5 * piece.size:
        return x1, y2 - 1.2 * piece.size, min(x2, x1 + 1.2 * piece.size), y2
    return x1, y2 - 1.2 * piece.size, x2, y2


def text_rows(pieces: Sequence[Line]) -> list[list[Line]]:
    flat = [Line(place(piece), piece.size) for piece in pieces]
    back = {id(stand_in): piece for stand_in, piece in zip(flat, pieces, strict=True)}
    return [[back[id(stand_in)] for stand_in in row] for row in rows(flat)]
