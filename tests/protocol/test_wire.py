"""Messages survive the wire; what is no message is told apart and never runs anything."""

from __future__ import annotations

import os
import pickle
import struct
import threading
import typing
from collections.abc import Iterator
from multiprocessing.connection import Pipe

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desktop.protocol import messages as m
from desktop.protocol import wire

TEXT = st.text(max_size=40)
PROBLEM = st.builds(m.ProblemData, TEXT, TEXT, TEXT, TEXT)
BOX = st.tuples(*[st.integers(0, 999)] * 4)
EVENTS = st.one_of(
    st.builds(m.Hello, st.integers(0, 99), st.integers(1, 2**31), TEXT),
    st.builds(m.EngineLoading, TEXT, st.floats(-1, 1)),
    st.builds(m.EngineFailed, PROBLEM, st.booleans()),
    st.builds(m.PageStarted, TEXT, st.floats(0, 1e9)),
    st.builds(m.PageOriented, TEXT, st.sampled_from([90, 180, 270])),
    st.builds(m.PageRegions, TEXT,
              st.lists(st.builds(m.Region, TEXT, BOX), max_size=4).map(tuple)),
    st.builds(m.PageText, TEXT, TEXT, st.integers(0, 9999), st.lists(
        st.tuples(st.floats(0, 1e9), st.integers(0, 99), st.integers(0, 99)),
        max_size=4).map(tuple)),
    st.builds(m.BlockConfidence, TEXT, st.integers(0, 99), st.floats(0, 1)),
    st.builds(m.PageFinished, TEXT, TEXT, st.one_of(st.none(), PROBLEM), st.floats(0, 1e6)),
    st.builds(m.LogLine, st.integers(0, 50), TEXT, TEXT),
    st.just(m.Bye()),
)
SETTING = st.one_of(st.booleans(), st.integers(-2**40, 2**40), st.floats(allow_nan=False), TEXT)
COMMANDS = st.one_of(
    st.builds(m.StartEngine, st.integers(0, 9), TEXT, st.dictionaries(TEXT, SETTING, max_size=4)),
    st.builds(m.SubmitPage, TEXT, TEXT, st.integers(1, 99999), st.integers(1, 99999), TEXT,
              st.dictionaries(TEXT, SETTING, max_size=4)),
    st.builds(m.CancelPage, TEXT), st.builds(m.RaisePage, TEXT),
    st.builds(m.SetConcurrency, st.integers(0, 256)), st.just(m.Shutdown()),
)


@given(EVENTS)
def test_every_event_comes_back_as_it_was(event: m.AnyEvent) -> None:
    assert wire.decode_event(wire.encode(event)) == event


@given(COMMANDS)
def test_every_command_comes_back_as_it_was(command: m.AnyCommand) -> None:
    assert wire.decode_command(wire.encode(command)) == command


def test_every_declared_message_is_in_its_union() -> None:
    assert set(typing.get_args(m.AnyCommand)) == set(m.Command.__subclasses__())
    assert set(typing.get_args(m.AnyEvent)) == set(m.Event.__subclasses__())


@given(st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_junk_is_a_typed_error_or_a_message(data: bytes) -> None:
    for decode in (wire.decode_command, wire.decode_event):
        try:
            message: object = decode(data)
        except wire.GarbledMessage as error:
            message = error
        assert isinstance(message, (m.Command, m.Event, wire.GarbledMessage))


@given(EVENTS, st.data())
def test_a_damaged_message_is_a_typed_error_or_a_message(
    event: m.AnyEvent, data: st.DataObject,
) -> None:
    encoded = bytearray(wire.encode(event))
    place = data.draw(st.integers(0, len(encoded) - 1))
    encoded[place] = data.draw(st.integers(0, 255))
    try:
        message: object = wire.decode_event(bytes(encoded))
    except wire.GarbledMessage as error:
        message = error
    assert isinstance(message, (m.Event, wire.GarbledMessage))


@pytest.mark.parametrize("data", [
    b"", b"\x80", b"null", pickle.dumps(m.Bye()), b"\x91" * 100_000,
    msgspec.msgpack.encode({"type": "Bogus"}),
    msgspec.msgpack.encode({"type": "PageText", "page_id": 3, "text": "x"}),
    msgspec.msgpack.encode(["PageText"]),
    b"\x82\xa4type\xa8PageText\xa7page_id\xa2\xff\xfe",
])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(wire.GarbledMessage):
        wire.decode_event(data)


def test_an_event_is_no_command_and_the_other_way_round() -> None:
    with pytest.raises(wire.GarbledMessage):
        wire.decode_command(wire.encode(m.Bye()))
    with pytest.raises(wire.GarbledMessage):
        wire.decode_event(wire.encode(m.Shutdown()))


def test_lone_surrogates_become_question_marks() -> None:
    event = m.PageRegions("p\udcff", (m.Region("ti\ud800tle", (1, 2, 3, 4)),))
    assert wire.decode_event(wire.encode(event)) == m.PageRegions(
        "p?", (m.Region("ti?tle", (1, 2, 3, 4)),))


def test_another_version_is_refused_in_words() -> None:
    wire.check_version(m.VERSION)
    with pytest.raises(wire.VersionMismatch, match=f"version {m.VERSION + 1} of the protocol"):
        wire.check_version(m.VERSION + 1)


Ends = tuple[wire.Channel[m.AnyEvent], wire.Channel[m.AnyCommand], int]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Application's end, worker's end, and the worker's descriptor to write junk to."""
    ours, theirs = Pipe(duplex=True)
    application, worker = wire.Channel.of_application(ours), wire.Channel.of_worker(theirs)
    yield application, worker, theirs.fileno()
    application.close()
    worker.close()


def test_a_channel_carries_both_ways(ends: Ends) -> None:
    application, worker, _ = ends
    assert not worker.pending()
    application.send(m.Shutdown())
    assert worker.pending()
    assert worker.receive() == m.Shutdown()
    worker.send(m.Bye())
    assert application.receive() == m.Bye()


def test_the_end_of_the_other_side_is_told_apart(ends: Ends) -> None:
    application, worker, _ = ends
    worker.send(m.Bye())
    worker.close()
    assert application.receive() == m.Bye()
    with pytest.raises(wire.ChannelClosed):
        application.receive()
    with pytest.raises(wire.ChannelClosed):
        application.send(m.Shutdown())


def test_a_message_cut_off_by_death_is_an_end(ends: Ends) -> None:
    application, worker, descriptor = ends
    os.write(descriptor, struct.pack("!i", 100) + b"half")
    worker.close()
    with pytest.raises(wire.ChannelClosed):
        application.receive()


@pytest.mark.parametrize("header", [
    struct.pack("!i", wire.LONGEST + 1), struct.pack("!iQ", -1, 2**62), struct.pack("!i", -7)])
def test_a_length_that_cannot_be_allocates_nothing(ends: Ends, header: bytes) -> None:
    application, _, descriptor = ends
    os.write(descriptor, header)
    with pytest.raises(wire.GarbledMessage):
        application.receive()


def test_many_threads_may_send(ends: Ends) -> None:
    application, worker, _ = ends
    events = [[m.PageText(f"{sender}", "x" * (number * 37), number) for number in range(100)]
              for sender in range(4)]
    threads = [threading.Thread(target=lambda mine=mine: [worker.send(event) for event in mine])
               for mine in events]
    for thread in threads:
        thread.start()
    received = [application.receive() for _ in range(400)]
    for thread in threads:
        thread.join()
    for mine in events:
        assert [event for event in received if event in mine] == mine
