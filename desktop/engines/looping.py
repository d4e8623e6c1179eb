"""The loop guard: notices, while a page's output streams, that it repeats itself without end.

Language models that read pages fall into loops: a word or a sentence again and again, rows of a
table that is never closed, counters (``Col837|Col838|``), empty boxes that march down the page
and begin again at its top. Documents repeat themselves as well: equal rows in a price list, dot
leaders, ruled lines, refrains, a form's empty lines. What tells them apart is *how much*: a page
has an area, and so a largest number of rows, lines and letters. Every limit stands for something
that a page cannot hold (:mod:`desktop.engines.repetition.limits`), and so is the price of a loop:
the text that is written until the limit is passed.

Four watchers share one stream of tokens (words, numbers, tags, single characters):

* **periods** – the text's end is one unit said over and over, equal to the letter
  (``ROWS`` … ``REPEATED_LETTERS``), or equal but for numbers that each grow by the same
  step (``COUNTED_ROWS`` …);
* **poverty** – many words of one line, or many rows or lines in sequence, are but a few different
  ones in any order; or hardly any of the last many words say what was not said before;
* **places** – blocks that were read before are read again at the same place, or equal blocks
  stand one below the other at equal distances, more than a page holds;
* **staleness** (:meth:`LoopGuard.stale`) – for an output that has used up nearly all its tokens:
  whether its end still says anything new.

Looking at every token costs some microseconds a character, too much beside an engine that writes
ten thousand a second. So a gate comes first: text is compressed as it comes, and the watchers see
it, from its beginning, once a stretch of it says next to nothing new. Most pages of prose never get
there.

Time is linear in the text, whatever the text; how it is cut into pieces changes nothing. Runs on
Python 3.10 with the standard library alone.
"""

from __future__ import annotations

import zlib
from typing import List, Optional

from desktop.engines.repetition.watchers import Loop, Watchers

__all__ = ["Loop", "LoopGuard"]

STRETCH = 128
"""Characters that are compressed together; two such stretches are judged at a time."""
REPETITIVE = 0.28
"""Compressed size over size, from which down text may be a loop: prose has 0.4 and more, loops
with the most variety (five words shuffled) 0.22."""
_FOLD = bytes(48 if 48 < byte < 58 else byte for byte in range(256))
"""Numbers that count on look as good as new: to the gate all digits are equal."""
_OVERHEAD = 5
"""Bytes that the end of each stretch costs."""


class LoopGuard:
    """Watches the output of one page (or of one part of it)."""

    def __init__(self) -> None:
        self.loop: Optional[Loop] = None
        """What was noticed; stays."""
        self._watchers: Optional[Watchers] = None
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
                self._watchers = Watchers()
                self.loop = self._watchers.feed("".join((*self._pieces, waiting[at:])))
                self._pieces.clear()
                self._waiting = ""
                return
            self._before = share
        self._waiting = waiting[at:]
