"""A worker that dies, never starts, never gets ready or speaks nonsense – real processes."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from desktop.client.client import EngineClient, Patience, WorkerDied
from desktop.engines.script import SAMPLE
from desktop.protocol.messages import (
    EngineFailed,
    EngineLoading,
    Hello,
    LogLine,
    PageFinished,
    PageStarted,
)
from tests.client.recorder import QUICK, Recorder, Start, fault, page, script
from tests.support import processes

ONCE = Patience(deaths=1)


def test_a_killed_worker_gives_its_pages_back_and_they_are_done_again(start: Start) -> None:
    client, heard = start(fault("hang"), capacity=2)
    for page_id in ("p1", "p2", "p3"):
        client.submit(page(page_id))
    heard.streaming("p1")
    heard.streaming("p2")
    os.kill(heard.pid(), signal.SIGKILL)
    death = heard.died()
    assert death.pages == ("p1", "p2", "p3")
    assert death.problem.code in ("worker.killed", "worker.memory")
    assert death.restart_in == QUICK.first_pause
    for page_id in death.pages:
        client.submit(page(page_id, attempt=2, settings={"script": {"rate": 0}}))
    for page_id in death.pages:
        assert heard.finished(page_id).finish == "complete"
        assert heard.text(page_id) == SAMPLE
    assert len(heard.of(Hello)) == 2


def test_finished_pages_are_not_given_back(start: Start) -> None:
    client, heard = start({"match": "done", "rate": 0}, {"match": "deadly", **fault("kill", at=-1)})
    client.submit(page("done"))
    heard.finished("done")
    client.submit(page("deadly"))
    assert heard.died().pages == ("deadly",)


def test_what_was_sent_before_death_still_arrives(start: Start) -> None:
    client, heard = start({"match": "whole", "rate": 0}, {"match": "deadly", **fault("exit")},
                          capacity=1)
    client.submit(page("whole"))
    client.submit(page("deadly"))
    assert heard.died().pages == ("deadly",)
    assert heard.finished("whole").finish == "complete"
    assert heard.text("whole") == SAMPLE


@pytest.mark.parametrize(("kind", "code", "words", "detail"), [
    ("segv", "worker.crashed", "SIGSEGV, segmentation fault", "Fatal Python error"),
    ("abrt", "worker.crashed", "SIGABRT", "Fatal Python error"),
    ("exit", "worker.exited", "exit status 7", "last words")])
def test_the_way_it_died_is_told_in_words(
    start: Start, kind: str, code: str, words: str, detail: str,
) -> None:
    client, heard = start({"faults": [{"kind": "write-error", "at": 70, "text": "last words"},
                                      {"kind": kind, "at": 80, "status": 7}]})
    client.submit(page("p1"))
    problem = heard.died().problem
    assert problem.code == code
    assert words in problem.message
    assert detail in problem.detail
    assert "last words" in problem.detail


def test_after_deaths_in_a_row_it_stays_down_until_started(start: Start) -> None:
    client, heard = start(
        {"faults": [{"kind": "exit", "at": 0, "attempts": [1]}], "rate": 0},
        client={"patience": Patience(first_pause=0.05, longest_pause=0.1, deaths=3)})
    pauses = []
    for number in range(1, 4):
        client.submit(page("p1"))
        pauses.append(heard.died(number).restart_in)
    assert pauses == [0.05, 0.1, None]
    problem = heard.died(3).problem
    assert problem.code == "worker.keeps_dying"
    assert "3 times in a row" in problem.message
    client.submit(page("p2"))
    assert heard.died(4).pages == ("p2",)
    assert heard.died(4).restart_in is None
    assert len(heard.of(Hello)) == 3
    client.start("scripted", {})
    client.submit(page("p2"))
    assert heard.finished("p2").finish == "complete"


def test_a_finished_page_ends_the_row(start: Start) -> None:
    client, heard = start(
        {"match": "good", "rate": 0}, {"match": "bad", **fault("exit")},
        client={"patience": Patience(first_pause=0.05, longest_pause=1.0, deaths=2)})
    for number in range(1, 4):
        client.submit(page("good"))
        heard.wait(PageFinished, number, page_id="good")
        client.submit(page("bad"))
        assert heard.died(number).restart_in == 0.05


def test_the_pause_doubles_up_to_its_limit() -> None:
    pauses = [Patience(deaths=9).pause(deaths) for deaths in range(1, 10)]
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30, None]


def test_an_engine_that_died_is_started_again(start: Start) -> None:
    client, heard = start({"match": "p1", "faults": [{"kind": "died", "at": 50, "attempts": [1]}]},
                          {"match": "p2", **fault("hang")})
    client.submit(page("p2"))
    heard.streaming("p2")
    client.submit(page("p1"))
    failed = heard.wait(EngineFailed)
    assert (failed.problem.code, failed.fatal) == ("engine.died", False)
    death = heard.died()
    assert sorted(death.pages) == ["p1", "p2"]
    assert death.problem.code == "engine.died"
    assert death.restart_in is not None
    client.submit(page("p1", attempt=2))
    assert heard.finished("p1").finish == "complete"


# --- starting


def test_an_engine_that_cannot_start_says_why_and_stays_down(start: Start) -> None:
    client, heard = start(load={"faults": [
        {"kind": "raise", "code": "engine.no_model", "message": "No model.", "hint": "Get it."}]})
    client.submit(page("p1"))
    failed = heard.wait(EngineFailed)
    assert failed.fatal
    death = heard.died()
    assert death.problem[:3] == ("engine.no_model", "No model.", "Get it.")
    assert death.restart_in is None
    assert death.pages == ("p1",)


def test_a_start_that_failed_for_a_passing_reason_is_tried_again(
    start: Start, tmp_path: Path,
) -> None:
    _, heard = start(load={"faults": [{"kind": "died", "once": str(tmp_path / "failed")}]})
    assert heard.died().restart_in == QUICK.first_pause
    assert heard.ready()


def test_an_unforeseen_error_while_loading_is_told_with_its_trace(start: Start) -> None:
    _, heard = start(load={"faults": [{"kind": "crash"}]}, client={"patience": ONCE})
    failed = heard.wait(EngineFailed)
    assert (failed.problem.code, failed.fatal) == ("engine.crashed", False)
    assert "ZeroDivisionError" in failed.problem.detail
    assert heard.died().problem.code == "worker.keeps_dying"


def test_an_unknown_engine_is_told(start: Start) -> None:
    _, heard = start(engine="no such engine")
    assert heard.died().problem.code == "engine.unknown"
    assert heard.died().restart_in is None


def overdue(client: EngineClient) -> None:
    """The time in which the engine was to get ready, which has begun, is over."""
    life = client._running
    assert life is not None
    left = life._ready_at - time.monotonic()
    assert 0 < left <= LIMIT
    life._ready_at = time.monotonic() - 1
    life.wake()


LIMIT = 500
"""Seconds within which an engine must be ready; no test lasts as long."""


def unread(connection: socket.socket) -> bytes:
    """What has come and waits to be read."""
    try:
        return connection.recv(65536, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return b""


@pytest.mark.parametrize("kind", ["hang", "block", "stuck"])
def test_an_engine_that_is_never_ready_is_given_up(start: Start, kind: str) -> None:
    client, heard = start(load={"steps": ["Reading weights"], "seconds": 0.2, "faults": [
        {"kind": "write-error", "text": "from here on"}, {"kind": kind}]},
        settings={"ready_seconds": LIMIT})
    client.submit(page("p1"))
    heard.wait(EngineLoading, step="Reading weights")
    heard.wait(LogLine, text="from here on")
    overdue(client)
    death = heard.died()
    assert death.problem.code == "engine.ready_timeout"
    assert f"{LIMIT} s" in death.problem.message
    assert "Reading weights" in death.problem.message
    assert "Engine start limit" in death.problem.hint
    assert "--ready-seconds" in death.problem.hint
    assert death.pages == ("p1",)
    assert death.restart_in is None
    assert heard.of(EngineLoading)[0].step == "Reading weights"


def test_an_engine_that_got_ready_while_nobody_listened_is_not_given_up() -> None:
    """As when the machine, or the application alone, had no turn for longer than the limit."""
    heard, held = Recorder(), []

    def listen(event: Any) -> None:
        heard(event)
        if isinstance(event, EngineLoading) and not held:
            held.append(event)
            life = client._running
            assert life is not None
            assert life._process is not None
            with socket.socket(fileno=os.dup(life._process.channel.fileno())) as connection:
                processes.until(lambda: b"said when it is ready" in unread(connection))
            overdue(client)

    client = EngineClient(listen, patience=QUICK)
    client.start("scripted", {
        **script({"rate": 0}, load={"steps": ["Loading"], "seconds": 0.2},
                 model="said when it is ready"), "ready_seconds": LIMIT})
    try:
        heard.ready()
        client.submit(page("p1"))
        heard.until(lambda _: heard.of(PageFinished) or heard.of(WorkerDied))
        assert held
        assert not heard.of(WorkerDied)
    finally:
        client.close()


# --- interpreters that are none, or speak otherwise


@pytest.fixture
def interpreter(tmp_path: Path) -> Path:
    """A script that a test writes, to be run as the worker's interpreter."""
    path = tmp_path / "interpreter"
    path.touch(mode=0o755)
    return path


def python(path: Path, code: str) -> None:
    """Let the interpreter run CODE instead of the worker; sys.argv[-1] is the descriptor."""
    path.write_text(f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {os.getcwd()!r})\n{code}")


def test_no_interpreter(start: Start, tmp_path: Path) -> None:
    _, heard = start(client={"interpreter": str(tmp_path / "none")})
    assert heard.died().problem.code == "worker.interpreter"
    assert str(tmp_path / "none") in heard.died().problem.message


def test_an_interpreter_that_ends_at_once(start: Start, interpreter: Path) -> None:
    interpreter.write_text("#!/bin/sh\necho 'No module named msgspec' >&2\nexit 3\n")
    _, heard = start(client={"interpreter": str(interpreter)})
    death = heard.died()
    assert death.problem.code == "worker.start"
    assert str(interpreter) in death.problem.message
    assert "No module named msgspec" in death.problem.detail
    assert death.restart_in is None


def test_an_interpreter_that_says_nothing(start: Start, interpreter: Path) -> None:
    interpreter.write_text("#!/bin/sh\nexec sleep 60\n")
    _, heard = start(client={"interpreter": str(interpreter), "patience": Patience(hello=0.5)})
    assert heard.died().problem.code == "worker.silent"
    assert heard.died().restart_in is None


def test_another_version_of_the_protocol(start: Start, interpreter: Path) -> None:
    python(interpreter, "import desktop.protocol.messages as m\nm.VERSION = 99\n"
                        "from desktop.worker.main import main\nmain(sys.argv[-1:])\n")
    client, heard = start(client={"interpreter": str(interpreter)})
    client.submit(page("p1"))
    death = heard.died()
    assert death.problem.code == "protocol.version"
    assert "99" in death.problem.message
    assert death.pages == ("p1",)
    assert death.restart_in is None


@pytest.mark.parametrize("junk", ["b'\\x00\\x00\\x00\\x05junk!'", "b'junk on the wire'",
                                  "b'\\xff\\xff\\xff\\xff' + bytes(8)"])
def test_nonsense_on_the_wire_ends_the_worker(
    start: Start, interpreter: Path, junk: str,
) -> None:
    python(interpreter, f"import os, time\nos.write(int(sys.argv[-1]), {junk})\ntime.sleep(60)\n")
    _, heard = start(client={"interpreter": str(interpreter), "patience": ONCE})
    problem = heard.died().problem
    assert problem.code == "worker.keeps_dying"
    assert "does not understand" in problem.message


def test_a_process_that_breaks_off_its_connection_is_replaced(
    start: Start, interpreter: Path,
) -> None:
    python(interpreter, "import os, time\nos.close(int(sys.argv[-1]))\ntime.sleep(60)\n")
    _, heard = start(client={"interpreter": str(interpreter), "patience": ONCE})
    assert "broke off its connection" in heard.died().problem.message


# --- other settings


def test_starting_with_other_settings_gives_pages_back(start: Start) -> None:
    client, heard = start(fault("hang"), model="old")
    client.submit(page("p1"))
    heard.streaming("p1")
    client.start("scripted", {"script": '{"model": "new", "pages": [{"text": "x", "rate": 0}]}'})
    client.submit(page("p1"))
    death = heard.died()
    assert (death.pages, death.restart_in, death.problem.code) == (("p1",), 0.0, "worker.restarted")
    assert heard.finished("p1").finish == "complete"
    assert heard.ready(2).model == "new"
    assert heard.text("p1") == "x"
    assert len(heard.of(PageStarted)) == 2


def test_pages_submitted_before_the_start_are_kept_for_it(start: Start) -> None:
    client, heard = start({"rate": 0})
    client.close()
    client.submit(page("early"))
    client.start("scripted", {})
    assert heard.finished("early").finish == "complete"


def test_a_page_in_flight_is_not_taken_twice(start: Start) -> None:
    client, _ = start(fault("hang"))
    client.submit(page("p1"))
    with pytest.raises(ValueError, match="in flight"):
        client.submit(page("p1"))
