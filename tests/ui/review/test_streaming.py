"""A page that is being read: what is read stays put, or its live end is followed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from desktop.document.model import Block
from desktop.document.parser import StreamParser
from desktop.jobs.events import PageState
from desktop.protocol.messages import Region
from desktop.ui.review.pane import ReviewPane
from tests.ui.review.helpers import (
    become,
    bitmap,
    fill,
    pause,
    rendering_of,
    scroll_result,
    settle,
    shown,
    uneven,
    wait_for,
)


def deltas(pane: ReviewPane, text: str, size: int = 40) -> None:
    """Let TEXT stream into the pane."""
    parser = StreamParser()
    for at in range(0, len(text), size):
        changed = parser.feed(text[at:at + size])
        pane.apply_blocks(pane.page_id or "", [parser.blocks[i] for i in changed])
        if at % (size * 8) == 0:
            pause(5)
    pane.apply_blocks(pane.page_id or "", [parser.blocks[i] for i in parser.finish()])


def grounded(count: int) -> str:
    return "\n\n".join(
        f"<|ref|>text<|/ref|><|det|>[[50, {20 + i * 9}, 900, {28 + i * 9}]]<|/det|>\n"
        f"Block {i}: " + "words and more words " * 12 for i in range(count))


def test_the_scroll_position_stays_put_while_text_streams(pane: ReviewPane) -> None:
    fill(pane, uneven())
    become(pane, PageState.STREAMING)
    scroll_result(pane, 300)
    rendering = rendering_of(pane)
    top = rendering.where.top
    at_top = next(e.id for e in rendering.extents if e.bottom > top)
    long = [Block(8 + i, "text", ((50, 100, 900, 200),), "more text " * 60) for i in range(20)]
    for block in long:
        pane.apply_blocks(pane.page_id or "", [block])
        pause(20)
    settle(pane)
    assert rendering.where.top == pytest.approx(top, abs=2)
    assert next(e.id for e in rendering.extents if e.bottom > rendering.where.top) == at_top


def test_a_block_that_grows_above_does_not_move_what_is_read(pane: ReviewPane) -> None:
    blocks = uneven()
    fill(pane, blocks)
    scroll_result(pane, 1e6)
    rendering = rendering_of(pane)
    where = rendering.where
    at_top = next(e for e in rendering.extents if e.bottom > where.top)
    offset = at_top.top - where.top
    pane.apply_blocks(pane.page_id or "", [replace(blocks[0], markdown="Longer.\n\n" * 8)])
    settle(pane)
    now = next(e for e in rendering.extents if e.id == at_top.id)
    wait_for(lambda: abs(now.top - rendering.where.top - offset) < 3)


def test_it_follows_the_live_end_until_a_person_scrolls(pane: ReviewPane) -> None:
    pane.set_bitmap(pane.page_id or "", bitmap())
    become(pane, PageState.STREAMING)
    pane.set_following(True)
    left = []
    pane.navigated.connect(lambda: left.append(1))
    deltas(pane, grounded(25))
    settle(pane)
    rendering = rendering_of(pane)
    assert shown(pane, "b25")
    assert left == []
    scroll_result(pane, 50)
    assert left
    pane.apply_blocks(pane.page_id or "", [Block(25, "text", (), "more " * 300)])
    settle(pane)
    assert rendering.where.top == pytest.approx(50, abs=2)
    assert not shown(pane, "b26")


def test_a_followed_page_that_is_done_shows_its_beginning(pane: ReviewPane) -> None:
    pane.set_bitmap(pane.page_id or "", bitmap())
    become(pane, PageState.STREAMING)
    pane.set_following(True)
    left = []
    pane.navigated.connect(lambda: left.append(1))
    deltas(pane, grounded(25))
    settle(pane)
    rendering = rendering_of(pane)
    assert rendering.where.top > 0
    become(pane, PageState.COMPLETE)
    wait_for(lambda: rendering.where.top == 0)
    assert left == []  # that was no navigation of the person's


def test_boxes_come_before_their_text(pane: ReviewPane) -> None:
    pane.set_bitmap(pane.page_id or "", bitmap())
    regions = (Region("text", (50, 50, 900, 200)), Region("table", (50, 300, 900, 500)))
    pane.set_regions(pane.page_id or "", regions)
    assert pane.canvas._provisional == list(regions)
    pane.apply_blocks(pane.page_id or "", [Block(0, "text", ((52, 51, 899, 198),), "a")])
    assert pane.canvas._provisional == [regions[1]]
