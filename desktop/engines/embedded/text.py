"""Lines of print as running text."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CJK = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u30ff]")
_KEPT_HYPHEN = frozenset({
    "non", "self", "well", "co", "pre", "post", "anti", "multi", "semi", "cross", "high", "low",
    "long", "short", "so", "e", "half", "all", "ex", "quasi", "pro", "x", "t", "two", "three",
    "four", "five", "six", "ten", "first", "second", "third", "one", "full", "real", "state",
})
"""First halves of words that are written with a hyphen anyway."""
_KEPT_BEFORE = frozenset({
    "based", "related", "level", "scale", "specific", "driven", "oriented", "free", "wide", "term",
    "like", "shaped", "to", "of", "and", "the", "là", "ci", "même", "mêmes", "il", "elle", "ils",
    "elles", "ce", "je", "vous", "huit", "sept", "neuf",
})
"""Second halves of such words."""
_DECORATION = re.compile(r"^[\s.·•…=_~*#+\-–—|‾¯―─━]{4,}$")


def joined(pieces: Iterable[str]) -> str:
    """Pieces of text, one a line, as one; words broken at a line's end are put together."""
    text = ""
    for piece in pieces:
        text = _continued(text, piece.strip())
    broken = text.endswith("\u00ad")
    return text.replace("\u00ad", "") + ("-" if broken else "")


def _continued(before: str, after: str) -> str:
    if not before or not after:
        return before or after
    if before[-1] in "-\u00ad\u2010" and len(before) > 1 and before[-2].isalpha():
        first = re.split(r"[\s-]", before[:-1])[-1].lower()
        second = re.split(r"[\s,.;:)-]", after, maxsplit=1)[0]
        if before[-1] == "\u00ad" or (after[0].islower() and first not in _KEPT_HYPHEN
                                      and second not in _KEPT_BEFORE
                                      and not re.search(r"[\d_]", second)):
            return before[:-1] + after
        return before + after
    if _CJK.match(before[-1]) and _CJK.match(after[0]):
        return before + after
    return before + " " + after


def decoration(text: str) -> bool:
    """Whether TEXT is a row of dots or dashes drawn with characters."""
    return bool(_DECORATION.match(text))


def guard(text: str) -> str:
    """TEXT with the signs that Markdown or HTML would take for their own made literal."""
    text = re.sub(r"&(?=#?\w+;)", "&amp;", text)
    text = re.sub(r"<(?=[A-Za-z/!?|])", "&lt;", text)
    text = re.sub(r"(?<![\w*])\*(?=\S[^*]*\*)", r"\\*", text)
    return re.sub(r"(?<![\w_])_(?=[^_\s][^_]*_(?!\w))", r"\\_", text)


def guard_start(text: str) -> str:
    """A paragraph that begins like a heading, a list or a quotation but is none.

    A number at the start may stay: as a list of one that begins with it, it looks the same.
    """
    return re.sub(r"^(#{1,6}|[-+*]|>)(?=\s|$)", r"\\\1", text)
