"""Pages through a real worker: text, order, cancelling, junk, floods."""

from __future__ import annotations

import time

import psutil
import pytest

from desktop.client.client import EngineClient, Patience, WorkerDied
from desktop.engines.script import SAMPLE
from desktop.protocol.messages import (
    BlockConfidence,
    LogLine,
    PageFinished,
    PageOriented,
    PageRegions,
    PageStarted,
    PageText,
)
from desktop.worker.stream import INTERVAL
from tests.client.recorder import Recorder, Start, fault, page


def test_a_page_streams_and_ends(start: Start) -> None:
    client, heard = start({"rate": 400, "regions": True, "clockwise": 90, "confidence": 0.5,
                           "prompt_tokens": 1121}, model="a model", capacity=3)
    client.submit(page("p1"))
    end = heard.finished("p1")
    assert heard.ready().model == "a model"
    assert heard.ready().capacity == 3
    assert heard.text("p1") == SAMPLE
    assert end.finish == "complete"
    assert end.problem is None
    assert 0 < end.first_text < end.seconds
    assert end.prompt_tokens == 1121
    assert end.output_tokens == sum(event.tokens for event in heard.of(PageText)) > 10
    kinds = [type(event) for event in heard.events if getattr(event, "page_id", "") == "p1"]
    assert kinds[:4] == [PageStarted, PageOriented, PageRegions, PageText]
    assert kinds[-5:] == [BlockConfidence] * 4 + [PageFinished]
    assert len(heard.of(PageRegions)[0].regions) == 4


def test_text_is_joined_but_the_first_piece_is_not_kept_waiting(start: Start) -> None:
    client, heard = start({"rate": 2000, "delta": 1, "repeat": 4})
    client.submit(page("p1"))
    end = heard.finished("p1")
    pieces = heard.of(PageText)
    assert len(pieces[0].text) == 1
    assert heard.text("p1") == SAMPLE * 4
    assert len(pieces) <= end.seconds / INTERVAL + 2  # the first, and the last at the end


def test_an_error_fails_its_page_and_no_other(start: Start) -> None:
    client, heard = start(
        {"match": "bad", **fault("raise", code="x.y", message="No.", hint="So?", detail="d")},
        {"match": "ugly", **fault("crash", detail="nobody saw it coming")},
        {"match": "good", "rate": 0})
    for page_id in ("bad", "ugly", "good"):
        client.submit(page(page_id))
    bad, ugly, good = (heard.finished(page_id) for page_id in ("bad", "ugly", "good"))
    assert bad.problem is not None
    assert (bad.finish, *bad.problem.__rich_repr__()) == (
        "failed", ("code", "x.y"), ("message", "No."), ("hint", "So?"), ("detail", "d"),
        ("fix", ()))
    assert ugly.problem is not None
    assert (ugly.finish, ugly.problem.code) == ("failed", "engine.page")
    assert "ZeroDivisionError: nobody saw it coming" in ugly.problem.detail
    assert good.finish == "complete"
    assert heard.text("bad") == SAMPLE[:80]
    assert not heard.of(WorkerDied)


def test_a_page_brings_its_own_rule(start: Start) -> None:
    client, heard = start()
    client.submit(page("p1", settings={"script": {"text": "mine", "rate": 0}}))
    assert heard.finished("p1").finish == "complete"
    assert heard.text("p1") == "mine"


# --- order and number


def test_pages_begin_in_order_of_priority_and_the_raised_one_first(start: Start) -> None:
    client, heard = start({"match": "before", **fault("hang")}, {"rate": 400}, capacity=1,
                          settings={"concurrency": 1})
    client.submit(page("before"))
    heard.streaming("before")
    for page_id in ("p1", "p2", "p3", "p4"):
        client.submit(page(page_id))
    client.submit(page("urgent", priority=0))
    client.raise_page("p4")
    client.raise_page("never heard of")
    client.cancel("before")
    for page_id in ("p1", "p2", "p3", "p4", "urgent"):
        heard.finished(page_id)
    assert heard.started() == ["before", "p4", "urgent", "p1", "p2", "p3"]


def most_at_once(heard: Recorder) -> int:
    now = most = 0
    for event in heard.events:
        now += isinstance(event, PageStarted) - isinstance(event, PageFinished)
        most = max(most, now)
    return most


@pytest.mark.parametrize(("settings", "asked", "expected"), [
    ({}, None, 3), ({"concurrency": 2}, None, 2), ({"concurrency": 2}, 4, 4),
    ({"concurrency": 2}, 0, 3)])
def test_no_more_pages_at_once_than_wanted(
    start: Start, settings: dict[str, int], asked: int | None, expected: int,
) -> None:
    client, heard = start({"rate": 200}, capacity=3, settings=settings)
    if asked is not None:
        client.set_concurrency(asked)
    for number in range(8):
        client.submit(page(f"p{number}"))
    for number in range(8):
        heard.finished(f"p{number}")
    assert most_at_once(heard) == expected


def test_concurrency_changes_while_pages_are_read(start: Start) -> None:
    client, heard = start(fault("hang"), capacity=1)
    for number in range(4):
        client.submit(page(f"p{number}"))
    heard.streaming("p0")
    assert heard.started() == ["p0"]
    client.set_concurrency(4)
    for number in range(4):
        heard.streaming(f"p{number}")
    assert not heard.of(PageFinished)


# --- cancelling


def test_a_hanging_page_is_cancelled_and_the_next_begins(start: Start) -> None:
    client, heard = start({"match": "stuck", **fault("hang")}, {"match": "next"}, capacity=1)
    client.submit(page("stuck"))
    client.submit(page("next"))
    heard.until(lambda _: heard.text("stuck") == SAMPLE[:80])
    client.cancel("stuck")
    client.cancel("stuck")
    assert heard.finished("stuck").finish == "cancelled"
    assert heard.finished("next").finish == "complete"


def test_a_waiting_page_is_cancelled_at_once(start: Start) -> None:
    client, heard = start(fault("hang"), capacity=1)
    client.submit(page("p1"))
    client.submit(page("p2"))
    heard.streaming("p1")
    client.cancel("p2")
    assert heard.finished("p2").finish == "cancelled"
    assert heard.started() == ["p1"]


def test_a_page_cancelled_before_the_worker_is_there_never_begins(start: Start) -> None:
    client, heard = start({"rate": 0})
    client.submit(page("p1"))
    client.submit(page("p2"))
    client.cancel("p1")
    assert heard.finished("p1").finish == "cancelled"
    assert heard.finished("p2").finish == "complete"
    assert heard.started() == ["p2"]


@pytest.mark.parametrize("endless", [{"repeat": 0, "rate": 0}, {"repeat": 0, "rate": 500},
                                     fault("loop")])
def test_an_endless_page_is_cancelled(start: Start, endless: dict[str, object]) -> None:
    client, heard = start({"match": "endless", **endless}, {"match": "other", "rate": 0})
    client.submit(page("endless"))
    heard.streaming("endless")
    client.submit(page("other"))
    assert heard.finished("other").finish == "complete"
    client.cancel("endless")
    assert heard.finished("endless").finish == "cancelled"
    client.submit(page("endless"))
    heard.wait(PageStarted, 2, page_id="endless")


def test_a_worker_that_ignores_a_cancel_is_replaced(start: Start) -> None:
    faults = [{"kind": "write-error", "text": "blocking"}, {"kind": "block"}]
    client, heard = start({"match": "deaf", "faults": faults}, {"match": "other", **fault("hang")},
                          client={"patience": Patience(first_pause=0.1, cancel=0.5)})
    client.submit(page("other"))
    heard.streaming("other")
    client.submit(page("deaf"))
    heard.wait(LogLine, text="blocking")
    client.cancel("deaf")
    assert heard.finished("deaf").finish == "cancelled"
    death = heard.died()
    assert death.problem.code == "worker.hung"
    assert death.pages == ("other",)
    client.submit(page("other", settings={"script": {"text": "now", "rate": 0}}))
    assert heard.finished("other").finish == "complete"


# --- junk and floods


def test_junk_on_its_output_never_harms_a_page(start: Start) -> None:
    client, heard = start({"rate": 0, "faults": [
        {"kind": "print", "at": 10, "text": "python says"},
        {"kind": "print-error", "at": 20, "text": "python warns\x1b[31m in red"},
        {"kind": "write", "at": 30, "lines": 3},
        {"kind": "write-error", "at": 40, "text": "native warns"},
        {"kind": "log", "at": 50, "text": "logged"},
        {"kind": "write", "at": 60, "text": "10%\r20%"}]})
    client.submit(page("p1"))
    assert heard.finished("p1").finish == "complete"
    assert heard.text("p1") == SAMPLE
    for line in ("python says", "python warns in red", "native warns", "logged", "20%"):
        heard.until(lambda _, line=line: any(text.endswith(line) for text in heard.log()))
    assert all(text.isprintable() for text in heard.log())


def test_a_flood_of_junk_is_thinned_out_and_holds_nothing_up(start: Start) -> None:
    client, heard = start({"rate": 0, "faults": [
        {"kind": "write", "at": 10, "text": "x" * 120, "lines": 100_000},
        {"kind": "log", "at": 20, "lines": 20_000}]})
    client.submit(page("p1"))
    assert heard.finished("p1").finish == "complete"
    assert heard.text("p1") == SAMPLE
    assert 100 < len(heard.log()) < 5_000


def growth(client_pid: int, seconds: float) -> int:
    """Bytes by which a process has grown."""
    process = psutil.Process(client_pid)
    before = process.memory_info().rss
    time.sleep(seconds)
    return process.memory_info().rss - before


def test_2000_deltas_a_second_arrive_whole_in_bounded_memory(start: Start) -> None:
    client, heard = start({"rate": 250, "delta": [4, 40], "repeat": 0}, capacity=8)
    for number in range(8):
        client.submit(page(f"p{number}"))
    for number in range(8):
        heard.streaming(f"p{number}")
    assert growth(heard.pid(), 3.0) < 16 << 20
    for number in range(8):
        heard.until(lambda _, name=f"p{number}": len(heard.text(name)) > 3 * 250 * 4)
    for number in range(8):
        client.cancel(f"p{number}")
    for number in range(8):
        end = heard.finished(f"p{number}")
        messages = [event for event in heard.of(PageText) if event.page_id == f"p{number}"]
        text = heard.text(f"p{number}")
        # Joined, by the clock of who sends them; the first, the last and large ones do not wait.
        assert len(messages) <= end.seconds / INTERVAL + 2 + len(text) / 16384
        assert (SAMPLE * (len(text) // len(SAMPLE) + 1)).startswith(text)


def test_a_slow_listener_holds_the_engine_up_instead_of_filling_memory(start: Start) -> None:
    _, heard = start()
    heard.ready()

    def slowly(event: object) -> None:
        heard(event)  # type: ignore[arg-type]
        if isinstance(event, PageText):
            time.sleep(0.05)

    client = EngineClient(slowly)
    client.start("scripted", {"script": '{"pages": [{"rate": 0, "repeat": 0, "delta": 5000}]}'})
    client.submit(page("p1"))
    try:
        heard.until(lambda _: len(heard.of(PageText)) > 5)
        # An engine that is not held up makes more than a hundred megabytes in this time.
        assert growth(heard.pid(), 1.5) < 16 << 20
    finally:
        client.close()
