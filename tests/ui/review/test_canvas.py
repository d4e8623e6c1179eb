"""The canvas: zooming, panning, keys, and where the page and the names of boxes are drawn."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from desktop.document.model import Block
from desktop.ui.review.pane import ReviewPane
from tests.ui.review.helpers import fill, pause, uneven


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
