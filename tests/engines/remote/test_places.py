"""How many pages a server gets at once, and which page is next."""

from __future__ import annotations

import asyncio

import pytest

from desktop.engines.base import Regions
from desktop.engines.remote import engine as engines
from desktop.engines.remote import pool
from desktop.protocol.messages import SubmitPage
from tests.engines.remote.driving import MakePage, outputs, run, started, text_of, until
from tests.engines.remote.fake_server import PAGE, FakeServer, Stall

pytestmark = pytest.mark.usefixtures("short_rests")


def test_a_server_gets_more_as_long_as_it_begins_pages_promptly(
        server: FakeServer, a_page: MakePage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "PROMPT", 1000.0)  # Prompt, however busy the machine is.
    server.pause = 0.02
    pages = [a_page() for _ in range(40)]

    async def main() -> None:
        async with started(server) as (engine, ready):
            told: list[int] = []
            engine.grown = lambda: told.append(engine.budget)
            engine.set_concurrency(ready.capacity)
            assert ready.capacity == 32
            assert engine.budget == ready.capacity, "as many again are made ready"
            server.hold = True
            tasks = [asyncio.create_task(outputs(engine, page)) for page in pages]
            await until(lambda: server.running == 32)
            server.hold = False
            await asyncio.gather(*tasks)
            assert server.most_running == 32
            assert len(told) >= 16, "once for each page that it takes more"
            engine.set_concurrency(3)
            server.most_running = 0
            await asyncio.gather(*(outputs(engine, page) for page in pages[:9]))
            assert server.most_running == 3 == engine.budget

    run(main())


def test_pages_that_wait_in_a_server_s_own_queue_are_too_many(
        server: FakeServer, a_page: MakePage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence before the first text: fewer at once, and the page again."""
    monkeypatch.setattr(pool, "PROMPT", -1.0)  # Never prompt enough to get more.
    # Small ones, so that all are sent before one is given up; on a busy machine some twice.
    pages = [a_page((64, 64), server_silence=3) for _ in range(12)]

    async def main() -> None:
        async with started(server) as (engine, ready):
            engine.set_concurrency(ready.capacity)
            server.always = Stall(0)
            tasks = [asyncio.create_task(outputs(engine, page)) for page in pages]
            await until(lambda: len(server.chats) >= 12)
            server.always = None
            for task in tasks:
                assert text_of(await task) == PAGE
            assert engine._pool is not None
            assert engine._pool.members[0].limit <= 6

    run(main())


def test_a_page_that_waits_gives_signs_of_life(server: FakeServer, a_page: MakePage,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_BEAT", 0.1)
    page = a_page()

    async def main() -> None:
        async with started(server) as (engine, _):
            server.stop()
            reading = engine.read(page)
            for _ in range(2):
                assert await reading.__anext__() == Regions(())
            await reading.aclose()  # type: ignore[attr-defined]
            reading = engine.read(page)
            assert await reading.__anext__() == Regions(())
            server.start_again()
            assert text_of([output async for output in reading]) == PAGE
            assert engine._pool is not None
            assert [member.load for member in engine._pool.members] == [0]

    run(main())


def test_the_page_looked_at_goes_first(server: FakeServer, a_page: MakePage) -> None:
    server.metrics = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1.0\n'
    pages = [a_page() for _ in range(4)]
    wanted = a_page(priority=0)

    async def main() -> None:
        async with started(server) as (engine, ready):
            assert ready.capacity == 1
            assert ready.cache_tokens == 1600
            order: list[str] = []

            async def one(page: SubmitPage) -> None:
                await outputs(engine, page)
                order.append(page.page_id)

            server.hold = True
            assert engine._pool is not None
            waiting = engine._pool._waiting
            tasks = [asyncio.create_task(one(page)) for page in pages]
            await until(lambda: server.running == 1 and len(waiting) == 3)
            tasks.append(asyncio.create_task(one(wanted)))
            await until(lambda: len(waiting) == 4)
            server.hold = False
            await asyncio.gather(*tasks)
            assert order.index(wanted.page_id) == 1
            assert server.most_running == 1

    run(main())
