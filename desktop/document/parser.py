"""Grounded Markdown → blocks, while it streams.

Linear time, incremental, never raises whatever the text: a partial tag is held back until it is
clear what it is. Any split of a text into deltas gives the same blocks as the whole.

What is a tag, and so no text of any block:

* ``<|ref|>LABEL<|/ref|>`` with or without ``<|det|>BOXES<|/det|>``, also when the output ends
  inside it; single ones of these tokens;
* the same with its tokens stripped by a server, ``LABEL[[x1, y1, x2, y2]]`` at the start of a
  line, as long as no tag came with its tokens;
* page separators: ``<--- Page Split --->``, and ``--- Page 2 ---`` alone on a line;
* the end-of-sentence token and any other ``<|word|>`` or ``<｜words｜>``.

Everything else is text of exactly one block, in the order of the stream, white space at a
block's ends aside. Text in the place of a label (the prompt "OCR this image" gives one line a
box) is text. Lines that a program logged into the output are blocks labelled ``noise``.

A tag followed at once by its caption's tag: the caption is the first block of the two if the
other is a table, and the ``<table>`` that comes after the caption's text belongs to the table.
Text without a tag is a block a paragraph, labelled "".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, auto

from desktop.document import lines
from desktop.document.drafts import Blocks, Draft
from desktop.document.grounding import LABELS, boxes_of, is_caption, is_identifier, normalise
from desktop.document.lines import Kind
from desktop.document.model import NOISE, Block
from desktop.protocol.messages import Box

_TOKENS = r"""
    (?P<newline>\n)
  | (?P<ref><\|[ ]?ref[ ]?\|>)
  | (?P<det><\|[ ]?det[ ]?\|>)
  | (?P<end><[|｜]end[▁_]of[▁_]sentence[|｜]>)
  | (?P<drop><\|[ ]?/[ ]?(?:ref|det)[ ]?\|> | <\|/?[A-Za-z][A-Za-z0-9_▁]{1,63}\|>
      | <｜[^｜<>\n]{1,64}｜>)
  | (?P<page><---[ ]?Page[ ]Split[ ]?--->)
  | (?P<table><table)
  | (?P<noise>=(?<!==)(?:={20}|={49})(?=\n%s))
"""
# The rules that the official script prints are 21 or 50 characters long.
_TOKEN = re.compile(_TOKENS % "", re.VERBOSE)
_LAST_TOKEN = re.compile(
    _TOKENS % r"|\Z" + r"""
  | (?P<cut><[|｜](?:/?[A-Za-z][\w▁]{0,63}[|｜]?)?\Z|<---[ ]?P[age Split-]{0,16}\Z)
""", re.VERBOSE)
_BEGUN = re.compile(r"""
    (?: <(?: [|｜][^|｜<>\n]{0,66}[|｜]? | t(?:a(?:b(?:l)?)?)? | -[- PageSplit]{0,20} )?
      | =(?<!==)={0,49} )\Z
""", re.VERBOSE)
_LONGEST = 80
"""No token is longer."""

_REF_END = re.compile(r"(?P<close><\|[ ]?/[ ]?ref[ ]?\|>)|<\|[ ]?(?:ref|/?[ ]?det)[ ]?\|>|\n")
_REF_LIMIT = 1000
_DET = re.compile(r"\s{0,16}<\|[ ]?det[ ]?\|>")
_DET_BEGUN = re.compile(r"\s{0,16}(?:<(?:\|[ ]?(?:d(?:e(?:t[ ]?\|?)?)?)?)?)?")
_DET_END = re.compile(r"(?P<close><\|[ ]?/[ ]?det[ ]?\|>)|<\||\n")
_DET_END_BEGUN = re.compile(r"<(?:\|(?:[ ]?(?:/[ ]?(?:d(?:e(?:t[ ]?\|?)?)?)?)?)?)?\Z")
_DET_LIMIT = 8000
_LIST = re.compile(r"\s*\[[-+\d\s,.\[\]]*")

_FIGURES = frozenset({"image", "figure", "chart"})


class _State(Enum):
    TEXT = auto()
    REF = auto()
    AFTER_REF = auto()
    DET = auto()


class StreamParser:
    """Feeds on deltas of one page's output."""

    def __init__(self) -> None:
        self._drafts: list[Draft] = []
        self._blocks = Blocks(self._drafts)
        self._dirty: set[int] = set()
        self._current: Draft | None = None
        self._held: Draft | None = None
        """A table's tag that waits: its caption's tag may follow and comes first."""
        self._partner: Draft | None = None
        """The figure or table whose caption is being read."""
        self._confidence: dict[int, float] = {}
        self._state = _State.TEXT
        self._line_start = True
        self._name: str | None = None
        self._grounded = False
        self._ended = False
        # One character before the position is kept for patterns that look back.
        self._buffer = "\n"
        self._at = 1

    @property
    def blocks(self) -> Sequence[Block]:
        """All blocks so far, in order. Looking at one costs the length of its text if it
        changed since, else nothing."""
        return self._blocks

    @property
    def ended(self) -> bool:
        """Whether the model's own end-of-sentence token was in the text."""
        return self._ended

    def feed(self, delta: str) -> tuple[int, ...]:
        """Take the next piece; the indices of blocks that are new or changed, ascending."""
        self._buffer += delta
        self._run(last=False)
        return self._changed()

    def finish(self) -> tuple[int, ...]:
        """No more comes: what was held back is text now (a cut tag is none), every block is
        closed; the indices of the blocks that changed by it."""
        self._run(last=True)
        self._close_all()
        return self._changed()

    def set_confidence(self, index: int, confidence: float) -> tuple[int, ...]:
        """Note the confidence 0–1 of a block, which may not have come yet."""
        self._confidence[index] = confidence
        if not 0 <= index < len(self._drafts):
            return ()
        self._drafts[index].confidence = confidence
        self._drafts[index].touch()
        return (index,)

    # --- reading
    def _run(self, last: bool) -> None:
        steps = {_State.TEXT: self._text_step, _State.REF: self._ref_step,
                 _State.AFTER_REF: self._after_ref_step, _State.DET: self._det_step}
        while self._at < len(self._buffer) or (last and self._state is not _State.TEXT):
            if not steps[self._state](last):
                break
        if self._at > 1:
            self._buffer = self._buffer[self._at - 1:]
            self._at = 1

    def _text_step(self, last: bool) -> bool:
        if self._line_start:
            return self._line_step(last)
        buffer, start = self._buffer, self._at
        match = (_LAST_TOKEN if last else _TOKEN).search(buffer, start)
        if match is None:
            end = len(buffer)
            if not last:
                begun = _BEGUN.search(buffer, max(start, end - _LONGEST))
                end = begun.start() if begun else end
            self._text(buffer[start:end])
            self._at = end
            return False
        self._text(buffer[start:match.start()])
        self._at = match.end()
        token = match.lastgroup
        if token == "newline":
            self._text("\n")
            self._line_start = True
        elif token == "ref":
            self._state = _State.REF
            self._grounded = True
        elif token == "det":
            self._state = _State.DET
            self._name = None
        elif token == "end":
            self._ended = True
        elif token == "page":
            self._close_all()
        elif token == "table":
            self._table_begins()
            self._text(match[0])
        elif token == "noise":
            self._noise(match[0])
        return True

    def _line_step(self, last: bool) -> bool:
        buffer, start = self._buffer, self._at
        end = buffer.find("\n", start, start + lines.LIMIT)
        room = len(buffer) - start
        whole = end >= 0 or (last and room < lines.LIMIT)
        line = buffer[start:end if end >= 0 else start + lines.LIMIT]
        found = lines.classify(
            line, whole=whole, last=last and end < 0, grounded=self._grounded)
        if found.kind is Kind.UNDECIDED and not whole and room < lines.LIMIT:
            return False
        if found.kind is Kind.BLANK:
            self._text(line + "\n")
            self._at = min(start + len(line) + 1, len(buffer))
            if self._current and self._current.splits():
                self._close_all()
            return True
        self._line_start = False
        if found.kind is Kind.NOISE:
            self._noise(line)
            self._at += len(line)
        elif found.kind is Kind.PAGE:
            self._close_all()
            self._at += len(line)
        elif found.kind is Kind.TAG:
            self._tag(found.label, found.boxes)
            self._at += found.length
        return True

    def _ref_step(self, last: bool) -> bool:
        buffer, start = self._buffer, self._at
        match = _REF_END.search(buffer, start, start + _REF_LIMIT)
        if match and match["close"]:
            self._name = buffer[start:match.start()]
            self._at = match.end()
            self._state = _State.AFTER_REF
            return True
        if match:
            end = match.start()
        elif len(buffer) - start >= _REF_LIMIT:
            end = start + _REF_LIMIT - _LONGEST
        elif last:
            end = len(buffer)
            if re.fullmatch(r"\s?[a-z_]*(?:<[|/ ref]*)?", buffer[start:]):
                self._at = end
        else:
            return False
        self._text(buffer[self._at:end])
        self._at = end
        self._state = _State.TEXT
        return True

    def _after_ref_step(self, last: bool) -> bool:
        match = _DET.match(self._buffer, self._at)
        if match:
            self._at = match.end()
            self._state = _State.DET
            return True
        if not last and _DET_BEGUN.fullmatch(self._buffer, self._at):
            return False
        if last and _DET_BEGUN.fullmatch(self._buffer, self._at):
            self._at = len(self._buffer)
        self._state = _State.TEXT
        name = self._name or ""
        if normalise(name) in LABELS:
            self._tag(name, ())
        else:
            self._text(name)
        return True

    def _det_step(self, last: bool) -> bool:
        buffer, start = self._buffer, self._at
        match = _DET_END.search(buffer, start, start + _DET_LIMIT)
        if match and match["close"]:
            payload = buffer[start:match.start()]
            self._at = match.end()
        else:
            if not match and not last and len(buffer) - start < _DET_LIMIT:
                return False
            if (match and not last and match[0] == "<|"
                    and _DET_END_BEGUN.match(buffer, match.start())):
                return False
            begun = _LIST.match(buffer, start, match.start() if match else start + _DET_LIMIT)
            payload = begun[0] if begun else ""
            self._at = begun.end() if begun else start
        self._state = _State.TEXT
        boxes = boxes_of(payload)
        if self._name is not None:
            self._tag(self._name, boxes)
        elif boxes:
            self._open(Draft("", boxes))
        return True

    # --- building
    def _tag(self, name: str, boxes: tuple[Box, ...]) -> None:
        name = name.strip()
        label = normalise(name)
        if label == NOISE:
            label = name = "text"
        if label in LABELS:
            draft = Draft(label, boxes, guess="" if name == label else name)
        elif is_identifier(name):
            draft = Draft(name, boxes, guess=name)
        else:
            draft = Draft("text", boxes)
        self._open(draft)
        if label not in LABELS and not draft.guess and name:
            self._text(name + "\n")
        self._line_start = True

    def _open(self, draft: Draft) -> None:
        previous, self._held = self._held, None
        if previous and is_caption(draft.label):
            self._append(draft)
            self._append(previous)
            self._partner = previous
        else:
            if previous:
                self._append(previous)
            figure = self._current
            partner = (figure if figure and figure.label in _FIGURES and not figure.filled
                       and is_caption(draft.label) else None)
            self._close_all()
            self._partner = partner
            if draft.label == "table":
                self._held = draft
            else:
                self._append(draft)
        self._current = draft

    def _table_begins(self) -> None:
        partner = self._partner
        if partner is None or self._current is partner:
            return
        if partner.label in _FIGURES:
            # A chart read as a table: a block of its own, where the chart is.
            self._close_all()
            self._open(Draft("table", partner.boxes))
        else:
            self._close(self._current)
            self._current, self._partner = partner, None

    def _noise(self, line: str) -> None:
        if self._current is None or self._current.label != NOISE:
            self._close_all()
            self._open(Draft(NOISE, ()))
        if self._current:
            self._current.add(line)
            self._dirty.add(self._current.index)

    def _text(self, piece: str) -> None:
        if not piece:
            return
        if self._current and self._current.label == NOISE and not piece.isspace():
            self._close_all()
        draft = self._current
        if draft is None:
            piece = piece.lstrip()
            if not piece:
                return
            draft = Draft("", ())
            self._open(draft)
        draft.add(piece)
        if draft.filled:
            if draft is self._held:
                self._held = None
                self._append(draft)
            if not piece.isspace():
                self._dirty.add(draft.index)

    def _append(self, draft: Draft) -> None:
        draft.index = len(self._drafts)
        draft.confidence = self._confidence.get(draft.index)
        draft.touch()
        self._drafts.append(draft)
        self._dirty.add(draft.index)

    def _close_all(self) -> None:
        if self._held:
            self._append(self._held)
            self._held = None
        self._close(self._current)
        self._close(self._partner)
        self._current = self._partner = None

    def _close(self, draft: Draft | None) -> None:
        if draft is None or not draft.open:
            return
        draft.open = False
        if draft.guess and not draft.filled:
            draft.label = "text"
            draft.pieces = [draft.guess]
        draft.touch()
        self._dirty.add(draft.index)

    def _changed(self) -> tuple[int, ...]:
        changed = tuple(sorted(self._dirty))
        self._dirty.clear()
        return changed


def parse(text: str) -> tuple[Block, ...]:
    """The blocks of a whole output."""
    parser = StreamParser()
    parser.feed(text)
    parser.finish()
    return tuple(parser.blocks)
