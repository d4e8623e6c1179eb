"""One page, from its first output to its last, however many times it has to be read.

A page is read whole, or in the parts that the engine asks for. Where an output repeats itself
without end (:mod:`desktop.engines.looping`) it is stopped, and what it was about is read again:

1. as the engine proposes (``Engine.second_try``: with the no-repeat n-gram on, say);
2. in two overlapping halves, with the engine's proposal in force;
3. then it is kept as it is and the page ends as ``loop``.

Each time the application is told to forget what it was sent (PageRestarted); the parts that were
done before are sent to it again. Tokens of all attempts are counted. Cancelling takes effect at
whatever point: nothing here waits without being cancellable.

Runs on Python 3.10 with msgspec and Pillow.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, List, Optional, Tuple, TypeVar

import msgspec

from desktop.engines import slices
from desktop.engines.base import (
    Confidence,
    Engine,
    Finish,
    Oriented,
    Output,
    Regions,
    Restarted,
    Text,
)
from desktop.engines.looping import LoopGuard
from desktop.engines.merging import Merger
from desktop.protocol.messages import SubmitPage
from desktop.worker.stream import PageStream

_log = logging.getLogger(__name__)

_TURN = 0.005
"""Seconds an engine may yield without a pause before others get their turn."""

_NEARLY = 0.9
"""Share of its tokens that an output must have used up before a stale end of it is a loop."""

T = TypeVar("T")


@dataclass
class _Part:
    """A piece of the page; RECT is in pixels of the upright page."""

    rect: slices.Rect
    page: SubmitPage
    """How it is to be read; its bitmap is made when its turn comes."""
    half: bool = False
    """Whether it is the half of something that looped: it is not cut any further."""


class PageReading:
    """Reads one page with an engine and puts what comes of it into a stream."""

    def __init__(self, engine: Engine, page: SubmitPage, stream: PageStream,
                 room: Callable[[], Awaitable[None]], cancelled: Callable[[], bool]) -> None:
        """ROOM waits until more may be sent. CANCELLED tells whether the page was cancelled, in
        case the engine swallows the cancellation of its task."""
        self._engine = engine
        self._page = page
        self._stream = stream
        self._room = room
        self._cancelled = cancelled
        self._loop = asyncio.get_running_loop()
        self._guarded = bool(page.settings.get("loop_guard")) and engine.may_loop
        self._most = int(page.settings.get("max_tokens") or 0)
        self._sheet: Optional[slices.Sheet] = None
        self._merger: Optional[Merger] = None
        self._kept: List[str] = []
        """Text of a page in parts, as it was sent."""
        self._turned = 0
        self._prompt = self._output = self._limit = 0

    async def run(self) -> Finish:
        """Read the page; raises what the engine raises."""
        parts = await self._planned()
        if len(parts) > 1:
            self._merger = self._merge(parts)
        ends: List[str] = []
        at = 0
        while at < len(parts):
            part = parts[at]
            mark = self._mark()
            end = await self._read(part, at)
            if end == "loop" and self._guarded and not part.half:
                again = self._engine.second_try(part.page)
                if again is not None:
                    _log.info("page %s repeats itself: read once more", self._page.page_id)
                    self._again(mark)
                    part.page = again
                    end = await self._read(part, at)
            if end == "loop" and self._guarded and not part.half:
                halves = await self._halves(part)
                if halves:
                    _log.info("page %s repeats itself: read in halves", self._page.page_id)
                    parts[at:at + 1] = halves
                    self._again(mark)
                    if self._merger is None:
                        self._merger = self._merge(parts)
                        if self._turned:
                            self._stream.put(Oriented(self._turned))
                    else:
                        self._merger.replace(at, [half.rect for half in halves])
                    continue
            ends.append(end)
            at += 1
        if self._merger is not None:
            self._say(self._merger.end(), 0)
        return Finish(_together(ends), self._prompt, self._output, self._limit)

    # --- parts

    async def _planned(self) -> List[_Part]:
        page = self._page
        whole = [_Part((0, 0, page.width, page.height), page)]
        rects = self._engine.parts(page)
        if len(rects) < 2:
            return whole
        try:
            sheet = await self._open()
            rects = await _in_thread(sheet.fit, rects)
        except slices.NotCut as error:
            _log.warning("page %s is read as a whole: %s", page.page_id, error.detail)
            return whole
        return [self._part(rect, page) for rect in rects]

    async def _halves(self, part: _Part) -> List[_Part]:
        """Two halves of PART; none where it cannot be cut."""
        try:
            sheet = await self._open()
            if part.rect == (0, 0, self._page.width, self._page.height) and self._turned:
                await _in_thread(sheet.turn, self._turned)
                part.rect = (0, 0, *sheet.size)
            left, top, right, bottom = part.rect
            wide = self._merger.wide if self._merger is not None else None
            rects = tuple((left + a, top + b, left + c, top + d) for a, b, c, d in
                          slices.halves(right - left, bottom - top, wide))
            rects = await _in_thread(sheet.fit, rects)
        except slices.NotCut as error:
            _log.warning("page %s: %s", self._page.page_id, error.detail)
            return []
        return [self._part(rect, part.page, half=True) for rect in rects]

    async def _open(self) -> slices.Sheet:
        if self._sheet is None:
            self._sheet = await _in_thread(slices.Sheet, self._page.image)
        return self._sheet

    @staticmethod
    def _part(rect: slices.Rect, page: SubmitPage, *, half: bool = False) -> _Part:
        left, top, right, bottom = rect
        # The page's own words tell where they are on the whole of it.
        return _Part(rect, msgspec.structs.replace(
            page, width=right - left, height=bottom - top, words=""), half)

    def _merge(self, parts: List[_Part]) -> Merger:
        width, height = (self._sheet.size if self._sheet is not None
                         else (self._page.width, self._page.height))
        return Merger(width, height, [part.rect for part in parts])

    # --- one attempt

    async def _read(self, part: _Part, number: int) -> str:
        """Have PART read; how it ended."""
        if self._merger is None:
            return await self._attempt(part.page)
        self._say(self._merger.begin(number), 0)
        assert self._sheet is not None
        path = await _in_thread(self._sheet.write, part.rect, undo=_delete)
        try:
            return await self._attempt(msgspec.structs.replace(part.page, image=str(path)))
        finally:
            _delete(path)

    async def _attempt(self, page: SubmitPage) -> str:
        outputs: AsyncIterator[Output] = self._engine.read(page)
        mark = self._mark()
        guard = LoopGuard() if self._guarded else None
        tokens = 0
        turn = self._loop.time()
        try:
            async for output in outputs:
                if isinstance(output, Finish):
                    return self._finished(output, tokens, guard)
                if isinstance(output, Text):
                    tokens += output.tokens
                    self._text(output)
                    if guard is not None and self._loops(guard, output.text, tokens):
                        self._output += tokens
                        return "loop"
                elif isinstance(output, Restarted):
                    self._output += tokens
                    guard, tokens = LoopGuard() if self._guarded else None, 0
                    self._again(mark, output.reason)
                else:
                    self._other(output)
                await self._room()
                # An engine that never waits would keep commands and other pages from their turn.
                if self._loop.time() - turn > _TURN:
                    await asyncio.sleep(0)
                    turn = self._loop.time()
                if self._cancelled():
                    raise asyncio.CancelledError
            self._output += tokens
            return "length"  # It ended without saying how: taken as cut.
        finally:
            close: Any = getattr(outputs, "aclose", None)
            if close is not None:
                await close()

    def _loops(self, guard: LoopGuard, text: str, tokens: int) -> bool:
        loop = guard.feed(text)
        if loop is None and self._most and tokens > _NEARLY * self._most and guard.stale():
            _log.info("page %s: nothing new at the limit", self._page.page_id)
            return True
        if loop is not None:
            _log.info("page %s repeats itself (%s) after %d characters", self._page.page_id,
                      loop.kind, loop.at)
        return loop is not None

    def _finished(self, end: Finish, tokens: int, guard: Optional[LoopGuard]) -> str:
        self._prompt += end.prompt_tokens
        self._output += end.output_tokens or tokens
        self._limit = end.limit
        if end.reason == "length" and guard is not None and guard.stale():
            return "loop"
        return end.reason

    # --- what is sent

    def _text(self, output: Text) -> None:
        if self._merger is None:
            self._stream.put(output)
        else:
            self._say(self._merger.feed(output.text), output.tokens)

    def _say(self, text: str, tokens: int) -> None:
        if text:
            self._kept.append(text)
        if text or tokens:
            self._stream.put(Text(text, tokens))

    def _other(self, output: Output) -> None:
        """Anything but text, its end and its beginning anew."""
        merger = self._merger
        if isinstance(output, Oriented):
            if merger is None:
                self._turned = (self._turned + output.clockwise) % 360
                self._stream.put(output)
            else:
                merger.turn(output.clockwise)
        elif merger is None or not isinstance(output, (Regions, Confidence)):
            self._stream.put(output)
        # Of a part, boxes without text and confidences have no place in the whole.

    def _mark(self) -> Tuple[int, Optional[Merger]]:
        """Where what follows begins, to be returned to."""
        return len(self._kept), copy.deepcopy(self._merger)

    def _again(self, mark: Tuple[int, Optional[Merger]], reason: str = "loop") -> None:
        """Take back what was sent since MARK."""
        kept, merger = mark
        del self._kept[kept:]
        self._merger = copy.deepcopy(merger)
        self._stream.restart(reason)
        if self._merger is None:
            self._turned = 0
        if self._kept:
            self._stream.put(Text("".join(self._kept)))


def _together(ends: List[str]) -> str:
    """How a page ended whose parts ended so: as the worst of them, and complete where there was
    something in one."""
    return next((word for word in ("failed", "loop", "length", "complete", "empty", "blank")
                 if word in ends), ends[-1])


async def _in_thread(function: Callable[..., T], *values: Any,
                     undo: Callable[[T], None] | None = None) -> T:
    """FUNCTION's result, from a thread. When the wait is cancelled the thread goes on, and what
    it gives then is handed to UNDO."""
    loop = asyncio.get_running_loop()
    done: Future[T] = Future()

    def work() -> None:
        try:
            done.set_result(function(*values))
        except BaseException as error:  # noqa: BLE001 - raised on the other side
            done.set_exception(error)

    loop.run_in_executor(None, work)
    try:
        return await asyncio.shield(asyncio.wrap_future(done))
    except asyncio.CancelledError:
        if undo is not None:
            done.add_done_callback(
                lambda ended: None if ended.exception() else undo(ended.result()))
        raise


def _delete(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
