"""The probe says in words what is wrong with a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from desktop.engines.remote import keys, probe, testpage
from desktop.engines.remote.answers import Model
from desktop.engines.remote.errors import NoServers, NoSuchModel
from desktop.engines.remote.probe import Report
from desktop.engines.visual_tokens import visual_tokens
from tests.engines.remote.driving import run
from tests.engines.remote.fake_server import PROMPT, FakeServer, Raw, Refuse, Say, Stall


def examined(server: FakeServer, model: str = "") -> Report:
    return run(probe.probe(server.url, model))


def codes(report: Report) -> list[str]:
    return [found.problem.code for found in report.findings]


def test_a_good_server(steady: FakeServer) -> None:
    report = examined(steady)
    assert report.good
    assert report.notes() == []
    assert (report.model, report.context, report.version) == ("DeepSeek-OCR-2", 8192, "0.32.0")
    assert report.page_tokens - report.small_tokens == 1121 - 257
    assert report.streams is report.tags is report.guard is True


def test_the_test_page_is_what_the_figures_say() -> None:
    assert visual_tokens(*testpage.LARGE).tokens == 1121
    assert visual_tokens(*testpage.SMALL).tokens == 257
    assert testpage.draw(testpage.LARGE).convert("L").getextrema() == (0, 255)


@pytest.mark.parametrize(("spoil", "code", "good", "words"), [
    ({"squash": True}, "squashed", False, "1121"),
    ({"swallow": True}, "tags", False, "special tokens"),
    ({"guard": False}, "guard", True, "--logits-processors vllm.model_executor"),
    ({"whole": True}, "whole", True, "stream"),
    ({"usage": False}, "uncounted", True, "count"),
    ({"extra_tokens": 200}, "prompt", False, "--chat-template"),
    ({"text": "! ! ! ! ! ! ! ! ! ! ! !"}, "no_tags", True, "DeepSeek-OCR-2"),
    ({"text": "<|ref|>text<|/ref|> olololol"}, "reading", True, "olololol"),
    ({"bias": False}, "guard_unknown", True, "n-gram"),
    ({"models": [{"id": "DeepSeek-OCR-2", "max_model_len": 4096}]}, "context", True, "4096"),
    ({"models": [{"id": "ocr"}, {"id": "other"}]}, "several", True, "ocr, other"),
])
def test_what_is_wrong(spoil: dict[str, Any], code: str, good: bool, words: str,
                       server: FakeServer) -> None:
    for name, value in spoil.items():
        setattr(server, name, value)
    report = examined(server)
    assert f"probe.{code}" in codes(report)
    assert report.good is good
    (found,) = [f for f in report.findings if f.problem.code == f"probe.{code}"]
    assert words in found.problem.line()
    assert "{" not in found.problem.line()
    if code == "tags":
        assert report.tags is False
        assert report.guard is True, "seen all the same"


def test_the_first_generation_is_recognised(steady: FakeServer,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    second = steady._page_tokens
    monkeypatch.setattr(steady, "_page_tokens", lambda body: {
        1121 + PROMPT: 903 + PROMPT, 257 + PROMPT: 273 + PROMPT}[second(body)])
    assert codes(examined(steady)) == ["probe.first_generation"]


def test_another_model_is_recognised(steady: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steady, "_page_tokens", lambda body: len(json.dumps(body)) // 50)
    report = examined(steady)
    assert codes(report) == ["probe.tokens"]
    assert not report.good


def test_without_a_tokenizer_the_published_id_is_tried(server: FakeServer) -> None:
    server.tokenizer = False
    report = examined(server)
    assert report.guard is report.tags is True


@pytest.mark.parametrize(("spoil", "code"), [
    (lambda s: setattr(s, "models", []), "remote.not_openai"),
    (lambda s: setattr(s, "listing", Raw(b"hello", "text/plain")), "remote.not_openai"),
    (lambda s: setattr(s, "listing", Raw(b"x" * 20_000_000, "text/plain")),
     "remote.unreachable"),
    (lambda s: setattr(s, "listing", Refuse(404)), "remote.not_openai"),
    (lambda s: setattr(s, "listing", Refuse(500)), "remote.unreachable"),
    (lambda s: setattr(s, "key", "k" * 20), "remote.key_wanted"),
    (lambda s: s.stop(), "remote.unreachable"),
    (lambda s: setattr(s, "always", Refuse(400, "not a multimodal model")), "remote.refused"),
])
def test_what_cannot_be_used_at_all(spoil: Callable[[FakeServer], None], code: str,
                                    server: FakeServer) -> None:
    spoil(server)
    report = examined(server)
    assert report.problem is not None
    assert report.problem.code == code
    assert server.name in report.problem.message
    assert not report.good
    assert report.notes()[0] == report.problem.line()


def test_a_wrong_key(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.key = "right-right-right"
    monkeypatch.setenv(keys.VARIABLE, "wrong-wrong-wrong")
    report = examined(server)
    assert report.problem is not None
    assert report.problem.code == "remote.key"
    assert f"verso servers key {server.url}" in report.problem.hint
    monkeypatch.setenv(keys.VARIABLE, "right-right-right")
    report = examined(server)
    assert report.good
    assert report.key == "environment"


def test_a_server_that_breaks_on_the_page(server: FakeServer) -> None:
    server.always = Refuse(500, "CUDA error")
    report = examined(server)
    assert codes(report) == ["probe.test"]
    assert "CUDA error" in report.notes()[0]


def test_a_busy_server_is_not_waited_for(server: FakeServer) -> None:
    server.always = Stall(2)

    async def main() -> Report:
        return await probe.probe(server.url, seconds=1)

    assert codes(run(main())) == ["probe.slow"]


def test_text_at_once_is_no_streaming(server: FakeServer,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that holds everything back sends all events in one piece."""
    # Two of them lie farther apart than usual on a busy machine, but not as far as pauses.
    monkeypatch.setattr(probe, "_AT_ONCE", 0.2)
    events = "".join(
        "data: " + json.dumps({"choices": [{"delta": {"content": piece}}],
                               "usage": {"prompt_tokens": 1132, "completion_tokens": n}}) + "\n\n"
        for n, piece in enumerate(["<|ref|>", *["Verso "] * 30], 1))
    done = 'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    server.plan = [Raw((events + done).encode())] * 5
    assert examined(server).streams is False
    server.pause = 0.02
    assert examined(server).streams is True


def test_all_at_the_same_time(serve: Callable[..., FakeServer]) -> None:
    first, second = serve(), serve()
    second.squash = True
    reports = run(probe.probe_all(f"{first.url} {second.name}"))
    assert [report.good for report in reports] == [True, False]
    with pytest.raises(NoServers):
        run(probe.probe_all(""))


def test_which_model_is_asked_for() -> None:
    models = [Model("llama", 1), Model("ds-ocr", 2), Model("x", 3)]
    assert probe.choose(models, "", "s").name == "ds-ocr"
    assert probe.choose(models[::2], "", "s").name == "llama"
    assert probe.choose(models, "x", "s").context == 3
    with pytest.raises(NoSuchModel, match="llama, ds-ocr, x"):
        probe.choose(models, "y", "s")


def test_the_cache_of_all_engines_counts() -> None:
    text = ('# HELP vllm:cache_config_info x\n'
            'vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="100"} 1.0\n'
            'vllm:cache_config_info{engine="1",num_gpu_blocks="50",block_size="16"} 1.0\n')
    assert probe.cache_tokens(text) == 2400
    assert probe.cache_tokens('vllm:cache_config_info{num_gpu_blocks="None"} 1.0') == 0
    assert probe.cache_tokens("") == 0


def test_what_is_said_is_said_of_a_wrong_answer_too(server: FakeServer) -> None:
    server.plan = [Say("Verso <|ref|>", "stop")] * 4
    assert examined(server).good
