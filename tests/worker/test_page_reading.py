"""One page with everything that can befall it: loops, parts, halves, cancelling."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from desktop.document.parser import parse
from desktop.engines import registry
from desktop.engines.base import Engine, Finish, Output, Progress, Restarted, Text
from desktop.protocol import messages as m
from desktop.worker.reading import PageReading
from desktop.worker.stream import PageStream
from tests.engines.repetitive import block

WHOLE = block("text", (100, 100, 900, 200), "A page that says it again and again and again")
UPPER = block("text", (100, 100, 900, 300), "What stands above")
LOWER = block("text", (100, 700, 900, 900), "What stands below")
LOOP = {"kind": "loop", "at": -1, "span": 30}


class Told:
    """What the application is told of one page."""

    def __init__(self) -> None:
        self.events: list[m.Event] = []
        self.finish = Finish()

    @property
    def text(self) -> str:
        """What is left of the text."""
        begun = max((number for number, event in enumerate(self.events)
                     if isinstance(event, m.PageRestarted)), default=-1)
        return "".join(event.text for event in self.events[begun + 1:]
                       if isinstance(event, m.PageText))

    @property
    def restarts(self) -> list[str]:
        return [event.reason for event in self.events if isinstance(event, m.PageRestarted)]

    @property
    def tokens(self) -> int:
        return sum(event.tokens for event in self.events if isinstance(event, m.PageText))


@pytest.fixture
def bitmap(tmp_path: Path) -> Iterator[Path]:
    """A page of 300 × 800; no file but it is left in its folder."""
    path = tmp_path / "page.ppm"
    Image.effect_noise((300, 800), 90).convert("RGB").save(path, "PPM")
    yield path
    assert list(tmp_path.iterdir()) == [path]


def submitted(image: Path | str, **settings: Any) -> m.SubmitPage:
    return m.SubmitPage("1-1", str(image), 300, 800, words="the words",
                        settings={"loop_guard": True, "max_tokens": 8192, **settings})


def read(engine: Engine | dict[str, Any], page: m.SubmitPage, *, cancel: float = 0) -> Told:
    """Have PAGE read by an engine, or by one that plays an entry; CANCEL: after so many
    seconds."""
    told = Told()

    async def room() -> None:
        pass

    async def run() -> None:
        playing = engine
        if isinstance(playing, dict):
            playing = registry.entry("scripted").create()
            entry = {"rate": 0, "delta": [1, 20], "tokens": 1, "prompt_tokens": 10, **engine}
            await playing.start({"script": json.dumps({"pages": [entry]})}, lambda *_: None)
        loop = asyncio.get_running_loop()
        stream = PageStream(page.page_id, told.events.append, loop)
        task = loop.create_task(PageReading(
            playing, page, stream, room, lambda: False).run())
        if cancel:
            loop.call_later(cancel, task.cancel)
        try:
            told.finish = await task
        finally:
            stream.flush()
            await playing.close()

    asyncio.run(run())
    return told


def test_a_page_that_does_not_loop_is_passed_on(bitmap: Path) -> None:
    told = read({"text": WHOLE, "limit": 77}, submitted(bitmap))
    assert (told.text, told.restarts) == (WHOLE, [])
    assert told.finish.reason == "complete"
    assert (told.finish.prompt_tokens, told.finish.limit) == (10, 77)
    assert told.finish.output_tokens == told.tokens


def test_the_second_try(bitmap: Path) -> None:
    told = read({"text": WHOLE, "second_try": True, "limit": 77,
                 "faults": [{**LOOP, "reads": [1]}]}, submitted(bitmap))
    assert (told.text, told.restarts, told.finish.reason) == (WHOLE, ["loop"], "complete")
    assert told.finish.output_tokens > len(WHOLE) / 20 + 300 / 20  # both readings' in sum
    assert told.finish.limit == 77


def test_halves_after_the_second_try(bitmap: Path) -> None:
    told = read({"text": WHOLE, "second_try": True, "again": [WHOLE, UPPER, LOWER],
                 "faults": [{**LOOP, "reads": [1, 2]}]}, submitted(bitmap))
    assert (told.restarts, told.finish.reason) == (["loop", "loop"], "complete")
    above, below = parse(told.text)
    assert (above.markdown, below.markdown) == ("What stands above", "What stands below")
    assert above.boxes[0][3] < 200
    assert below.boxes[0][1] > 800
    assert told.finish.prompt_tokens == 20  # of the two that ended; a stopped one does not tell


@pytest.mark.parametrize("second", [False, True])
def test_kept_and_flagged(bitmap: Path, second: bool) -> None:
    told = read({"text": WHOLE, "second_try": second, "faults": [LOOP]}, submitted(bitmap))
    assert told.finish.reason == "loop"
    assert told.restarts == ["loop"] * (1 + second)
    assert parse(told.text)[0].markdown.startswith("A page that says it")


def test_one_half_that_loops(bitmap: Path) -> None:
    told = read({"text": WHOLE, "again": [UPPER, LOWER],
                 "faults": [{**LOOP, "reads": [1, 3]}]}, submitted(bitmap))
    assert told.finish.reason == "loop"
    assert "What stands above" in told.text
    assert "What stands below" in told.text


def test_a_page_without_a_bitmap_is_kept_and_flagged() -> None:
    told = read({"text": WHOLE, "faults": [LOOP]}, submitted("/nowhere/page.ppm"))
    assert (told.finish.reason, told.restarts) == ("loop", [])
    assert told.text.startswith(WHOLE)


def test_the_guard_can_be_off(bitmap: Path) -> None:
    told = read({"text": WHOLE, "finish": "loop", "faults": [{**LOOP, "times": 100}]},
                submitted(bitmap, loop_guard=False))
    assert (told.finish.reason, told.restarts) == ("loop", [])  # as the engine says itself
    assert len(told.text) > 3000


def test_slices(bitmap: Path) -> None:
    told = read({"parts": 3, "text": UPPER, "again": [WHOLE, LOWER]}, submitted(bitmap))
    blocks = parse(told.text)
    assert [block.markdown for block in blocks] == [
        "What stands above", "A page that says it again and again and again",
        "What stands below"]
    tops = [block.boxes[0][1] for block in blocks]
    assert tops == sorted(tops)
    assert (told.finish.reason, told.finish.prompt_tokens) == ("complete", 30)
    assert told.restarts == []


def test_one_slice_loops_and_the_others_are_kept(bitmap: Path) -> None:
    halves = [block("text", (100, 100, 900, 300), text) for text in ("first half", "second half")]
    told = read({"parts": 3, "second_try": True, "text": UPPER,
                 "again": [WHOLE, WHOLE, *halves, LOWER],
                 "faults": [{**LOOP, "reads": [2, 3]}]}, submitted(bitmap))
    assert (told.restarts, told.finish.reason) == (["loop", "loop"], "complete")
    assert [block.markdown for block in parse(told.text)] == [
        "What stands above", "first half", "second half", "What stands below"]


@pytest.mark.parametrize(("ends", "whole"), [
    (["complete", "empty"], "complete"), (["empty", "empty"], "empty"),
    (["blank", "blank"], "blank"), (["complete", "length"], "length"),
    (["empty", "blank"], "empty")])
def test_how_a_page_in_parts_ends(bitmap: Path, ends: list[str], whole: str) -> None:
    told = read(Acting(*(playing(Text("x"), Finish(end)) for end in ends), parts=2),
                submitted(bitmap))
    assert told.finish.reason == whole


class Acting(Engine):
    """Does as it is told, reading after reading."""

    name = "acting"

    def __init__(self, *readings: Callable[[m.SubmitPage], Any], parts: int = 0) -> None:
        self.readings = list(readings)
        self.pages: list[m.SubmitPage] = []
        self.slices = parts

    async def start(self, settings: dict[str, Any], progress: Progress) -> m.EngineReady:
        raise NotImplementedError

    def read(self, page: m.SubmitPage) -> Any:
        self.pages.append(page)
        return self.readings.pop(0)(page)

    def parts(self, page: m.SubmitPage) -> tuple[tuple[int, int, int, int], ...]:
        return ((0, 0, 300, 420), (0, 380, 300, 800)) if self.slices else ()

    async def close(self) -> None:
        pass


def playing(*outputs: Output) -> Callable[[m.SubmitPage], Any]:
    async def reading(page: m.SubmitPage) -> Any:
        for output in outputs:
            yield output
    return reading


def test_parts_have_bitmaps_of_their_own(bitmap: Path) -> None:
    seen = []

    async def reading(page: m.SubmitPage) -> Any:
        with Image.open(page.image) as part:
            seen.append(part.size)
        assert part.size == (page.width, page.height)
        assert page.words == ""
        yield Text(UPPER, 1)
        yield Finish()

    engine = Acting(reading, reading, parts=2)
    read(engine, submitted(bitmap))
    assert len(seen) == 2
    assert len({page.image for page in engine.pages}) == 2


def test_an_engine_that_begins_again_itself(bitmap: Path) -> None:
    told = read(Acting(playing(Text("half a", 3), Restarted("server"), Text("whole", 2),
                               Finish("complete", 5))), submitted(bitmap))
    assert (told.text, told.restarts) == ("whole", ["server"])
    assert (told.finish.output_tokens, told.finish.prompt_tokens) == (5, 5)
    told = read(Acting(playing(Text(UPPER), Finish()),
                       playing(Text("lost"), Restarted("server"), Text(LOWER), Finish()),
                       parts=2), submitted(bitmap))
    assert "lost" not in told.text
    assert [block.markdown for block in parse(told.text)] == [
        "What stands above", "What stands below"]


def test_an_output_cut_off_that_said_nothing_new_is_a_loop(bitmap: Path) -> None:
    import random
    lines = [f"{number} of the {number * 7} lines that come in any order\n"
             for number in range(40)]
    dice = random.Random(1)
    stale = Text("".join(dice.choice(lines) for _ in range(150)), 100)
    fresh = Text("".join(f"{dice.randrange(10**9)} {dice.random()}\n" for _ in range(150)), 100)
    for text, end in ((stale, "loop"), (fresh, "length")):
        told = read(Acting(playing(text, Finish("length", 1, 100, 100)),
                           *[playing(text, Finish("length", 1, 100, 100))] * 2),
                    submitted("", max_tokens=100))
        assert told.finish.reason == end


@pytest.mark.parametrize("script", [
    {"text": WHOLE, "rate": 5},
    {"text": WHOLE, "wait": 30},
    {"text": WHOLE, "rate": 0, "faults": [{**LOOP, "reads": [1]}, {"kind": "hang", "reads": [2]}]},
    {"text": WHOLE, "rate": 0, "second_try": True,
     "faults": [{**LOOP, "reads": [1]}, {"kind": "hang", "at": 9, "reads": [2]}]},
    {"text": WHOLE, "rate": 0, "parts": 4, "faults": [{"kind": "hang", "reads": [3]}]}])
def test_cancelling_takes_effect_at_any_stage(bitmap: Path, script: dict[str, Any]) -> None:
    with pytest.raises(asyncio.CancelledError):
        read(script, submitted(bitmap), cancel=0.3)


def test_cancelling_while_a_part_is_cut_leaves_no_file(
        bitmap: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    from desktop.engines.slices import Sheet

    write = Sheet.write

    def slow(self: Sheet, rect: tuple[int, int, int, int]) -> Path:
        time.sleep(0.4)
        return write(self, rect)

    monkeypatch.setattr(Sheet, "write", slow)
    with pytest.raises(asyncio.CancelledError):
        read({"text": WHOLE, "parts": 2}, submitted(bitmap), cancel=0.2)
    # (asyncio.run waits for the thread; the fixture looks for files.)
