"""The Markdown tab: linked with the page as the rendering is, changed in place."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from desktop.document.model import Block
from desktop.ui.review.linking import find_place
from desktop.ui.review.pane import ReviewPane
from tests.ui.review.helpers import fill, rendering_of, scroll_result, uneven


def _cursor_at(view, position):
    cursor = view.textCursor()
    cursor.setPosition(position)
    return cursor


def test_the_markdown_tab_is_linked_too(plain_pane: ReviewPane) -> None:
    pane = plain_pane
    fill(pane, uneven())
    pane.result.tabs.setCurrentIndex(1)
    view = pane.result.markdown
    assert [extent.id for extent in view.extents] == ["b1", "b2", "b3", "b4", "b5", "b6"]
    text = view.toPlainText()
    start, end = view.spans["b3"]
    assert text[start:end] == "One line for a large box."
    pane.choose("b6")
    extent = next(e for e in view.extents if e.id == "b6")
    assert view.where.shows(extent.top, extent.bottom)
    assert any("E = mc" in mark.cursor.selectedText() for mark in view.extraSelections())
    spot = view.cursorRect(_cursor_at(view, view.spans["b5"][0])).center()
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=spot)
    assert pane.chosen == "b5"


def test_the_markdown_tab_changes_only_what_changed(plain_pane: ReviewPane) -> None:
    pane = plain_pane
    view = pane.result.markdown
    pane.result.tabs.setCurrentIndex(1)
    fill(pane, [Block(0, "text", (), "First 𝒜."), Block(2, "text", (), "Third.")])
    assert view.toPlainText() == "First 𝒜.\n\nThird."
    for blocks, expected in (
        ([Block(1, "text", (), "Second")], "First 𝒜.\n\nSecond\n\nThird."),
        ([Block(1, "text", (), "Second, longer.")], "First 𝒜.\n\nSecond, longer.\n\nThird."),
        ([Block(0, "text", (), "")], "Second, longer.\n\nThird."),
        ([Block(2, "text", (), "")], "Second, longer."),
        ([Block(0, "text", (), "First."), Block(3, "text", (), "Fourth.")],
         "First.\n\nSecond, longer.\n\nFourth."),
        ([Block(1, "text", (), "")], "First.\n\nFourth."),
    ):
        pane.apply_blocks(pane.page_id or "", blocks)
        assert view.toPlainText() == expected


def test_the_tabs_show_the_same_place(pane: ReviewPane) -> None:
    fill(pane, uneven())
    rendering = rendering_of(pane)
    extent = next(e for e in rendering.extents if e.id == "b2")
    scroll_result(pane, rendering.where.top_for((extent.top + extent.bottom) / 2))
    pane.result.tabs.setCurrentIndex(1)
    view = pane.result.markdown
    found = find_place(view.extents, view.where.line)
    assert found is not None
    assert found.before == "b2"
    pane.result.tabs.setCurrentIndex(0)
