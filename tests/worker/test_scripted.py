"""The scripted engine plays what its script says."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from desktop.engines import registry
from desktop.engines.base import (
    Confidence,
    EngineDied,
    Finish,
    Oriented,
    Output,
    Regions,
    Text,
)
from desktop.engines.script import SAMPLE, BadScript, Cast, Script, find
from desktop.errors import RemoteProblem
from desktop.protocol.messages import SubmitPage
from tests.support.gate import Gate


def play(script: dict[str, Any] | str | None, *page_ids: str, attempt: int = 1,
         settings: dict[str, Any] | None = None) -> dict[str, list[Output]]:
    """The outputs of pages, read one after the other by a new engine."""
    async def run() -> dict[str, list[Output]]:
        engine = registry.entry("scripted").create()
        text = json.dumps(script) if isinstance(script, dict) else script
        await engine.start({"script": text} if text else {}, lambda step, fraction: None)
        read = {}
        for page_id in page_ids:
            page = SubmitPage(page_id, "", 1, 1, attempt=attempt, settings=settings or {})
            read[page_id] = [output async for output in engine.read(page)]
        await engine.close()
        return read
    return asyncio.run(run())


def text(outputs: list[Output]) -> str:
    return "".join(output.text for output in outputs if isinstance(output, Text))


def test_without_a_script_it_plays_a_page_of_its_own() -> None:
    assert text(play(None, "p1")["p1"]) == SAMPLE


def test_it_is_hidden_from_users() -> None:
    assert registry.entry("scripted").hidden


def test_deltas_of_any_size_make_up_the_text() -> None:
    for delta in (1, 7, [1, 30], 10_000):
        outputs = play({"pages": [{"delta": delta, "rate": 0}]}, "p1")["p1"]
        assert text(outputs) == SAMPLE
    sizes = [[len(o.text) for o in play({"seed": seed, "pages": [{"delta": [1, 9], "rate": 0}]},
                                        "p1")["p1"] if isinstance(o, Text)]
             for seed in (1, 1, 2)]
    assert sizes[0] == sizes[1] != sizes[2]


def test_everything_around_the_text() -> None:
    outputs = play({"pages": [{"rate": 0, "clockwise": 180, "regions": True, "confidence": 0.25,
                               "tokens": 2, "prompt_tokens": 7, "finish": "length"}]}, "p1")["p1"]
    assert outputs[0] == Oriented(180)
    assert isinstance(outputs[1], Regions)
    assert [region.label for region in outputs[1].regions] == [
        "title", "text", "equation", "table"]
    assert outputs[1].regions[0].box == (110, 80, 890, 130)
    deltas = sum(isinstance(output, Text) for output in outputs)
    assert outputs[-5:] == [*(Confidence(index, 0.25) for index in range(4)),
                            Finish("length", 7, 2 * deltas)]


def test_entries_are_shared_out(tmp_path: Path) -> None:
    entries = [{"text": letter, "rate": 0} for letter in "abc"]
    named = {"match": "x-*", "text": "x", "rate": 0}
    read = play({"pages": [*entries, named]}, "p9", "x-1", "p8", "p7", "p6", "p9")
    assert {page_id: text(outputs) for page_id, outputs in read.items()} == {
        "p9": "a", "x-1": "x", "p8": "b", "p7": "c", "p6": "a"}
    numbered = play({"assign": "number", "pages": entries}, "d4-p3", "d4-p1", "d4-p5")
    assert [text(outputs) for outputs in numbered.values()] == ["c", "a", "b"]
    script = msgspec.convert({"assign": "hash", "pages": entries}, Script)
    assert Cast(script).entry("p1", {}) == Cast(script).entry("p1", {})


def test_recordings_come_from_files_and_folders_beside_the_script(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    folder.mkdir()
    for name in ("b", "a"):
        (folder / f"{name}.txt").write_text(f"text of {name}")
    (tmp_path / "single.txt").write_bytes(b"not \xff UTF-8")
    script = {"pages": [{"recording": "recorded", "rate": 0},
                        {"match": "one", "recording": "single.txt", "rate": 0}]}
    for path, data in ((tmp_path / "s.json", json.dumps(script).encode()),
                       (tmp_path / "s.msgpack", msgspec.msgpack.encode(script))):
        path.write_bytes(data)
        read = play(str(path), "p1", "p2", "one")
        assert [text(outputs) for outputs in read.values()] == [
            "text of a", "text of b", "not \ufffd UTF-8"]


def test_the_script_is_found_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERSO_SCRIPT", '{"capacity": 7}')
    assert find({}).capacity == 7
    assert find({"script": '{"capacity": 8}'}).capacity == 8


def test_a_page_may_bring_its_entry() -> None:
    for own in ('{"text": "own", "rate": 0}', {"text": "own", "rate": 0}):
        assert text(play(None, "p1", settings={"script": own})["p1"]) == "own"


@pytest.mark.parametrize("script", [
    '{"pages": [', '{"pagez": []}', '{"pages": [{"rate": "fast"}]}', "/no/such/script.json",
    '{"pages": [{"recording": "/no/such/recording.txt"}]}',
    '{"pages": [{"faults": [{"kind": "unheard of"}]}]}'])
def test_a_bad_script_is_told(script: str) -> None:
    with pytest.raises(BadScript) as caught:
        play(script, "p1")
    assert caught.value.detail


def test_faults_happen_at_their_place_on_their_attempt() -> None:
    script = {"pages": [{"rate": 0, "delta": 100, "faults": [
        {"kind": "raise", "at": 33, "attempts": [2], "code": "a.b"}]}]}
    assert text(play(script, "p1")["p1"]) == SAMPLE
    with pytest.raises(RemoteProblem) as caught:
        play(script, "p1", attempt=2)
    assert caught.value.problem().code == "a.b"
    with pytest.raises(EngineDied):
        play({"pages": [{"rate": 0, "faults": [{"kind": "died", "at": -1}]}]}, "p1")


def test_a_gate_holds_a_page_up_until_it_is_opened(tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    script = {"pages": [{"rate": 0, "delta": 100, "faults": [gate.at(33)]}]}

    async def run() -> None:
        engine = registry.entry("scripted").create()
        await engine.start({"script": json.dumps(script)}, lambda step, fraction: None)
        outputs = engine.read(SubmitPage("p1", "", 1, 1))
        first = await anext(outputs)
        assert text([first]) == SAMPLE[:33]
        following = asyncio.ensure_future(anext(outputs))
        await asyncio.sleep(0.05)
        assert not following.done()
        gate.open()
        rest = [await following, *[output async for output in outputs]]
        assert text([first, *rest]) == SAMPLE
        await engine.close()

    asyncio.run(run())


def test_a_fault_that_happens_once(tmp_path: Path) -> None:
    script = {"pages": [{"rate": 0, "faults": [
        {"kind": "crash", "once": str(tmp_path / "happened")}]}]}
    with pytest.raises(ZeroDivisionError):
        play(script, "p1")
    assert text(play(script, "p1")["p1"]) == SAMPLE


def test_loops_and_repeats() -> None:
    loop = {"text": "abcdef", "rate": 0, "delta": 2,
            "faults": [{"kind": "loop", "at": 4, "span": 3, "times": 2}]}
    assert text(play({"pages": [loop]}, "p1")["p1"]) == "abcdbcdbcdef"
    assert text(play({"pages": [{"text": "ab", "repeat": 3, "rate": 0}]}, "p1")["p1"]) == "ababab"
    assert text(play({"pages": [{"text": "", "repeat": 0}]}, "p1")["p1"]) == ""


def test_every_recording_is_played_as_it_is(recordings: Path) -> None:
    files = sorted(recordings.glob("*.txt"))
    read = play({"pages": [{"recording": str(recordings), "rate": 0, "delta": [1, 60]}]},
                *(file.name for file in files))
    for file in files:
        assert text(read[file.name]) == file.read_text("utf-8", "replace")


def test_what_is_played_when_a_page_is_read_again() -> None:
    again = [{"kind": "loop", "at": -1, "span": 2, "times": 3, "reads": [1]}]
    script = {"budget": 100, "pages": [{"text": "first", "again": ["second", "third"], "rate": 0,
                                        "limit": 50, "cost": 40, "parts": 2, "second_try": True,
                                        "faults": again}]}

    async def run() -> None:
        engine = registry.entry("scripted").create()
        await engine.start({"script": json.dumps(script)}, lambda step, fraction: None)
        page = SubmitPage("p1", "", 100, 200)
        assert (engine.budget, engine.cost(page)) == (100, 40)
        assert engine.parts(page) == ((0, 0, 100, 105), (0, 95, 100, 200))
        second = engine.second_try(page)
        assert second is not None
        assert engine.second_try(second) is None
        said = []
        for one in (page, second, page, page, msgspec.structs.replace(page, attempt=2)):
            outputs = [output async for output in engine.read(one)]
            said.append(text(outputs))
            assert isinstance(outputs[-1], Finish)
            assert outputs[-1].limit == 50
        assert said == ["first" + "st" * 3, "second", "third", "third",
                        "first" + "st" * 3]
        await engine.close()

    asyncio.run(run())
