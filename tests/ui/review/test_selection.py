"""Hovering and choosing a block on either side marks it on both."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from desktop.ui.review.fallback import TextRendering
from desktop.ui.review.pane import ReviewPane
from tests.ui.review.helpers import (
    bitmap,
    fill,
    move,
    rendering_of,
    script,
    scroll_result,
    settle,
    shown,
    uneven,
    wait_for,
)


def marked(pane: ReviewPane) -> tuple[list[str], list[str]]:
    """The ids that the result shows as hovered and as chosen."""
    rendering = rendering_of(pane)
    if isinstance(rendering, TextRendering):
        return ([rendering._hover] if rendering._hover else [],
                [rendering._choice] if rendering._choice else [])
    found = [script(pane, f"[...document.querySelectorAll('.block.{name}')].map("
                          "e => e.dataset.id).join()") for name in ("hover", "chosen")]
    return tuple([part for part in text.split(",") if part] for text in found)  # type: ignore[return-value]


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
