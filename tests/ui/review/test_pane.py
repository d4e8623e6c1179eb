"""Page and text linked both ways, with the web engine and without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from desktop.document.model import Block
from desktop.document.parser import StreamParser
from desktop.errors import Problem
from desktop.jobs.events import PageResult, PageState, PageView
from desktop.protocol.messages import Region
from desktop.ui.labels import doubtful
from desktop.ui.review.clipboard import TSV
from desktop.ui.review.fallback import TextRendering
from desktop.ui.review.linking import find_place
from desktop.ui.review.pane import ReviewPane
from desktop.ui.review.rendering import Rendering
from tests.ui.review.helpers import (
    become,
    bitmap,
    fill,
    pause,
    script,
    settle,
    uneven,
    wait_for,
)


def rendering_of(pane: ReviewPane) -> Rendering:
    assert pane.result.rendering is not None
    return pane.result.rendering


def shown(pane: ReviewPane, block_id: str) -> bool:
    """Whether a block is within the result's viewport."""
    extent = next(e for e in rendering_of(pane).extents if e.id == block_id)
    return rendering_of(pane).where.shows(extent.top, extent.bottom)


def scroll_result(pane: ReviewPane, top: float) -> None:
    """Scroll the result as a person would."""
    rendering = rendering_of(pane)
    if isinstance(rendering, TextRendering):
        rendering.browser.verticalScrollBar().setValue(round(top))
    else:
        script(pane, f"Verso.lead(); document.getElementById('scroller').scrollTop = {top}; 1")
        wait_for(lambda: abs(rendering.where.top - min(top, rendering.where.most)) < 2)
        pause(30)


def move(widget: QWidget, spot: QPoint) -> None:
    """Move the pointer; Qt drops a move to where the pointer was last."""
    QTest.mouseMove(widget, spot - QPoint(2, 2))
    QTest.mouseMove(widget, spot)


def marked(pane: ReviewPane) -> tuple[list[str], list[str]]:
    """The ids that the result shows as hovered and as chosen."""
    rendering = rendering_of(pane)
    if isinstance(rendering, TextRendering):
        return ([rendering._hover] if rendering._hover else [],
                [rendering._choice] if rendering._choice else [])
    found = [script(pane, f"[...document.querySelectorAll('.block.{name}')].map("
                          "e => e.dataset.id).join()") for name in ("hover", "chosen")]
    return tuple([part for part in text.split(",") if part] for text in found)  # type: ignore[return-value]


def line_block(pane: ReviewPane, *, of_page: bool) -> str:
    """The block at the line that a side's scroll position stands for."""
    side = pane.canvas if of_page else rendering_of(pane)
    other = rendering_of(pane) if of_page else pane.canvas
    known = {extent.id for extent in other.extents}
    place = find_place(side.extents, side.where.line, known=known)
    assert place is not None
    return place.before if place.fraction < 0.5 else place.after


# --- hover and choice
def test_a_box_marks_its_block_and_brings_it_into_sight(pane: ReviewPane) -> None:
    fill(pane, uneven())
    assert not shown(pane, "b6")

    def hovered() -> bool:
        # Again and again: the display's own pointer may leave a window that was just shown.
        move(pane.canvas.viewport(), pane.canvas.viewport_point("b6"))
        return marked(pane)[0] == ["b6"]
    wait_for(hovered)
    QTest.mouseClick(pane.canvas.viewport(), Qt.MouseButton.LeftButton,
                     pos=pane.canvas.viewport_point("b6"))
    wait_for(lambda: marked(pane)[1] == ["b6"])
    wait_for(lambda: shown(pane, "b6"))
    QTest.mouseClick(pane.canvas.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(3, 3))
    wait_for(lambda: marked(pane)[1] == [])


def test_a_block_marks_its_box_and_brings_it_into_sight(pane: ReviewPane) -> None:
    fill(pane, uneven())
    pane.canvas.set_zoom(3.0)
    pane.canvas.scroll_to(0)
    scroll_result(pane, 1e6)
    pane.canvas.scroll_to(0)
    hover_block(pane, "b7")
    wait_for(lambda: pane.canvas._hover == "b7")
    click_block(pane, "b7")
    wait_for(lambda: pane.canvas._choice == "b7")
    box = next(e for e in pane.canvas.extents if e.id == "b7")
    assert pane.canvas.where.shows(box.top, box.bottom)
    assert pane.chosen == "b7"


def hover_block(pane: ReviewPane, block_id: str) -> None:
    rendering = rendering_of(pane)
    if isinstance(rendering, TextRendering):
        move(rendering.browser.viewport(), _spot(rendering, block_id))
    else:
        script(pane, f"document.querySelector('[data-id={block_id}]').dispatchEvent("
                     "new MouseEvent('mouseover', {bubbles: true})); 1")


def click_block(pane: ReviewPane, block_id: str) -> None:
    rendering = rendering_of(pane)
    if isinstance(rendering, TextRendering):
        QTest.mouseClick(rendering.browser.viewport(), Qt.MouseButton.LeftButton,
                         pos=_spot(rendering, block_id))
    else:
        script(pane, f"document.querySelector('[data-id={block_id}]').click(); 1")


def _spot(rendering: TextRendering, block_id: str) -> QPoint:
    extent = next(e for e in rendering.extents if e.id == block_id)
    return QPoint(40, round((extent.top + extent.bottom) / 2 - rendering.where.top))


def test_keys_step_through_the_blocks_in_reading_order(pane: ReviewPane) -> None:
    fill(pane, uneven())
    seen = []
    for _ in range(9):
        QTest.keyClick(pane.canvas, Qt.Key.Key_J)
        seen.append(pane.chosen)
    assert seen == ["b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b8"]
    QTest.keyClick(pane.canvas, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    assert pane.chosen == "b7"
    wait_for(lambda: marked(pane)[1] == ["b7"])
    QTest.keyClick(pane.canvas, Qt.Key.Key_Escape)
    assert pane.chosen == ""


def test_a_block_chosen_before_it_shows_is_revealed_when_it_does(pane: ReviewPane) -> None:
    page = pane.page_id or ""
    pane.set_bitmap(page, bitmap())
    pane.apply_blocks(page, uneven())
    pane.choose("b8")
    settle(pane)
    wait_for(lambda: shown(pane, "b8"))


# --- scrolling together
@pytest.mark.parametrize("block_id", ["b1", "b2", "b3", "b6", "b8"])
def test_the_page_follows_the_text_by_block(pane: ReviewPane, block_id: str) -> None:
    fill(pane, uneven())
    pane.canvas.set_zoom(2.0)
    rendering = rendering_of(pane)
    extent = next(e for e in rendering.extents if e.id == block_id)
    scroll_result(pane, rendering.where.top_for((extent.top + extent.bottom) / 2))
    assert line_block(pane, of_page=False) == block_id
    expected = next(e for e in pane.canvas.extents if e.id == block_id).point(0.5)[1]
    # One pixel of a short block is many of its large box.
    assert pane.canvas.where.line == pytest.approx(expected, abs=60)


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


# --- streaming
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


# --- copying
def test_copying_a_table_gives_markdown_html_and_cells(pane: ReviewPane) -> None:
    table = ("<table><tr><th colspan=\"2\">Head</th></tr><tr><td>1</td><td>a\tb</td></tr>"
             "</table>")
    fill(pane, [Block(0, "table", (), table)])
    pane.choose("b1")
    pane.copy_chosen()
    data = QGuiApplication.clipboard().mimeData()
    assert data.text() == table + "\n"
    assert bytes(data.data(TSV).data()).decode() == "Head\t\n1\ta b\n"
    assert 'colspan="2"' in data.html()


def test_copying_text_and_the_page(pane: ReviewPane) -> None:
    fill(pane, [Block(0, "title", (), "Heading"), Block(1, "text", (), "Some *text*."),
                Block(2, "footer", (), "7")])
    pane.choose("b2")
    pane.copy_chosen()
    data = QGuiApplication.clipboard().mimeData()
    assert data.text() == "Some *text*.\n"
    assert not data.hasFormat(TSV)
    pane.choose("")
    pane.copy_chosen()
    assert QGuiApplication.clipboard().text() == "# Heading\n\nSome *text*.\n"


def test_the_copy_menu_offers_what_there_is(plain_pane: ReviewPane) -> None:
    pane = plain_pane
    menu = pane.result._copy.menu()
    menu.aboutToShow.emit()
    assert [(a.text(), a.isEnabled()) for a in menu.actions()] == [
        ("Copy page", False), ("Copy block (choose one first)", False)]
    fill(pane, uneven())
    pane.choose("b2")
    menu.aboutToShow.emit()
    assert [(a.text(), a.isEnabled()) for a in menu.actions()] == [
        ("Copy page", True), ("Copy table 2", True)]
    menu.actions()[1].trigger()
    assert QGuiApplication.clipboard().mimeData().hasFormat(TSV)


# --- searching
def test_searching_counts_and_goes_round(pane: ReviewPane) -> None:
    fill(pane, [Block(0, "text", (), "one needle"), Block(1, "text", (), "Needle, needle")])
    for tab in (0, 1):
        pane.result.tabs.setCurrentIndex(tab)
        pane.find()
        pane.result.find_bar.field.setText("needle")
        labels = []
        for _ in range(4):
            pane.result.find_bar._count.clear()
            pane.result.find_bar.search(False)
            wait_for(lambda: bool(pane.result.find_bar._count.text()))
            labels.append(pane.result.find_bar._count.text())
        assert labels == ["1 of 3", "2 of 3", "3 of 3", "1 of 3"]
        pane.result.find_bar.field.setText("nowhere")
        pane.result.find_bar.search(False)
        wait_for(lambda: pane.result.find_bar._count.text() == "not found")
        pane.result.find_bar.close_bar()


# --- the Markdown tab
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


def _cursor_at(view, position):
    cursor = view.textCursor()
    cursor.setPosition(position)
    return cursor


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


def test_headers_and_footers_are_copied_when_the_setting_keeps_them(
        plain_pane: ReviewPane) -> None:
    pane = plain_pane
    fill(pane, [Block(0, "header", (), "Running head"), Block(1, "text", (), "Body")])
    result = pane.result
    result.tabs.setCurrentIndex(1)
    for keep in (False, True, False):
        pane.set_furniture(keep)
        result.copy_page()
        copied = QGuiApplication.clipboard().text().strip()
        assert copied == result.markdown.toPlainText().strip()
        assert ("Running head" in copied) is keep
    result.tabs.setCurrentIndex(0)


# --- the canvas
def test_wheel_zooms_at_the_cursor(plain_pane: ReviewPane) -> None:
    pane = plain_pane
    fill(pane, uneven())
    canvas = pane.canvas
    canvas.set_zoom(1.0)
    spot = QPointF(200, 300)

    def under() -> tuple[float, float]:
        return canvas.projection.to_page(spot.x() + canvas.horizontalScrollBar().value(),
                                         spot.y() + canvas.verticalScrollBar().value())
    before = under()
    event = QWheelEvent(spot, canvas.viewport().mapToGlobal(spot), QPoint(), QPoint(0, 240),
                        Qt.MouseButton.NoButton, Qt.KeyboardModifier.ControlModifier,
                        Qt.ScrollPhase.NoScrollPhase, False)
    QApplication.sendEvent(canvas.viewport(), event)
    assert canvas.zoom == pytest.approx(2 ** 0.5)
    assert under() == pytest.approx(before, abs=2)


def test_dragging_pans_and_is_no_click(plain_pane: ReviewPane) -> None:
    pane = plain_pane
    fill(pane, uneven())
    canvas = pane.canvas
    canvas.set_zoom(3.0)
    canvas.scroll_to(500)
    view = canvas.viewport()
    QTest.mousePress(view, Qt.MouseButton.LeftButton, pos=QPoint(200, 300))
    for y in (280, 250, 200):
        QTest.mouseMove(view, QPoint(200, y))
    QTest.mouseRelease(view, Qt.MouseButton.LeftButton, pos=QPoint(200, 200))
    assert canvas.verticalScrollBar().value() == pytest.approx(600, abs=25)
    assert pane.chosen == ""


@pytest.mark.parametrize(("key", "check"), [
    (Qt.Key.Key_1, lambda c: c.zoom == pytest.approx(1.0)),
    (Qt.Key.Key_2, lambda c: c.fit == "width"),
    (Qt.Key.Key_0, lambda c: c.fit == "page"),
    (Qt.Key.Key_R, lambda c: c.projection.rotation == 90),
])
def test_keys_of_the_page(plain_pane: ReviewPane, key: Qt.Key,
                          check: Callable[[object], bool]) -> None:
    fill(plain_pane, uneven())
    QTest.keyClick(plain_pane.canvas, key)
    assert check(plain_pane.canvas)


def test_page_keys_ask_for_pages(pane: ReviewPane) -> None:
    fill(pane, uneven())
    steps: list[int] = []
    pane.page_step.connect(steps.append)
    QTest.keyClick(pane.canvas, Qt.Key.Key_PageDown)
    QTest.keyClick(pane.canvas, Qt.Key.Key_PageUp)
    pane.page_step.disconnect(steps.append)
    assert steps == [1, -1]


def test_the_page_is_drawn_where_it_says(plain_pane: ReviewPane) -> None:
    """The red quarter of the bitmap is at the lower right; after a turn at the lower left."""
    pane = plain_pane
    fill(pane, [])
    canvas = pane.canvas
    for turn, red in ((0, (0.75, 0.75)), (90, (0.25, 0.75)), (180, (0.25, 0.25))):
        if turn:
            canvas.rotate(90)
        for _ in range(2):
            area = canvas.page_area()
            picture = canvas.viewport().grab().toImage()
            for x, y in ((0.25, 0.25), (0.75, 0.25), (0.25, 0.75), (0.75, 0.75)):
                tone = picture.pixelColor(area.left() + round(area.width() * x),
                                          area.top() + round(area.height() * y)).name()
                assert tone == ("#ff0000" if (x, y) == red else "#ffffff"), (turn, x, y)
            # The second time from the copy at exactly this size.
            pause(250)


def test_names_of_boxes_cover_neither_boxes_nor_each_other(plain_pane: ReviewPane) -> None:
    pane = plain_pane
    fill(pane, [
        Block(0, "text", ((100, 100, 900, 200),), "free above"),
        Block(1, "text", ((100, 203, 900, 300),), "under another"),
        Block(2, "title", ((100, 500, 140, 520),), "beside"),
        Block(3, "title", ((145, 500, 400, 520),), "its neighbour"),
    ])
    pane.canvas.viewport().grab()
    assert set(pane.canvas._layer._named or {}) == {"b1", "b3"}


def test_hidden_boxes_cannot_be_chosen(plain_pane: ReviewPane) -> None:
    pane = plain_pane
    fill(pane, uneven())
    spot = pane.canvas.viewport_point("b2")
    pane.page._toggle("table")
    QTest.mouseClick(pane.canvas.viewport(), Qt.MouseButton.LeftButton, pos=spot)
    assert pane.chosen == ""
    pane.page._hide(None, False)
    QTest.mouseClick(pane.canvas.viewport(), Qt.MouseButton.LeftButton, pos=spot)
    assert pane.chosen == "b2"
