"""What an engine got, kept for who asks later."""

from __future__ import annotations

import json
import logging
import threading
from datetime import datetime, timedelta, timezone

import pytest

from desktop.jobs import starts
from desktop.protocol.messages import EngineReady
from tests.jobs.conftest import Pdf, Player

GOT = EngineReady("vllm", "DeepSeek-OCR-2", "NVIDIA H200", 100, 119 * 10**9, 141 * 10**9, 912_000,
                  8192, True, {"vllm": "0.32.0"}, 20 * 10**9, ("A repair.",))


def test_the_last_start_of_each_engine_is_kept() -> None:
    assert starts.last("vllm") is None
    starts.note(GOT)
    starts.note(EngineReady("embedded", "m", "Processor", 2))
    starts.note(EngineReady("embedded", "n", "Processor", 4))
    found = starts.last("vllm")
    assert found is not None
    assert found.got == GOT
    assert abs(datetime.now(timezone.utc) - found.when) < timedelta(minutes=5)
    other = starts.last("embedded")
    assert other is not None
    assert other.got.model == "n"
    assert [path.name for path in starts.path().parent.glob("*engine-starts*")] == [
        "engine-starts.json"]


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"version":1,"engines":{"vllm":{"when":7}}}'])
def test_what_cannot_be_read_is_as_if_nothing_was_kept(text: str) -> None:
    starts.path().write_text(text)
    assert starts.last("vllm") is None
    starts.note(GOT)
    assert starts.last("vllm") is not None


def test_a_later_version_may_have_more() -> None:
    starts.note(GOT)
    data = json.loads(starts.path().read_text())
    data["engines"]["vllm"]["got"]["colour"] = "green"
    data["more"] = 1
    starts.path().write_text(json.dumps(data))
    found = starts.last("vllm")
    assert found is not None
    assert found.got == GOT


def test_who_reads_meanwhile_reads_a_whole_file() -> None:
    starts.note(GOT)
    ended = threading.Event()

    def write() -> None:
        for _ in range(100):
            starts.note(GOT)
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not ended.is_set():
        assert starts.last("vllm") is not None
    writer.join()


def test_a_folder_that_takes_nothing_is_logged(monkeypatch: pytest.MonkeyPatch,
                                               caplog: pytest.LogCaptureFixture) -> None:
    def full(*_values: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(starts.os, "replace", full)
    with caplog.at_level(logging.WARNING):
        starts.note(GOT)
    assert "No space left" in caplog.text
    assert list(starts.path().parent.glob(".engine-starts-*")) == []
    assert starts.last("vllm") is None


def test_a_session_keeps_what_its_engine_got(play: Player, pdf: Pdf) -> None:
    p = play({"pages": [{"text": "Hello", "rate": 0}], "device": "NPU 3", "cache_tokens": 77_000,
              "context": 8192, "notes": ["Repaired."]})
    p.add(pdf(1))
    p.finish()
    p.session.close()
    found = starts.last("scripted")
    assert found is not None
    assert (found.got.device, found.got.cache_tokens, found.got.context, found.got.notes) == (
        "NPU 3", 77_000, 8192, ("Repaired.",))
