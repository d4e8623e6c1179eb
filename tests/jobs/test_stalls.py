"""Silence of the engine is told from a time in which we had no turn ourselves."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from desktop.jobs.pages import Phase
from desktop.jobs.stalls import StallWatch
from tests.benchmark import virtual


def stalled(*, held_up: float, news: bool) -> tuple[list[Any], float]:
    """What is given up of one page, and after how long. The loop is HELD_UP for so many seconds;
    NEWS: something about the page had come meanwhile, to be read after that."""
    given_up: list[Any] = []

    async def play(loop: virtual.VirtualLoop) -> float:
        run: Any = SimpleNamespace(phase=Phase.STREAMING, ended=loop.create_future(), heard=0.0)

        def give_up(found: Any) -> None:
            given_up.append(found)
            found.ended.set_result(None)

        watch = StallWatch(lambda: [run], lambda: 10.0, give_up)
        begin = loop.time()
        watch.heard(run)
        await asyncio.sleep(1)
        loop.elapsed += held_up
        if news:
            loop.call_later(0.5, watch.heard, run)
            await asyncio.sleep(9)
            return loop.time() - begin
        await run.ended
        return loop.time() - begin

    return given_up, virtual.run(play)


def test_a_silent_page_is_given_up_after_the_limit() -> None:
    given_up, seconds = stalled(held_up=0, news=False)
    assert len(given_up) == 1
    assert 10 <= seconds < 10.1


def test_what_came_while_we_had_no_turn_is_read_first() -> None:
    given_up, _seconds = stalled(held_up=1000, news=True)
    assert given_up == []


def test_a_page_that_stays_silent_after_that_is_given_up_all_the_same() -> None:
    given_up, seconds = stalled(held_up=1000, news=False)
    assert len(given_up) == 1
    assert 1010 <= seconds < 1012
