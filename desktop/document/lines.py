"""What the beginning of a line may be in a model's output, besides text.

Decided from the line alone, and as early as its characters allow, so that text streams on.
"""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

from desktop.document.grounding import LABELS, boxes_of
from desktop.protocol.messages import Box

LIMIT = 1000
"""A line that is still undecided after this many characters is text."""


class Kind(enum.Enum):
    """What a line is."""

    UNDECIDED = enum.auto()
    TEXT = enum.auto()
    BLANK = enum.auto()
    NOISE = enum.auto()
    """A line some program logged into the output."""
    PAGE = enum.auto()
    """A page separator."""
    TAG = enum.auto()
    """A tag whose special tokens a server stripped: ``sub_title[[117, 108, 253, 127]]``."""


class Line(NamedTuple):
    """A verdict; LENGTH, LABEL and BOXES are those of a TAG."""

    kind: Kind
    length: int = 0
    label: str = ""
    boxes: tuple[Box, ...] = ()


_UNDECIDED = Line(Kind.UNDECIDED)
_TEXT = Line(Kind.TEXT)

_PAGE = re.compile(r"--- Page \d{1,6} ---\s*")
_PAGE_BEGUN = re.compile(r"-{1,3}|--- P?|--- Pa|--- Pag|--- Page ?|--- Page \d{1,6} ?-{0,3}\s*")

_NUMBER = r"-?\d{1,9}(?:\.\d{0,9})?"
_QUAD = rf"\[\s*{_NUMBER}(?:\s*,\s*{_NUMBER}){{3}}\s*\]"
_TAG = re.compile(rf"([a-z][a-z0-9_]{{1,39}}) ?(\[\s*{_QUAD}(?:\s*,\s*{_QUAD})*\s*\])")
_TAG_BEGUN = re.compile(r"[a-z][a-z0-9_]{0,39}(?: ?(?:\[\s*(?:\[[-\d\s,.\[\]]*)?)?)?")
_TAG_CUT = re.compile(r"([a-z][a-z0-9_]{1,39}) ?(\[\[[-\d\s,.\[\]]*)")

# What the official scripts and the libraries below them print around the text.
_NOISE = tuple((start, re.compile(rest)) for start, rest in (
    ("BASE: ", r" *torch\.Size\(.*\)"),
    ("PATCHES: ", r" *torch\.Size\(.*\)"),
    ("NO PATCHES", r""),
    ("image size: ", r" *\(\d+, \d+\)"),
    ("valid image tokens: ", r" *\d+"),
    ("output texts tokens (valid): ", r" *\d+"),
    ("compression ratio: ", r" *[\d.]+"),
    ("===============save results:===============", r""),
    ("image: ", r" *\d+(?:%\|.*|it \[.*)"),
    ("other: ", r" *\d+(?:%\|.*|it \[.*)"),
    ("The attention mask and the pad token id were not set.", r".*"),
    ("The attention mask is not set and cannot be inferred", r".*"),
    ("Setting `pad_token_id` to `eos_token_id`", r".*"),
))
_NOISE_FIRST = frozenset(start[0] for start, _ in _NOISE)


def classify(line: str, *, whole: bool, last: bool, grounded: bool) -> Line:
    """What LINE is (without its line break).

    WHOLE: its end is known. LAST: the output ends with it. GROUNDED: tags have come with their
    tokens, so that a line like a stripped tag is text of the page.
    """
    text = line.lstrip(" \t")
    if not text or text.isspace():
        return Line(Kind.BLANK) if whole else _UNDECIDED
    undecided = False
    first = text[0]
    if first == "-":
        if whole and _PAGE.fullmatch(text):
            return Line(Kind.PAGE)
        undecided = _PAGE_BEGUN.fullmatch(text) is not None
    if first in _NOISE_FIRST:
        for start, rest in _NOISE:
            if text.startswith(start):
                if whole and rest.fullmatch(text[len(start):].rstrip()):
                    return Line(Kind.NOISE)
                undecided = True
            elif start.startswith(text):
                undecided = True
    if not grounded and "a" <= first <= "z":
        tag = _stripped(text, whole, last)
        if tag.kind is Kind.TAG:
            return tag._replace(length=tag.length + len(line) - len(text))
        undecided = undecided or tag.kind is Kind.UNDECIDED
    return _UNDECIDED if undecided and not whole else _TEXT


def _stripped(text: str, whole: bool, last: bool) -> Line:
    match = _TAG.match(text)
    if match:
        # An unknown label has the line for itself; "x[[1, 2, 3, 4]].sum()" is code.
        alone = not text[match.end():].strip()
        if match[1] in LABELS or (alone and whole):
            return Line(Kind.TAG, match.end(), match[1], boxes_of(match[2]))
        return _UNDECIDED if alone else _TEXT
    if last:
        cut = _TAG_CUT.fullmatch(text)
        if cut and cut[1] in LABELS and not text.rstrip().endswith("]]"):
            return Line(Kind.TAG, len(text), cut[1], boxes_of(cut[2]))
    return _UNDECIDED if _TAG_BEGUN.fullmatch(text) else _TEXT
