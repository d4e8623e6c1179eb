"""No process stays behind, whenever and however the end comes.

Every test here uses ``no_process_left`` (through ``start``): it fails when a process that
descends from the test still runs ten seconds after it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from desktop.client import life
from desktop.client.client import EngineClient
from desktop.protocol.messages import EngineLoading, Hello, LogLine, PageStarted, PageText
from tests.client.recorder import QUICK, Recorder, Start, fault, page, script
from tests.support import processes


@pytest.mark.parametrize("delay", [0, 0.01, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("load", [{"seconds": 0.1}, {"children": 1, "faults": [{"kind": "hang"}]}])
def test_closed_at_any_moment_of_the_start(
    start: Start, no_process_left: Callable[[], list[str]], load: dict[str, Any], delay: float,
) -> None:
    client, heard = start({"rate": 50}, load=load)
    client.submit(page("p1"))
    time.sleep(delay)
    client.close()
    assert not no_process_left()
    count = len(heard.events)
    time.sleep(0.05)
    assert len(heard.events) == count


@pytest.mark.parametrize("kind", ["hang", "block", "stuck"])
def test_closed_while_the_engine_does_not_listen(
    start: Start, no_process_left: Callable[[], list[str]], kind: str,
) -> None:
    client, heard = start({"wait": 0.2, **fault(kind, at=0)}, load={"children": 1, "detached": 1})
    client.submit(page("p1"))
    heard.wait(PageStarted)
    processes.until(lambda: sum("sleep 3600" in line for line in no_process_left()) == 2)
    client.close(1.0)
    assert not no_process_left()


def test_closed_while_the_worker_is_stopped(
    start: Start, no_process_left: Callable[[], list[str]],
) -> None:
    client, heard = start(load={"children": 1})
    heard.ready()
    os.kill(heard.pid(), signal.SIGSTOP)
    client.close(0.5)
    assert not no_process_left()


def test_closed_during_the_pause_before_a_restart(
    start: Start, no_process_left: Callable[[], list[str]],
) -> None:
    client, heard = start(fault("exit"), client={"patience": QUICK.__class__(first_pause=20)})
    client.submit(page("p1"))
    assert heard.died().restart_in == 20
    client.close()
    assert not no_process_left()


def test_closed_while_the_listener_is_stuck(no_process_left: Callable[[], list[str]]) -> None:
    stuck, release = threading.Event(), threading.Event()

    def listen(event: object) -> None:
        if isinstance(event, PageText):
            stuck.set()
            release.wait(60)

    client = EngineClient(listen)
    client.start("scripted", script({"rate": 50}))
    client.submit(page("p1"))
    assert stuck.wait(120)
    closing = threading.Thread(target=client.close, args=(0.5,))
    closing.start()
    processes.until(lambda: not any("desktop.worker" in line for line in no_process_left()))
    release.set()
    closing.join()
    assert not no_process_left()


def test_closed_from_within_an_event(no_process_left: Callable[[], list[str]]) -> None:
    closed = threading.Event()

    def listen(event: object) -> None:
        if isinstance(event, Hello):
            client.close()
            closed.set()

    client = EngineClient(listen)
    client.start("scripted", {})
    assert closed.wait(120)
    client.close()
    assert not no_process_left()


def test_closing_twice_and_starting_again(start: Start) -> None:
    client, heard = start({"rate": 0})
    heard.ready()
    client.close()
    client.close()
    client.start("scripted", {})
    client.submit(page("p1"))
    assert heard.finished("p1").finish == "complete"
    assert len({event.pid for event in heard.of(Hello)}) == 2


def test_started_anew_many_times_in_a_row(
    start: Start, no_process_left: Callable[[], list[str]],
) -> None:
    client, heard = start(load={"seconds": 0.2})
    for number in range(5):
        time.sleep(0.03 * number)
        client.start("scripted", {"script": f'{{"model": "m{number}"}}'})
    heard.until(lambda _: any(event.model == "m4" for event in heard.of(type(heard.ready()))))
    assert sum("desktop.worker" in line for line in no_process_left()) == 1


def test_what_the_engine_started_does_not_outlive_a_killed_worker(
    start: Start, no_process_left: Callable[[], list[str]],
) -> None:
    client, heard = start(load={"children": 2, "detached": 2})
    heard.ready()
    # A program that has just been started may show neither its name nor its variables yet.
    processes.until(lambda: sum("sleep 3600" in line for line in no_process_left()) == 4)
    os.kill(heard.pid(), signal.SIGKILL)
    heard.ready(2)
    processes.until(lambda: sum("sleep 3600" in line for line in no_process_left()) == 4)
    client.close()
    assert not no_process_left()


@pytest.mark.parametrize("end", ["close", "kill"])
def test_what_ends_by_itself_after_the_worker_is_given_the_time(
    start: Start, tmp_path: Path, end: str, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(life, "_SETTLE", 60.0)  # On a busy machine a shell takes its time.
    done = tmp_path / "released"
    client, heard = start(load={"commands": [["sh", "-c", f"read _; sleep 0.1; : > '{done}'"]]})
    heard.ready()
    if end == "close":
        client.close(120)
    else:
        os.kill(heard.pid(), signal.SIGKILL)
        heard.died()
    assert done.exists()


# --- the application dies

APPLICATION = """
import sys, threading, time
from desktop.client.client import EngineClient
from desktop.protocol.messages import *
begun = threading.Event()
def on_event(event):
    if isinstance(event, PageStarted):
        begun.set()
client = EngineClient(on_event)
client.start("scripted", {"script": sys.argv[1]})
client.submit(SubmitPage("p1", "/nowhere", 1, 1))
print(begun.wait(120), flush=True)
%s
"""


def application(settings: dict[str, Any], after: str = "time.sleep(600)") -> subprocess.Popen[str]:
    """A process that runs a client, up to where its page has begun."""
    process = subprocess.Popen(
        [sys.executable, "-c", APPLICATION % after, settings["script"]],
        stdout=subprocess.PIPE, text=True, cwd=processes.ROOT)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "True"
    return process


@pytest.mark.parametrize("kind", ["flood", "hang", "block", "stuck"])
def test_the_application_killed_leaves_no_process(
    no_process_left: Callable[[], list[str]], kind: str,
) -> None:
    process = application(script(
        {"repeat": 0, "wait": 0.3, **fault(kind, at=0)}, load={"children": 1, "detached": 1}))
    processes.until(lambda: len(no_process_left()) >= 4)
    process.kill()
    process.communicate()
    # no_process_left waits and fails the test.


@pytest.mark.parametrize("victim", ["worker", "guard"])
def test_nor_when_worker_or_guard_were_stopped_before(
    no_process_left: Callable[[], list[str]], victim: str,
) -> None:
    process = application(script({"rate": 5}, load={"children": 1}))
    sign = {"worker": "desktop.worker", "guard": "verso-guard"}[victim]
    found = [child for child in psutil.Process(process.pid).children()
             if sign in " ".join(child.cmdline())]
    assert len(found) == 1
    if victim == "worker":
        found[0].suspend()
    else:
        found[0].kill()
    process.kill()
    process.communicate()


def test_an_application_that_ends_without_closing(
    no_process_left: Callable[[], list[str]],
) -> None:
    process = application(script({"rate": 5}, load={"children": 1}), after="time.sleep(0.1)")
    process.communicate()
    assert process.returncode == 0


# --- threads


def test_many_threads_at_once(start: Start) -> None:
    client, heard = start({"rate": 0, "delta": 60}, capacity=8)

    def submit(sender: int) -> None:
        for number in range(25):
            client.submit(page(f"{sender}-{number}"))
            client.raise_page(f"{sender}-{number - 3}")
            client.set_concurrency(1 + number % 8)
            if number % 5 == 0:
                client.cancel(f"{sender}-{number}")

    threads = [threading.Thread(target=submit, args=(sender,)) for sender in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ends = {page_id: heard.finished(page_id).finish
            for page_id in (f"{sender}-{number}" for sender in range(6) for number in range(25))}
    assert set(ends.values()) <= {"complete", "cancelled"}
    assert all(finish == "complete" for page_id, finish in ends.items()
               if int(page_id.split("-")[1]) % 5)
    finished = [event for event in heard.events if type(event).__name__ == "PageFinished"]
    assert len(finished) == 150  # each exactly once


def test_submitting_while_the_worker_keeps_dying_loses_no_page(start: Start) -> None:
    """Every page comes back exactly once for each time it was handed over."""
    client, heard = start({"rate": 0, "faults": [{"kind": "exit", "at": 90, "attempts": [1]}]},
                          client={"patience": QUICK.__class__(first_pause=0.01, deaths=100)})
    seen = 0
    waiting: dict[str, int] = {}
    for number in range(12):
        waiting[f"p{number}"] = 1
        client.submit(page(f"p{number}"))
    while waiting:
        batch = heard.until(lambda events: events[seen:])  # noqa: B023 - called at once
        seen += len(batch)
        for event in batch:
            for page_id in getattr(event, "pages", ()):
                waiting[page_id] += 1
                client.submit(page(page_id, attempt=waiting[page_id]))
            if type(event).__name__ == "PageFinished":
                assert event.finish == "complete"
                del waiting[event.page_id]


@pytest.mark.logs_errors
def test_a_listener_that_fails_stops_nothing() -> None:
    heard = Recorder()

    def listen(event: Any) -> None:
        heard(event)
        if not isinstance(event, (LogLine, EngineLoading)):
            raise RuntimeError("a bug in the listener")

    client = EngineClient(listen)
    client.start("scripted", script({"rate": 0}))
    client.submit(page("p1"))
    assert heard.finished("p1").finish == "complete"
    client.close()
