"""Writing systems that do not run from left to right in rows."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from desktop.intake import words as intake

_STACKED = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u30ff\ufe30-\ufe4f]")
"""Characters of scripts that are also written in columns from top to bottom."""
_LEFTWARDS = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_DIGITS = re.compile(r"[\u0660-\u0669\u06f0-\u06f9]{2,}")
_PUNCTUATION = ".,:;!?،؛؟…"


def leftwards(text: str, some: bool = False) -> bool:
    """Whether most (SOME: any) of the letters in TEXT are of a script written from right to
    left."""
    count = len(_LEFTWARDS.findall(text))
    return count > 0 and (some or 2 * count >= sum(
        unicodedata.category(c)[0] == "L" or "\u0660" <= c <= "\u06f9" for c in text))


def leftward_line(members: Sequence[intake.Word]) -> list[intake.Word]:
    """The words of a right-to-left line as they are read.

    What comes from the page is put into reading order there, except for what has no direction
    of its own: numbers keep the order in which they are seen, and the point that ends the
    line – at its left – comes before the first word.
    """
    words = [_digits(word) for word in members]
    if not any(_LEFTWARDS.search(_DIGITS.sub("", word.text)) and any(
            c.isalpha() for c in word.text) for word in words):
        return sorted(words, key=lambda word: -word.box[0])
    first = words[0]
    stray = len(first.text) - len(first.text.lstrip(_PUNCTUATION))
    if 0 < stray < len(first.text) and len(words) > 1:
        # Its box reaches from the word to the point at the other end of the line.
        right = max(word.box[2] for word in words)
        left = max((word.box[2] for word in words[1:]), default=first.box[0])
        box = (min(left + 0.2 * first.size, right - 1), first.box[1], right, first.box[3])
        last = words[-1]
        words[0] = intake.Word(first.text[stray:], box, first.line, first.size, first.style,
                               first.font)
        if len(words) == 1 or not last.text.endswith(first.text[:stray]):
            words[-1] = intake.Word(last.text + first.text[:stray], last.box, last.line,
                                    last.size, last.style, last.font)
    return words


def _digits(word: intake.Word) -> intake.Word:
    """Arabic digits are written from left to right, but come turned round like the letters."""
    text = _DIGITS.sub(lambda match: match[0][::-1], word.text)
    return word if text == word.text else intake.Word(
        text, word.box, word.line, word.size, word.style, word.font)


def stacked(groups: Sequence[list[intake.Word]]) -> list[list[intake.Word]]:
    """GROUPS (the words of a line each) with single characters that stand in one column, each
    below the other, put together to one line: that is how vertical text comes."""
    found: list[list[intake.Word]] = []
    loose = [len(group) == 1 and len(group[0].text) == 1
             and _STACKED.match(group[0].text) is not None for group in groups]
    for group, single in zip(groups, loose, strict=True):
        if single and found and _below(found[-1], group[0]):
            found[-1].append(group[0])
        else:
            found.append(list(group))
    # A table may well hold a column of single characters; a page of vertical text is full of them.
    long = sum(len(group) for group in found if len(group) > 3 and len(group[0].text) == 1)
    whole = sum(len(word.text) for group in groups for word in group)
    return found if long > 0.3 * whole else [list(group) for group in groups]


def _below(column: Sequence[intake.Word], word: intake.Word) -> bool:
    last = column[-1]
    if len(last.text) != 1 or not _STACKED.match(last.text) or (
            len(column) > 1 and column[0].line == column[1].line):
        return False
    size = max(last.size, word.size, 1.0)
    return (abs(last.box[0] + last.box[2] - word.box[0] - word.box[2]) < 0.5 * size
            and -0.3 * size < word.box[1] - last.box[3] < 0.8 * size
            and min(last.size, word.size) > 0.8 * size)
