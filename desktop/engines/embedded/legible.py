"""Print that the recogniser cannot read: scripts it has no letters for.

It does not say so. Where it knows no letter it gives nothing, or here and there a point or a
letter that looks alike, and is sure of that. So lines count by how much they say for their
length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from desktop.engines.embedded.model import Line

UNSURE = 0.3
"""Most confidence of what stands on a page, or in a block, that cannot be read."""
_SHORT, _LEAST = 3.0, 0.5
"""Length in heights up to which a line may say nothing, and characters a height that longer ones
say at least. Square scripts have one, letters two and more; unknown scripts have 0 to 0.3."""
_GREEK = re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]")
"""The recogniser knows some of these, for formulas, and leaves out the others."""


class Tally:
    """What of a page could be read so far, by the length of its lines."""

    def __init__(self) -> None:
        self._read = self._unread = 0.0

    def block(self, lines: Sequence[Line]) -> float:
        """The share (0–1) of recognised LINES that could be read; 1 where there is nothing."""
        read = sum(map(_length, filter(_legible, lines)))
        whole = sum(map(_length, lines))
        self._read += read
        self._unread += whole - read
        return read / whole if whole else 1.0

    @property
    def doubtful(self) -> bool:
        """Whether most of the page could not be read: what could be is chance."""
        return self._unread > self._read


def _length(line: Line) -> float:
    """Length of LINE in its heights."""
    width, height = line.box[2] - line.box[0], line.box[3] - line.box[1]
    return max(width, height) / max(1.0, min(width, height))


def _legible(line: Line) -> bool:
    text = "".join(word.text for word in line.words)
    greek = len(_GREEK.findall(text))
    if greek > 5 and 2 * greek > sum(map(str.isalpha, text)):
        return False
    length = _length(line)
    return length <= _SHORT or len(text) >= _LEAST * length
