"""Outputs of one page on their way out: joined, in order, counted."""

from __future__ import annotations

import asyncio

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
from desktop.worker.stream import INTERVAL, PageStream


def sent(*outputs: Output | float) -> list[Event]:
    """What is sent for OUTPUTS; a number is a pause."""
    async def play() -> list[Event]:
        events: list[Event] = []
        stream = PageStream("p", events.append, asyncio.get_running_loop())
        for output in outputs:
            if isinstance(output, float):
                await asyncio.sleep(output)
            else:
                stream.put(output)
        stream.flush()
        return events
    return asyncio.run(play())


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
