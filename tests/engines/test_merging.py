"""The outputs of a page's parts become the output of the page."""

from __future__ import annotations

import gc
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.document.model import Block
from desktop.document.parser import parse
from desktop.engines.merging import Merger
from tests.engines.repetitive import block, stripped

SIZE = (1000, 2000)
UPPER, LOWER = (0, 0, 1000, 1100), (0, 900, 1000, 2000)
WORDS = ("river", "station", "register", "winter", "keeper", "ledger", "bridge", "flood", "mason",
         "village", "surveyor", "harvest", "council", "archive", "lantern", "orchard", "quarry",
         "granary", "ferry", "chapel")



def merged(parts: list[str], rects: list[tuple[int, int, int, int]] | None = None,
           sizes: tuple[int, ...] = (10**6,), size: tuple[int, int] = SIZE) -> str:
    merger = Merger(*size, rects or [UPPER, LOWER])
    out = ""
    turn = 0
    for number, text in enumerate(parts):
        out += merger.begin(number)
        at = 0
        while at < len(text):
            step = sizes[turn % len(sizes)]
            out += merger.feed(text[at:at + step])
            at, turn = at + step, turn + 1
    return out + merger.end()


def on_part(rect: tuple[int, int, int, int], box: tuple[int, int, int, int], text: str,
            label: str = "text", size: tuple[int, int] = SIZE) -> str:
    """The block at BOX (0–999 of the page) as the part RECT shows it: cut off at its edges;
    empty where it shows less than a third of it."""
    left, top, right, bottom = rect
    x1, y1, x2, y2 = (value * side / 999 for value, side in zip(box, size * 2, strict=True))
    a, b, c, d = max(x1, left), max(y1, top), min(x2, right), min(y2, bottom)
    if c <= a or d <= b or (d - b) < 0.34 * (y2 - y1):
        return ""
    words = text.split()
    shown = words[int(len(words) * (b - y1) / (y2 - y1)):
                  max(1, int(len(words) * (d - y1) / (y2 - y1) + 0.5))]
    return block(label, (round((a - left) * 999 / (right - left)),
                         round((b - top) * 999 / (bottom - top)),
                         round((c - left) * 999 / (right - left)),
                         round((d - top) * 999 / (bottom - top))), " ".join(shown))


def texts(blocks: tuple[Block, ...]) -> list[str]:
    return [one.markdown for one in blocks]


def test_boxes_are_the_pages_own() -> None:
    out = merged([block("title", (100, 0, 900, 100), "# Title"),
                  block("image", (0, 500, 999, 999))])
    (title, image) = parse(out)
    assert title.boxes == ((100, 0, 900, 55),)
    assert image.boxes == ((0, 725, 999, 999),)
    assert texts((title, image)) == ["# Title", ""]


def test_several_boxes_spaces_and_odd_numbers() -> None:
    part = ("<|ref|>text<|/ref|><|det|> [[0, 0, 999, 100], [0,200,999.5,1300]]<|/det|>\nA\n\n"
            "<|ref|>text<|/ref|>no box 17\n\n<|ref|>words of the page<|/ref|>"
            "<|det|>[[1, 2, 3]]<|/det|>\n")
    out = merged([part, ""])
    first, *rest = parse(out)
    assert first.boxes == ((0, 0, 999, 55), (0, 110, 999, 549))
    assert [one.boxes for one in rest] == [(), ()]
    assert texts(tuple(rest)) == ["no box 17", "words of the page"]


def test_what_is_in_both_parts_comes_once() -> None:
    shared = "A paragraph that stands in the overlap of both parts, whole in either"
    out = merged([
        block("text", (100, 100, 900, 500), "Above") + block("text", (100, 860, 900, 950), shared),
        block("text", (100, 42, 900, 131), shared.replace("whole", "whoIe"))
        + block("text", (100, 400, 900, 500), "Below")])
    blocks = parse(out)
    assert texts(blocks) == ["Above", shared, "Below"]


def test_of_two_the_one_that_was_not_cut_off_is_kept() -> None:
    whole = "one two three four five six seven eight nine ten eleven twelve"
    cut = "one two three four five six"
    above = block("text", (100, 900, 900, 999), cut)  # goes on below the first part's edge
    below = block("text", (100, 82, 900, 190), whole)
    assert texts(parse(merged([above, below]))) == [whole]
    above = block("text", (100, 780, 900, 950), whole)
    below = block("text", (100, 0, 900, 131), "seven eight nine ten eleven twelve")
    assert texts(parse(merged([above, below]))) == [whole]


def test_pictures_at_one_place_are_one_and_others_are_not() -> None:
    picture = block("image", (100, 850, 900, 950))
    again = block("image", (100, 32, 900, 131))
    other = block("image", (100, 400, 900, 500))
    assert len(parse(merged([picture, again + other]))) == 2
    beside = block("text", (500, 860, 900, 950), "left out twice, once in each column")
    column = block("text", (0, 42, 400, 131), "left out twice, once in each column")
    assert len(parse(merged([beside, column]))) == 2  # the same words at another place


def test_equal_lines_below_the_overlap_stay() -> None:
    line = block("text", (100, 870, 900, 900), "Signature")
    more = "".join(block("text", (100, y, 900, y + 30), "Signature") for y in (53, 300, 400))
    assert texts(parse(merged([line, more]))) == ["Signature"] * 3


def test_text_without_tags() -> None:
    lines = [f"Line {number} of the page says {WORDS[number % 20]}" for number in range(200)]
    upper, lower = "\n".join(lines[:110]) + "\ncut o", "ff\n" + "\n".join(lines[105:])
    assert merged([upper, lower]).split("\n\n")[0].splitlines()[:105] == lines[:105]
    assert merged([upper, lower]).count("Line 107 ") == 1
    assert merged(["First part", "second part"]).split() == ["First", "part", "second", "part"]


def test_it_goes_on_while_a_part_is_read() -> None:
    merger = Merger(*SIZE, [UPPER, LOWER])
    merger.begin(0)
    assert "Above" in merger.feed(block("text", (100, 100, 900, 500), "Above"))
    held = merger.feed(block("text", (100, 860, 900, 950), "held back") + "x" * 100)
    assert held.strip() == ""
    out = merger.begin(1)
    out += merger.feed(block("text", (100, 42, 900, 131), "held back"))
    assert "held" not in out  # until it is clear that nothing else is at its place
    out = merger.feed("<|ref|>text<|/ref|><|det|>[[100, 400, 900, 500]]<|/det|>\nBe")
    assert out.count("held back") == 1
    assert out.rstrip().endswith("Be")
    assert merger.feed("low") == "low"

    loose = Merger(*SIZE, [UPPER, LOWER])
    loose.begin(0)
    given_out = "".join(loose.feed(f"line {number}\n") for number in range(2000))
    assert len(given_out) > 10_000
    loose.begin(1)
    assert len("".join(loose.feed(f"other {number}\n") for number in range(2000))) > 10_000


def test_turned_parts() -> None:
    merger = Merger(*SIZE, [UPPER, LOWER])
    merger.begin(0)
    merger.turn(90)
    assert merger.box((0, 0, 999, 100)) == (0, 0, 100, 549)
    merger.turn(90)
    assert merger.box((0, 0, 999, 100)) == (0, 494, 999, 549)
    merger.turn(90)
    assert merger.box((0, 0, 999, 100)) == (899, 0, 999, 549)


def test_side_by_side() -> None:
    rects = [(0, 0, 1100, 500), (900, 0, 2000, 500)]
    out = merged([block("text", (0, 0, 400, 999), "left"),
                  block("text", (400, 0, 900, 999), "right")], rects, size=(2000, 500))
    left, right = parse(out)
    assert (left.boxes, right.boxes) == (((0, 0, 220, 999),), ((670, 0, 945, 999),))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(2, 90), st.integers(0, 40), st.integers(3, 40)),
                min_size=1, max_size=25),
       st.integers(2, 5), st.booleans(), st.lists(st.integers(1, 50), min_size=1, max_size=4))
def test_a_page_in_parts_is_the_page(shape: list[tuple[int, int, int]], count: int,
                                     bare: bool, sizes: list[int]) -> None:
    """Blocks one below the other, seen in overlapping parts, come out once, whole, in order."""
    blocks, top = [], 5
    for number, (height, gap, length) in enumerate(shape):
        if top + height > 995:
            break
        words = " ".join(f"{WORDS[(number + n) % 20]}{number * 100 + n}" for n in range(length))
        blocks.append(((50, top, 950, top + height), words))
        top += height + gap
    step = SIZE[1] / count
    rects = [(0, max(0, round(n * step - 200)), 1000, min(2000, round((n + 1) * step + 200)))
             for n in range(count)]
    parts = ["".join(on_part(rect, box, text) for box, text in blocks) for rect in rects]
    dress = stripped if bare else str
    out = merged([dress(part) for part in parts], rects, tuple(sizes))
    assert out == merged([dress(part) for part in parts], rects)
    found = parse(out)
    assert texts(found) == [text for _, text in blocks]
    for one, (box, _) in zip(found, blocks, strict=True):
        assert all(abs(a - b) <= 2 for a, b in zip(one.boxes[0], box, strict=True))


@given(st.text(alphabet="<|ref/det>[]0 1,\nab_\ud800", max_size=200), st.integers(1, 7))
def test_any_text_is_let_through(text: str, size: int) -> None:
    once = merged([text, text], sizes=(size,))
    assert once == merged([text, text])
    assert len(once) <= 3 * len(text) + 60


@pytest.mark.parametrize("unit", [
    "<|ref|>", "<|det|>[[1, 2, 3, 4", "text[[1, 2, 3, 4", "a line\n",
    block("text", (100, 990, 900, 999), "word")])
def test_the_work_grows_with_the_length_alone(unit: str) -> None:
    def seconds(count: int) -> float:
        text = unit * count
        gc.collect()
        gc.disable()  # it goes over all that other tests have left
        try:
            begun = time.thread_time()
            merged([text, text], sizes=(4,))
            return time.thread_time() - begun
        finally:
            gc.enable()

    count = 16_000 // len(unit)
    small = max(seconds(count), 0.02)
    assert seconds(4 * count) < 16 * small  # four times as much; with room for a busy machine
