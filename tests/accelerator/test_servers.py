"""The engine ``remote`` and the probe against real servers: two of vLLM's, and vllm-router.

One of the two is started as a person should, the other without the n-gram processor. The test
that kills one comes last.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from desktop.engines.remote import testpage
from desktop.settings import Values
from tests.accelerator import real, servers
from tests.accelerator.real import LARGE, SMALL, Reader
from tests.accelerator.servers import CONTEXT, KEY, Server
from tests.support.data import ROOT

PAGE = (f"<|ref|>title<|/ref|><|det|>[[80, 70, 900, 120]]<|/det|>\n# {testpage.WORD}: a test page\n"
        "\n<|ref|>text<|/ref|><|det|>[[80, 180, 900, 260]]<|/det|>\nWhat a page may hold, größer "
        "than before: 世界.\n")


@dataclass
class Farm:
    """Two servers, and what they write."""

    right: Server
    bare: Server
    """Without the n-gram processor."""
    script: real.Script


@pytest.fixture(scope="module")
def farm(engine_python: Path, tiny_model: Path, real_home: Path) -> Iterator[Farm]:
    folder = real_home / "servers"
    folder.mkdir()
    script = real.Script(folder)
    script.write(PAGE)
    begin = time.monotonic()
    both = [servers.vllm(name, engine_python, tiny_model, folder, script, "--api-key", KEY,
                         ngram=name == "right") for name in ("right", "bare")]
    try:
        for server in both:
            server.wait()
        real.figures.append(f"two servers ready after {time.monotonic() - begin:.0f} s")
        yield Farm(*both, script)
    finally:
        for server in both:
            server.stop()


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Callable[..., Reader]]:
    """``remote(SERVER, …, key=KEY, **settings)``: the engine in its worker, begun to start."""
    made: list[Reader] = []

    def make(*used: Server, key: str = KEY, **settings: object) -> Reader:
        values = Values({"engine": "remote", "servers": " ".join(server.url for server in used),
                         **settings})
        reader = Reader("remote", tmp_path, values, environment={"VERSO_API_KEY": key})
        made.append(reader)
        reader.start()
        return reader

    yield make
    for reader in made:
        reader.close()


def probe(*used: Server, key: str = KEY) -> tuple[int, list[dict[str, Any]], str]:
    """What ``verso servers`` says: its status, the report of each, everything it wrote."""
    result = subprocess.run(
        [sys.executable, "-m", "desktop", "servers", "--json", *(server.url for server in used)],
        cwd=ROOT, env={**os.environ, "VERSO_API_KEY": key}, capture_output=True, text=True,
        timeout=300, check=False)
    assert result.stdout, result.stderr
    return result.returncode, json.loads(result.stdout)["servers"], result.stdout + result.stderr


def codes(report: dict[str, Any]) -> set[str]:
    return {finding["code"] for finding in report["findings"]}


def test_the_probe_finds_nothing_wrong_with_a_right_server(farm: Farm) -> None:
    status, [report], _text = probe(farm.right)
    assert codes(report) == set(), report
    assert (status, report["good"], report["error"]) == (0, True, None)
    assert report["model"] == "deepseek-ocr-2"
    assert report["context"] == CONTEXT
    assert report["cache_tokens"] > CONTEXT
    assert report["version"]
    assert 1121 < report["page_tokens"] < 1161
    assert report["page_tokens"] - report["small_tokens"] == 1121 - 257
    assert (report["streams"], report["tags"], report["ngram"]) == (True, True, True)


def test_the_probe_sees_that_the_n_gram_processor_is_missing(farm: Farm) -> None:
    _status, [report], _text = probe(farm.bare)
    assert codes(report) == {"probe.guard"}
    assert report["ngram"] is False


def test_the_probe_says_that_a_model_does_not_know_the_tags(farm: Farm) -> None:
    """As with a wrong model or tokenizer: it reads, but neither the page nor its boxes."""
    farm.script.write("Something else altogether. " * 10)
    try:
        _status, [report], _text = probe(farm.right)
    finally:
        farm.script.write(PAGE)
    assert {"probe.no_tags", "probe.reading"} <= codes(report)


@pytest.mark.parametrize("key", ["wrong-key-for-this", ""])
def test_a_wrong_key_is_refused_and_not_told(farm: Farm, remote: Callable[..., Reader],
                                             key: str) -> None:
    code = "remote.key" if key else "remote.key_wanted"
    status, [report], text = probe(farm.right, key=key)
    assert status != 0
    assert report["error"]["code"] == code
    assert not key or key not in text
    reader = remote(farm.right, farm.bare, key=key)
    refusal = reader.refusal()
    assert refusal.fatal
    assert refusal.problem.code == code
    assert "verso servers key" in refusal.problem.hint
    assert not key or key not in str(reader.recorder.events)


def test_pages_are_spread_over_both_servers(farm: Farm, remote: Callable[..., Reader]) -> None:
    reader = remote(farm.right, farm.bare)
    ready = reader.ready()
    assert ready.context == CONTEXT
    assert any("--logits-processors" in note for note in ready.notes)
    before = farm.right.answered(), farm.bare.answered()
    pages = [reader.submit(SMALL if number % 2 else LARGE) for number in range(6)]
    tokens = []
    for page in pages:
        end = reader.finished(page)
        assert end.finish == "complete", end
        assert reader.text(page) == PAGE
        tokens.append(end.prompt_tokens)
    assert tokens[0] - tokens[1] == 1121 - 257
    assert len(set(tokens)) == 2
    after = farm.right.answered(), farm.bare.answered()
    assert all(now > then for now, then in zip(after, before, strict=True))


def test_a_page_that_loops_is_read_again_where_the_processor_is(
        farm: Farm, remote: Callable[..., Reader]) -> None:
    row = "<|ref|>text<|/ref|><|det|>[[100, 200, 300, 400]]<|/det|>\nThe same line again.\n\n"
    reader = remote(farm.bare, farm.right)
    reader.ready()
    farm.script.write(row * 60, ngram=PAGE)
    try:
        page = reader.submit(loop_guard=True)
        assert reader.finished(page).finish == "complete"
    finally:
        farm.script.write(PAGE)
    assert reader.restarts(page) == ["loop"]
    assert reader.text(page) == PAGE


def test_a_router_in_front_of_both(farm: Farm, engine_python: Path, tmp_path: Path,
                                   remote: Callable[..., Reader]) -> None:
    router = servers.router(engine_python, tmp_path, farm.right, farm.bare)
    try:
        router.wait(120)
        _status, [report], _text = probe(router)
        assert report["error"] is None, (report, router.tail())
        assert report["page_tokens"] - report["small_tokens"] == 1121 - 257
        assert report["streams"] is True
        reader = remote(router)
        reader.ready()
        before = farm.right.answered(), farm.bare.answered()
        pages = [reader.submit() for _number in range(4)]
        for page in pages:
            assert reader.finished(page).finish == "complete"
            assert reader.text(page) == PAGE
        after = farm.right.answered(), farm.bare.answered()
        assert all(now > then for now, then in zip(after, before, strict=True))
    finally:
        router.stop()


def test_a_server_is_killed_and_all_pages_are_read(farm: Farm,
                                                   remote: Callable[..., Reader]) -> None:
    reader = remote(farm.right, farm.bare)
    reader.ready()
    text = real.recording()[:4000]  # Long enough for none to end before all have begun.
    farm.script.write(text)
    pages = [reader.submit() for _number in range(6)]
    for page in pages:
        reader.streaming(page, 1)
    begin = time.monotonic()
    farm.bare.kill()
    for page in pages:
        end = reader.finished(page)
        assert end.finish == "complete", end
        assert reader.text(page) == text
    again = [page for page in pages if reader.restarts(page)]
    assert again, "no page was with the server that was killed"
    assert all(reader.restarts(page) == ["server"] for page in again)
    real.figures.append(f"server killed: {len(again)} of {len(pages)} pages begun again, all read "
                        f"{time.monotonic() - begin:.0f} s after it")
