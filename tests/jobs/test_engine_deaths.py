"""The engine dies, falls silent or does not start: pages come back, and none is lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from desktop.client.client import WorkerDied
from desktop.client.endings import KeepsDying
from desktop.engines.remote.errors import ServersGone
from desktop.jobs.engine import EngineLink
from desktop.jobs.events import (
    EngineState,
    EngineUpdated,
    EngineView,
    PageCleared,
    PageState,
    ProblemAdded,
    RawText,
    SessionEvent,
)
from desktop.protocol.messages import EngineFailed, EngineLoading, LogLine, ProblemData
from desktop.settings import Values
from tests.jobs.conftest import PATIENCE, SHORT, Pdf, Player


def test_the_worker_dies_and_the_page_is_done_again(play: Player, pdf: Pdf) -> None:
    hang = {"kind": "hang", "at": 60, "attempts": [1]}
    p = play({"capacity": 1, "pages": [{**SHORT, "match": "*-2", "faults": [hang]}, SHORT]})
    p.add(pdf(3))
    p.session.start()
    p.heard.until(lambda: any(event.page_id == "1-2" for event in p.heard.of(RawText)))
    p.worker().kill()
    assert p.session.wait(PATIENCE)
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


def test_an_engine_whose_core_died_is_started_again_and_its_pages_come_back(
        play: Player, pdf: Pdf) -> None:
    died = {"kind": "died", "at": 60, "detail": "EngineCore died: exit status -9"}
    p = play({"capacity": 2, "pages": [
        {**SHORT, "match": "*-2", "rate": 300, "delta": 4,
         "faults": [{**died, "attempts": [1]}]},
        {**SHORT, "match": "*-3", "rate": 300, "delta": 4, "faults": [died]},
        {**SHORT, "rate": 20}]})
    p.add(pdf(4))
    p.finish()
    pages = [p.heard.page(f"1-{number}") for number in (1, 2, 3, 4)]
    assert [page.state for page in pages if page] == [
        PageState.COMPLETE, PageState.COMPLETE, PageState.FAILED, PageState.COMPLETE]
    assert pages[2] is not None
    assert pages[2].problem is not None
    assert (pages[2].problem.code, pages[2].attempts) == ("page.worker_died", 3)
    assert p.session.page_result("1-2").result(PATIENCE).raw == SHORT["text"]
    restarting = [event.engine for event in p.heard.of(EngineUpdated)
                  if event.engine.state is EngineState.RESTARTING]
    pauses = [engine.retry_in for engine in restarting if engine.retry_in]
    assert len(pauses) >= 3
    assert {engine.problem.code for engine in restarting if engine.problem} == {"engine.died"}


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
        {**SHORT, "rate": 20, "match": "*-2"}, SHORT]})

    def patient(batch: Sequence[SessionEvent]) -> None:
        """The limit holds for the first attempt alone: the next may be as slow as it likes."""
        if PageCleared("1-1") in batch:
            p.session.set_values(p.session.values.with_(stall_seconds=600))

    p.session.subscribe(patient)
    p.add(pdf(4))
    p.session.start()
    for page_id in ("1-2", "1-3", "1-4"):
        p.heard.until_page(page_id, PageState.COMPLETE)
    p.heard.until(lambda: any(event.page_id == "1-1" for event in p.heard.of(RawText)))
    p.session.set_values(p.session.values.with_(stall_seconds=1))
    assert p.session.wait(PATIENCE)
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
    for page_id in ("1-2", "1-3"):
        p.heard.until_page(page_id, PageState.COMPLETE)
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


def test_an_engine_that_was_given_up_does_not_say_that_it_tries_again() -> None:
    class Owner:
        def engine_changed(self, view: EngineView) -> None: ...
        def engine_log(self, line: LogLine) -> None: ...
        def worker_died(self, event: WorkerDied) -> None: ...
        def page_event(self, event: object) -> None: ...

    link = EngineLink(Owner(), lambda function: function(), Values({"engine": "remote"}), {}, None)
    said = ServersGone(reason="gpu1: no answer.", fix=(("servers", "x"),)).problem()
    assert "tries again" in said.hint
    link._handle(EngineFailed(ProblemData(*said), fatal=False))
    link._handle(WorkerDied(said, (), 8.0))
    assert link.view.problem == said  # it does try again
    link._handle(EngineLoading("Asking the servers"))
    link._handle(EngineFailed(ProblemData(*said), fatal=False))
    end = KeepsDying(count=5, last=said.message).problem()
    link._handle(WorkerDied(end, (), None))
    assert link.failed
    assert link.view.problem is not None
    assert link.view.problem.line() == end.line()
    assert "gpu1: no answer" in link.view.problem.message
    # What can be done about it is still known.
    assert (link.view.problem.code, link.view.problem.fix) == ("remote.gone", said.fix)
