"""Outputs of one page on their way out: joined, in order, counted.

The clock stands still but for the pauses: what is put without one is put at one moment.
"""

from __future__ import annotations

import asyncio
import itertools

import pytest

from desktop.engines.base import Confidence, Finish, Oriented, Output, Regions, Text
from desktop.protocol.messages import (
    BlockConfidence,
    Event,
    PageOriented,
    PageRegions,
    PageText,
    Region,
)
from desktop.worker.stream import INTERVAL, TIMED_INTERVAL, PageStream
from tests.benchmark import virtual


def sent(*outputs: Output | float, timed: bool = False) -> list[Event]:
    """What is sent for OUTPUTS; a number is a pause."""
    async def play(loop: asyncio.AbstractEventLoop) -> list[Event]:
        events: list[Event] = []
        stream = PageStream("p", events.append, loop, timed=timed)
        for output in outputs:
            if isinstance(output, float):
                await asyncio.sleep(output)
            else:
                stream.put(output)
        stream.flush()
        return events
    return virtual.run(play)


def test_the_first_text_goes_at_once_and_the_rest_together() -> None:
    assert sent(Text("a", 1), Text("b", 1), Text("c", 2)) == [
        PageText("p", "a", 1), PageText("p", "bc", 3)]


def test_text_after_a_pause_goes_at_once() -> None:
    assert sent(Text("a"), INTERVAL * 3, Text("b"), Text("c"), INTERVAL * 3, Text("d")) == [
        PageText("p", "a"), PageText("p", "b"), PageText("p", "c"), PageText("p", "d")]


def test_other_outputs_keep_their_place_in_the_text() -> None:
    region = Region("text", (1, 2, 3, 4))
    assert sent(Oriented(90), Regions((region,)), Text("a"), Text("b"), Confidence(0, 0.5),
                Text("c")) == [
        PageOriented("p", 90), PageRegions("p", (region,)), PageText("p", "a"),
        PageText("p", "b"), BlockConfidence("p", 0, 0.5), PageText("p", "c")]


def test_large_text_does_not_wait() -> None:
    events = sent(*[Text("x" * 9000)] * 5)
    assert [len(event.text) for event in events if isinstance(event, PageText)] == [
        9000, 18000, 18000]


def test_tokens_of_empty_text_are_not_lost() -> None:
    events = sent(Text("a", 1), Text("", 2), Text("b", 1))
    assert sum(event.tokens for event in events if isinstance(event, PageText)) == 4


def test_a_finish_is_no_output_to_send() -> None:
    with pytest.raises(TypeError):
        sent(Finish())


def test_a_measured_page_sends_the_time_of_each_output() -> None:
    events = sent(Text("", 1), INTERVAL * 2, Text("ab", 1), INTERVAL * 2, Text("c", 3),
                  TIMED_INTERVAL, Text("", 1), timed=True)
    texts = [event for event in events if isinstance(event, PageText)]
    assert len(texts) < 4  # larger pieces, fewer messages
    times = [one for text in texts for one in text.times]
    assert [one[1:] for one in times] == [(1, 0), (1, 2), (3, 1), (1, 0)]
    assert sum(text.tokens for text in texts) == 6
    stamps = [one[0] for one in times]
    gaps = [after - before for before, after in itertools.pairwise(stamps)]
    assert gaps == pytest.approx([INTERVAL * 2, INTERVAL * 2, TIMED_INTERVAL])


def test_a_page_that_nobody_measures_sends_no_times() -> None:
    assert all(event.times == () for event in sent(Text("a", 1), INTERVAL * 2, Text("b", 1))
               if isinstance(event, PageText))


def test_times_of_what_no_longer_holds_are_forgotten() -> None:
    async def play(loop: asyncio.AbstractEventLoop) -> list[Event]:
        events: list[Event] = []
        stream = PageStream("p", events.append, loop, timed=True)
        for text in ("a", "b"):
            stream.put(Text(text, 1))
        stream.restart("loop")
        stream.put(Text("c", 5))
        stream.flush()
        return events
    last = virtual.run(play)[-1]
    assert isinstance(last, PageText)
    assert [one[1:] for one in last.times] == [(5, 1)]
