"""The session at work: real drawing processes, a real worker that plays a script."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from desktop.intake.errors import BadPageRange, NoDocuments, PasswordNeeded
from desktop.jobs.errors import JournalBusy, SessionClosed, UnknownPage
from desktop.jobs.events import (
    BlocksChanged,
    DocumentRemoved,
    DocumentState,
    EngineState,
    EngineUpdated,
    PageCleared,
    PageRegionsFound,
    PageState,
    PageUpdated,
    ProblemAdded,
    ProblemRemoved,
    ProgressUpdated,
    QueueFinished,
    RawText,
    RunState,
)
from desktop.jobs.session import Session
from desktop.settings import Values
from tests.jobs.conftest import PATIENCE, SHORT, Play

Player = Callable[..., Play]
Pdf = Callable[..., Path]

FIGURE = ("<|ref|>title<|/ref|><|det|>[[100, 50, 900, 90]]<|/det|>\n# Title\n\n"
          "<|ref|>image<|/ref|><|det|>[[100, 100, 500, 400]]<|/det|>\n\n"
          "<|ref|>table<|/ref|><|det|>[[100, 500, 900, 700]]<|/det|>\n"
          "<table><tr><td>1</td></tr></table>\n")
SLOW = {"text": "<|ref|>text<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>\n" + "word " * 4000,
        "rate": 50, "delta": 5}
"""A page that is not done before the test is."""


def test_a_document_becomes_blocks(play: Player, pdf: Pdf) -> None:
    p = play({"pages": [{"text": FIGURE, "delta": [1, 9], "rate": 0, "regions": True,
                         "confidence": 0.75, "prompt_tokens": 11}]})
    source = pdf(2)
    (document,) = p.add(source)
    p.finish()

    view = p.heard.document(document)
    assert view is not None
    assert (view.state, view.pages, view.selected, view.finished, view.suspicious) == (
        DocumentState.OPEN, 2, 2, 2, 0)
    result = p.session.page_result(f"{document}-1").result(PATIENCE)
    assert result.raw == FIGURE
    assert [block.label for block in result.blocks] == ["title", "image", "table"]
    assert {block.confidence for block in result.blocks} == {0.75}
    assert [region.label for region in result.regions] == ["title", "image", "table"]
    assert list(result.crops) == ["b2"]
    assert Path(result.crops["b2"]).read_bytes().startswith(b"\x89PNG")
    page = result.view
    assert (page.state, page.blocks, page.tables, page.attempts) == (
        PageState.COMPLETE, 3, 1, 1)
    assert (page.width, page.height, page.rotation) == (400, 560, 0)
    assert page.prompt_tokens == 11
    assert page.output_tokens > 0

    # What a listener was told along the way is what the result says.
    mine = [event for event in p.heard.events
            if getattr(event, "page_id", "") == f"{document}-1"]
    assert "".join(event.text for event in mine if isinstance(event, RawText)) == FIGURE
    last = {block.index: block for event in mine if isinstance(event, BlocksChanged)
            for block in event.blocks}
    assert tuple(last.values()) == result.blocks
    kinds = [type(event) for event in mine]
    assert kinds.index(PageRegionsFound) < kinds.index(BlocksChanged)
    assert p.heard.of(QueueFinished) == [QueueFinished(2, 0)]

    whole = p.session.document_result(document).result(PATIENCE)
    assert (whole.engine, whole.model) == ("scripted", "script")
    assert whole.sha256 == hashlib.sha256(source.read_bytes()).hexdigest()
    assert [page.view.number for page in whole.pages] == [1, 2]
    assert whole.pages[0] == result
    assert whole.settings["dpi"] == 144


def test_nothing_runs_before_start(play: Player, pdf: Pdf) -> None:
    p = play()
    p.add(pdf(1))
    assert p.session.wait(PATIENCE)  # it is opened, and that is all
    page = p.heard.page("1-1")
    assert page is not None
    assert page.state is PageState.WAITING
    assert p.session.engine.state is EngineState.OFF


def test_finished_pages_are_there_at_the_next_start_and_not_done_twice(
        play: Player, pdf: Pdf) -> None:
    p = play()
    p.add(pdf(2))
    p.finish()
    before = p.session.page_result("1-2").result(PATIENCE)
    p = play()
    p.finish()
    assert p.session.page_result("1-2").result(PATIENCE) == before
    assert p.session.engine.state is EngineState.OFF  # nothing needed it
    assert [page.attempts for page in map(p.heard.page, ("1-1", "1-2")) if page] == [1, 1]


def test_a_second_session_on_the_same_journal_is_refused(play: Player, tmp_path: Path) -> None:
    play()
    with pytest.raises(JournalBusy):
        Session(tmp_path / "journal.db", tmp_path / "cache", Values())


def test_a_closed_session_says_so(play: Player, pdf: Pdf) -> None:
    p = play()
    p.session.close()
    p.session.close()  # twice is fine
    with pytest.raises(SessionClosed):
        p.session.add([pdf(1)])
    p.session.start()  # nothing to answer, nothing to do


PICTURE = "<|ref|>image<|/ref|><|det|>[[{box}]]<|/det|>\n"
ENDINGS: list[tuple[dict[str, Any], PageState, str | None]] = [
    ({**SHORT, "finish": "length"}, PageState.LENGTH, "page.length"),
    ({**SHORT, "finish": "loop"}, PageState.LOOP, "page.loop"),
    ({**SHORT, "finish": "blank"}, PageState.BLANK, None),
    ({"text": "", "finish": "empty"}, PageState.EMPTY, "page.empty"),
    ({"text": "<|ref|>text<|/ref|><|det|>[[1, 2, 300, 400]]<|/det|>\n\n"}, PageState.EMPTY,
     "page.empty"),
    # A picture and no text is a page all the same: a photograph is just that.
    ({"text": PICTURE.format(box="100, 100, 500, 400")}, PageState.COMPLETE, None),
    ({"text": PICTURE.format(box="0, 0, 999, 999"), "finish": "empty"}, PageState.COMPLETE, None),
    # A mode of the model that puts the text where labels stand otherwise.
    ({"text": "<|ref|>Dear Sir,<|/ref|><|det|>[[1, 2, 300, 400]]<|/det|>\n"},
     PageState.COMPLETE, None),
]


def test_how_pages_end(play: Player, pdf: Pdf) -> None:
    p = play({"pages": [{**entry, "match": f"*-{number}"}
                        for number, (entry, _, _) in enumerate(ENDINGS, 1)]})
    p.add(pdf(len(ENDINGS)))
    p.finish()
    expected = {}
    for number, (entry, state, code) in enumerate(ENDINGS, 1):
        result = p.session.page_result(f"1-{number}").result(PATIENCE)
        assert result.view.state is state, entry
        assert result.raw == entry["text"]  # text so far is kept
        assert (result.view.problem.code if result.view.problem else None) == code, entry
        if code is not None:
            expected[f"1-{number}"] = (code, number, "made.pdf")
    assert {view.page_id: (view.problem.code, view.page, view.document) for view in
            (event.problem for event in p.heard.of(ProblemAdded))} == expected
    document = p.heard.document(1)
    assert document is not None
    assert (document.finished, document.suspicious) == (len(ENDINGS), len(expected))


def test_a_page_that_fails_fails_alone_and_can_be_retried(
        play: Player, pdf: Pdf, tmp_path: Path) -> None:
    fault = {"kind": "raise", "at": 20, "once": str(tmp_path / "once"), "code": "page.odd",
             "message": "It is odd.", "hint": "Look at it."}
    p = play({"pages": [{**SHORT, "match": "*-2", "faults": [fault]}, SHORT]})
    (document,) = p.add(pdf(3))
    p.finish()
    page = p.heard.page("1-2")
    assert page is not None
    assert page.state is PageState.FAILED
    assert page.problem is not None
    assert (page.problem.code, page.problem.message) == ("page.odd", "It is odd.")
    view = p.heard.document(document)
    assert view is not None
    assert (view.finished, view.suspicious) == (3, 1)

    assert p.session.retry_failed() == 1
    assert p.session.wait(PATIENCE)
    page = p.heard.page("1-2")
    assert page is not None
    assert (page.state, page.problem, page.attempts) == (PageState.COMPLETE, None, 2)
    assert ProblemRemoved("1-2") in p.heard.events
    assert p.session.retry_failed() == 0


def test_the_worker_dies_and_the_page_is_done_again(play: Player, pdf: Pdf) -> None:
    kill = {"kind": "kill", "at": 60, "attempts": [1]}
    p = play({"capacity": 1, "pages": [{**SHORT, "match": "*-2", "rate": 300, "delta": 4,
                                        "faults": [kill]}, SHORT]})
    p.add(pdf(3))
    p.finish()
    pages = [p.heard.page(f"1-{number}") for number in (1, 2, 3)]
    assert [(page.state, page.attempts) for page in pages if page] == [
        (PageState.COMPLETE, 1), (PageState.COMPLETE, 2), (PageState.COMPLETE, 1)]
    assert p.session.page_result("1-2").result(PATIENCE).raw == SHORT["text"]
    states = [event.engine.state for event in p.heard.of(EngineUpdated)]
    assert EngineState.RESTARTING in states
    assert states[-1] is EngineState.READY
    events = p.heard.events
    cleared = events.index(PageCleared("1-2"))
    assert any(isinstance(event, RawText) and event.page_id == "1-2"
               for event in events[:cleared])


def test_a_page_that_kills_every_worker_is_given_up_and_takes_no_other_with_it(
        play: Player, pdf: Pdf) -> None:
    p = play({"capacity": 3, "pages": [
        {**SHORT, "match": "*-2", "rate": 200, "faults": [{"kind": "kill", "at": 50}]},
        {**SHORT, "rate": 20}]})
    p.add(pdf(4))
    p.finish()
    states = [page.state for page in map(p.heard.page, ("1-1", "1-2", "1-3", "1-4")) if page]
    assert states == [PageState.COMPLETE, PageState.FAILED, PageState.COMPLETE,
                      PageState.COMPLETE]
    page = p.heard.page("1-2")
    assert page is not None
    assert page.problem is not None
    assert (page.problem.code, page.attempts) == ("page.worker_died", 3)


def test_a_page_of_which_nothing_is_heard_is_done_again_with_a_new_engine(
        play: Player, pdf: Pdf, caplog: pytest.LogCaptureFixture) -> None:
    p = play({"capacity": 2, "pages": [
        {**SHORT, "match": "*-1", "faults": [{"kind": "hang", "at": 60, "attempts": [1]}]},
        {**SHORT, "rate": 20, "match": "*-2"}, SHORT]}, stall_seconds=3)
    p.add(pdf(4))
    p.finish()
    pages = [p.heard.page(f"1-{number}") for number in (1, 2, 3, 4)]
    assert [page.state for page in pages if page] == [PageState.COMPLETE] * 4
    assert pages[0] is not None
    assert pages[0].attempts == 2
    assert p.session.page_result("1-1").result(PATIENCE).raw == SHORT["text"]
    assert PageCleared("1-1") in p.heard.events  # what came before the silence is gone
    states = [event.engine.state for event in p.heard.of(EngineUpdated)]
    assert states.count(EngineState.READY) == 2
    assert "page 1-1" in caplog.text


def test_a_page_that_silences_the_engine_every_time_is_given_up(play: Player, pdf: Pdf) -> None:
    p = play({"capacity": 2, "pages": [
        {**SHORT, "match": "*-1", "faults": [{"kind": "hang", "at": 60}]}, SHORT]})
    p.add(pdf(3))
    p.session.start()
    p.heard.until_page("1-3", PageState.COMPLETE)
    p.heard.until_page("1-1", PageState.STREAMING)
    p.session.set_values(p.session.values.with_(stall_seconds=1))  # for the page in flight, too
    assert p.session.wait(PATIENCE)
    pages = [p.heard.page(f"1-{number}") for number in (1, 2, 3)]
    assert [page.state for page in pages if page] == [
        PageState.FAILED, PageState.COMPLETE, PageState.COMPLETE]
    assert pages[0] is not None
    assert pages[0].problem is not None
    assert (pages[0].problem.code, pages[0].attempts) == ("page.stalled", 3)
    assert "1 s" in pages[0].problem.message
    assert "--stall-seconds" in pages[0].problem.hint


def test_an_engine_that_cannot_start_loses_no_page(play: Player, pdf: Pdf,
                                                   tmp_path: Path) -> None:
    refuse = {"kind": "raise", "code": "engine.odd", "once": str(tmp_path / "once"),
              "message": "No.", "hint": "Try again."}
    p = play({"load": {"faults": [refuse]}, "pages": [SHORT]})
    p.add(pdf(2))
    p.session.start()
    p.heard.until(lambda: any(event.engine.state in (EngineState.FAILED, EngineState.READY)
                              for event in p.heard.of(EngineUpdated)))
    if p.session.engine.state is EngineState.FAILED:
        assert p.session.wait(PATIENCE)
        problem = p.session.engine.problem
        assert problem is not None
        assert problem.code == "engine.odd"
        assert any(event.problem.key == "engine" for event in p.heard.of(ProblemAdded))
        p.session.start()
    assert p.session.wait(PATIENCE)
    assert [page.state for page in map(p.heard.page, ("1-1", "1-2")) if page] == [
        PageState.COMPLETE] * 2
    assert p.session.engine.state is EngineState.READY


def test_blank_pages_cost_the_engine_nothing(play: Player, samples: Path) -> None:
    p = play()
    p.add(samples / "blank.pdf")
    p.finish()
    page = p.heard.page("1-1")
    assert page is not None
    assert (page.state, page.attempts, page.problem) == (PageState.BLANK, 0, None)
    assert page.width > 0
    p.session.set_values(p.session.values.with_(skip_blank=False))
    p.session.rerun(["1-1"])
    assert p.session.wait(PATIENCE)
    page = p.heard.page("1-1")
    assert page is not None
    assert (page.state, page.attempts) == (PageState.COMPLETE, 1)


def test_the_bitmap_of_a_page_in_flight_tells_what_the_drawn_one_does(
        play: Player, tmp_path: Path) -> None:
    from PIL import Image

    source = tmp_path / "cut.jpg"
    Image.effect_noise((400, 300), 80).convert("RGB").save(source)
    source.write_bytes(source.read_bytes()[:-2000])
    p = play({"pages": [SLOW]})
    p.add(source)
    p.session.start()
    p.heard.until_page("1-1", PageState.STREAMING)
    in_flight = p.session.bitmap("1-1").result(PATIENCE)
    p.session.stop()
    assert p.session.wait(PATIENCE)
    anew = p.session.bitmap("1-1").result(PATIENCE)
    assert in_flight.damaged
    assert anew.damaged
    assert (in_flight.width, in_flight.height) == (anew.width, anew.height) == (400, 300)
    assert Path(in_flight.image).read_bytes() == Path(anew.image).read_bytes()
    for rendered in (in_flight, anew):
        rendered.delete()


def test_a_turned_page_is_turned_everywhere(play: Player, pdf: Pdf) -> None:
    p = play({"pages": [{"text": FIGURE, "rate": 0, "clockwise": 90}]})
    p.add(pdf(1))
    assert p.session.wait(PATIENCE)
    before = p.session.bitmap("1-1").result(PATIENCE)
    p.finish()
    result = p.session.page_result("1-1").result(PATIENCE)
    assert (result.view.rotation, result.view.width, result.view.height) == (90, 560, 400)
    after = p.session.bitmap("1-1").result(PATIENCE)
    assert (before.width, before.height) == (400, 560)
    assert (after.width, after.height) == (560, 400)
    small = p.session.thumbnail("1-1", 100).result(PATIENCE)
    assert (small.width, small.height) in ((100, 71), (100, 72))

    from PIL import Image
    with Image.open(before.image) as drawn, Image.open(after.image) as turned, \
            Image.open(result.crops["b2"]) as crop:
        expected = drawn.transpose(Image.Transpose.ROTATE_270)
        assert turned.tobytes() == expected.tobytes()
        assert crop.tobytes() == expected.crop((56, 40, 281, 161)).resize(crop.size).tobytes()
    for rendered in (before, after, small):
        rendered.delete()


def test_pause_ends_what_is_in_flight_and_begins_nothing(play: Player, pdf: Pdf) -> None:
    p = play({"capacity": 1, "pages": [{**SHORT, "match": "*-1", "rate": 3}, SHORT]})
    p.add(pdf(4))
    p.session.start()
    p.heard.until_page("1-1", PageState.STREAMING)
    p.session.pause()
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


def test_the_page_looked_at_goes_first(play: Player, pdf: Pdf) -> None:
    p = play({"capacity": 1, "pages": [{**SHORT, "match": "*-20", "rate": 4},
                                       {**SHORT, "rate": 30}]})
    p.add(pdf(30))
    p.session.look_at("1-20")
    p.session.start()
    p.heard.until_page("1-20", PageState.STREAMING)
    p.session.look_at("1-29")
    p.heard.until_page("1-29", PageState.COMPLETE)
    p.session.stop()
    assert p.session.wait(PATIENCE)
    order = p.heard.finished_order()
    assert order[0] == "1-20"
    assert order.index("1-29") <= 4  # behind what was begun, before what was only drawn
    rest = [int(page_id[2:]) for page_id in order if page_id not in ("1-20", "1-29")]
    assert rest == sorted(rest)


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
    assert len(list((tmp_path / "cache").rglob("*.ppm"))) <= 2 + 2 + 1


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
    assert p.heard.finished_order() == ["1-2", "1-3", "1-7"]
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
    p.heard.until_page("1-1", PageState.STREAMING)
    p.heard.until_page("1-2", PageState.STREAMING)
    p.session.set_page_range(document, "2-4").result(PATIENCE)
    p.heard.until(lambda: PageCleared("1-1") in p.heard.events)
    page = p.heard.page("1-2")
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


def test_files_that_cannot_be_read_are_one_problem_each(
        play: Player, pdf: Pdf, samples: Path, tmp_path: Path) -> None:
    p = play()
    ids = p.add(samples / "header_only.pdf", pdf(1), samples / "not_an_image.png",
                tmp_path / "missing.pdf")
    p.finish()
    states = [view.state for view in map(p.heard.document, ids) if view]
    assert states == [DocumentState.UNREADABLE, DocumentState.OPEN, DocumentState.UNREADABLE,
                      DocumentState.UNREADABLE]
    told = {event.problem.document_id: event.problem.problem.code
            for event in p.heard.of(ProblemAdded)}
    assert told == {1: "intake.unreadable", 3: "intake.not_a_document", 4: "intake.file_missing"}
    pdf(2, "missing.pdf")
    assert p.session.retry_failed() == 3
    assert p.session.wait(PATIENCE)
    view = p.heard.document(ids[3])
    assert view is not None
    assert (view.state, view.finished) == (DocumentState.OPEN, 2)
    (tmp_path / "empty folder").mkdir()
    with pytest.raises(NoDocuments):
        p.add(tmp_path / "empty folder")


def test_passwords_are_asked_for_again_after_a_restart(play: Player, samples: Path,
                                                       tmp_path: Path) -> None:
    p = play({"capacity": 1, "pages": [{**SHORT, "match": "*-1"}, SLOW]})
    (document,) = p.add(samples / "encrypted.pdf")
    assert p.session.wait(PATIENCE)
    view = p.heard.document(document)
    assert view is not None
    assert view.state is DocumentState.PASSWORD
    assert view.problem is not None
    assert view.problem.code == "intake.password_needed"
    assert not p.session.unlock(document, "wrong").result(PATIENCE)
    assert p.session.unlock(document, "verso").result(PATIENCE)
    view = p.heard.document(document)
    p.session.start()
    p.heard.until_page("1-1", PageState.COMPLETE)
    p.session.close()
    assert b"verso\x00" not in (tmp_path / "journal.db").read_bytes()

    p = play()
    p.finish()  # nothing that can be done
    view = p.heard.document(document)
    assert view is not None
    assert (view.state, view.finished) == (DocumentState.PASSWORD, 1)
    assert view.selected > 1
    with pytest.raises(PasswordNeeded):
        p.session.bitmap("1-1").result(PATIENCE)
    assert p.session.page_result("1-1").result(PATIENCE).raw
    assert p.session.unlock(document, "verso").result(PATIENCE)
    assert p.session.wait(PATIENCE)
    view = p.heard.document(document)
    assert view is not None
    assert (view.state, view.finished) == (DocumentState.OPEN, view.selected)
    page = p.heard.page("1-1")
    assert page is not None
    assert page.attempts == 1
    p.session.bitmap("1-1").result(PATIENCE).delete()


def test_a_source_that_went_away_or_changed_is_noticed(play: Player, pdf: Pdf) -> None:
    p = play({"capacity": 1, "pages": [SHORT]})
    path = pdf(3)
    p.add(path)
    p.finish()
    p = play()
    hidden = path.rename(path.with_suffix(".away"))
    p.session.rerun(["1-2"])
    p.finish()
    view = p.heard.document(1)
    assert view is not None
    assert (view.state, view.finished) == (DocumentState.UNREADABLE, 2)
    assert view.problem is not None
    assert view.problem.code == "source.missing"

    hidden.rename(path)
    path.touch()  # another time, the same content: nothing to say
    assert p.session.retry_failed() == 1
    assert p.session.wait(PATIENCE)
    view = p.heard.document(1)
    assert view is not None
    assert (view.state, view.finished, view.problem) == (DocumentState.OPEN, 3, None)
    page = p.heard.page("1-1")
    assert page is not None
    assert page.attempts == 1

    pdf(2, text="Other")
    p.session.rerun(["1-1"])
    assert p.session.wait(PATIENCE)
    view = p.heard.document(1)
    assert view is not None
    assert view.problem is not None
    assert (view.problem.code, view.finished) == ("source.changed", 2)
    p.session.retry_failed()  # read anew, all of it
    assert p.session.wait(PATIENCE)
    view = p.heard.document(1)
    assert view is not None
    assert (view.state, view.pages, view.selected, view.finished) == (
        DocumentState.OPEN, 2, 2, 2)
    assert [page.attempts for page in map(p.heard.page, ("1-1", "1-2")) if page] == [2, 3]


def test_the_same_file_twice_is_one_document(play: Player, pdf: Pdf, tmp_path: Path) -> None:
    p = play()
    path = pdf(2)
    assert p.add(path, path, tmp_path) == [1]
    p.finish()
    assert p.add(path) == [1]
    assert p.session.wait(PATIENCE)
    page = p.heard.page("1-1")
    assert page is not None
    assert page.attempts == 1
    pdf(3, text="Other")
    assert p.add(path) == [2]  # another content is another document; the first keeps its results
    assert p.session.wait(PATIENCE)
    first = p.heard.document(1)
    assert first is not None
    assert first.problem is not None
    assert (first.problem.code, first.finished) == ("source.changed", 2)


def test_a_page_of_a_removed_document_is_not_begun_again(play: Player, pdf: Pdf) -> None:
    p = play({"capacity": 2, "pages": [SLOW]})
    p.add(pdf(9))
    p.session.start()
    p.heard.until_page("1-2", PageState.STREAMING)
    p.session.remove([1])
    assert p.session.wait(PATIENCE)
    begun = [event.page.id for event in p.heard.of(PageUpdated)
             if event.page.state is PageState.RENDERING]
    assert len(begun) == len(set(begun))


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


def test_other_settings_redo_pages_only_when_that_is_asked_for(play: Player, pdf: Pdf) -> None:
    path = pdf(2)
    p = play()
    p.add(path)
    p.finish()

    def attempts(p: Play) -> list[int]:
        assert p.session.wait(PATIENCE)
        return [page.attempts for page in map(p.heard.page, ("1-1", "1-2")) if page]

    p = play(dpi=96)
    p.session.start()
    p.add(path)
    assert attempts(p) == [1, 1]
    p.add(path, redo_outdated=True)
    assert attempts(p) == [2, 2]
    assert p.session.document_result(1).result(PATIENCE).settings["dpi"] == 96
    p = play(dpi=96, concurrency=2)  # what cannot change a result redoes nothing
    p.session.start()
    p.add(path, redo_outdated=True)
    assert attempts(p) == [2, 2]


def test_settings_reach_the_next_page_and_the_engine(play: Player, pdf: Pdf) -> None:
    p = play({"capacity": 1, "pages": [{**SHORT, "match": "*-[12]", "rate": 4}, SHORT]})
    p.add(pdf(4))
    p.session.start()
    p.heard.until_page("1-1", PageState.STREAMING)
    p.session.set_values(p.session.values.with_(dpi=72))
    p.heard.until_page("1-2", PageState.STREAMING)
    p.session.set_values(p.session.values.with_(ready_seconds=99))  # needs another engine
    p.heard.until_page("1-4", PageState.COMPLETE)
    pages = [p.heard.page(f"1-{number}") for number in (1, 2, 3, 4)]
    assert [page.width for page in pages if page] == [400, 200, 200, 200]
    assert [page.attempts for page in pages if page] == [1, 1, 1, 1]  # nothing was cut off
    states = [event.engine.state for event in p.heard.of(EngineUpdated)]
    first_ready = states.index(EngineState.READY)
    assert EngineState.LOADING in states[first_ready:]


def test_what_a_later_listener_is_told_first(play: Player, pdf: Pdf) -> None:
    from tests.jobs.conftest import Heard

    p = play({"capacity": 1, "pages": [{**SHORT, "finish": "loop", "match": "*-1"}, SLOW]})
    p.add(pdf(3))
    p.session.start()
    p.heard.until(lambda: any(event.page_id != "1-1" for event in p.heard.of(BlocksChanged))
                  and p.heard.finished_order() == ["1-1"])
    late = Heard()
    stop = p.session.subscribe(late)
    late.until(lambda: late.batches)
    first = late.batches[0]
    kinds = {type(event).__name__ for event in first}
    assert kinds >= {"DocumentAdded", "BlocksChanged", "RawText", "ProblemAdded",
                     "EngineUpdated", "ProgressUpdated"}
    pages = [late.page(f"1-{number}") for number in (1, 2, 3)]
    assert pages[0] is not None
    assert pages[0].state is PageState.LOOP
    assert PageState.STREAMING in [page.state for page in pages if page]
    stop()


def test_a_page_without_end_is_stopped(play: Player, pdf: Pdf,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop.jobs.reading.MAX_RAW", 5000)
    p = play({"pages": [{**SHORT, "repeat": 0, "rate": 2000, "delta": 100}]})
    p.add(pdf(1))
    p.finish()
    page = p.heard.page("1-1")
    assert page is not None
    assert page.state is PageState.LENGTH
    assert 5000 < len(p.session.page_result("1-1").result(PATIENCE).raw) < 50_000


def test_a_full_disk_pauses_and_loses_nothing(play: Player, pdf: Pdf) -> None:
    long = {"text": "<|ref|>text<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>\n" + "word " * 20_000,
            "rate": 0, "delta": 5000}
    p = play({"capacity": 1, "pages": [long]})
    p.add(pdf(3))
    assert p.session.wait(PATIENCE)
    database: Any = p.session._core.journal._db
    used = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {used + 10}")
    p.session.start()
    p.heard.until(lambda: any(event.problem.key == "journal"
                              for event in p.heard.of(ProblemAdded)))
    assert p.session.wait(PATIENCE)
    problem = next(event.problem.problem for event in p.heard.of(ProblemAdded)
                   if event.problem.key == "journal")
    assert problem.code == "journal.write_failed"
    assert p.heard.of(ProgressUpdated)[-1].progress.run is RunState.PAUSED
    database.execute("PRAGMA max_page_count = 1000000")
    p.finish()
    assert [page.state for page in map(p.heard.page, ("1-1", "1-2", "1-3")) if page] == [
        PageState.COMPLETE] * 3


def test_no_bitmap_is_left_and_never_more_than_the_window(play: Player, pdf: Pdf,
                                                          tmp_path: Path) -> None:
    p = play({"capacity": 2, "pages": [SHORT]})
    p.add(pdf(60))
    most = 0
    p.session.start()
    while not p.session.wait(0.02):
        most = max(most, len(list((tmp_path / "cache").rglob("*.ppm"))))
    assert 0 < most <= 2 + 2 + 1
    assert list((tmp_path / "cache").rglob("*.ppm")) == []
    p.session.close()
    assert list((tmp_path / "cache").iterdir()) == []
