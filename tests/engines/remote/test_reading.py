"""A page that is read: what the server is asked for, and how its answer ends."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import pytest
from PIL import Image

from desktop.engines.base import Restarted, Text
from desktop.engines.model import outcome
from desktop.engines.remote import errors
from tests.engines.remote.driving import MakePage, finish_of, outputs, read, run, started, text_of
from tests.engines.remote.fake_server import PAGE, PROMPT, FakeServer, Raw, Say

pytestmark = pytest.mark.usefixtures("short_rests")


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
