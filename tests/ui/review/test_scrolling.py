"""Page and text scroll together, block by block."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint

from desktop.ui.review.linking import find_place
from desktop.ui.review.pane import ReviewPane
from tests.ui.review.helpers import fill, move, pause, rendering_of, scroll_result, uneven, wait_for


def line_block(pane: ReviewPane, *, of_page: bool) -> str:
    """The block at the line that a side's scroll position stands for."""
    side = pane.canvas if of_page else rendering_of(pane)
    other = rendering_of(pane) if of_page else pane.canvas
    known = {extent.id for extent in other.extents}
    place = find_place(side.extents, side.where.line, known=known)
    assert place is not None
    return place.before if place.fraction < 0.5 else place.after


@pytest.mark.parametrize("block_id", ["b1", "b2", "b3", "b6", "b8"])
def test_the_page_follows_the_text_by_block(pane: ReviewPane, block_id: str) -> None:
    fill(pane, uneven())
    pane.canvas.set_zoom(2.0)
    rendering = rendering_of(pane)
    extent = next(e for e in rendering.extents if e.id == block_id)
    scroll_result(pane, rendering.where.top_for((extent.top + extent.bottom) / 2))
    expected = next(e for e in pane.canvas.extents if e.id == block_id).point(0.5)[1]
    # One pixel of a short block is many of its large box.
    wait_for(lambda: line_block(pane, of_page=False) == block_id
             and abs(pane.canvas.where.line - expected) < 60)


@pytest.mark.parametrize("block_id", ["b1", "b2", "b3", "b7", "b8"])
def test_the_text_follows_the_page_by_block(pane: ReviewPane, block_id: str) -> None:
    fill(pane, uneven())
    pane.canvas.set_zoom(2.0)
    box = next(e for e in pane.canvas.extents if e.id == block_id)
    # The column under the pointer is meant.
    pane.canvas.scroll_to(0, box.pieces[0].left + 50)
    x = round(box.pieces[0].left) + 5 - pane.canvas.horizontalScrollBar().value()
    move(pane.canvas.viewport(), QPoint(x, 300))
    pane.canvas.verticalScrollBar().setValue(
        round(pane.canvas.where.top_for((box.top + box.bottom) / 2)))
    rendering = rendering_of(pane)

    def kept() -> bool:
        expected = next(e for e in rendering.extents if e.id == block_id).point(0.5)[1]
        return abs(rendering.where.line - expected) < 40
    wait_for(kept)
    assert line_block(pane, of_page=True) == block_id or block_id == "b7"


def test_the_ends_meet(pane: ReviewPane) -> None:
    fill(pane, uneven())
    pane.canvas.set_zoom(2.0)
    scroll_result(pane, 1e6)
    assert pane.canvas.where.top > 0.95 * pane.canvas.where.most
    pane.canvas.verticalScrollBar().setValue(0)
    wait_for(lambda: rendering_of(pane).where.top < 30)


def test_one_side_leads_and_the_other_does_not_answer(pane: ReviewPane) -> None:
    fill(pane, uneven())
    pane.canvas.set_zoom(2.0)
    led = []
    pane.result.scrolled.connect(lambda: led.append("result"))
    for top in (100, 300, 700, 900):
        pane.canvas.verticalScrollBar().setValue(top)
        pause(60)
        assert pane.canvas.verticalScrollBar().value() == top
    assert led == []
