"""The page as the engine saw it, with its boxes: zoom, pan, rotate, choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QHelpEvent, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import QAbstractSlider, QToolTip, QWidget

from desktop.document.model import Block
from desktop.i18n import N_, _
from desktop.protocol.messages import Region
from desktop.ui.labels import title_of
from desktop.ui.review.boxes import (
    BoxLayer,
    Mark,
    marks_of,
    paint_region,
    still_provisional,
)
from desktop.ui.review.geometry import Rect
from desktop.ui.review.linking import Extent, block_at
from desktop.ui.review.paper import FIT_PAGE, FIT_WIDTH, Paper
from desktop.ui.texts import say


class PageCanvas(Paper):
    """Shows one bitmap; knows blocks only as boxes with an id."""

    hovered = Signal(str)
    """The block under the pointer; "" for none."""
    chosen = Signal(str)
    """A block was clicked; "" when the ground was."""
    activated = Signal(str)
    """A block was double-clicked."""
    menu_wanted = Signal(str, QPoint)
    """A context menu for a block ("": the page) at a global position."""
    block_step = Signal(int)
    """The next (+1) or previous (−1) block was asked for."""
    page_step = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        say(self, accessibleName=N_("Page"))
        self._layer = BoxLayer()
        self._regions: list[Region] = []
        self._provisional: list[Region] = []
        self._hidden: frozenset[str] | None = frozenset()
        self._hover = self._choice = ""

    # --- what is shown
    def set_blocks(self, blocks: Iterable[Block]) -> None:
        """The boxes to draw, in reading order."""
        changed = self._layer.set_marks(marks_of(blocks))
        self._update_marks(changed)
        if changed and self._regions:
            before = self._provisional
            self._provisional = still_provisional(self._regions, self.marks)
            for region in before:
                if region not in self._provisional:
                    rect = self._projection.box(region.box)
                    self._update_area(QRectF(rect.left, rect.top, rect.width, rect.height))

    def _update_marks(self, marks: Iterable[Mark]) -> None:
        """Draw only these again."""
        for mark in marks:
            self._update_area(self._layer.area(mark))

    def _update_area(self, area: QRectF) -> None:
        left, top = self.horizontalScrollBar().value(), self.verticalScrollBar().value()
        self.viewport().update(
            area.translated(-left, -top).adjusted(-2, -2, 2, 2).toAlignedRect())

    def set_regions(self, regions: Sequence[Region]) -> None:
        """Boxes known before their text; each goes when a block takes its place."""
        self._regions = list(regions)
        self._provisional = still_provisional(self._regions, self.marks)
        self.viewport().update()

    def set_hidden(self, labels: Iterable[str] | None) -> None:
        """Labels whose boxes are not drawn; None hides all."""
        self._hidden = None if labels is None else frozenset(labels)
        self.viewport().update()

    def set_marked(self, hover: str, choice: str) -> None:
        """The blocks that are marked on both sides."""
        if (hover, choice) != (self._hover, self._choice):
            touched = {self._hover, self._choice, hover, choice}
            self._hover, self._choice = hover, choice
            self._update_marks(mark for mark in self.marks if mark.id in touched)

    @property
    def marks(self) -> list[Mark]:
        """All boxes, in reading order."""
        return self._layer.marks

    @property
    def visible_marks(self) -> list[Mark]:
        """The boxes that are drawn."""
        hidden = self._hidden
        return [] if hidden is None else [m for m in self.marks if m.label not in hidden]

    # --- where things are
    @property
    def extents(self) -> list[Extent]:
        """Where the blocks lie in the content, in reading order; hidden ones too."""
        return [Extent(mark.id, tuple(Rect(r.left(), r.top(), r.right(), r.bottom())
                                      for r in self._layer.rects(mark))) for mark in self.marks]

    def reveal(self, block_id: str) -> None:
        """Bring the first box of a block into sight, moving as little as can be."""
        for extent in self.extents:
            if extent.id == block_id:
                piece = extent.pieces[0]
                # The tag sits above the box.
                self.scroll_to(self.where.revealing(piece.top - 16, piece.bottom),
                               (piece.left + piece.right) / 2)

    # --- the paper
    def _projected(self) -> None:
        self._layer.set_projection(self._projection)

    def _pointed(self, spot: QPointF | None) -> None:
        self._hover_changed(self._block_under(spot) if spot is not None else "")

    def _clicked(self, spot: QPointF) -> None:
        self.chosen.emit(self._block_under(spot))

    def _paint_over(self, painter: QPainter, shown: QRectF) -> None:
        if self._hidden is not None:
            for region in self._provisional:
                if region.label not in self._hidden:
                    paint_region(painter, self._projection, region)
        marked = [m for m in self.marks if m.id in (self._hover, self._choice)]
        others = [m for m in self.visible_marks if m not in marked
                  and self._layer.area(m).intersects(shown)]
        self._layer.paint(painter, others)
        self._layer.paint(painter, marked, hover=self._hover, choice=self._choice)

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip:
            assert isinstance(event, QHelpEvent)
            self._show_tip(event)
            return True
        return super().viewportEvent(event)

    def _show_tip(self, event: QHelpEvent) -> None:
        block_id = self._block_under(QPointF(event.pos()))
        mark = next((mark for mark in self.marks if mark.id == block_id), None)
        if mark is None:
            QToolTip.hideText()
            return
        text = f"{mark.order} {title_of(mark.label)}"
        if mark.confidence is not None:
            text += " · " + _("{percent} % sure").format(percent=round(mark.confidence * 100))
        QToolTip.showText(event.globalPos(), text, self.viewport())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        block_id = self._block_under(event.position())
        if block_id:
            self.activated.emit(block_id)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.menu_wanted.emit(self._block_under(QPointF(event.pos())), event.globalPos())
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        action = self._key_action(event)
        if action is None:
            super().keyPressEvent(event)
            return
        action()
        event.accept()

    def _key_action(self, event: QKeyEvent) -> Callable[[], object] | None:
        key, keys = event.key(), Qt.Key
        alt = bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
        if alt:
            steps: dict[int, int] = {keys.Key_Down: 1, keys.Key_Up: -1}
            return (lambda: self.block_step.emit(steps[key])) if key in steps else None
        actions: dict[int, Callable[[], object]] = {
            keys.Key_J: lambda: self.block_step.emit(1),
            keys.Key_K: lambda: self.block_step.emit(-1),
            keys.Key_Plus: lambda: self.step_zoom(1),
            keys.Key_Equal: lambda: self.step_zoom(1),
            keys.Key_Minus: lambda: self.step_zoom(-1),
            keys.Key_0: lambda: self.set_fit(FIT_PAGE),
            keys.Key_1: lambda: self.set_zoom(1.0),
            keys.Key_2: lambda: self.set_fit(FIT_WIDTH),
            keys.Key_R: lambda: self.rotate(
                -90 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 90),
            keys.Key_Left: lambda: self._pan(-60, 0),
            keys.Key_Right: lambda: self._pan(60, 0),
            keys.Key_Down: lambda: self._pan(0, 60),
            keys.Key_Up: lambda: self._pan(0, -60),
            keys.Key_Space: lambda: self._pan(0, self.viewport().height() * 9 // 10),
            keys.Key_Home: lambda: self.verticalScrollBar().triggerAction(
                QAbstractSlider.SliderAction.SliderToMinimum),
            keys.Key_End: lambda: self.verticalScrollBar().triggerAction(
                QAbstractSlider.SliderAction.SliderToMaximum),
            keys.Key_PageDown: lambda: self.page_step.emit(1),
            keys.Key_PageUp: lambda: self.page_step.emit(-1),
            keys.Key_Return: lambda: self.activated.emit(self._choice),
            keys.Key_Enter: lambda: self.activated.emit(self._choice),
            keys.Key_Escape: lambda: self.chosen.emit(""),
        }
        return actions.get(key)

    def _block_under(self, spot: QPointF) -> str:
        if self._source is None:
            return ""
        shown = {mark.id for mark in self.visible_marks}
        extents = [extent for extent in self.extents if extent.id in shown]
        return block_at(extents, spot.x() + self.horizontalScrollBar().value(),
                        spot.y() + self.verticalScrollBar().value()) or ""

    def _hover_changed(self, block_id: str) -> None:
        if block_id != self._hover:
            self.hovered.emit(block_id)

    def viewport_point(self, block_id: str) -> QPoint:
        """The middle of a block's first box in the viewport."""
        for extent in self.extents:
            if extent.id == block_id:
                piece = extent.pieces[0]
                return QPoint(
                    round((piece.left + piece.right) / 2) - self.horizontalScrollBar().value(),
                    round((piece.top + piece.bottom) / 2) - self.verticalScrollBar().value())
        raise KeyError(block_id)
