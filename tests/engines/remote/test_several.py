"""Several servers: who gets a page, and who does without one that fails."""

from __future__ import annotations

import asyncio

import pytest

from desktop.engines.base import Output, Restarted
from desktop.engines.remote import engine as engines
from desktop.protocol.messages import EngineReady, SubmitPage
from tests.engines.remote.driving import (
    MakePage,
    Serve,
    begun,
    outputs,
    read_into,
    run,
    started,
    text_of,
    until,
)
from tests.engines.remote.fake_server import PAGE, Refuse

pytestmark = pytest.mark.usefixtures("short_rests")


def test_pages_are_spread_and_a_server_that_dies_is_done_without(
        serve: Serve, a_page: MakePage) -> None:
    first, second = serve(), serve()
    pages = [a_page() for _ in range(24)]

    async def main() -> None:
        async with started(first, second) as (engine, ready):
            assert ready.capacity == 2 * engines.PAGES
            engine.set_concurrency(24)
            first.hold = second.hold = True
            found: list[list[Output]] = [[] for _ in pages]
            reading = [asyncio.create_task(read_into(one, engine, page))
                       for one, page in zip(found, pages, strict=True)]
            await until(lambda: first.running == 12 and second.running == 12)
            await until(lambda: all(begun(one) for one in found))
            first.stop()
            second.hold = False
            await asyncio.gather(*reading)
            assert all(text_of(one) == PAGE for one in found)
            restarted = [one for one in found if any(isinstance(o, Restarted) for o in one)]
            assert len(restarted) == 12
            assert len(second.chats) == 24

    run(main())


def test_the_least_loaded_gets_the_page(serve: Serve, a_page: MakePage) -> None:
    slow, quick = serve(), serve()
    pages = [a_page() for _ in range(24)]

    async def main() -> None:
        async with started(slow, quick) as (engine, _):
            slow.hold = quick.hold = True
            gate = asyncio.Semaphore(6)

            async def one(page: SubmitPage) -> None:
                async with gate:
                    await outputs(engine, page)

            reading = [asyncio.create_task(one(page)) for page in pages]
            await until(lambda: slow.running == quick.running == 3)
            quick.hold = False
            await until(lambda: len(quick.chats) == 21 and quick.running == 0)
            assert slow.running == len(slow.chats) == 3
            slow.hold = False
            await asyncio.gather(*reading)

    run(main())


def test_a_page_goes_to_another_server_than_the_one_that_broke(
        serve: Serve, a_page: MakePage) -> None:
    first, second = serve(), serve()
    page = a_page()

    async def main() -> None:
        async with started(first, second) as (engine, _):
            first.always = Refuse(500)
            for _ in range(6):
                assert text_of(await outputs(engine, page)) == PAGE
            assert len(second.chats) == 6

    run(main())


CACHE = 'vllm:cache_config_info{{block_size="16",num_gpu_blocks="{blocks}"}} 1.0\n'


def test_a_server_started_anew_is_asked_anew_what_it_holds(
        serve: Serve, a_page: MakePage) -> None:
    """Its cache, context, version and the model's name may be others than before."""
    first, second = serve(), serve()
    first.metrics = CACHE.format(blocks=1000)
    second.metrics = CACHE.format(blocks=4000)

    async def main() -> None:
        async with started(first, second) as (engine, ready):
            told: list[EngineReady] = []
            engine.changed = told.append
            assert engine._pool is not None
            members = engine._pool.members
            small, large = (member.most for member in members)
            assert (ready.cache_tokens, ready.capacity) == (80_000, small + large)
            engine.set_concurrency(ready.capacity)
            assert all(member.steered for member in members)
            first.stop()
            second.stop()
            reading = asyncio.create_task(outputs(engine, a_page()))
            await until(lambda: not engine._pool.usable())  # type: ignore[union-attr]
            first.metrics = CACHE.format(blocks=8000)
            first.models = [{"id": "ocr-2-anew", "max_model_len": 16384}]
            first.start_again()
            assert text_of(await reading) == PAGE
            assert first.chats[-1]["model"] == "ocr-2-anew"
            (now,) = told
            assert now.cache_tokens == 128_000 + 64_000
            assert now.model == "ocr-2-anew, DeepSeek-OCR-2"
            assert members[0].most > small
            assert members[1].most == large
            assert now.capacity == members[0].most + large
            # What the worker asks for then is no choice of a person's.
            engine.set_concurrency(now.capacity)
            assert all(member.steered for member in members)
            engine.set_concurrency(10)
            assert not any(member.steered for member in members)
            assert sum(member.most for member in members) in (10, 11)
            # One that comes back as it was is nothing to tell.
            second.start_again()
            await until(lambda: len(engine._pool.usable()) == 2)  # type: ignore[union-attr]
            assert told == [now]

    run(main())


def test_one_of_two_is_out_from_the_start_and_comes_in_later(
        serve: Serve, a_page: MakePage) -> None:
    first, second = serve(), serve()
    first.models = []
    page = a_page()

    async def main() -> None:
        async with started(first, second) as (engine, ready):
            assert ready.device == second.name
            assert first.name in ready.notes[0]
            assert "no model" in ready.notes[0]
            told: list[EngineReady] = []
            engine.changed = told.append
            first.models = [{"id": "ocr"}]

            async def both() -> None:
                while not first.chats or first.chats[-1]["max_tokens"] <= 64:
                    await asyncio.gather(*(outputs(engine, page) for _ in range(4)))

            await asyncio.wait_for(both(), 30)
            assert first.chats[-1]["model"] == "ocr"
            assert told[-1].device == f"{first.name}, {second.name}"
            assert told[-1].notes == ready.notes[1:]  # that it lists no model no longer holds

    run(main())
