"""What the engines on vLLM's two generations share: room, results, steps, variables."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from desktop.engines.base import Finish, Text
from desktop.engines.model import variables
from desktop.engines.model.outcome import END
from desktop.engines.model.results import Results, refused
from desktop.engines.model.room import FULL_PAGE, PageTooLong, Room
from desktop.engines.model.steps import WEIGHTS, Steps
from desktop.engines.visual_tokens import visual_tokens
from desktop.engines.vllm import warmup
from desktop.protocol.messages import SubmitPage

CACHE = 100_000


def page(**settings: object) -> SubmitPage:
    return SubmitPage("p", "p.ppm", 1240, 1754, settings=settings)


def part(text: str, tokens: int, reason: str | None = None) -> SimpleNamespace:
    return SimpleNamespace(text=text, token_ids=(7,) * tokens, finish_reason=reason)


def result(*parts: SimpleNamespace, prompt: int = 0) -> SimpleNamespace:
    return SimpleNamespace(prompt_token_ids=(1,) * prompt or None, outputs=parts)


def test_the_first_page_is_a_full_one() -> None:
    assert visual_tokens(*warmup.SIZE).tokens == FULL_PAGE == 1121


def test_a_page_gets_what_the_context_leaves() -> None:
    room = Room(8192, CACHE)
    assert room.budget == 95_000
    share = room.share(page(max_tokens=8192), 10)
    assert (share.prompt, share.output) == (1131, 8192 - 1131 - 4)
    assert room.share(page(max_tokens=100), 10).output == 100
    with pytest.raises(PageTooLong) as said:
        Room(1131, CACHE).share(page(), 10)
    assert "1131 tokens" in said.value.problem().message
    assert Room().share(page(max_tokens=100)).output == 100  # not known yet: no limit


def test_what_pages_had_is_expected_of_the_next_until_it_is_forgotten() -> None:
    room = Room(8192, CACHE)
    before = room.cost(page())
    for _round in range(60):
        room.learn(page(), Finish("complete", 1131, 5000, 7000))
    after = room.cost(page())
    assert after > before + 2000
    for _round in range(60):  # cut: nobody knows how long it would have become
        room.learn(page(), Finish("length", 1131, 10, 10))
    assert room.cost(page()) == after
    room.forget()
    assert room.cost(page()) == before


def test_what_a_person_should_know_of_the_room() -> None:
    assert Room(8192, 10_000_000).notes(4096, 100) == ()
    lowered, = Room(8192, 10_000_000).notes(8192, 100)
    assert "7051 tokens of the context of 8192" in lowered
    room = Room(8192, CACHE)
    few, = room.notes(4096, 100)
    assert f"100000 tokens holds about {room.pages} pages" in few
    assert 30 < room.pages < 50
    assert Room(8192, 10).pages == 1


def test_results_become_text_without_the_token_that_ends_it() -> None:
    results = Results(1131)
    said = [*results.take(result(part("Hel", 1), prompt=1140)),
            *results.take(result(part("", 1))),  # held back inside vLLM: its token counts
            *results.take(result(part(f"lo{END[:5]}", 2))),
            *results.take(result(part(END[5:], 1, "stop"))), *results.rest()]
    assert said == [Text("Hel", 1), Text("", 1), Text("lo", 2), Text("", 1)]
    assert results.finish(7000) == Finish("complete", 1140, 5, 7000)


def test_a_stream_that_is_cut_keeps_its_text() -> None:
    results = Results(1131)
    assert results.take(result(part(f"a{END[:3]}", 1, "length"))) == [Text("a", 1)]
    assert results.rest() == [Text(END[:3])]
    assert results.finish(1) == Finish("length", 1131, 1, 1)


@pytest.mark.parametrize(("reason", "word"), [("abort", "abort"), (None, "?")])
def test_a_page_that_was_broken_off(reason: str | None, word: str) -> None:
    results = Results(1131)
    results.take(result(part("a", 1, reason)))
    assert results.finish(7000) is None
    assert f"({word})" in results.broken_off().problem().message


def test_a_page_that_was_refused() -> None:
    problem = refused(ValueError("too wide\nby far")).problem()
    assert problem.message.endswith("too wide")
    assert problem.detail == "ValueError: too wide\nby far"
    assert refused(KeyError()).problem().message.endswith("KeyError")


def test_steps_by_the_lines_of_vllm() -> None:
    told: list[tuple[str, float]] = []
    steps = Steps(lambda step, share: told.append((step, share)), WEIGHTS)
    for line in ("INFO Starting to load model /m...", "nothing of note",
                 "Loading pt checkpoint shards:  25% Completed | 1/4"):
        steps(line)
    assert told == [("Loading the weights", -1.0), ("Loading the weights", 0.25)]


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"PYTHONPATH": "/theirs"})
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.mark.usefixtures("surroundings")
def test_variables_are_set_once_and_a_person_s_kept(tmp_path: Path) -> None:
    os.environ.update({"TOKENIZERS_PARALLELISM": "true", "OURS": "theirs", "HF_HUB_OFFLINE": "0"})
    for _round in range(2):
        variables.prepare(tmp_path, "verso", preferred={"OURS": "ours", "MORE": "1"},
                          always={"VLLM_USE_V1": "0"})
    assert os.environ["PYTHONPATH"] == os.pathsep.join(["/theirs", str(tmp_path)])
    assert sys.path.count(str(tmp_path)) == 1
    assert os.environ["TOKENIZERS_PARALLELISM"] == "true"
    assert (os.environ["OURS"], os.environ["MORE"]) == ("theirs", "1")
    assert os.environ["HF_HUB_OFFLINE"] == "1"  # documents are nobody else's business
    assert os.environ["VLLM_USE_V1"] == "0"
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert "VLLM_PLUGINS" not in os.environ


@pytest.mark.usefixtures("surroundings")
def test_the_plugin_is_named_where_a_person_names_some(tmp_path: Path) -> None:
    os.environ["VLLM_PLUGINS"] = "ascend"
    for _round in range(2):
        variables.prepare(tmp_path, "verso")
    assert os.environ["VLLM_PLUGINS"] == "ascend,verso"


def test_secrets_do_not_stand_in_the_log() -> None:
    given = {"hf_token": "hf_secret", "api_key": "", "model": "/m", "max_num_batched_tokens": 1,
             "tokenizer": "/t"}
    assert variables.discreet(given) == {**given, "hf_token": "…"}
