"""The loop guard's second try: which server has the n-gram processor."""

from __future__ import annotations

import asyncio

import pytest

from desktop.engines.model import sampling
from desktop.engines.remote import probe
from tests.engines.remote.driving import (
    MakePage,
    Serve,
    finish_of,
    outputs,
    run,
    started,
    text_of,
    until,
)
from tests.engines.remote.fake_server import PAGE, FakeServer, Refuse, Stall

pytestmark = pytest.mark.usefixtures("short_rests")


def test_the_n_gram_processor_is_used_where_it_works(serve: Serve, a_page: MakePage) -> None:
    first, second = serve(), serve()
    first.guard = False
    page = a_page()

    async def main() -> None:
        async with started(first, second) as (engine, _):
            again = engine.second_try(page)
            assert again is not None
            assert again.settings[sampling.SECOND_TRY]
            for _ in range(4):
                await outputs(engine, again)
            assert first.chats == []
            assert {body["vllm_xargs"]["ngram_size"] for body in second.chats} == {20}
            assert engine.second_try(again) is None

    run(main())


def test_without_it_there_is_no_second_try(server: FakeServer, a_page: MakePage) -> None:
    server.guard = False
    page = a_page(ngram="always")

    async def main() -> None:
        async with started(server) as (engine, ready):
            assert engine.second_try(page) is None
            assert any("--logits-processors" in note for note in ready.notes)
            await outputs(engine, page)
            assert "vllm_xargs" not in server.chats[0]

    run(main())


@pytest.mark.parametrize(("before", "after"), [(True, False), (False, True)])
def test_a_server_started_anew_is_asked_for_it_again(
        before: bool, after: bool, server: FakeServer, a_page: MakePage) -> None:
    server.guard = before
    page = a_page()

    async def main() -> None:
        async with started(server) as (engine, _):
            assert (engine.second_try(page) is not None) is before
            server.stop()
            reading = asyncio.create_task(outputs(engine, a_page(ngram="always")))
            assert engine._pool is not None
            await until(lambda: not engine._pool.usable())  # type: ignore[union-attr]
            server.guard = after
            server.models[0]["max_model_len"] = 4096
            server.start_again()
            found = await reading
            assert text_of(found) == PAGE
            assert finish_of(found).limit < 4096
            assert (engine.second_try(page) is not None) is after
            assert ("vllm_xargs" in server.chats[-1]) is after

    run(main())


def test_what_is_known_of_a_server_too_busy_to_tell_is_kept(
        server: FakeServer, a_page: MakePage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with started(server) as (engine, _):
            (node,) = engine._nodes
            server.always = Stall(0)
            with monkeypatch.context() as hasty:  # Where an answer comes it is waited for.
                hasty.setattr(probe, "_AGAIN", 0.2)
                await engine._look(node)
            assert node.guard
            server.always = Refuse(500, "no")
            await engine._look(node)
            assert not node.guard
            server.always = None
            await engine._look(node)
            assert node.guard

    run(main())
