"""A block of text cut into its paragraphs, lists, lines and listings, once its words are known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from desktop.engines.embedded.model import MONOSPACE, Block, Box, Line, laid, rows, union

BULLET = re.compile(
    r"^[•●○▪■□◦‣⁃∙·*➢➤►▶✓✔☐☑☒–—-](?=\s|$)|^[•●▪■◦‣☐☑☒]|^・(?=.)")
NUMBER = re.compile(r"^\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)](?=\s|$|[\u2e80-\u9fff])"
                    r"|^\d{1,2}[、．]")
REFERENCE = re.compile(r"^\[\w{1,6}\](?=\s)")
_ENDS = tuple(".!?:;。！？：；”\"»…")
_LEADER = re.compile(r"(?<=\S)(?:\s*[.·…‥]){4,}\s*"
                     r"(?=[\w€$£(][\w€$£.,()–-]{0,11}(?: [\w€$£]{1,3})?$)")
_BROKEN = ("-", "\u00ad", "\u2010")


@dataclass
class _Row:
    """Lines beside each other, in a frame where text runs from left to right and down."""

    lines: list[Line]
    text: str
    box: Box
    size: float
    first: float
    """Width of its first word: what would have had to fit into the row above."""

    @property
    def ended(self) -> bool:
        return self.text.endswith(_ENDS)


def split(block: Block) -> list[Block]:
    """BLOCK cut into paragraphs, lists and listings."""
    table = [_row(row) for row in rows(block.lines)]
    if all(line.style & MONOSPACE for line in block.lines) and (
            len(table) > 1 or re.search(r"[=;(){}\[\]<>/|\\]|^[$>#] ", table[0].text)) and not (
            len(table) == 1 and "@" in table[0].text):
        return [Block("code", block.box, block.lines)]
    parts: list[Block] = []
    for group in _apart(table):
        for part in _parts(group):
            parts.append(_block(part))
    return _lists(parts)


def marked(line: Line) -> bool:
    """Whether LINE begins a list item."""
    return line.bullet or bool(BULLET.match(line.text) or NUMBER.match(line.text))


def without_leader(text: str) -> str:
    """TEXT without the dots that lead from an entry to its page or price."""
    return _LEADER.sub(" ", text).strip()


def _row(row: list[Line]) -> _Row:
    boxes = [_frame(line) for line in row]
    words = row[0].words
    size = max(line.size for line in row)
    first = size
    if words and not row[0].vertical and not _wide(words[0].text[:1]):
        first = words[0].box[2] - words[0].box[0]
    return _Row(row, " ".join(line.text for line in row).strip(), union(boxes), size, first)


def _frame(line: Line) -> Box:
    if line.leftwards:
        x1, y1, x2, y2 = line.box
        return -x2, y1, -x1, y2
    return laid(line).box


def _wide(character: str) -> bool:
    return "\u2e80" <= character <= "\u9fff" or "\uf900" <= character <= "\ufaff" or (
        "\uff00" <= character <= "\uffef")


# --- where a block is cut -----------------------------------------------------------------------


def _apart(table: Sequence[_Row]) -> list[list[_Row]]:
    """Rows between which there is more room than between two lines of a paragraph."""
    pitches = [_pitch(a, b) for a, b in pairwise(table)]
    groups = [[table[0]]]
    if not pitches:
        return groups
    ordered = sorted(pitches)
    usual = ordered[len(ordered) // 4] if len(pitches) > 2 else ordered[0]
    # Lines found in pixels are as high as their letters happen to be.
    seen = any(line.confidence is not None for row in table for line in row.lines)
    factor, loose = (1.35, 0.5) if seen else (1.2, 0.2)
    if len(pitches) < 3 and not seen and table[0].ended:
        # Too few to tell by themselves; type is seldom set wider than that.
        usual = min(usual, 1.45 * table[0].size)
    for (before, row), pitch in zip(pairwise(table), pitches, strict=True):
        if pitch > factor * usual and pitch - usual > loose * max(before.size, row.size) and not (
                before.text.endswith(_BROKEN)):
            groups.append([row])
        else:
            groups[-1].append(row)
    return groups


def _pitch(above: _Row, below: _Row) -> float:
    return (below.box[1] + below.box[3] - above.box[1] - above.box[3]) / 2


def _parts(table: Sequence[_Row]) -> list[list[_Row]]:
    """Paragraphs and items of one group of evenly spaced rows."""
    left = min(row.box[0] for row in table)
    right = max(row.box[2] for row in table)
    hanging = _hanging(table, left)
    parts = [[table[0]]]
    last = _number(table[0].text)
    listed = _begins(table[0])
    lined = _lined(table, right)
    for i in range(1, len(table)):
        before, row = table[i - 1], table[i]
        forced = _forced(table, i, right)
        ended = before.ended and before.box[2] < right - 2 * row.size
        number = _number(row.text)
        starts = _begins(row) and (number is None or number == 1 or forced or before.ended
                                   or (last is not None and number == last + 1))
        if number is not None and starts:
            last = number
        indent = row.box[0] - before.box[0]
        indented = (before.box[0] - left < 0.6 * row.size and 0.7 * row.size < indent < 5 * row.size
                    and (forced or before.ended) and not hanging)
        if listed:
            # After an item comes what stands further left than the item's own text.
            text = _text_left(parts[-1][0])
            new = starts or (row.box[0] < text - 0.7 * row.size and (
                ended or (forced and marked(parts[-1][0].lines[0]))))
        elif hanging:
            new = starts or row.box[0] < left + 0.5 * row.size
        else:
            new = starts or indented or (forced and not lined)
        if new:
            parts.append([row])
            listed = starts
        else:
            parts[-1].append(row)
    return parts


def _begins(row: _Row) -> bool:
    return marked(row.lines[0]) or bool(REFERENCE.match(row.text))


def _number(text: str) -> int | None:
    """The number that a row begins with, if it is marked with one."""
    match = NUMBER.match(text)
    digits = re.sub(r"\D", "", match.group()) if match else ""
    return int(digits) if digits else None


def _text_left(row: _Row) -> float:
    """Where the text of an item begins, after its mark."""
    words = row.lines[0].words
    if row.lines[0].bullet or len(words) < 2 or row.lines[0].leftwards or row.lines[0].vertical:
        return row.box[0]
    return words[1].box[0]


def _forced(table: Sequence[_Row], i: int, right: float) -> bool:
    """Whether row I begins although its first word would have had room in the row above."""
    before, row = table[i - 1], table[i]
    if before.text.endswith(_BROKEN):
        return False
    for other in (i - 2, i):
        # A narrower part of the column, beside a picture or an initial.
        if 0 <= other < len(table) and abs(table[other].box[2] - before.box[2]) < 0.3 * row.size:
            return False
    ends = [other.box[2] for other in table[:-1]]
    if len(ends) > 3 and sum(right - end < 0.2 * row.size for end in ends) >= 0.75 * len(ends):
        # Where rows are set to one length, any shorter one is the last of its paragraph.
        return before.box[2] < right - (1.6 * row.size if before.ended else
                                        max(1.6 * row.size, row.first + 0.3 * row.size))
    # Lines broken by hand, as on a typewriter, end a little early anywhere.
    slack = 0.9 * row.size if before.ended else max(0.9 * row.size, 0.15 * (right - row.box[0]))
    return before.box[2] + row.first + slack < right


def _lined(table: Sequence[_Row], right: float) -> bool:
    """Whether the rows are lines of their own, as in an address, a poem, a table of contents."""
    count = len(table) - 1
    if sum(bool(_LEADER.search(row.text)) for row in table) > 0.5 * count:
        return True
    if count > 1 and sum(row.text[-1:].isdigit() for row in table) > 0.8 * count + 0.5:
        # Entries of an index or a register.
        return True
    if count < 1 or any(_begins(row) for row in table):
        return False
    forced = sum(_forced(table, i, right) for i in range(1, len(table)))
    if count == 1:
        return forced == 1 and not table[0].ended and all(
            row.box[2] - row.box[0] < 26 * row.size for row in table)
    # The longest line, and those next to it, leave no room.
    return forced >= 0.5 * count and sum(row.ended for row in table[:-1]) < 0.5 * count + 1


def _hanging(table: Sequence[_Row], left: float) -> bool:
    """Whether paragraphs begin at the left and go on indented, as references do."""
    deep = [row.box[0] - left > 0.7 * row.size for row in table]
    if deep[0] or sum(deep) < 0.25 * len(table) or any(_begins(row) for row in table[1:]):
        return False
    indents = [row.box[0] - left for row, inner in zip(table, deep, strict=True) if inner]
    if max(indents) - min(indents) > 0.5 * table[0].size:
        return False
    right = max(row.box[2] for row in table)
    for (before, _), inner in zip(pairwise(table), deep[1:], strict=True):
        full = before.box[2] > right - 6 * before.size
        if not full if inner else full and not before.ended:
            return False
    return True


# --- what the parts are -------------------------------------------------------------------------


def _block(part: Sequence[_Row]) -> Block:
    lines = [line for row in part for line in row.lines]
    box = union([line.box for line in lines])
    if _begins(part[0]) and marked(part[0].lines[0]):
        return Block("list", box, lines)
    right = max(row.box[2] for row in part)
    return Block("text", box, lines, lined=_lined(part, right))


def _lists(blocks: Sequence[Block]) -> list[Block]:
    """Neighbouring items joined to one list; a single numbered line is not yet a list."""
    joined: list[Block] = []
    for block in blocks:
        before = joined[-1] if joined else None
        if before and block.label == before.label == "list":
            before.lines = [*before.lines, *block.lines]
            before.box = union([before.box, block.box])
        else:
            joined.append(block)
    for block in joined:
        first = block.lines[0]
        if block.label == "list" and sum(marked(line) for line in block.lines) < 2 and not (
                first.bullet or BULLET.match(first.text)):
            block.label = "text"
    return joined
