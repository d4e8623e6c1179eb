"""Which page's content the pane shows, and when that is replaced."""

from __future__ import annotations

from desktop.document.model import Block
from desktop.jobs.events import PageResult, PageState, PageView
from desktop.ui.review.pane import ReviewPane
from tests.ui.review.helpers import bitmap, fill, rendering_of, settle, uneven, wait_for


def test_what_is_for_another_page_is_ignored(pane: ReviewPane) -> None:
    fill(pane, uneven()[:1])
    pane.apply_blocks("another", [Block(1, "text", (), "no")])
    pane.append_raw("another", "no")
    pane.set_bitmap("another", bitmap(10, 10))
    settle(pane)
    assert [extent.id for extent in rendering_of(pane).extents] == ["b1"]
    assert pane.canvas.projection.width == 700


def test_a_page_read_again_begins_empty_and_keeps_its_bitmap(pane: ReviewPane) -> None:
    fill(pane, uneven())
    pane.choose("b2")
    pane.clear_page(pane.page_id or "")
    settle(pane)
    assert rendering_of(pane).extents == []
    assert pane.canvas.extents == []
    assert pane.canvas.has_image
    assert pane.chosen == ""
    pane.apply_blocks(pane.page_id or "", uneven()[:2])
    settle(pane)
    assert [extent.id for extent in rendering_of(pane).extents] == ["b1", "b2"]


def test_a_result_replaces_what_was_there(pane: ReviewPane) -> None:
    fill(pane, uneven())
    page = pane.page_id or ""
    view = PageView(page, 1, 1, PageState.COMPLETE)
    pane.set_result(page, PageResult(view, tuple(uneven()[:3]), "raw text"))
    settle(pane)
    assert [extent.id for extent in rendering_of(pane).extents] == ["b1", "b2", "b3"]
    pane.result.tabs.setCurrentIndex(2)
    wait_for(lambda: pane.result.raw.toPlainText() == "raw text")
    pane.append_raw(page, ", and more")
    wait_for(lambda: pane.result.raw.toPlainText() == "raw text, and more")
