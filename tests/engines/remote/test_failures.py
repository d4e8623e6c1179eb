"""A server that fails in every way servers do: what becomes of the page, and who waits."""

from __future__ import annotations

import asyncio
import json

import pytest

from desktop.engines.base import EngineDied, Restarted, Text
from desktop.engines.remote import errors, pool
from desktop.errors import VersoError
from tests.engines.remote.driving import MakePage, finish_of, outputs, run, started, text_of, until
from tests.engines.remote.fake_server import PAGE, Cut, FakeServer, Raw, Refuse, Say, Stall

pytestmark = pytest.mark.usefixtures("short_rests")

PASSING = (
    Refuse(500, "no"), Refuse(502, "<html><title>Bad Gateway</title>"), Refuse(503),
    Refuse(429), Refuse(429, headers={"Retry-After": "0.3"}), Cut(0), Cut(5),
    Raw(b"data: {]\n\n"), Raw(b"\0\xff" * 1000), Raw(b"data: " * 400_000),
    Raw(b'data: {"error": {"message": "engine is dead", "code": 500}}\n\n'),
    Say("half of it", None), Say("half of it", "stop", ending=False), Say("aborted", "abort"),
    Raw(b""), Raw(b": only comments\n\n"), Stall(0), Stall(5), Stall(5, comments=True))


def test_the_page_is_done_again(server: FakeServer, a_page: MakePage) -> None:
    patient, hasty = a_page(), a_page(server_silence=2)

    async def main() -> None:
        async with started(server) as (engine, _):
            for plan in PASSING:
                server.chats.clear()
                server.plan = [plan]
                found = await outputs(engine, hasty if isinstance(plan, Stall) else patient)
                shown = repr(plan)[:60]
                assert text_of(found) == PAGE, shown
                assert finish_of(found).reason == "complete", shown
                assert len(server.chats) >= 2, shown
                # Said to begin again just where something had been said.
                restarts = [n for n, o in enumerate(found) if isinstance(o, Restarted)]
                spoken = {Say: True, Cut: plan == Cut(5), Stall: plan != Stall(0)}
                assert bool(restarts) is spoken.get(type(plan), False), shown
                if restarts:
                    assert any(isinstance(o, Text) for o in found[:restarts[0]]), shown

    run(main(), 120)


def test_a_page_at_which_servers_break_is_given_up_and_the_next_is_read(
        server: FakeServer, a_page: MakePage) -> None:
    bad, good = a_page(), a_page()

    async def main() -> None:
        async with started(server) as (engine, _):
            server.always = Cut(3)
            with pytest.raises(errors.PageGivenUp) as caught:
                await outputs(engine, bad)
            assert not isinstance(caught.value, EngineDied)
            server.always = None
            assert text_of(await outputs(engine, good)) == PAGE

    run(main())


@pytest.mark.parametrize(("status", "body", "error"), [
    (413, "too large", errors.ImageTooLarge), (400, "bad image", errors.PageRefused),
    (422, "{\"detail\": \"what is this\"}", errors.PageRefused),
    (400, json.dumps({"error": {"message": "This model's maximum context length is 900 tokens."}}),
     errors.ContextTooSmall)])
def test_a_page_that_is_refused(status: int, body: str, error: type[VersoError],
                                server: FakeServer, a_page: MakePage) -> None:
    page = a_page()

    async def main() -> None:
        async with started(server) as (engine, _):
            server.plan = [Refuse(status, body)] * 2
            with pytest.raises(error):
                await outputs(engine, page)
            server.plan.clear()
            assert text_of(await outputs(engine, page)) == PAGE  # The engine lives on.

    run(main())


def test_pages_wait_for_a_server_that_comes_back(server: FakeServer, a_page: MakePage) -> None:
    pages = [a_page() for _ in range(5)]

    async def main() -> None:
        async with started(server) as (engine, _):
            server.stop()
            reading = [asyncio.create_task(outputs(engine, page)) for page in pages]
            assert engine._pool is not None
            (member,) = engine._pool.members
            await until(lambda: member.failures >= 3)
            assert not any(task.done() for task in reading)
            asked = server.listed
            server.start_again()
            for task in reading:
                assert text_of(await task) == PAGE
            assert server.listed > asked, "it was asked how it is before it got pages"

    run(main())


def test_pages_do_not_wait_for_ever(server: FakeServer, a_page: MakePage,
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "OUTAGE", 0.3)
    pages = [a_page() for _ in range(3)]

    async def main() -> None:
        async with started(server) as (engine, _):
            server.stop()
            found = await asyncio.gather(*(outputs(engine, page) for page in pages),
                                         return_exceptions=True)
            assert {type(one) for one in found} == {errors.ServersGone}
            assert isinstance(found[0], EngineDied), "the pages go back to the queue"
            assert server.name in str(found[0])

    run(main())


def test_one_that_wants_to_be_left_alone_for_long_is(server: FakeServer, a_page: MakePage) -> None:
    page = a_page()

    async def main() -> None:
        async with started(server) as (engine, _):
            server.plan = [Refuse(429, headers={"Retry-After": "3600"})]
            with pytest.raises(errors.ServersGone, match="too much to do"):
                await outputs(engine, page)
            assert len(server.chats) == 1

    run(main())
