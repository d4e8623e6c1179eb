"""Connections to a server: kept from page to page, closed by either side, and none left over."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path
from typing import Any

import pytest

from desktop.engines.remote import connection
from desktop.engines.remote.engine import RemoteEngine
from tests.engines.remote.driving import (
    MakePage,
    outputs,
    read_into,
    run,
    started,
    text_of,
    until,
)
from tests.engines.remote.fake_server import PAGE, FakeServer

pytestmark = pytest.mark.usefixtures("short_rests")


async def parted(engine: RemoteEngine) -> None:
    """Wait until every transfer has ended."""
    await until(lambda: not engine._nodes[0].connection._parting)


def test_pages_one_after_the_other_share_a_connection(server: FakeServer,
                                                      a_page: MakePage) -> None:
    async def main() -> None:
        async with started(server) as (engine, _):
            await parted(engine)
            before = server.connections
            for _number in range(5):
                assert text_of(await outputs(engine, a_page())) == PAGE
                await parted(engine)
            assert server.connections == before

    run(main())


def test_so_they_do_over_tls(secure: FakeServer, certificate: Path, a_page: MakePage,
                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    test_pages_one_after_the_other_share_a_connection(secure, a_page)


def test_a_transfer_without_end_holds_up_no_page(server: FakeServer, a_page: MakePage,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_PARTING_SECONDS", 0.2)

    async def main() -> None:
        async with started(server) as (engine, _):
            server.linger = True
            for _number in range(2):
                assert text_of(await outputs(engine, a_page())) == PAGE
            await until(lambda: server.broken_off == 2)  # closed, as it is of no use any more
            # The server may see the end before the task here has had its last turn.
            await until(lambda: not engine._nodes[0].connection._parting)
            assert text_of(await outputs(engine, a_page())) == PAGE
        await until(lambda: server.broken_off == 3)  # and with the engine

    run(main())


def test_connections_that_the_other_side_closes_when_idle(server: FakeServer,
                                                          a_page: MakePage) -> None:
    server.idle = 0.05

    async def main() -> None:
        async with started(server) as (engine, _):
            await parted(engine)
            for _number in range(5):
                assert text_of(await outputs(engine, a_page())) == PAGE
                await asyncio.sleep(0.1)
            assert engine._pool is not None
            assert [member.epoch for member in engine._pool.members] == [0], "no failure"

    run(main())


@pytest.mark.parametrize("kept", [1, 4])
def test_one_that_is_closed_as_it_is_used_again(kept: int, server: FakeServer,
                                                a_page: MakePage) -> None:
    """The server is well, and so is the page: it is sent once more, over a new connection."""
    async def main() -> None:
        async with started(server) as (engine, _):
            await parted(engine)
            server.once = True
            for _round in range(3):
                found = await asyncio.gather(*(outputs(engine, a_page()) for _ in range(kept)))
                assert [text_of(one) for one in found] == [PAGE] * kept
                await parted(engine)
            assert engine._pool is not None
            assert [member.epoch for member in engine._pool.members] == [0], "no failure"

    run(main())


def test_nothing_is_left_of_a_thousand_pages(server: FakeServer, a_page: MakePage) -> None:
    """Pages read, stopped and broken off: no connection, no task, and no word of complaint."""
    server.piece = 200
    pages = [a_page((64, 64)) for _ in range(1000)]
    complaints: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, context: complaints.append(context))
        own, files = asyncio.all_tasks(), _files()
        async with started(server) as (engine, _):
            await parted(engine)
            engine.set_concurrency(20)
            for start in range(0, 1000, 20):
                now = pages[start:start + 20]
                tasks = [asyncio.create_task(read_into([], engine, page)) for page in now]
                if start % 100 == 0:
                    await asyncio.sleep(0.02)
                    for task in tasks[::2]:
                        task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                assert not any(task.exception() for task in tasks if not task.cancelled())
            await parted(engine)
            gc.collect()
            await until(lambda: asyncio.all_tasks() == own)
            # Two of each connection, as the server is in this process; some may be kept.
            assert _files() <= files + 2 * 100
        await until(lambda: not server._open and _files() <= files)

    run(main(), 300)
    gc.collect()
    assert complaints == []


def _files() -> int:
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0


@pytest.mark.parametrize("tls", [False, True])
def test_an_engine_that_is_closed_while_transfers_end(
        tls: bool, server: FakeServer, secure: FakeServer, certificate: Path, a_page: MakePage,
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setattr(connection, "_PARTING_SECONDS", 60)
    asked = secure if tls else server
    complaints: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, context: complaints.append(context))
        own = asyncio.all_tasks()
        async with started(asked) as (engine, _):
            await parted(engine)
            asked.linger = True
            found = await asyncio.gather(*(outputs(engine, a_page()) for _ in range(5)))
            assert [text_of(one) for one in found] == [PAGE] * 5
            assert len(engine._nodes[0].connection._parting) == 5
        assert asyncio.all_tasks() == own
        await until(lambda: not asked._open)

    run(main())
    gc.collect()
    assert complaints == []
