"""A page that nobody wants any more ends at the server and frees its place."""

from __future__ import annotations

import asyncio

import pytest

from desktop.engines.base import Finish, Output, Text
from tests.engines.remote.driving import (
    MakePage,
    begun,
    outputs,
    read_into,
    run,
    started,
    text_of,
    until,
)
from tests.engines.remote.fake_server import PAGE, FakeServer

pytestmark = pytest.mark.usefixtures("short_rests")


def test_a_page_that_is_cancelled_is_cut_off_at_the_server(server: FakeServer,
                                                           a_page: MakePage) -> None:
    pages = [a_page() for _ in range(20)]

    async def main() -> None:
        async with started(server) as (engine, _):
            server.hold = True
            found: list[list[Output]] = [[] for _ in pages]
            tasks = [asyncio.create_task(read_into(one, engine, page))
                     for one, page in zip(found, pages, strict=True)]
            await until(lambda: server.running == 20)
            await until(lambda: all(begun(one) for one in found))
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert all(task.cancelled() for task in tasks)
            await until(lambda: server.running == 0)
            assert server.broken_off == 20
            server.hold = False
            assert text_of(await outputs(engine, pages[0])) == PAGE
            assert engine._pool is not None
            assert [member.load for member in engine._pool.members] == [0]
            assert [member.failures for member in engine._pool.members] == [0]

    run(main())


def test_an_iteration_that_is_given_up_frees_its_place(server: FakeServer,
                                                       a_page: MakePage) -> None:
    page = a_page()

    async def main() -> None:
        async with started(server) as (engine, _):
            server.hold = True
            reading = engine.read(page)
            async for output in reading:
                assert isinstance(output, Text)
                break
            await reading.aclose()  # type: ignore[attr-defined]
            await until(lambda: server.running == 0)
            assert engine._pool is not None
            assert [member.load for member in engine._pool.members] == [0]

    run(main())


def test_cancelled_while_waiting_for_a_place(server: FakeServer, a_page: MakePage) -> None:
    server.metrics = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1.0\n'
    pages = [a_page() for _ in range(3)]

    async def main() -> None:
        async with started(server) as (engine, _):
            assert engine._pool is not None
            waiting = engine._pool._waiting
            server.hold = True
            tasks = []
            for number, page in enumerate(pages):  # In this order, whatever uploads take.
                tasks.append(asyncio.create_task(outputs(engine, page)))
                await until(lambda n=number: server.running == 1 and len(waiting) == n)
            tasks[1].cancel()
            server.hold = False
            found = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(found[1], asyncio.CancelledError)
            assert len(server.chats) == 2
            assert isinstance(found[2], list)
            assert isinstance(found[2][-1], Finish)

    run(main())
