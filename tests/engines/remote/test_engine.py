"""The engine against a server on a real socket that fails in every way servers do."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image

from desktop.engines.base import EngineDied, Finish, Regions, Restarted, Text
from desktop.engines.model import outcome, sampling
from desktop.engines.remote import engine as engines
from desktop.engines.remote import errors, keys, pool, probe
from desktop.errors import VersoError
from desktop.protocol.messages import SubmitPage
from tests.engines.remote.driving import finish_of, outputs, run, started, text_of, until
from tests.engines.remote.fake_server import (
    PAGE,
    PROMPT,
    Cut,
    FakeServer,
    Raw,
    Refuse,
    Say,
    Stall,
)

MakePage = Callable[..., SubmitPage]
Serve = Callable[..., FakeServer]
SECRET = "sk-verso-0123456789abcdef"


@pytest.fixture(autouse=True)
def short_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "FIRST_REST", 0.02)
    monkeypatch.setattr(pool, "LONGEST_REST", 0.2)


def read(server: FakeServer, page: SubmitPage, **settings: Any) -> list[Any]:
    async def main() -> list[Any]:
        async with started(server, **settings) as (engine, _):
            return await outputs(engine, page)

    return run(main())


# --- a page that goes well


def test_a_page_is_read(server: FakeServer, a_page: MakePage) -> None:
    found = read(server, a_page((1190, 1684)))
    assert text_of(found) == PAGE
    finish = finish_of(found)
    assert finish.reason == "complete"
    assert finish.prompt_tokens == 1121 + PROMPT
    assert finish.output_tokens == -(-len(PAGE) // server.piece)
    assert sum(output.tokens for output in found if isinstance(output, Text)) \
        == finish.output_tokens
    assert len([output for output in found if isinstance(output, Text)]) > 5
    assert not any(isinstance(output, Restarted) for output in found)


def test_what_is_asked(server: FakeServer, a_page: MakePage) -> None:
    read(server, a_page((1190, 1684), stop="END|###", max_tokens=8192))
    body = server.chats[0]
    (message,) = body["messages"]
    assert message["role"] == "user"
    image, text = message["content"]
    assert text == {"type": "text", "text": "<|grounding|>Convert the document to markdown."}
    data = base64.b64decode(image["image_url"]["url"].removeprefix("data:image/png;base64,"))
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.size == (1190, 1684)
        assert picture.mode == "RGB"
    assert body["temperature"] == 0
    assert body["skip_special_tokens"] is False
    assert body["stream"] is True
    assert body["stop"] == ["END", "###"]
    assert body["model"] == "DeepSeek-OCR-2"
    assert "vllm_xargs" not in body
    assert 7000 < body["max_tokens"] <= 8192 - 1121 - PROMPT


def test_crop_off_sends_a_small_page(server: FakeServer, a_page: MakePage) -> None:
    found = read(server, a_page((1190, 1684), crop="off"))
    assert finish_of(found).prompt_tokens == 257 + PROMPT


def test_the_limit_is_what_the_context_leaves(server: FakeServer, a_page: MakePage) -> None:
    server.models[0]["max_model_len"] = 2048
    found = read(server, a_page((1190, 1684), max_tokens=8192))
    assert finish_of(found).limit == server.chats[0]["max_tokens"] < 2048 - 1121


def test_a_context_that_is_not_listed_is_learnt(server: FakeServer, a_page: MakePage) -> None:
    page = a_page((1190, 1684), max_tokens=9000)
    del server.models[0]["max_model_len"]

    async def main() -> None:
        async with started(server) as (engine, ready):
            assert ready.context == 0
            assert text_of(await outputs(engine, page)) == PAGE
            assert [body["max_tokens"] > 8192 for body in server.chats] == [True, False]
            await outputs(engine, page)
            assert len(server.chats) == 3  # It is known now.

    run(main())


def test_a_page_that_does_not_fit(server: FakeServer, a_page: MakePage) -> None:
    server.models[0]["max_model_len"] = 1000
    with pytest.raises(errors.ContextTooSmall, match="1000 tokens") as caught:
        read(server, a_page((1190, 1684)))
    assert "--max-model-len" in str(caught.value)


@pytest.mark.parametrize(("said", "reason"), [
    (Say("text", "length"), "length"), (Say("text", "stop"), "complete"),
    (Say("text", "repetition"), "loop"), (Say("", "stop"), "complete"),
    (Say("te" + outcome.END + "xt", "length"), "complete")])
def test_how_it_ends(said: Say, reason: str, server: FakeServer, a_page: MakePage) -> None:
    server.always = None
    page = a_page()

    async def main() -> list[Any]:
        async with started(server) as (engine, _):
            server.plan = [said]
            return await outputs(engine, page)

    found = run(main())
    assert finish_of(found).reason == reason
    assert text_of(found) == said.text.partition(outcome.END)[0]


def test_a_server_without_counts_and_streaming_will_do(server: FakeServer,
                                                       a_page: MakePage) -> None:
    server.usage = False
    found = read(server, a_page())
    assert text_of(found) == PAGE
    assert finish_of(found).output_tokens == -(-len(PAGE) // server.piece)
    server.usage = server.whole = True
    found = read(server, a_page())
    assert text_of(found) == PAGE
    assert finish_of(found).output_tokens == -(-len(PAGE) // server.piece)


def test_a_server_that_ignores_the_limit_is_stopped(server: FakeServer, a_page: MakePage) -> None:
    event = json.dumps({"choices": [{"delta": {"content": "again "}}]})
    page = a_page(max_tokens=100)

    async def main() -> list[Any]:
        async with started(server) as (engine, _):
            server.plan = [Raw(f"data: {event}\n\n".encode() * 100_000)]
            return await outputs(engine, page)

    found = run(main())
    assert finish_of(found).reason == "length"
    assert len(text_of(found)) < 2000


# --- the loop guard's second try


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
    monkeypatch.setattr(probe, "_AGAIN", 0.2)

    async def main() -> None:
        async with started(server) as (engine, _):
            (node,) = engine._nodes
            server.always = Stall(0)
            await engine._look(node)
            assert node.guard
            server.always = Refuse(500, "no")
            await engine._look(node)
            assert not node.guard
            server.always = None
            await engine._look(node)
            assert node.guard

    run(main())


# --- servers that fail


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


def test_a_key_that_is_taken_away_stops_the_engine_not_the_page(
        serve: Serve, a_page: MakePage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(keys.VARIABLE, SECRET)
    server, page = serve(key=SECRET), a_page()

    async def main() -> None:
        async with started(server) as (engine, _):
            server.key = "another"
            with pytest.raises(errors.ServersGone) as caught:
                await outputs(engine, page)
            assert SECRET not in str(caught.value)

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


# --- several


def test_pages_are_spread_and_a_server_that_dies_is_done_without(
        serve: Serve, a_page: MakePage) -> None:
    first, second = serve(), serve()
    pages = [a_page() for _ in range(24)]

    async def main() -> None:
        async with started(first, second) as (engine, ready):
            assert ready.capacity == 2 * engines.PAGES
            engine.set_concurrency(24)
            first.hold = second.hold = True
            reading = [asyncio.create_task(outputs(engine, page)) for page in pages]
            await until(lambda: first.running == 12 and second.running == 12)
            await asyncio.sleep(0.2)  # Some text of each has come.
            first.stop()
            second.hold = False
            found = [await task for task in reading]
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
            slow.hold = True
            gate = asyncio.Semaphore(6)

            async def one(page: SubmitPage) -> None:
                async with gate:
                    await outputs(engine, page)

            reading = [asyncio.create_task(one(page)) for page in pages]
            await until(lambda: len(quick.chats) == 21 and quick.running == 0)
            assert slow.running == len(slow.chats) == 3
            slow.hold = False
            await asyncio.gather(*reading)

    run(main())


def test_a_server_gets_more_as_long_as_it_begins_pages_promptly(
        server: FakeServer, a_page: MakePage) -> None:
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
    pages = [a_page(server_silence=3) for _ in range(12)]

    async def main() -> None:
        async with started(server) as (engine, ready):
            engine.set_concurrency(ready.capacity)
            server.always = Stall(0)
            tasks = [asyncio.create_task(outputs(engine, page)) for page in pages]
            await until(lambda: server.running == 12)
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


def test_one_of_two_is_out_from_the_start_and_comes_in_later(
        serve: Serve, a_page: MakePage) -> None:
    first, second = serve(), serve()
    first.models = []
    page = a_page()

    async def main() -> None:
        async with started(first, second) as (engine, ready):
            assert ready.device == second.name
            assert any(first.name in note and "no model" in note for note in ready.notes)
            first.models = [{"id": "ocr"}]

            async def both() -> None:
                while not first.chats or first.chats[-1]["max_tokens"] <= 64:
                    await asyncio.gather(*(outputs(engine, page) for _ in range(4)))

            await asyncio.wait_for(both(), 30)
            assert first.chats[-1]["model"] == "ocr"

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


# --- stopping


def test_a_page_that_is_cancelled_is_cut_off_at_the_server(server: FakeServer,
                                                           a_page: MakePage) -> None:
    pages = [a_page() for _ in range(20)]

    async def main() -> None:
        async with started(server) as (engine, _):
            server.hold = True
            tasks = [asyncio.create_task(outputs(engine, page)) for page in pages]
            await until(lambda: server.running == 20)
            await asyncio.sleep(0.2)
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


# --- starting


def test_what_is_ready(server: FakeServer) -> None:
    server.metrics = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="20000"} 1.0\n'

    async def main() -> None:
        async with started(server) as (_, ready):
            assert ready.engine == "remote"
            assert ready.model == "DeepSeek-OCR-2"
            assert ready.context == 8192
            assert ready.capacity == engines.MOST_PAGES
            assert ready.versions == {f"vllm {server.name}": "0.32.0"}
            assert ready.notes == ()

    run(main())


@pytest.mark.parametrize(("spoil", "error", "fatal"), [
    (lambda s: s.stop(), errors.ServersGone, False),
    (lambda s: setattr(s, "key", "x" * 20), errors.KeyWanted, True),
    (lambda s: setattr(s, "models", []), errors.NotOpenAI, True),
    (lambda s: setattr(s, "listing", Raw(b"<html>hello</html>", "text/html")),
     errors.NotOpenAI, True),
    (lambda s: setattr(s, "listing", Refuse(302, headers={"Location": "http://login/"})),
     errors.NotOpenAI, True),
    (lambda s: setattr(s, "listing", Refuse(503)), errors.ServersGone, False),
    (lambda s: setattr(s, "always", Refuse(400, "not a multimodal model")),
     errors.PageRefused, True),
])
def test_no_server_no_engine(spoil: Callable[[FakeServer], None], error: type[VersoError],
                             fatal: bool, server: FakeServer) -> None:
    address = server.name
    spoil(server)

    async def main() -> None:
        with pytest.raises(error) as caught:
            async with started(server):
                pass
        assert isinstance(caught.value, EngineDied) is not fatal
        assert address in str(caught.value)

    run(main())


def test_a_model_that_is_not_there(server: FakeServer) -> None:
    async def main() -> None:
        with pytest.raises(errors.NoSuchModel, match="DeepSeek-OCR-2"):
            async with started(server, remote_model="other"):
                pass

    run(main())


# --- the key


ECHOES = (
    "{authorization} is wrong", '{"error": {"message": "Bad header: {authorization}"}}',
    "<html><title>{authorization}</title>", "x" * 290 + "{authorization}")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 503])
def test_a_key_that_a_server_gives_back_goes_nowhere(
        status: int, serve: Serve, a_page: MakePage,
        all_logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    server, page = serve(key=SECRET), a_page()
    monkeypatch.setattr(pool, "OUTAGE", 0.1)
    keys.store(server.url, SECRET)
    seen: list[str] = []

    async def main() -> None:
        async with started(server) as (engine, _):
            for echo in ECHOES:
                server.always = server.listing = Refuse(status, echo)
                with pytest.raises(VersoError) as caught:
                    await outputs(engine, page)
                seen.append(repr(caught.value.problem()))
                seen.append(repr(caught.value) + repr(caught.value.__cause__))
        for echo in ECHOES:
            server.listing = Refuse(status, echo)
            with pytest.raises(VersoError) as caught:
                async with started(server):
                    pass
            seen.append(repr(caught.value.problem()))

    run(main())
    everything = " ".join(seen) + all_logged.text
    assert "[key]" in everything, "the servers' words are shown, without it"
    for length in range(12, len(SECRET) + 1):
        assert SECRET[:length] not in everything
