"""Events out of bytes."""

from __future__ import annotations

from itertools import cycle, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop.engines.remote.sse import LONGEST, EventStream, Junk

STREAM = (": hello\r\n\r\ndata: {\"a\": 1}\r\n\r\nevent: x\nid: 3\ndata:two\ndata: lines\n\n"
          "data: 页\n\ndata\n\ndata: [DONE]\n\ndata: never ended".encode())
EVENTS = [b'{"a": 1}', b"two\nlines", "页".encode(), b"", b"[DONE]"]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_wherever_it_is_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    stream, found = EventStream(), []
    for start, end in pairwise(places):
        found += stream.feed(STREAM[start:end])
    assert found == EVENTS


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_any_bytes_are_events_or_none(pieces: list[bytes]) -> None:
    stream = EventStream()
    for piece in pieces:
        for event in stream.feed(piece):
            assert isinstance(event, bytes)


@pytest.mark.parametrize("endless", [
    b"data: " + b"x" * 65536, b"data: x\n" * 99, b"x: y\n" * 99, b"\0" * 999])
def test_nothing_grows_without_end(endless: bytes) -> None:
    stream = EventStream()
    with pytest.raises(Junk):
        list(map(stream.feed, cycle([endless])))
    assert len(stream._rest) < 2 * LONGEST


def test_small_events_without_number_are_no_junk() -> None:
    stream = EventStream()
    assert sum(len(stream.feed(b"data: x\n\n" * 1000)) for _ in range(300)) == 300_000
