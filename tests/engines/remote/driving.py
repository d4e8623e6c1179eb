"""Runs the engine in a test that is no coroutine itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from desktop.engines.base import Finish, Output, Restarted, Text
from desktop.engines.remote.engine import RemoteEngine
from desktop.protocol.messages import EngineReady, SubmitPage
from tests.engines.remote.fake_server import FakeServer

T = TypeVar("T")
MakePage = Callable[..., SubmitPage]
"""The fixture ``a_page``."""
Serve = Callable[..., FakeServer]
"""The fixture ``serve``."""


def run(coroutine: Coroutine[Any, Any, T], seconds: float = 180) -> T:
    """COROUTINE's value; a test that hangs fails."""
    return asyncio.run(asyncio.wait_for(coroutine, seconds))


@asynccontextmanager
async def started(*servers: FakeServer, **settings: Any) -> AsyncIterator[
        tuple[RemoteEngine, EngineReady]]:
    """The engine with SERVERS, ready. What the probe asked is forgotten."""
    engine = RemoteEngine()
    try:
        ready = await engine.start({
            "servers": " ".join(server.url for server in servers), **settings}, lambda *_: None)
        for server in servers:
            # The answer is here before the server is through with it.
            await until(lambda server=server: server.running == 0)
            server.chats.clear()
            server.most_running = 0
        yield engine, ready
    finally:
        await engine.close()


async def outputs(engine: RemoteEngine, page: SubmitPage) -> list[Output]:
    """All of a page."""
    return [output async for output in engine.read(page)]


async def read_into(found: list[Output], engine: RemoteEngine, page: SubmitPage) -> None:
    """Put all of a page into FOUND as it comes."""
    async for output in engine.read(page):
        found.append(output)


def read(server: FakeServer, page: SubmitPage, **settings: Any) -> list[Output]:
    """All of a page, by an engine of its own."""
    async def main() -> list[Output]:
        async with started(server, **settings) as (engine, _):
            return await outputs(engine, page)

    return run(main())


def begun(found: list[Output]) -> bool:
    """Whether some of the text has come."""
    return any(isinstance(output, Text) for output in found)


def text_of(found: list[Output]) -> str:
    """What holds in the end."""
    text = ""
    for output in found:
        if isinstance(output, Restarted):
            text = ""
        elif isinstance(output, Text):
            text += output.text
    return text


def finish_of(found: list[Output]) -> Finish:
    """The last output, of which there is one."""
    assert [type(output) for output in found].count(Finish) == 1
    assert isinstance(found[-1], Finish)
    return found[-1]


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float = 60) -> None:
    """Wait for CONDITION; fails when it does not come."""
    for _ in range(int(seconds / 0.01)):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("waited in vain")
