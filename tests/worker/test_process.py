"""The worker process by itself, spoken to without a client."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Pipe

import pytest

from desktop.protocol import messages as m
from desktop.protocol.wire import Channel
from tests.support import processes

Worker = tuple[subprocess.Popen[bytes], Channel[m.AnyEvent], int]


@pytest.fixture
def worker(no_process_left: Callable[[], list[str]]) -> Iterator[Worker]:
    """The process, our end of its connection, and the descriptor to write junk to."""
    ours, theirs = Pipe(duplex=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "desktop.worker", str(theirs.fileno())],
        pass_fds=[theirs.fileno()], start_new_session=True, cwd=processes.ROOT)
    theirs.close()
    channel = Channel.of_application(ours)
    yield process, channel, ours.fileno()
    channel.close()
    process.wait(120)


def until(channel: Channel[m.AnyEvent], kind: type[m.Event]) -> list[m.AnyEvent]:
    """All events up to the first of KIND."""
    events = [channel.receive()]
    while not isinstance(events[-1], kind):
        events.append(channel.receive())
    return events


def test_it_says_hello_first_and_bye_last(worker: Worker) -> None:
    process, channel, _ = worker
    hello = channel.receive()
    assert isinstance(hello, m.Hello)
    assert (hello.version, hello.pid) == (m.VERSION, process.pid)
    assert hello.python == sys.version.split()[0]
    channel.send(m.StartEngine(m.VERSION, "scripted", {}))
    assert isinstance(until(channel, m.EngineReady)[-1], m.EngineReady)
    channel.send(m.Shutdown())
    assert until(channel, m.Bye)[-1] == m.Bye()
    assert process.wait(120) == 0


def test_it_refuses_an_application_of_another_version(worker: Worker) -> None:
    process, channel, _ = worker
    channel.send(m.StartEngine(m.VERSION + 1, "scripted", {}))
    failed = until(channel, m.EngineFailed)[-1]
    assert isinstance(failed, m.EngineFailed)
    assert (failed.problem.code, failed.fatal) == ("protocol.version", True)
    until(channel, m.Bye)
    assert process.wait(120) == 3


def test_it_refuses_what_is_no_command(worker: Worker) -> None:
    process, channel, descriptor = worker
    os.write(descriptor, b"\x00\x00\x00\x04junk")
    failed = until(channel, m.EngineFailed)[-1]
    assert isinstance(failed, m.EngineFailed)
    assert failed.problem.code == "protocol.garbled"
    assert process.wait(120) == 3


def test_it_ends_when_the_connection_does(worker: Worker) -> None:
    process, channel, _ = worker
    until(channel, m.Hello)
    channel.close()
    assert process.wait(120) != 3


def test_it_ends_in_order_on_sigterm_while_a_page_is_read(worker: Worker) -> None:
    process, channel, _ = worker
    channel.send(m.StartEngine(m.VERSION, "scripted", {"script": '{"pages": [{"repeat": 0}]}'}))
    channel.send(m.SubmitPage("p1", "", 1, 1))
    until(channel, m.PageText)
    process.terminate()
    events = until(channel, m.Bye)
    assert not [event for event in events if isinstance(event, m.PageFinished)]
    assert process.wait(120) == 0


def test_pages_wait_for_the_engine(worker: Worker) -> None:
    _, channel, _ = worker
    channel.send(m.SubmitPage("p1", "", 1, 1))
    channel.send(m.StartEngine(m.VERSION, "scripted", {
        "script": '{"load": {"seconds": 0.3, "steps": ["one", "two"]}, "pages": [{"rate": 0}]}'}))
    kinds = [type(event) for event in until(channel, m.PageFinished)]
    assert kinds[:5] == [m.Hello, m.EngineLoading, m.EngineLoading, m.EngineReady, m.PageStarted]
