"""Bytes of a child's output become lines, in bounded memory and number."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from desktop.worker.lines import LONGEST, LineLimit, LineSplitter, printable


def split(*pieces: bytes) -> list[str]:
    splitter = LineSplitter()
    lines = [line for piece in pieces for line in splitter.feed(piece)]
    return lines + splitter.finish()


def test_lines_end_at_line_feeds_and_carriage_returns() -> None:
    assert split(b"one\ntwo\r\nthree\r 10%\r 20%\n\n\nlast") == [
        "one", "two", "three", " 10%", " 20%", "last"]


def test_a_character_split_between_reads_stays_whole() -> None:
    assert split("中文".encode()[:2], "中文".encode()[2:]) == ["中文"]


def test_what_a_terminal_would_obey_is_taken_out() -> None:
    assert split(b"\x1b[1;31mred\x1b[0m\x07 \x00bell\n") == ["red bell"]
    assert split(b"\xff\xfe no text\n") == ["\ufffd\ufffd no text"]


def test_a_line_without_end_is_cut_and_held_in_bounded_memory() -> None:
    splitter = LineSplitter()
    lines = []
    for _ in range(200):
        lines += splitter.feed(b"x" * 1000)
        assert len(splitter._rest) <= 5 * LONGEST
    assert lines
    assert all(len(line) <= LONGEST + 2 for line in lines)


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5))
def test_any_split_gives_the_same_lines(data: bytes, places: list[int]) -> None:
    # A line end of two bytes that is split gives an empty line more, which is left out anyway.
    cuts = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    pieces = [data[start:end] for start, end in pairwise(cuts)]
    assert split(*pieces) == split(data)
    assert all(line == printable(line) != "" for line in split(data))


def test_the_limit_lets_a_burst_through_then_a_rate_and_counts_the_rest() -> None:
    now = 0.0
    limit = LineLimit(rate=10, burst=20, clock=lambda: now)
    assert sum(limit.admits() for _ in range(100)) == 20
    assert limit.left_out() == 80
    assert limit.left_out() == 0
    now = 1.0
    assert sum(limit.admits() for _ in range(100)) == 10
    now = 1000.0
    assert sum(limit.admits() for _ in range(100)) == 20
