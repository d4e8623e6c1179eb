"""The loop guard: every loop is noticed, and nothing that documents contain is taken for one."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.engines.looping import Loop, LoopGuard
from tests.document.recordings import everything, read
from tests.engines.repetitive import LOOPS, PARAGRAPH, PROSE, block, documents, stripped, table
from tests.support import data

RECORDED = everything()
LOOPING = {row["file"] for folder in [data.recordings_dir()] if folder
           for row in data.manifest(folder) if "loop" in row["features"].split(",")}
DOCUMENTS = dict(documents())
REAL = [read(path) for path in RECORDED if path.name not in LOOPING]


def watched(text: str, sizes: tuple[int, ...] = (1_000_000,)) -> Loop | None:
    """What a guard notices in TEXT that comes in pieces of SIZES."""
    guard = LoopGuard()
    at = 0
    for size in itertools.cycle(sizes):
        if at >= len(text) or guard.loop:
            return guard.loop
        guard.feed(text[at:at + size])
        at += size
    return None


def until_noticed(guard: LoopGuard, pieces: Iterator[str], most: int) -> int:
    """Characters of PIECES that GUARD let through; more than MOST where it noticed nothing."""
    fed = 0
    for piece in pieces:
        loop = guard.feed(piece)
        fed += len(piece)
        if loop is not None or fed > most + 1000:
            break
    return fed


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_outputs(path: Path) -> None:
    text = read(path)
    loop = watched(text + "\n" * 200 if path.name not in LOOPING else text)
    if path.name in LOOPING:
        assert loop is not None
        assert loop.at < len(text)
        assert loop == watched(text, (1, 7, 3))
    elif loop is not None:  # the empty lines behind it are one
        assert loop.at > len(text)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_that_repeat_themselves(name: str) -> None:
    for text in (DOCUMENTS[name], stripped(DOCUMENTS[name])):
        assert watched(text) is None
        assert watched(PROSE + "\n\n" + text + "\n\n" + PROSE) is None


def test_truths_of_the_corpus() -> None:
    folder = data.corpus_dir()
    if folder is None:
        pytest.skip("no corpus here")
    texts = [path for path in sorted((folder / "gt").iterdir())
             if path.suffix in (".md", ".txt")]
    assert texts
    assert [path.name for path in texts
            if watched(path.read_text("utf-8", "replace"))] == []


def test_what_this_project_itself_consists_of() -> None:
    found = [path.name for kind in ("desktop/**/*.py", "docs/*.md", "tests/**/*.json")
             for path in sorted(data.ROOT.glob(kind))[:120]
             if watched(path.read_text("utf-8", "replace")[:30_000])]
    assert found == []


@pytest.mark.parametrize("name", LOOPS)
def test_every_kind_of_loop(name: str) -> None:
    make, most = LOOPS[name]
    for before in ("", PROSE * 2, PROSE + "\n\n", block("table", (50, 60, 900, 900), "<table>")):
        for dressed in (str, stripped):
            guard = LoopGuard()
            assert guard.feed(dressed(before)) is None
            fed = until_noticed(guard, map(dressed, make()), most)
            assert guard.loop is not None, (name, before)
            assert fed <= most + 200, (name, before, guard.loop)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(LOOPS)), st.sampled_from(REAL), st.floats(0, 1),
       st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_a_loop_behind_any_part_of_a_real_output(
        name: str, real: str, part: float, sizes: list[int]) -> None:
    make, most = LOOPS[name]
    before = real[:int(len(real) * part)]
    text = before
    for piece in make():
        text += piece
        if len(text) > len(before) + most + 700:
            break
    found = watched(text)
    assert found is not None
    assert found.at > len(before)
    assert found == watched(text, tuple(sizes))  # however it is cut


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(DOCUMENTS)), st.sampled_from(sorted(DOCUMENTS)),
       st.lists(st.integers(1, 300), min_size=1, max_size=5))
def test_two_such_documents_on_a_page(first: str, second: str, sizes: list[int]) -> None:
    if first == second:
        return
    text = DOCUMENTS[first] + "\n\n" + DOCUMENTS[second]
    found = watched(text, tuple(sizes))
    assert found == watched(text)
    # Both together may be more than a page holds; either alone is not.
    assert found is None or found.at > len(DOCUMENTS[first])


def test_a_table_that_is_not_closed() -> None:
    rows = ["<tr><td>Grand total</td><td>1,204.00</td></tr>",
            "<tr><td>Subtotal</td><td>1,204.00</td></tr>"]
    choice = random.Random(1)
    open_table = block("table", (60, 100, 940, 900), "<table>").rstrip()
    text = open_table + "".join(choice.choice(rows) for _ in range(400))
    assert (loop := watched(text)) is not None
    assert loop.at < 9000
    assert watched(table([["Grand total", "1,204.00"]] * 60)) is None


def test_one_wants_more_rows_of_a_higher_box() -> None:
    def rows(count: int, height: int) -> str:
        return block("table", (60, 0, 940, height),
                     "<table>" + "<tr><td></td><td></td></tr>" * count + "</table>")
    assert watched(rows(100, 990)) is None
    assert watched(rows(100, 300)) is not None
    assert watched(rows(62, 100)) is None  # boxes are the model's word, too


def test_nothing_new_at_the_end() -> None:
    fresh, tired = LoopGuard(), LoopGuard()
    words = random.Random(2)
    for _ in range(40):
        fresh.feed(" ".join(f"word{words.randrange(10**6)}" for _ in range(50)) + "\n")
    lines = [f"{PARAGRAPH[:60 + n]}\n" for n in range(30)]
    for _ in range(4):
        words.shuffle(lines)
        for line in lines:
            if tired.feed(line):
                break
    assert not fresh.stale()
    assert tired.loop or tired.stale()
    assert not LoopGuard().stale()


def test_a_guard_that_noticed_stays_with_it() -> None:
    guard = LoopGuard()
    guard.feed("again and again, " * 200)
    first = guard.loop
    assert first is not None
    assert guard.feed("something else entirely") == first


@pytest.mark.parametrize("text", [
    "", "<", "&", "<|det|>", "<|det|>[[", "[[1,2", "\\", "<" * 3000 + ">", "|" * 20, "\ud800" * 5,
    "<|ref|>" * 20, "text[[1, 2, 3", "a[[9999999999999999999999, 2, 3, 4]]\n", "[[[[" * 50,
    "image[[5, 5, 1, 1]]\n\n" * 3])
def test_odd_texts_do_no_harm(text: str) -> None:
    for around in (text, PROSE + text, "x " * 300 + text):
        assert watched(around, (1,)) == watched(around)


def test_the_work_grows_with_the_length_alone() -> None:
    """Counted in tokens that are looked at again, not in seconds."""
    import sys

    def calls(text: str) -> int:
        count = 0

        def trace(*_: object) -> None:
            nonlocal count
            count += 1

        guard = LoopGuard()
        sys.setprofile(trace)
        try:
            guard.feed(text)
        finally:
            sys.setprofile(None)
        return count

    pages = "".join(table([[f"{random.Random(n).random():.6f}" for _ in range(6)]
                           for n in range(40 * part, 40 * part + 40)]) for part in range(20))
    half = calls(pages[:len(pages) // 2])
    assert calls(pages) < 2.3 * half + 1000
