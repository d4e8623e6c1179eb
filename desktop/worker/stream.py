"""One page's outputs on their way out: text joined into fewer messages, figures kept.

Runs on Python 3.10 with msgspec alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import List, Optional, Tuple

from desktop.engines.base import Confidence, Oriented, Output, Regions, Text
from desktop.protocol.messages import (
    BlockConfidence,
    Event,
    PageOriented,
    PageRegions,
    PageRestarted,
    PageText,
)

INTERVAL = 0.015
"""Seconds between two messages of text about one page; the first goes at once."""

TIMED_INTERVAL = 0.25
"""Likewise where the page is measured: each output has its time with it, so nobody has to wait
for the message, and many messages would cost what is to be measured."""

_LARGE = 16384
"""Characters that go at once in any case."""


class PageStream:
    """Turns outputs into events for SEND. Used in the loop's thread only."""

    def __init__(self, page_id: str, send: Callable[[Event], None],
                 loop: asyncio.AbstractEventLoop, *, timed: bool = False) -> None:
        """TIMED: send the time of each output with the text."""
        self.page_id = page_id
        self.started = loop.time()
        self.first_text = 0.0
        """Seconds from the start to the first text; 0 while there is none."""
        self.tokens = 0
        """Sum of the tokens that came with the text."""
        self._send = send
        self._loop = loop
        self._pieces: List[str] = []
        self._piece_tokens = 0
        self._length = 0
        self._timer: Optional[asyncio.TimerHandle] = None
        self._sent = float("-inf")
        self._timed = timed
        self._times: List[Tuple[float, int, int]] = []
        self._interval = TIMED_INTERVAL if timed else INTERVAL

    def put(self, output: Output) -> None:
        """Send OUTPUT (anything but Finish), text perhaps a little later."""
        if isinstance(output, Text):
            self._put_text(output)
            return
        self.flush()
        if isinstance(output, Regions):
            self._send(PageRegions(self.page_id, tuple(output.regions)))
        elif isinstance(output, Oriented):
            self._send(PageOriented(self.page_id, output.clockwise))
        elif isinstance(output, Confidence):
            self._send(BlockConfidence(self.page_id, output.index, output.confidence))
        else:
            raise TypeError(f"not an output of a page: {output!r}")

    def restart(self, reason: str) -> None:
        """What was sent no longer holds; REASON as in :class:`PageRestarted`."""
        self._drop()
        self._sent = float("-inf")  # What comes next is a first text once more.
        self._send(PageRestarted(self.page_id, reason))

    def flush(self) -> None:
        """Send the text that waits."""
        self._still()
        if not self._pieces and not self._times:
            return
        text = "".join(self._pieces)
        self._send(PageText(self.page_id, text, self._piece_tokens, tuple(self._times)))
        self._drop()
        self._sent = self._loop.time()

    @property
    def seconds(self) -> float:
        """Since the start of work on this page."""
        return self._loop.time() - self.started

    def _put_text(self, output: Text) -> None:
        self.tokens += output.tokens
        self._piece_tokens += output.tokens
        if not output.text and not self._timed:
            return
        now = self._loop.time()
        if self._timed:
            self._times.append((now, output.tokens, len(output.text)))
        if output.text:
            if not self.first_text:
                self.first_text = max(now - self.started, 1e-6)
            self._pieces.append(output.text)
            self._length += len(output.text)
        if now - self._sent >= self._interval or self._length >= _LARGE:
            self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_at(self._sent + self._interval, self._on_timer)

    def _still(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _drop(self) -> None:
        self._still()
        self._pieces.clear()
        self._times.clear()
        self._piece_tokens = self._length = 0

    def _on_timer(self) -> None:
        self._timer = None
        self.flush()
