"""The queue: pause, stop, what is looked at, what is read again, page ranges, removal."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from desktop.intake.errors import BadPageRange
from desktop.jobs.errors import UnknownPage
from desktop.jobs.events import (
    BlocksChanged,
    DocumentRemoved,
    DocumentState,
    PageCleared,
    PageState,
    PageUpdated,
    ProblemRemoved,
    ProgressUpdated,
    QueueFinished,
    RunState,
)
from tests.jobs.conftest import PATIENCE, SHORT, SLOW, Gates, Pdf, Player
from tests.support import processes


def test_pause_ends_what_is_in_flight_and_begins_nothing(
        play: Player, pdf: Pdf, gates: Gates) -> None:
    gate = gates()
    p = play({"capacity": 1, "pages": [{**SHORT, "match": "*-1", "faults": [gate.at(30)]}, SHORT]})
    p.add(pdf(4))
    p.session.start()
    p.heard.until_page("1-1", PageState.STREAMING)
    p.session.pause()
    p.heard.until(lambda: p.heard.of(ProgressUpdated)[-1].progress.run is RunState.PAUSED)
    gate.open()
    assert p.session.wait(PATIENCE)
    states = [page.state for page in map(p.heard.page, ("1-1", "1-2", "1-3", "1-4")) if page]
    assert states == [PageState.COMPLETE] + [PageState.WAITING] * 3
    assert p.heard.of(ProgressUpdated)[-1].progress.run is RunState.PAUSED
    assert not p.heard.of(QueueFinished)
    p.finish()
    assert sorted(p.heard.finished_order()) == ["1-1", "1-2", "1-3", "1-4"]


def test_stop_takes_pages_back_and_they_are_read_again(play: Player, pdf: Pdf) -> None:
    p = play({"capacity": 2, "pages": [SLOW]})
    p.add(pdf(3))
    p.session.start()
    p.heard.until(lambda: len({event.page_id for event in p.heard.of(BlocksChanged)}) == 2)
    # While an engine starts, the page that is drawn first goes first: any two of the three.
    begun = {event.page_id for event in p.heard.of(BlocksChanged)}
    p.session.stop()
    assert p.session.wait(PATIENCE)
    for page in map(p.heard.page, ("1-1", "1-2", "1-3")):
        assert page is not None
        assert (page.state, page.blocks) == (PageState.WAITING, 0)
    for page_id in begun:
        assert PageCleared(page_id) in p.heard.events
        assert p.session.page_result(page_id).result(PATIENCE).raw == ""
    p.session.start()
    p.heard.until(lambda: any(
        page is not None and page.attempts == 2 and page.state is PageState.STREAMING
        for page in map(p.heard.page, begun)))


def test_the_page_looked_at_goes_first(play: Player, pdf: Pdf, gates: Gates) -> None:
    gate = gates()
    p = play({"capacity": 1, "pages": [{**SHORT, "match": "*-20", "faults": [gate.at(30)]}, SHORT]},
             concurrency=1)
    p.add(pdf(30))
    p.session.look_at("1-20")
    p.session.start()
    p.heard.until_page("1-20", PageState.STREAMING)
    p.session.look_at("1-29")
    p.heard.until_page("1-29", PageState.READY)
    p.session.page_result("1-29").result(PATIENCE)  # a turn later it is handed over
    gate.open()
    p.heard.until_page("1-29", PageState.COMPLETE)
    p.session.stop()
    assert p.session.wait(PATIENCE)
    order = p.heard.finished_order()
    assert order[0] == "1-20"
    # Behind what the engine may have begun by then, before what was only drawn.
    assert set(order[1:order.index("1-29")]) <= {"1-1", "1-2"}
    # Several processes draw, so neighbours may change places, within the window of three.
    rest = [int(page_id[2:]) for page_id in order if page_id not in ("1-20", "1-29")]
    assert all(number <= place + 3 for place, number in enumerate(rest, 1))


def test_the_page_looked_at_begins_although_the_engine_is_busy(play: Player, pdf: Pdf) -> None:
    p = play({"capacity": 1, "pages": [SLOW]})
    p.add(pdf(9))
    p.session.start()
    p.heard.until_page("1-1", PageState.STREAMING)
    p.session.look_at("1-9")
    p.heard.until_page("1-9", PageState.STREAMING)
    page = p.heard.page("1-1")
    assert page is not None
    assert page.state is PageState.STREAMING
    assert p.heard.started_order() == ["1-1", "1-9"]  # one above the limit, and no other


def test_leafing_through_a_document_draws_no_more_than_the_window(
        play: Player, pdf: Pdf, tmp_path: Path) -> None:
    p = play({"capacity": 2, "pages": [SLOW]})
    p.add(pdf(60))
    p.session.start()
    p.heard.until_page("1-1", PageState.STREAMING)
    for number in range(3, 60):
        p.session.look_at(f"1-{number}")
        time.sleep(0.01)
    p.session.look_at("1-60")
    p.heard.until_page("1-60", PageState.READY, PageState.STREAMING)

    def drawn() -> int:
        return len(list((tmp_path / "cache").rglob("*.ppm")))

    # Two processes draw: what either is at for nobody any more is deleted when it is done.
    assert drawn() <= 2 + 2 + 1 + 2
    processes.until(lambda: drawn() <= 2 + 2 + 1)


def test_rerun_reads_a_page_again_even_while_it_streams(play: Player, pdf: Pdf) -> None:
    hang = {"kind": "hang", "at": 60, "attempts": [2]}
    p = play({"capacity": 1, "pages": [{**SHORT, "match": "*-1", "faults": [hang]}, SHORT]})
    p.add(pdf(2))
    p.finish()
    p.session.rerun(["1-1"])
    p.heard.until(lambda: (page := p.heard.page("1-1")) is not None and page.attempts == 2
                  and page.state is PageState.STREAMING)
    p.session.rerun(["1-1"])
    assert p.session.wait(PATIENCE)
    page = p.heard.page("1-1")
    assert page is not None
    assert (page.state, page.attempts) == (PageState.COMPLETE, 3)
    other = p.heard.page("1-2")
    assert other is not None
    assert other.attempts == 1


def test_page_ranges(play: Player, pdf: Pdf) -> None:
    p = play()
    (document,) = p.add(pdf(9), page_range="2-3, 7")
    p.finish()
    assert sorted(p.heard.finished_order()) == ["1-2", "1-3", "1-7"]
    p.session.set_page_range(document, "3-4").result(PATIENCE)
    assert p.session.wait(PATIENCE)
    view = p.heard.document(document)
    assert view is not None
    assert (view.page_range, view.selected, view.finished) == ("3-4", 2, 2)
    page = p.heard.page("1-3")
    assert page is not None
    assert page.attempts == 1
    for bad in ("x", "12-", "3-1"):
        with pytest.raises(BadPageRange):
            p.session.set_page_range(document, bad).result(PATIENCE)
    assert p.heard.document(document) == view
    with pytest.raises(BadPageRange):
        p.add(pdf(9), page_range="1-x")


def test_a_range_changed_while_pages_stream(play: Player, pdf: Pdf) -> None:
    p = play({"capacity": 2, "pages": [SLOW]})
    (document,) = p.add(pdf(6))
    p.session.start()
    out, stays = p.heard.until_streaming(2)
    rest = ",".join(str(number) for number in range(1, 7) if f"{document}-{number}" != out)
    p.session.set_page_range(document, rest).result(PATIENCE)
    p.heard.until(lambda: PageCleared(out) in p.heard.events)
    page = p.heard.page(stays)
    assert page is not None
    assert (page.state, page.attempts) == (PageState.STREAMING, 1)  # it just went on


def test_a_range_that_leaves_nothing_is_said(play: Player, pdf: Pdf) -> None:
    p = play()
    (document,) = p.add(pdf(3), page_range="5-")
    p.finish()
    view = p.heard.document(document)
    assert view is not None
    assert (view.state, view.selected) == (DocumentState.OPEN, 0)
    assert view.problem is not None
    assert view.problem.code == "intake.page_range_outside"
    p.session.set_page_range(document, "3").result(PATIENCE)
    assert p.session.wait(PATIENCE)
    view = p.heard.document(document)
    assert view is not None
    assert (view.finished, view.problem) == (1, None)
    assert ProblemRemoved(f"document-{document}") in p.heard.events


def test_a_page_of_a_removed_document_is_not_begun_again(play: Player, pdf: Pdf) -> None:
    p = play({"capacity": 2, "pages": [SLOW]})
    p.add(pdf(9))
    p.session.start()
    p.heard.until_streaming(2)
    p.session.remove([1])
    assert p.session.wait(PATIENCE)
    begun = [event.page.id for event in p.heard.of(PageUpdated)
             if event.page.state is PageState.RENDERING]
    assert len(begun) == len(set(begun))


def test_pages_that_are_taken_back_before_their_first_step_leave_room_for_others(
        play: Player, pdf: Pdf) -> None:
    """A task that is cancelled before it runs runs nothing, not even what ends it in order."""
    p = play({"capacity": 2, "pages": [SHORT]})
    p.add(pdf(3))
    p.heard.until(lambda: (view := p.heard.document(1)) is not None and view.selected == 3)
    reading = p.session._core.reading

    async def begin_and_take_back() -> list[str]:
        reading.fill()
        begun = [run.id for run in reading.runs.values()]
        await reading.take_back(reading.runs.values())
        return begun

    assert p.session._ask(begin_and_take_back).result(PATIENCE) == ["1-1"]
    assert reading.runs == {}
    page = p.heard.page("1-1")
    assert page is not None
    assert page.state is PageState.WAITING
    p.finish()
    assert sorted(p.heard.finished_order()) == ["1-1", "1-2", "1-3"]


def test_removed_documents_are_gone(play: Player, pdf: Pdf) -> None:
    p = play({"capacity": 2, "pages": [SLOW]})
    p.add(pdf(2), pdf(1, "other.pdf"))
    p.session.start()
    p.heard.until_page("1-1", PageState.STREAMING)
    p.session.remove([1])
    p.heard.until(lambda: DocumentRemoved(1) in p.heard.events)
    with pytest.raises(UnknownPage):
        p.session.page_result("1-1").result(PATIENCE)
    p.heard.until_page("2-1", PageState.STREAMING)
    events = p.heard.events
    assert not [event for event in events[events.index(DocumentRemoved(1)):]
                if isinstance(event, PageUpdated) and event.page.document_id == 1]


def test_documents_of_earlier_runs_stay_aside_when_they_are_not_wanted(
        play: Player, pdf: Pdf) -> None:
    p = play()
    first, second = pdf(2, "first.pdf"), pdf(2, "second.pdf")
    p.add(first)
    p = play(options={"resume": False})
    ids = p.add(second)
    p.finish()
    assert {event.page.document_id for event in p.heard.of(PageUpdated)} == set(ids)
    assert p.add(first, page_range="2") == [1]
    assert p.session.wait(PATIENCE)
    view = p.heard.document(1)
    assert view is not None
    assert (view.page_range, view.finished) == ("2", 1)
