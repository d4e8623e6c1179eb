"""What the tests of the review pane share: pages to show, waiting, reading state back, acting
as a person would."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QEventLoop, QPoint, QTimer
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from desktop.document.model import Block
from desktop.jobs.events import PageState, PageView
from desktop.ui.review.fallback import TextRendering
from desktop.ui.review.pane import ReviewPane
from desktop.ui.review.rendering import Rendering

SIZE = (900, 640)
_numbers = itertools.count(1)


def fresh(pane: ReviewPane) -> ReviewPane:
    """PANE turned to a page of its own that holds nothing."""
    pane.resize(*SIZE)
    pane.result.tabs.setCurrentIndex(0)
    pane.result.find_bar.close_bar()
    pane.canvas.set_fit("page")
    pane.show_page(f"page-{next(_numbers)}", "Page 1")
    pane.set_following(False)
    settle(pane)
    return pane


def fill(pane: ReviewPane, blocks: list[Block], *, image: QImage | None = None) -> None:
    """Show BLOCKS on a bitmap and wait until everything lies where it belongs."""
    assert pane.page_id is not None
    pane.set_bitmap(pane.page_id, image or bitmap())
    pane.apply_blocks(pane.page_id, blocks)
    settle(pane)


def become(pane: ReviewPane, state: PageState, **more: Any) -> None:
    """The page on show is in STATE now."""
    assert pane.page_id is not None
    pane.set_facts(PageView(pane.page_id, 1, 1, state, **more))


def settle(pane: ReviewPane) -> None:
    """Wait until all blocks given show and are measured."""
    wait_for(lambda: pane.result.idle)
    ids = [block.id for block in pane._content.ordered] if pane._content else []

    def measured() -> bool:
        rendering = pane.result.rendering
        assert rendering is not None
        return [extent.id for extent in rendering.extents] == ids
    wait_for(measured)
    if hasattr(pane.result.rendering, "run_script"):
        # What loads later changes heights: pictures, and the letters of equations.
        wait_for(lambda: script(pane, "document.fonts.status === 'loaded' && "
                                      "[...document.images].every(i => i.complete)"))
    pause(40)
    wait_for(measured)


def script(pane: ReviewPane, code: str) -> Any:
    """The value of CODE in the world of our page script."""
    got: list[Any] = []
    pane.result.rendering.run_script(code, got.append)  # type: ignore[union-attr]
    wait_for(lambda: bool(got))
    return got[0]


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Run the event loop until CONDITION holds."""
    for _ in range(int(seconds * 100)):
        if condition():
            return
        pause(10)
    raise AssertionError("did not come about in time")


def pause(milliseconds: int) -> None:
    """Run the event loop for a while."""
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


def bitmap(width: int = 700, height: int = 1000) -> QImage:
    """A white page with a red quarter at its lower right."""
    image = QImage(width, height, QImage.Format.Format_RGB888)
    image.fill(QColor("white"))
    painter = QPainter(image)
    painter.fillRect(width // 2, height // 2, width, height, QColor("red"))
    painter.end()
    return image


def uneven() -> list[Block]:
    """A page whose two sides are unlike: a small box holds a long table, large boxes hold a line;
    two columns, a block over two boxes, one without a box."""
    rows = "".join(f"<tr><td>row {i}</td><td>{i * i}</td></tr>" for i in range(60))
    return [
        Block(0, "title", ((50, 30, 950, 80),), "A title"),
        Block(1, "table", ((50, 100, 480, 160),), f"<table>{rows}</table>"),
        Block(2, "text", ((50, 180, 480, 560),), "One line for a large box."),
        Block(3, "text", ((50, 580, 480, 950), (520, 100, 950, 300)),
              "Goes on in column two. " * 20),
        Block(4, "text", (), "Has no place on the page."),
        Block(5, "equation", ((520, 320, 950, 380),), r"\[ E = mc^2 \]"),
        Block(6, "image", ((520, 500, 950, 900),), ""),
        Block(7, "footer", ((50, 970, 950, 990),), "a footer"),
    ]


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
        def there() -> bool:
            return abs(rendering.where.top - min(top, rendering.where.most)) < 2

        for _turn in range(20):  # Until it stays there: the other side's move may come after it.
            script(pane, f"Verso.lead(); document.getElementById('scroller').scrollTop = {top}; 1")
            for _wait in range(100):
                if there():
                    pause(30)
                    if there():
                        return
                pause(10)
        raise AssertionError(f"not at {top} but {rendering.where}")


def move(widget: QWidget, spot: QPoint) -> None:
    """Move the pointer; Qt drops a move to where the pointer was last."""
    QTest.mouseMove(widget, spot - QPoint(2, 2))
    QTest.mouseMove(widget, spot)
