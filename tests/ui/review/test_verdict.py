"""What the pane says of a page: why it is empty, why it needs a look, which blocks are doubtful."""

from __future__ import annotations

from desktop.document.model import Block
from desktop.errors import Problem
from desktop.jobs.events import PageResult, PageState, PageView
from desktop.ui.labels import doubtful
from desktop.ui.review.fallback import TextRendering
from desktop.ui.review.pane import ReviewPane
from tests.ui.review.helpers import become, fill, rendering_of, script, uneven


def test_an_empty_page_says_so(pane: ReviewPane) -> None:
    page = pane.page_id or ""
    rendering = rendering_of(pane)

    def empty_text() -> str:
        if isinstance(rendering, TextRendering):
            return rendering.browser.placeholderText()
        return str(script(pane, "document.getElementById('page').dataset.empty"))
    for state, said in ((PageState.WAITING, "This page has not been read yet."),
                        (PageState.STREAMING, "This page is being read…"),
                        (PageState.EMPTY, "No text was found on this page.")):
        become(pane, state)
        assert empty_text() == said
    pane.set_result(page, PageResult(PageView(page, 1, 1, PageState.BLANK), (), ""))
    assert empty_text() == "This page is blank."
    become(pane, PageState.FAILED, problem=Problem("page.failed", "It failed.", "Try again."))
    assert empty_text() == "It failed. Try again."
    assert not pane.result.verdict.isVisible()
    # Not for the moment until the first text is rendered.
    pane.apply_blocks(page, [Block(0, "text", (), "words")])
    assert empty_text() == ""


def test_a_page_that_needs_a_look_says_why(plain_pane: ReviewPane) -> None:
    pane = plain_pane
    verdict = pane.result.verdict
    fill(pane, uneven())
    become(pane, PageState.COMPLETE, blocks=8)
    assert not verdict.isVisible()
    pane.set_damaged(pane.page_id or "", True)
    assert verdict.isVisible()
    assert "damaged" in verdict.text.text()
    pane.set_damaged(pane.page_id or "", False)
    assert not verdict.isVisible()
    become(pane, PageState.LOOP, blocks=8, problem=Problem("page.loop", "It looped.", "Look."))
    assert verdict.text.text() == "Loop stopped, kept 8 blocks. Look."
    pane.show_page("another", "Page 2")
    assert not verdict.isVisible()


def test_a_doubtful_block_is_marked_on_both_sides(pane: ReviewPane) -> None:
    box = ((50, 100, 900, 200),)
    fill(pane, [Block(0, "text", box, "sure", 0.98), Block(1, "text", (), "unknown"),
                Block(2, "text", ((50, 300, 900, 400),), "doubtful", 0.41)])
    rendering = rendering_of(pane)
    if isinstance(rendering, TextRendering):
        doubts = [bool(block.doubt) for block in rendering._shown.values()]
    else:
        doubts = script(pane, "[...document.querySelectorAll('.block')].map("
                              "e => e.matches('.doubt') && e.title.includes('41 %')).join()"
                        ).split(",")
        doubts = [doubt == "true" for doubt in doubts]
    assert doubts == [False, False, True]
    assert [doubtful(mark.confidence) for mark in pane.canvas.marks] == [False, True]
