"""The outputs of a page's parts, put together as the output of the page while they stream.

Boxes are mapped from each part's own 0–999 to the page's. Where parts overlap, a block may come
twice, or cut off in one of them: blocks that reach into an overlap are held back until the next
part has said what it sees there; of two that say the same at the same place the one that was not
cut is kept. Everything else goes on at once. Time is linear in the text: a held block is compared
with those that share its place, by their words.

Runs on Python 3.10 with the standard library alone.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

Rect = Tuple[int, int, int, int]

SAME_TEXT = 0.75
"""Share of the shorter text's words that must be in the longer one."""
SAME_PLACE = 0.3
"""Share of the smaller box that the other must cover: a block cut off is much smaller there."""
_EDGE = 12
"""Thousandths of a part within which a box counts as cut off by the part's edge."""
_COMPARED = 64
"""Blocks held back of one part, at most, that a block is compared with."""
_LOOSE = 3000
"""Characters of untagged text within which an overlap is looked for."""

_TAG_LIMIT = 2200
_TAG = re.compile(
    r"(?P<ref><\|ref\|>[^<\n]{0,1000}<\|/ref\|>)?(?P<gap>\s{0,8})"
    r"(?:<\|det\|>(?P<det>[^<\n]{0,2000})<\|/det\|>)?")
_STRIPPED = re.compile(r"(?P<ref>[a-z][a-z_]{1,30})(?P<det>\[\[[-+\d,.\s\[\]]{1,2000}\]\])")
_STRIPPED_BEGUN = re.compile(r"[a-z][a-z_]{0,30}(?:\[(?:\[[-+\d,.\s\[\]]{0,2000})?)?")
_MARK = re.compile(r"\n|<\|(?:ref|det)\|>")
_MARK_BEGUN = re.compile(r"<(?:\|(?:r(?:e(?:f\|?)?)?|d(?:e(?:t\|?)?)?)?)?\Z")
_TAG_BEGUN = re.compile(
    r"(?:<\|ref\|>[^<\n]{0,1000}(?:<(?:\|(?:/(?:r(?:e(?:f(?:\|>?)?)?)?)?)?)?)?"
    r"|(?:<\|ref\|>[^<\n]{0,1000}<\|/ref\|>)?\s{0,8}"
    r"(?:<(?:\|(?:d(?:e(?:t\|?)?)?)?)?|<\|det\|>[^<\n]{0,2000}"
    r"(?:<(?:\|(?:/(?:d(?:e(?:t(?:\|>?)?)?)?)?)?)?)?)?)\Z")
_QUAD = re.compile(
    r"\[\s*([-+]?\d+(?:\.\d*)?)\s*,\s*([-+]?\d+(?:\.\d*)?)\s*,"
    r"\s*([-+]?\d+(?:\.\d*)?)\s*,\s*([-+]?\d+(?:\.\d*)?)\s*\]")
_WORD = re.compile(r"[^\W_\u3040-\u30ff\u3400-\u9fff]+|[\u3040-\u30ff\u3400-\u9fff]")


class _Tag(NamedTuple):
    """A block's beginning, as it was written but for the boxes."""

    before: str
    boxes: Tuple[Tuple[float, ...], ...]
    after: str


class _Splitter:
    """Cuts a stream into tags and text, however it comes."""

    def __init__(self) -> None:
        self._buffer = ""
        self._line_start = True

    def feed(self, text: str, last: bool = False) -> Iterator[Union[_Tag, str]]:
        """The tags and texts that are complete now; everything with LAST."""
        self._buffer += text
        buffer, at = self._buffer, 0
        while at < len(buffer):
            if self._line_start:
                stripped = _STRIPPED.match(buffer, at)
                if stripped:
                    yield _Tag(stripped["ref"], _quads(stripped["det"]), "")
                    at, self._line_start = stripped.end(), False
                    continue
                if not last and _STRIPPED_BEGUN.fullmatch(buffer, at):
                    break
                self._line_start = False
            mark = _MARK.search(buffer, at)
            if mark is None:
                begun = None if last else _MARK_BEGUN.search(buffer, max(at, len(buffer) - 8))
                end = begun.start() if begun else len(buffer)
                if end > at:
                    yield buffer[at:end]
                at = end
                break
            if mark.start() > at:
                yield buffer[at:mark.start()]
            at = mark.start()
            if mark[0] == "\n":
                yield "\n"
                at, self._line_start = at + 1, True
                continue
            if not last and len(buffer) - at < _TAG_LIMIT and _TAG_BEGUN.match(buffer, at):
                break
            found = _TAG.match(buffer, at)
            if found is None or found.end() == at:
                yield buffer[at:mark.end()]
                at = mark.end()
                continue
            end = found.end() if found["det"] is not None else found.end("ref")
            before = buffer[at:found.start("det")] if found["det"] is not None else buffer[at:end]
            after = buffer[found.end("det"):end] if found["det"] is not None else ""
            yield _Tag(before, _quads(found["det"] or ""), after)
            at = end
        self._buffer = buffer[at:]


class _Piece:
    """A block, or text that came before any."""

    __slots__ = ("boxes", "cut_above", "cut_below", "done", "loose", "size", "tag", "texts",
                 "words")

    def __init__(self, tag: str, boxes: Tuple[Rect, ...], cut_above: bool, cut_below: bool,
                 ) -> None:
        self.tag = tag
        self.boxes = boxes
        self.cut_above = cut_above
        """Whether it reaches the edge towards the part before."""
        self.cut_below = cut_below
        self.texts: List[str] = []
        self.words: Optional[Counter[str]] = None
        self.loose = not tag
        """Whether it is text without a tag: nobody knows where on the page it is."""
        self.size = 0
        """Characters in ``texts``, of loose text."""
        self.done = False
        """Whether the other of two equal ones was taken in its place."""

    def whole(self) -> str:
        return self.tag + "".join(self.texts)

    def counted(self) -> Counter[str]:
        if self.words is None:
            self.words = Counter(_WORD.findall("".join(self.texts).lower()))
        return self.words


class Merger:
    """Takes the outputs of RECTS (pixels of a page of WIDTH × HEIGHT), one after the other."""

    def __init__(self, width: int, height: int, rects: Sequence[Rect]) -> None:
        self._size = max(1, width), max(1, height)
        self._rects = list(rects)
        self._axis = 0 if len(rects) > 1 and rects[1][0] > rects[0][0] else 1
        self._part = -1
        self._splitter = _Splitter()
        self._turned = 0
        self._tail: List[_Piece] = []
        """Of the part before, from the first that reaches into the overlap."""
        self._head: List[_Piece] = []
        """Of this part, within the overlap with the one before."""
        self._joining = False
        self._holding = False
        self._piece: Optional[_Piece] = None
        self._streams = False
        """Whether the current piece goes on at once."""
        self._written = ""
        """The last characters that were given out."""

    @property
    def wide(self) -> bool:
        """Whether the parts are side by side."""
        return self._axis == 0

    def replace(self, part: int, rects: Sequence[Rect]) -> None:
        """The PARTth part, which has not begun, is read as RECTS instead."""
        self._rects[part:part + 1] = rects

    def begin(self, part: int, turned: int = 0) -> str:
        """The PARTth output (from 0) follows; what there is to write before it."""
        out = self.end() if self._part >= 0 else ""
        self._part = part
        self._turned = turned % 360
        self._splitter = _Splitter()
        self._joining = bool(self._tail)
        self._holding = False
        self._piece = None
        self._head = []
        return out

    def turn(self, clockwise: int) -> None:
        """The current part has to be turned: its boxes refer to the turned one."""
        self._turned = (self._turned + clockwise) % 360

    def feed(self, text: str) -> str:
        """The next of the part's output; what of the page's output follows from it."""
        return self._write("".join(map(self._take, self._splitter.feed(text))))

    def end(self) -> str:
        """The part is complete."""
        out = "".join(map(self._take, self._splitter.feed("", last=True)))
        out += self._close(ended=True)
        if self._joining:
            out += self._join()
        if self._part + 1 >= len(self._rects):
            return self._write(out + self._flush())
        written = (self._written + out)[-2:]
        if written.strip("\n") or (written and not self._tail):
            out += "\n" * (2 - (len(written) - len(written.rstrip("\n"))))
        return self._write(out)

    def box(self, box: Sequence[float]) -> Rect:
        """BOX of the current part (0–999) in 0–999 of the page."""
        x1, y1, x2, y2 = _unturned(box, self._turned)
        left, top, right, bottom = self._rects[self._part]
        width, height = self._size
        scale_x, scale_y = (right - left) / 999, (bottom - top) / 999
        return (_clamp((left + x1 * scale_x) * 999 / width),
                _clamp((top + y1 * scale_y) * 999 / height),
                _clamp((left + x2 * scale_x) * 999 / width),
                _clamp((top + y2 * scale_y) * 999 / height))

    # --- inside
    def _take(self, item: Union[_Tag, str]) -> str:
        if isinstance(item, _Tag):
            return self._close() + self._open(item)
        out = ""
        if self._piece is None:
            out = self._open(_Tag("", (), ""))
        piece = self._piece
        assert piece is not None
        if self._streams:
            return out + item
        piece.texts.append(item)
        if piece.loose:
            piece.size += len(item)
            if piece.size > 2 * _LOOSE:
                if self._joining:
                    out += self._join() if self._head == [piece] else ""
                elif not self._holding:
                    out += _shortened(piece)
        return out

    def _open(self, tag: _Tag) -> str:
        boxes = tuple(self.box(box) for box in tag.boxes)
        text = tag.before
        if boxes:
            listed = ", ".join(f"[{a}, {b}, {c}, {d}]" for a, b, c, d in boxes)
            text += f"[{listed}]"
        text += tag.after
        low, high = self._axis, self._axis + 2
        begins = min((box[low] for box in boxes), default=-1)
        ends = max((box[high] for box in boxes), default=-1)
        above, below = self._edges()
        self._piece = _Piece(text, boxes, bool(boxes) and self._part > 0 and begins <= above,
                             bool(boxes) and ends >= below)
        if self._joining:
            zone = self._zone(self._part)
            if not boxes or begins < zone[1]:
                self._streams = False
                self._head.append(self._piece)
                return ""
            out = self._join()
        else:
            out = ""
        after = self._zone(self._part + 1)
        if self._holding or (after is not _NOWHERE and (not boxes or ends > after[0])):
            # Loose text is held back only until it is clear that more follows.
            self._holding = self._holding or not self._piece.loose
            self._streams = False
            self._tail.append(self._piece)
            return out
        self._streams = True
        return out + text

    def _close(self, ended: bool = False) -> str:
        piece, self._piece = self._piece, None
        if piece is None or self._streams:
            return ""
        if self._joining:
            self._match(piece)
        elif piece.loose and not self._holding and not ended:
            return self._flush()
        return ""

    def _match(self, piece: _Piece) -> None:
        """Take PIECE of the head and its like in the tail for one."""
        if not piece.boxes:
            return
        for other in self._tail[-_COMPARED:]:
            if other.done or not other.boxes or not _same(other, piece):
                continue
            if other.cut_below and not piece.cut_above:
                keep = piece
            elif piece.cut_above and not other.cut_below:
                keep = other
            else:
                keep = max(other, piece, key=lambda one: sum(map(len, one.texts)))
            if keep is piece:
                # It takes the other's turn: the order is that of the part before.
                other.tag, other.texts, other.boxes = piece.tag, piece.texts, piece.boxes
                other.words = piece.words
                other.cut_below = piece.cut_below
            piece.done = True
            return

    def _join(self) -> str:
        """Give out what was held of both sides of the overlap."""
        self._joining = False
        _drop_repeated_lines(self._tail, self._head)
        kept = self._tail + [piece for piece in self._head if not piece.done]
        self._tail, self._head = [], []
        after = self._zone(self._part + 1)
        out = ""
        for number, piece in enumerate(kept):
            if piece is self._piece:  # loose text that goes on
                if after is _NOWHERE:
                    self._streams = True
                    return out + piece.whole()
                self._tail = [piece]
                return out + _shortened(piece)
            high = max((box[self._axis + 2] for box in piece.boxes), default=-1)
            if after is not _NOWHERE and high > after[0]:
                self._tail, self._holding = kept[number:], True
                break
            out += _spaced(piece.whole())
        return out

    def _flush(self) -> str:
        tail, self._tail = self._tail, []
        return "".join(_spaced(piece.whole()) for piece in tail)

    def _write(self, text: str) -> str:
        self._written = (self._written + text)[-2:]
        return text

    def _zone(self, part: int) -> Tuple[float, float]:
        """The overlap of PART with the one before, in 0–999 of the page, along the axis."""
        if not 0 < part < len(self._rects):
            return _NOWHERE
        low, high = self._rects[part][self._axis], self._rects[part - 1][self._axis + 2]
        side = self._size[self._axis]
        return low * 999 / side, max(low, high) * 999 / side

    def _edges(self) -> Tuple[float, float]:
        """Where boxes of this part are cut off by its edges, in 0–999 of the page."""
        rect, side = self._rects[self._part], self._size[self._axis]
        near = _EDGE * (rect[self._axis + 2] - rect[self._axis]) / 999
        return ((rect[self._axis] + near) * 999 / side,
                (rect[self._axis + 2] - near) * 999 / side)


_NOWHERE = (-1.0, -1.0)


def _same(one: _Piece, other: _Piece) -> bool:
    """Whether two blocks are the same, perhaps cut off: at the same place, of the same words."""
    if not any(_covered(a, b) >= SAME_PLACE for a in one.boxes for b in other.boxes):
        return False
    first, second = one.counted(), other.counted()
    fewer = min(sum(first.values()), sum(second.values()))
    if not fewer:
        return not first and not second
    return sum((first & second).values()) >= SAME_TEXT * fewer


def _covered(one: Rect, other: Rect) -> float:
    """The share of the smaller box that the larger covers; thin boxes count as one unit wide."""
    wide = min(one[2], other[2]) - max(one[0], other[0]) + 1
    high = min(one[3], other[3]) - max(one[1], other[1]) + 1
    if wide <= 0 or high <= 0:
        return 0.0
    areas = [(box[2] - box[0] + 1) * (box[3] - box[1] + 1) for box in (one, other)]
    return wide * high / min(areas)


def _drop_repeated_lines(tail: Sequence[_Piece], head: Sequence[_Piece]) -> None:
    """Untagged text on both sides: leave the lines out of HEAD with which TAIL ends."""
    if not tail or not head or tail[-1].boxes or head[0].boxes:
        return
    before = "".join(tail[-1].texts)[-_LOOSE:]
    text = "".join(head[0].texts)
    lines = text[:_LOOSE].splitlines(keepends=True)
    known = [_plain(line) for line in before.splitlines() if _plain(line)]
    plain = [(_plain(line), number) for number, line in enumerate(lines) if _plain(line)]
    # The first line of the one and the last of the other may be cut off and so be different.
    for late in (0, 1):
        for early in (0, 1):
            begun = [line for line, _ in plain[early:]]
            ended = known[:len(known) - late] if late else known
            for count in range(min(len(begun), len(ended)), 0, -1):
                if ended[-count:] == begun[:count] and sum(map(len, begun[:count])) >= 8:
                    skip = plain[early + count - 1][1] + 1
                    head[0].texts = ["".join(lines[skip:]) + text[_LOOSE:]]
                    if late:
                        tail[-1].texts = [_without_last_line("".join(tail[-1].texts))]
                    return


def _shortened(piece: _Piece) -> str:
    """Leave the end of loose text in PIECE and give back what comes before it, whole lines."""
    text = piece.whole()
    end = text.rfind("\n", 0, max(0, len(text) - _LOOSE)) + 1
    piece.texts, piece.size = [text[end:]], len(text) - end
    return text[:end]


def _without_last_line(text: str) -> str:
    lines = text.rstrip().splitlines(keepends=True)
    return "".join(lines[:-1])


def _plain(line: str) -> str:
    return "".join(_WORD.findall(line.lower()))


def _spaced(text: str) -> str:
    """A block with the blank line that ends it."""
    return text if text.endswith("\n\n") or not text else text.rstrip("\n") + "\n\n"


def _quads(payload: str) -> Tuple[Tuple[float, ...], ...]:
    return tuple(tuple(map(float, quad.groups())) for quad in _QUAD.finditer(payload))


def _clamp(value: float) -> int:
    return round(min(max(value, 0.0), 999.0))


def _unturned(box: Sequence[float], clockwise: int) -> Tuple[float, float, float, float]:
    """BOX (0–999) of what was turned CLOCKWISE, where it lay before the turn."""
    x1, y1, x2, y2 = (min(max(float(value), 0.0), 999.0) for value in box[:4])
    if clockwise == 90:
        return y1, 999 - x2, y2, 999 - x1
    if clockwise == 180:
        return 999 - x2, 999 - y2, 999 - x1, 999 - y1
    if clockwise == 270:
        return 999 - y2, x1, 999 - y1, x2
    return x1, y1, x2, y2
