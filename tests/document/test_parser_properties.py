"""What holds for every text: any split gives the same blocks, no text is lost or invented, and
the work grows with the length alone."""

from __future__ import annotations

import gc
import random
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.document.grounding import LABELS, normalise
from desktop.document.model import Block
from desktop.document.parser import StreamParser, parse
from tests.document.recordings import OWN, everything, read

EVERYTHING = everything()


def streamed(text: str, sizes: list[int]) -> tuple[Block, ...]:
    """The blocks as someone sees them who only looks at what is said to have changed."""
    parser = StreamParser()
    seen: dict[int, Block] = {}
    at = turn = 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        for index in parser.feed(text[at:at + size]):
            seen[index] = parser.blocks[index]
        at += size
        turn += 1
    for index in parser.finish():
        seen[index] = parser.blocks[index]
    assert sorted(seen) == list(range(len(parser.blocks)))
    return tuple(seen[index] for index in sorted(seen))


def letters(text: str) -> str:
    return "".join(text.split())


def without_tags(text: str) -> str:
    """The text of a recording without its tags, found in another way than the parser's."""
    grounded = "<|ref|>" in text

    def ref(match: re.Match[str]) -> str:
        return "" if normalise(match[1]) in LABELS else match[1]

    text = re.sub(r"<\|ref\|>(.*?)<\|/ref\|>(?:\s*<\|det\|>.*?<\|/det\|>)?", ref, text)
    text = re.sub(r"<\|ref\|>[a-z_]*(<\|/ref\|>)?(<\|det\|>[^<]*)?\Z", "", text)
    text = re.sub(r"<\|\w+\|>|<｜[^｜]+｜>|<--- Page Split --->", "", text)
    text = re.sub(r"^--- Page \d+ ---$", "", text, flags=re.M)
    if not grounded:
        text = re.sub(r"^[a-z_]+\[\[[\d, ]*(\]\]|\Z)", "", text, flags=re.M)
    return text


@pytest.mark.parametrize("path", EVERYTHING, ids=lambda path: path.stem)
def test_the_text_of_all_blocks_is_the_recording_without_tags(path: Path) -> None:
    text = read(path)
    blocks = parse(text)
    assert letters("".join(block.markdown for block in blocks)) == letters(without_tags(text))


@pytest.mark.parametrize("path", EVERYTHING, ids=lambda path: path.stem)
def test_a_recording_in_pieces_of_any_size(path: Path) -> None:
    text = read(path)
    whole = parse(text)
    rng = random.Random(path.name)
    assert streamed(text, [1]) == whole
    for longest in (3, 11, 80, 1000):
        assert streamed(text, [rng.randint(1, longest) for _ in range(97)]) == whole


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
@settings(max_examples=30, deadline=None)
@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=40), data=st.data())
def test_a_recording_cut_anywhere_in_any_pieces(
    path: Path, sizes: list[int], data: st.DataObject,
) -> None:
    text = read(path)
    text = text[:data.draw(st.integers(0, len(text)))]
    assert streamed(text, sizes) == parse(text)


FRAGMENTS = [
    "<|ref|>", "<|/ref|>", "<|det|>", "<|/det|>", "text", "table", "table_caption", "image",
    "image_caption", "title", "Some words", "[[1, 2, 3, 4]]", "[[1, 2, 3, 4], [5, 6, 7, 8]]",
    "[1,2,3", "]]", "<table>", "</table>", "<tr><td>", "<｜end▁of▁sentence｜>", "<|im_end|>", "<|",
    "<", "=" * 21, "=" * 50, "=", "\n", "\n\n", " ", "  \n", "BASE:  torch.Size([1])",
    "NO PATCHES", "image: 0it [00:00]", "<--- Page Split --->", "--- Page 3 ---", "\\[", "\\]",
    "```", "$$", "sub_title[[1, 2, 3, 4]]", "x[[1, 2, 3, 4]]", "\r\n", "\x00", "é漢",
]


def pages() -> st.SearchStrategy[str]:
    piece = st.sampled_from(FRAGMENTS) | st.text(max_size=6)
    return st.lists(piece, max_size=40).map("".join)


@settings(max_examples=400, deadline=None)
@given(text=pages(), sizes=st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_any_text_in_any_pieces(text: str, sizes: list[int]) -> None:
    whole = parse(text)
    assert streamed(text, sizes) == whole
    assert streamed(text, [1]) == whole
    for index, block in enumerate(whole):
        assert block.index == index
        assert not block.open
        assert block.markdown == block.markdown.rstrip()
        for x1, y1, x2, y2 in block.boxes:
            assert 0 <= x1 <= x2 <= 999
            assert 0 <= y1 <= y2 <= 999


@settings(max_examples=300, deadline=None)
@given(parts=st.lists(st.sampled_from(FRAGMENTS) | st.just("WORD"), max_size=60))
def test_every_word_is_in_one_block_in_order(parts: list[str]) -> None:
    # Words in a det tag, and only there, are no text.
    text = ""
    for number, part in enumerate(parts):
        text += f"\nWord{number} " if part == "WORD" else part
    expected = re.findall(r"Word\d+", re.sub(r"<\|det\|>[^\n]*?<\|/det\|>", "", text))
    found = re.findall(r"Word\d+", "\n".join(block.markdown for block in parse(text)))
    assert found == expected


PATHOLOGICAL = {
    "ref": "<|ref|>", "ref and a letter": "<|ref|>a", "closed refs": "<|ref|>a<|/ref|>",
    "det": "<|det|>[[", "tags": "<|ref|>table<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>\n",
    "rule": "=", "lines": "\n", "spaces": " ", "bars": "<|", "wide bars": "<｜", "words": "word ",
    "paragraphs": "a\n\n", "half a stripped tag": "a[[1,2,3,", "stripped": "text[[1,2,3,4]]\n\n",
    "tables": "<table>\n", "dashes": "--- Page", "noise": "image: 1", "formula": "\\[ a\n\n",
}


def seconds(text: str, size: int) -> float:
    best = float("inf")
    gc.collect()
    gc.disable()  # it goes over all that other tests have left, the more the longer this takes
    try:
        for _ in range(3):
            best = min(best, _once(text, size))
    finally:
        gc.enable()
    return best


def _once(text: str, size: int) -> float:
    parser = StreamParser()
    began = time.thread_time()
    for at in range(0, len(text), size):
        parser.feed(text[at:at + size])
        if at % 4096 == 0 and len(parser.blocks):
            _ = parser.blocks[-1]
    parser.finish()
    return time.thread_time() - began


@pytest.mark.parametrize("junk", PATHOLOGICAL.values(), ids=PATHOLOGICAL.keys())
def test_the_work_grows_with_the_length_alone(junk: str) -> None:
    length = 25_000
    text = junk * (4 * length // len(junk))
    # Eight times the work would be the mark of quadratic growth from n to 4 n (here: sixteen).
    assert seconds(text, 9) < 10 * seconds(text[:length], 9) + 0.05


def test_ten_megabytes_at_once() -> None:
    rng = random.Random(5)
    words = ["lorem", "<td>", "x = y", "\n", "<|", "[[1,", "|", "`", "漢字", "--- Page", "=" * 30]
    text = " ".join(rng.choices(words, k=20_000))
    text = (text * (10_000_000 // len(text) + 1))[:10_000_000]
    blocks = parse(text)
    assert sum(len(letters(block.markdown)) for block in blocks) == len(letters(text))
