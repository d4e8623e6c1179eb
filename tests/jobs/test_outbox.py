"""Events on their way: in order, coalesced, a bounded number of batches a second."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from desktop.document.model import Block
from desktop.jobs.events import (
    BlocksChanged,
    DocumentState,
    DocumentUpdated,
    DocumentView,
    LogAdded,
    PageCleared,
    PageRegionsFound,
    PageState,
    PageUpdated,
    PageView,
    ProgressUpdated,
    ProgressView,
    RawText,
    RunState,
    SessionEvent,
)
from desktop.jobs.outbox import MAX_LOG_LINES, Outbox


class Page:
    """Blocks that a stream changes."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}

    def block(self, index: int) -> Block:
        return Block(index, "text", (), self.texts[index])


class Listening:
    def __init__(self) -> None:
        self.batches: list[list[SessionEvent]] = []

    def __call__(self, batch: Sequence[SessionEvent]) -> None:
        self.batches.append(list(batch))


def on_loop(test: Callable[[Outbox, Listening], Coroutine[Any, Any, None]],
            interval: float = 0.04) -> Listening:
    listening = Listening()

    async def main() -> None:
        outbox = Outbox(asyncio.get_running_loop(), interval)
        outbox.subscribe(listening, [])
        listening.batches.clear()
        await test(outbox, listening)
        outbox.flush()

    asyncio.run(main())
    return listening


def page(state: PageState, page_id: str = "1-1") -> PageUpdated:
    return PageUpdated(PageView(page_id, 1, 1, state))


def test_the_first_leaves_at_once_and_a_burst_leaves_together() -> None:
    async def test(outbox: Outbox, listening: Listening) -> None:
        source = Page()
        for number in range(500):
            source.texts[number % 3] = f"text {number}"
            outbox.streamed("1-1", source, [number % 3], f"{number} ")
            await asyncio.sleep(0)
            if number == 1:
                assert len(listening.batches) == 1  # no interval was waited for

    heard = on_loop(test, interval=30)
    assert len(heard.batches) == 2
    raw, blocks = heard.batches[1]
    assert isinstance(raw, RawText)
    assert isinstance(blocks, BlocksChanged)
    first = heard.batches[0][0]
    assert isinstance(first, RawText)
    assert first.text + raw.text == "".join(f"{number} " for number in range(500))
    assert [block.markdown for block in blocks.blocks] == ["text 498", "text 499", "text 497"]


def test_no_more_batches_than_the_interval_allows() -> None:
    sent: list[float] = []

    async def test(outbox: Outbox, listening: Listening) -> None:
        source = Page()
        until = time.monotonic() + 60
        while len(listening.batches) < 10:
            assert time.monotonic() < until
            source.texts[0] = "x"
            outbox.streamed("1-1", source, [0], "x")
            if len(sent) < len(listening.batches):  # when it left, not when it was heard
                sent.append(outbox._last)
            await asyncio.sleep(0.001)

    on_loop(test, interval=0.05)
    gaps = [later - earlier for earlier, later in itertools.pairwise(sent)]
    assert len(gaps) >= 5
    assert min(gaps) > 0.045


def test_the_final_state_comes_behind_the_last_blocks() -> None:
    async def test(outbox: Outbox, listening: Listening) -> None:
        source = Page()
        outbox.post(page(PageState.STREAMING))
        outbox.post(PageRegionsFound("1-1", ()))
        source.texts[0] = "all"
        outbox.streamed("1-1", source, [0], "all")
        outbox.post(page(PageState.COMPLETE))

    (batch,) = on_loop(test, interval=30).batches
    assert [type(event) for event in batch] == [
        PageRegionsFound, RawText, BlocksChanged, PageUpdated]
    assert batch[-1] == page(PageState.COMPLETE)


def test_what_was_cleared_is_not_sent() -> None:
    async def test(outbox: Outbox, listening: Listening) -> None:
        source, again = Page(), Page()
        source.texts[0] = "gone"
        outbox.streamed("1-1", source, [0], "gone")
        outbox.streamed("1-2", source, [0], "stays")
        outbox.post(PageRegionsFound("1-1", ()))
        outbox.post(page(PageState.STREAMING))
        outbox.post(PageCleared("1-1"))
        outbox.post(page(PageState.WAITING))
        again.texts[0] = "new"
        outbox.streamed("1-1", again, [0], "new")

    (batch,) = on_loop(test, interval=30).batches
    mine = [event for event in batch if getattr(event, "page_id", "1-1") == "1-1"]
    assert mine == [PageCleared("1-1"), page(PageState.WAITING), RawText("1-1", "new"),
                    BlocksChanged("1-1", (Block(0, "text", (), "new"),))]
    assert RawText("1-2", "stays") in batch


def test_of_snapshots_only_the_newest_is_sent() -> None:
    def progress(finished: int) -> ProgressUpdated:
        return ProgressUpdated(ProgressView(RunState.RUNNING, 9, finished))

    def document(finished: int) -> DocumentUpdated:
        return DocumentUpdated(DocumentView(1, "/a", "a", DocumentState.OPEN, finished=finished))

    async def test(outbox: Outbox, listening: Listening) -> None:
        for number in range(100):
            outbox.post(progress(number))
            outbox.post(document(number))

    (batch,) = on_loop(test, interval=30).batches
    assert batch == [progress(99), document(99)]


def test_a_flood_of_log_lines_is_cut() -> None:
    async def test(outbox: Outbox, listening: Listening) -> None:
        for number in range(3 * MAX_LOG_LINES):
            outbox.post(LogAdded(20, "worker", str(number), 0.0))

    (batch,) = on_loop(test, interval=30).batches
    assert len(batch) == MAX_LOG_LINES


@pytest.mark.logs_errors
def test_a_listener_that_fails_harms_no_other() -> None:
    good = Listening()

    async def main() -> None:
        outbox = Outbox(asyncio.get_running_loop())

        def bad(batch: Sequence[SessionEvent]) -> None:
            raise RuntimeError("out of the test")

        outbox.subscribe(bad, [])
        outbox.subscribe(good, [])
        outbox.post(page(PageState.COMPLETE))
        outbox.flush()
        outbox.unsubscribe(good)
        outbox.post(page(PageState.FAILED))
        outbox.flush()

    asyncio.run(main())
    assert good.batches == [[], [page(PageState.COMPLETE)]]


def test_the_first_text_of_a_page_waits_for_no_interval() -> None:
    async def act(outbox: Outbox, listening: Listening) -> None:
        page = Page()
        page.texts = {0: "first"}
        for page_id, first in (("1-1", True), ("1-1", False), ("1-2", True)):
            outbox.post(ProgressUpdated(ProgressView(RunState.RUNNING)))
            outbox.streamed(page_id, page, [0], page_id, first=first)
            await asyncio.sleep(0.05)
        assert [[event.page_id for event in batch if isinstance(event, RawText)]
                for batch in listening.batches] == [["1-1"], ["1-1", "1-2"]]

    on_loop(act, interval=600)


def test_the_first_text_that_can_be_read_waits_for_no_interval() -> None:
    counts: list[int] = []

    async def test(outbox: Outbox, listening: Listening) -> None:
        source = Page()
        source.texts = {0: "", 1: ""}

        async def stream(changed: list[int], raw: str, *, first: bool = False) -> None:
            outbox.streamed("1-1", source, changed, raw, first=first)
            for _turn in range(3):
                await asyncio.sleep(0)
            counts.append(len(listening.batches))

        await stream([], "<|ref|>", first=True)
        await stream([], "text<|/ref|>")
        await stream([0], "<|det|>[[1, 2, 3, 4]]<|/det|>")
        source.texts[0] = "Re"
        await stream([0], "Re")
        source.texts[0] = "Reve"
        await stream([0], "ve")

    heard = on_loop(test, interval=30)
    assert counts == [1, 1, 1, 2, 2]
    assert heard.batches[1][-1] == BlocksChanged("1-1", (Block(0, "text", (), "Re"),))
