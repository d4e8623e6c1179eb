"""The door between session and window: nothing lost that matters, nothing that floods."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Sequence

import pytest
from pytestqt.qtbot import QtBot

from desktop.document.model import Block
from desktop.errors import Problem
from desktop.jobs import events as e
from desktop.jobs.events import DocumentState, DocumentView, PageState, PageView
from desktop.protocol.messages import Region
from desktop.ui.bridge import LOG_LINES, Bridge, LogRelay, Pending, RawJoined


def page(number: int, state: PageState = PageState.STREAMING, tokens: int = 0) -> PageView:
    return PageView(f"1-{number}", 1, number, state, output_tokens=tokens)


def document(name: str = "a.pdf", finished: int = 0) -> DocumentView:
    return DocumentView(1, f"/{name}", name, DocumentState.OPEN, 2, "", 2, finished)


def block(index: int, text: str) -> Block:
    return Block(index, "text", ((0, 0, 9, 9),), text)


def merged(*events: e.SessionEvent, watched: str | None = "1-1") -> list[object]:
    pending = Pending()
    for event in events:
        pending.add(event, watched)
    return list(pending.take())


def test_the_latest_state_of_a_page_wins() -> None:
    got = merged(e.PageUpdated(page(1, tokens=1)), e.PageUpdated(page(2)),
                 e.PageUpdated(page(1, tokens=5)))
    assert got == [e.PageUpdated(page(2)), e.PageUpdated(page(1, tokens=5))]


def test_blocks_are_merged_by_index_and_come_in_order() -> None:
    got = merged(e.BlocksChanged("1-1", (block(0, "a"), block(1, "b"))),
                 e.BlocksChanged("1-1", (block(1, "bc"), block(2, "d"))))
    assert got == [e.BlocksChanged("1-1", (block(0, "a"), block(1, "bc"), block(2, "d")))]


def test_raw_text_is_joined() -> None:
    assert merged(e.RawText("1-1", "one "), e.RawText("1-1", "two")) == [
        e.RawText("1-1", "one two")]


def test_content_of_a_page_nobody_looks_at_is_dropped() -> None:
    assert merged(e.RawText("1-2", "x"), e.BlocksChanged("1-2", (block(0, "x"),))) == []


def test_regions_of_every_page_are_kept_for_the_progress_line() -> None:
    event = e.PageRegionsFound("1-2", (Region("text", (0, 0, 1, 1)),))
    assert merged(event) == [event]


def test_a_cleared_page_loses_what_came_before() -> None:
    got = merged(e.BlocksChanged("1-1", (block(0, "old"),)), e.RawText("1-1", "old"),
                 e.PageCleared("1-1"), e.BlocksChanged("1-1", (block(0, "new"),)))
    assert got == [e.PageCleared("1-1"), e.BlocksChanged("1-1", (block(0, "new"),))]


def test_a_new_list_of_pages_does_not_undo_a_later_change() -> None:
    pages = (page(1, PageState.WAITING), page(2, PageState.WAITING))
    got = merged(e.DocumentUpdated(document(), pages), e.PageUpdated(page(1)),
                 e.DocumentUpdated(document(finished=1)))
    assert got.index(e.DocumentUpdated(document(), pages)) < got.index(e.PageUpdated(page(1)))
    assert got[-1] == e.DocumentUpdated(document(finished=1))


def test_a_removed_document_is_not_added_after_all() -> None:
    assert merged(e.DocumentAdded(document()), e.DocumentRemoved(1)) == [e.DocumentRemoved(1)]


def test_a_problem_that_went_is_gone() -> None:
    problem = e.ProblemView("k", Problem("c", "m", "h"))
    assert merged(e.ProblemAdded(problem), e.ProblemRemoved("k")) == [e.ProblemRemoved("k")]


def test_log_lines_are_bounded() -> None:
    got = merged(*(e.LogAdded(20, "x", str(i), 0.0) for i in range(3 * LOG_LINES)))
    assert len(got) <= LOG_LINES
    assert got[-1] == e.LogAdded(20, "x", str(3 * LOG_LINES - 1), 0.0)


def test_raw_text_that_a_result_holds_is_not_delivered_again() -> None:
    pending = Pending()
    pending.add(e.RawText("1-1", "in the result"), "1-1")
    pending.join_raw("1-1")
    pending.add(e.RawText("1-1", "after it"), "1-1")
    assert pending.take() == [RawJoined("1-1"), e.RawText("1-1", "after it")]


class Source:
    """A session reduced to what a bridge needs: somebody to call."""

    def __init__(self) -> None:
        self.listener: Callable[[Sequence[e.SessionEvent]], None] | None = None

    def subscribe(self, listener: Callable[[Sequence[e.SessionEvent]], None]
                  ) -> Callable[[], None]:
        self.listener = listener
        return lambda: setattr(self, "listener", None)


def test_a_flood_from_another_thread_becomes_few_deliveries(qtbot: QtBot) -> None:
    source = Source()
    bridge = Bridge(source)  # type: ignore[arg-type]
    times: list[float] = []
    texts: list[str] = []
    threads: set[int] = set()

    def delivered(events: list[e.SessionEvent]) -> None:
        times.append(bridge._last)  # how long until a listener has its turn is no matter here
        threads.add(threading.get_ident())
        texts.extend(event.text for event in events if isinstance(event, e.RawText))

    bridge.delivered.connect(delivered)
    bridge.open()
    bridge.watch("1-1")

    def flood() -> None:
        for number in range(2_000):
            assert source.listener is not None
            source.listener([e.RawText("1-1", f"{number} "), e.PageUpdated(page(1, tokens=number))])
            if number % 40 == 0:
                time.sleep(0.01)

    worker = threading.Thread(target=flood)
    began = time.monotonic()
    worker.start()
    qtbot.waitUntil(lambda: "1999 " in "".join(texts), timeout=120_000)
    worker.join()
    span = time.monotonic() - began
    assert "".join(texts) == "".join(f"{number} " for number in range(2_000))
    assert threads == {threading.get_ident()}
    assert len(times) <= span / 0.05 + 2
    assert all(b - a > 0.045 for a, b in itertools.pairwise(times))
    bridge.close()
    assert source.listener is None


def test_the_first_event_after_a_pause_does_not_wait(qtbot: QtBot) -> None:
    source = Source()
    bridge = Bridge(source)  # type: ignore[arg-type]
    bridge.open()
    armed: list[bool] = []
    bridge.delivered.connect(lambda _events: armed.append(bridge._timer.isActive()))
    assert source.listener is not None
    source.listener([e.PageUpdated(page(1))])
    qtbot.waitUntil(lambda: bool(armed), timeout=60_000)
    assert armed == [False]  # delivered on waking, no timer in between
    bridge.close()


def test_the_first_text_of_the_watched_page_is_delivered_at_once(
        qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whatever waits for the interval waits for longer than this test lasts.
    monkeypatch.setattr("desktop.ui.bridge.INTERVAL", 600.0)
    source = Source()
    bridge = Bridge(source)  # type: ignore[arg-type]
    got: list[e.SessionEvent] = []
    bridge.delivered.connect(got.extend)
    bridge.open()
    bridge.watch("1-1")
    send = source.listener
    assert send is not None
    bridge._last = time.monotonic()

    def deliver(*events: e.SessionEvent, expected: Sequence[e.SessionEvent] = ()) -> None:
        got.clear()
        send(events)
        qtbot.waitUntil(lambda: len(got) >= len(expected), timeout=60_000)
        qtbot.wait(30)
        assert got == list(expected)

    waiting = e.PageUpdated(page(2))
    deliver(waiting)
    deliver(e.BlocksChanged("1-2", (block(0, "another page"),)))
    deliver(e.BlocksChanged("1-1", (block(0, ""),)))
    first = e.BlocksChanged("1-1", (block(0, "Re"),))
    deliver(e.RawText("1-1", "Re"), first, expected=[waiting, first, e.RawText("1-1", "Re")])
    # Once a page: what follows is one of many again.
    more = e.BlocksChanged("1-1", (block(0, "Reve"),))
    deliver(more)
    # Read again, it begins anew; so does a page that is turned to.
    deliver(e.PageCleared("1-1"), first, expected=[e.PageCleared("1-1"), first])
    deliver(more)
    bridge.watch("1-2")
    other = e.BlocksChanged("1-2", (block(0, "Two"),))
    deliver(other, expected=[other])
    bridge.close()


def test_the_applications_own_log_comes_with_the_engines(qtbot: QtBot) -> None:
    class Silent:
        def subscribe(self, _listener: object) -> Callable[[], None]:
            return lambda: None

    bridge = Bridge(Silent())  # type: ignore[arg-type]
    got: list[e.SessionEvent] = []
    bridge.delivered.connect(got.extend)
    bridge.open()
    work = logging.getLogger("desktop.client.life")
    thread = threading.Thread(target=lambda: work.warning("worker %d ended", 7))
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: bool(got), timeout=60_000)
    assert isinstance(got[0], e.LogAdded)
    assert (got[0].level, got[0].source, got[0].text) == (30, "life", "worker 7 ended")
    bridge.close()
    handlers = logging.getLogger("desktop").handlers
    assert not any(isinstance(handler, LogRelay) for handler in handlers)
