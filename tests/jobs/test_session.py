"""The session at work: real drawing processes, a real worker that plays a script."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from desktop.client.client import EngineClient
from desktop.jobs.errors import JournalBusy, SessionClosed
from desktop.jobs.events import (
    BlocksChanged,
    DocumentState,
    EngineState,
    EngineUpdated,
    PageRegionsFound,
    PageState,
    ProblemAdded,
    ProgressUpdated,
    QueueFinished,
    RawText,
    RunState,
)
from desktop.jobs.session import Session
from desktop.protocol.messages import SubmitPage
from desktop.settings import Values
from tests.jobs.conftest import FIGURE, PATIENCE, SHORT, SLOW, Gates, Pdf, Play, Player


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


def test_other_settings_redo_pages_only_when_that_is_asked_for(play: Player, pdf: Pdf) -> None:
    path = pdf(2)
    p = play()
    p.add(path)
    p.finish()

    def attempts(p: Play) -> list[int]:
        assert p.session.wait(PATIENCE)
        return [page.attempts for page in map(p.heard.page, ("1-1", "1-2")) if page]

    p = play(dpi=96, proxy="http://user:hunter2@proxy")
    p.session.start()
    p.add(path)
    assert attempts(p) == [1, 1]
    p.add(path, redo_outdated=True)
    assert attempts(p) == [2, 2]
    noted = p.session.document_result(1).result(PATIENCE).settings
    assert (noted["dpi"], noted["proxy"]) == (96, "http://…@proxy")
    p = play(dpi=96, concurrency=2)  # what cannot change a result redoes nothing
    p.session.start()
    p.add(path, redo_outdated=True)
    assert attempts(p) == [2, 2]


def test_settings_reach_the_next_page_and_the_engine(
        play: Player, pdf: Pdf, gates: Gates) -> None:
    first, others = gates(), gates()
    p = play({"capacity": 1, "pages": [{**SHORT, "match": "*-1", "faults": [first.at(30)]},
                                       {**SHORT, "faults": [others.at(30)]}]})
    p.add(pdf(4))
    p.session.start()
    p.heard.until_page("1-1", PageState.STREAMING)
    p.session.set_values(p.session.values.with_(dpi=72))
    p.session.page_result("1-1").result(PATIENCE)  # behind it: the others have been taken back
    first.open()
    p.heard.until(lambda: any(page.state is PageState.STREAMING for page in map(
        p.heard.page, ("1-2", "1-3", "1-4")) if page))
    p.session.set_values(p.session.values.with_(ready_seconds=99))  # needs another engine
    p.session.page_result("1-1").result(PATIENCE)
    others.open()
    assert p.session.wait(PATIENCE)
    pages = [p.heard.page(f"1-{number}") for number in (1, 2, 3, 4)]
    assert [page.state for page in pages if page] == [PageState.COMPLETE] * 4
    assert [page.width for page in pages if page] == [400, 200, 200, 200]
    assert [page.attempts for page in pages if page] == [1, 1, 1, 1]  # nothing was cut off
    states = [event.engine.state for event in p.heard.of(EngineUpdated)]
    first_ready = states.index(EngineState.READY)
    assert EngineState.LOADING in states[first_ready:]


def test_it_is_told_which_settings_the_running_engine_does_not_have_yet(
        play: Player, pdf: Pdf) -> None:
    p = play()

    def told() -> object:
        told = p.heard.of(EngineUpdated)
        return (told[-1].engine.state, told[-1].engine.outdated) if told else None

    p.session.set_values(p.session.values.with_(ready_seconds=98))  # none runs
    p.session.warm_up()
    p.heard.until(lambda: told() == (EngineState.READY, ()))
    p.session.set_values(p.session.values.with_(ready_seconds=99))
    p.heard.until(lambda: told() == (EngineState.READY, ("ready_seconds",)))
    p.session.set_values(p.session.values.with_(ready_seconds=98))
    p.heard.until(lambda: told() == (EngineState.READY, ()))
    p.session.set_values(p.session.values.with_(ready_seconds=99))
    p.add(pdf(1))
    p.finish()
    assert p.heard.finished_order() == ["1-1"]
    assert told() == (EngineState.READY, ())


def test_the_engine_is_told_whether_a_page_is_of_a_document_or_an_image(
    play: Player, pdf: Pdf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    sources: dict[str, Any] = {}
    submit = EngineClient.submit

    def noted(client: EngineClient, page: SubmitPage) -> None:
        sources[page.page_id] = page.settings["source"]
        submit(client, page)

    monkeypatch.setattr(EngineClient, "submit", noted)
    image = tmp_path / "photo.png"
    drawing = Image.new("RGB", (300, 100), "white")
    ImageDraw.Draw(drawing).text((20, 20), "Something to read", "black", font_size=24)
    drawing.save(image)
    p = play({"pages": [SHORT]})
    p.add(pdf(1))
    p.add(image)
    p.session.start()
    p.heard.until_page("1-1", PageState.COMPLETE)
    p.heard.until_page("2-1", PageState.COMPLETE)
    assert sources == {"1-1": "pdf", "2-1": "image"}


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


def test_a_full_disk_pauses_and_loses_nothing(play: Player, pdf: Pdf) -> None:
    long = {"text": " ".join(f"word{number * number}" for number in range(10_000)),
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
