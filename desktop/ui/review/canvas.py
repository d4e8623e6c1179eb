"""The page as the engine saw it, with its boxes: zoom, pan, rotate, choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QHelpEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QNativeGestureEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QAbstractSlider,
    QApplication,
    QFrame,
    QPinchGesture,
    QToolTip,
    QWidget,
)

from desktop.document.model import Block
from desktop.i18n import _
from desktop.protocol.messages import Region
from desktop.ui.labels import title_of
from desktop.ui.review.boxes import (
    BoxLayer,
    Mark,
    marks_of,
    paint_region,
    still_provisional,
)
from desktop.ui.review.geometry import Projection, Rect, clamp_zoom, next_zoom
from desktop.ui.review.linking import Extent, Scroll, block_at
from desktop.ui.review.scaled import Exact, ScaledImage
from desktop.ui.theme import LIGHT, Theme, colour, pixmap

FIT_PAGE, FIT_WIDTH = "page", "width"


class PageCanvas(QAbstractScrollArea):
    """Shows one bitmap; knows blocks only as boxes with an id."""

    hovered = Signal(str)
    """The block under the pointer; "" for none."""
    chosen = Signal(str)
    """A block was clicked; "" when the ground was."""
    activated = Signal(str)
    """A block was double-clicked."""
    scrolled = Signal()
    """A person moved or zoomed the page (not what :meth:`scroll_to` does)."""
    menu_wanted = Signal(str, QPoint)
    """A context menu for a block ("": the page) at a global position."""
    zoom_changed = Signal()
    block_step = Signal(int)
    """The next (+1) or previous (−1) block was asked for."""
    page_step = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(_("Page"))
        self.viewport().setMouseTracking(True)
        self.viewport().grabGesture(Qt.GestureType.PinchGesture)
        self._theme = LIGHT
        self._projection = Projection(0, 0)
        self._source: ScaledImage | None = None
        self._layer = BoxLayer()
        self._regions: list[Region] = []
        self._provisional: list[Region] = []
        self._hidden: frozenset[str] | None = frozenset()
        self._fit = FIT_PAGE
        self._hover = self._choice = ""
        self._pressed: QPointF | None = None
        self._pointer: QPointF | None = None
        self._dragging = False
        self._programmatic = False
        self._message = ("file-text", "")
        for bar in (self.horizontalScrollBar(), self.verticalScrollBar()):
            bar.setSingleStep(40)
            bar.valueChanged.connect(self._moved)

    # --- what is shown
    def set_image(self, image: QImage | None) -> None:
        """Show IMAGE (upright page; None: nothing yet)."""
        if self._source is not None:
            self._source.close()
            self._source = None
        if image is not None and not image.isNull():
            self._source = ScaledImage(image, self)
            self._source.changed.connect(self.viewport().update)
            size = (image.width(), image.height())
        else:
            size = (0, 0)
        self._project(width=size[0], height=size[1])
        self._refit()
        self.viewport().update()

    def set_message(self, icon: str, text: str) -> None:
        """What stands there while there is no page."""
        self._message = (icon, text)
        self.viewport().update()

    def reset_view(self) -> None:
        """Another page: upright again; the zoom stays as it was chosen."""
        self._project(rotation=0)
        self._refit()
        self.scroll_to(0)

    def set_blocks(self, blocks: Iterable[Block]) -> None:
        """The boxes to draw, in reading order."""
        changed = self._layer.set_marks(marks_of(blocks))
        if not self._regions:
            self._update_marks(changed)
        elif changed:
            self._provisional = still_provisional(self._regions, self.marks)
            self.viewport().update()

    def _update_marks(self, marks: Iterable[Mark]) -> None:
        """Draw only these again."""
        left, top = self.horizontalScrollBar().value(), self.verticalScrollBar().value()
        for mark in marks:
            self.viewport().update(
                self._layer.area(mark).translated(-left, -top).toAlignedRect())

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

    def apply_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.viewport().update()

    @property
    def has_image(self) -> bool:
        return self._source is not None

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
    def projection(self) -> Projection:
        return self._projection

    @property
    def extents(self) -> list[Extent]:
        """Where the blocks lie in the content, in reading order; hidden ones too."""
        return [Extent(mark.id, tuple(Rect(r.left(), r.top(), r.right(), r.bottom())
                                      for r in self._layer.rects(mark))) for mark in self.marks]

    @property
    def where(self) -> Scroll:
        """The vertical scroll position, in logical pixels."""
        return Scroll(self.verticalScrollBar().value(), self._projection.viewport[1],
                      self._projection.content_size[1])

    @property
    def pointer_x(self) -> float | None:
        """x of the pointer in the content while it is over the canvas."""
        if self._pointer is None:
            return None
        return self._pointer.x() + self.horizontalScrollBar().value()

    def scroll_to(self, top: float, x: float | None = None) -> None:
        """Move the page for another view: says nothing. X is brought into sight if it is not."""
        self._programmatic = True
        self.verticalScrollBar().setValue(round(top))
        bar = self.horizontalScrollBar()
        width = self.viewport().width()
        if x is not None and not bar.value() + 40 <= x <= bar.value() + width - 40:
            bar.setValue(round(x - width / 2))
        self._programmatic = False

    def reveal(self, block_id: str) -> None:
        """Bring the first box of a block into sight, moving as little as can be."""
        for extent in self.extents:
            if extent.id == block_id:
                piece = extent.pieces[0]
                # The tag sits above the box.
                self.scroll_to(self.where.revealing(piece.top - 16, piece.bottom),
                               (piece.left + piece.right) / 2)

    # --- zoom
    @property
    def zoom(self) -> float:
        """Device pixels per bitmap pixel: 1.0 is 100 %."""
        return self._projection.scale * self.devicePixelRatioF()

    @property
    def fit(self) -> str:
        """``page``, ``width``, or "" while a zoom was chosen."""
        return self._fit

    def set_fit(self, fit: str) -> None:
        """Keep the whole page (``page``) or its width in sight, also when the size changes."""
        self._fit = fit
        self._refit()
        self.scrolled.emit()

    def set_zoom(self, zoom: float, at: QPointF | None = None) -> None:
        """Zoom so that what is under AT (viewport; its middle) stays there."""
        self._fit = ""
        spot = at if at is not None else QPointF(self.viewport().rect().center())
        scroll = (self.horizontalScrollBar().value(), self.verticalScrollBar().value())
        scale = clamp_zoom(zoom) / self.devicePixelRatioF()
        self._projection, target = self._projection.zoomed(scale, (spot.x(), spot.y()), scroll)
        self._layer.set_projection(self._projection)
        self._set_bars(target)
        self.zoom_changed.emit()
        self.scrolled.emit()

    def step_zoom(self, direction: int, at: QPointF | None = None) -> None:
        """The next round zoom up (+1) or down (−1)."""
        self.set_zoom(next_zoom(self.zoom, direction), at)

    def rotate(self, degrees: int) -> None:
        """Turn the view (not the page) clockwise by DEGREES."""
        self._project(rotation=(self._projection.rotation + degrees) % 360)
        self._refit()
        self.scrolled.emit()

    def _refit(self) -> None:
        if self._projection.width and self._fit:
            fitted = (self._projection.fit_page() if self._fit == FIT_PAGE
                      else self._projection.fit_width())
            self._project(scale=fitted)
        self._set_bars((self.horizontalScrollBar().value(), self.verticalScrollBar().value()))
        self.zoom_changed.emit()

    def _project(self, **changes: object) -> None:
        old = self._projection
        view = self.viewport().size()
        fields: dict[str, object] = {
            "width": old.width, "height": old.height, "scale": old.scale,
            "rotation": old.rotation, "viewport": (view.width(), view.height())}
        self._projection = Projection(**(fields | changes))  # type: ignore[arg-type]
        self._layer.set_projection(self._projection)

    def _set_bars(self, values: tuple[int, int]) -> None:
        self._programmatic = True
        most = self._projection.scroll_range if self._projection.width else (0, 0)
        bars = (self.horizontalScrollBar(), self.verticalScrollBar())
        for axis, bar in enumerate(bars):
            bar.setRange(0, most[axis])
            bar.setPageStep(self._projection.viewport[axis])
            bar.setValue(values[axis])
        self._programmatic = False
        self.viewport().update()

    def _moved(self) -> None:
        self.viewport().update()
        if not self._programmatic:
            self.scrolled.emit()

    # --- painting
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        painter.fillRect(event.rect(), colour(self._theme, "canvas"))
        if self._source is None:
            self._paint_message(painter)
            return
        painter.translate(-self.horizontalScrollBar().value(), -self.verticalScrollBar().value())
        page = self._page_rect()
        self._paint_page(painter, page, self._source)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shown = QRectF(event.rect()).translated(
            self.horizontalScrollBar().value(), self.verticalScrollBar().value())
        if self._hidden is not None:
            for region in self._provisional:
                if region.label not in self._hidden:
                    paint_region(painter, self._projection, region)
        self._paint_boxes(painter, shown)

    def _paint_boxes(self, painter: QPainter, shown: QRectF) -> None:
        marked = [m for m in self.marks if m.id in (self._hover, self._choice)]
        others = [m for m in self.visible_marks if m not in marked
                  and self._layer.area(m).intersects(shown)]
        self._layer.paint(painter, others)
        self._layer.paint(painter, marked, hover=self._hover, choice=self._choice)

    def _page_rect(self) -> QRectF:
        left, top = self._projection.origin
        ratio = self.devicePixelRatioF()
        width, height = self._projection.page_size
        return QRectF(round(left * ratio) / ratio, round(top * ratio) / ratio,
                      max(1, round(width * ratio)) / ratio, max(1, round(height * ratio)) / ratio)

    def _paint_page(self, painter: QPainter, page: QRectF, source: ScaledImage) -> None:
        edge = page.adjusted(-1, -1, 1, 1)
        painter.fillRect(edge.adjusted(0, 1, 0, 1), colour(self._theme, "shadow"))
        painter.fillRect(page, QColor("#ffffff"))
        ratio = self.devicePixelRatioF()
        exact = source.exact(Exact(round(page.width() * ratio), round(page.height() * ratio),
                                   self._projection.rotation))
        if exact is not None:
            painter.drawImage(page, exact, QRectF(exact.rect()))
            return
        level = source.level_for(self.zoom)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, self.zoom < 4)
        painter.translate(page.center())
        painter.rotate(self._projection.rotation)
        size = page.size().transposed() if self._projection.rotation % 180 else page.size()
        painter.drawImage(QRectF(QPointF(-size.width() / 2, -size.height() / 2), size), level,
                          QRectF(level.rect()))
        painter.restore()

    def _paint_message(self, painter: QPainter) -> None:
        name, text = self._message
        if not text:
            return
        middle = self.viewport().rect().center()
        picture = pixmap(name, self._theme.secondary, 32, self.devicePixelRatioF())
        painter.drawPixmap(middle - QPoint(16, 44), picture)
        painter.setPen(colour(self._theme, "secondary"))
        area = self.viewport().rect().adjusted(24, 0, -24, 0)
        area.setTop(middle.y())
        painter.drawText(area, int(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop
                                   | Qt.TextFlag.TextWordWrap), text)

    # --- the person's hands
    def resizeEvent(self, event: QResizeEvent) -> None:
        self._project()
        self._refit()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self._refit()
        return super().event(event)

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.NativeGesture:
            assert isinstance(event, QNativeGestureEvent)
            if event.gestureType() == Qt.NativeGestureType.ZoomNativeGesture:
                self.set_zoom(self.zoom * (1 + event.value()), event.position())
                return True
        if event.type() == QEvent.Type.Gesture:
            pinch = event.gesture(Qt.GestureType.PinchGesture)  # type: ignore[attr-defined]
            if isinstance(pinch, QPinchGesture):
                spot = self.viewport().mapFromGlobal(pinch.centerPoint())
                self.set_zoom(self.zoom * pinch.scaleFactor(), spot)
                return True
        if event.type() == QEvent.Type.ToolTip:
            assert isinstance(event, QHelpEvent)
            self._show_tip(event)
            return True
        if event.type() == QEvent.Type.Leave:
            self._pointer = None
            self._hover_changed("")
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

    def wheelEvent(self, event: QWheelEvent) -> None:
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            if event.angleDelta().y() and self._source is not None:
                self.set_zoom(self.zoom * 2 ** (event.angleDelta().y() / 480), event.position())
            event.accept()
            return
        self._pointer = event.position()
        super().wheelEvent(event)
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            self._pressed = event.position()
            self._dragging = False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._pointer = event.position()
        if self._pressed is None:
            self._hover_changed(self._block_under(event.position()))
            return
        way = event.position() - self._pressed
        if not self._dragging and way.manhattanLength() < QApplication.startDragDistance():
            return
        self._dragging = True
        self.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
        self._pressed = event.position()
        self._pan(-round(way.x()), -round(way.y()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        dragged, self._pressed = self._dragging, None
        self._dragging = False
        self.viewport().unsetCursor()
        if not dragged and event.button() == Qt.MouseButton.LeftButton:
            self.chosen.emit(self._block_under(event.position()))

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

    def _pan(self, x: int, y: int) -> None:
        self.horizontalScrollBar().setValue(self.horizontalScrollBar().value() + x)
        self.verticalScrollBar().setValue(self.verticalScrollBar().value() + y)

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

    def sizeHint(self) -> QSize:
        return QSize(460, 620)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 160)

    def viewport_point(self, block_id: str) -> QPoint:
        """The middle of a block's first box in the viewport."""
        for extent in self.extents:
            if extent.id == block_id:
                piece = extent.pieces[0]
                return QPoint(
                    round((piece.left + piece.right) / 2) - self.horizontalScrollBar().value(),
                    round((piece.top + piece.bottom) / 2) - self.verticalScrollBar().value())
        raise KeyError(block_id)

    def page_area(self) -> QRect:
        """The drawn page within the viewport."""
        return self._page_rect().translated(
            -self.horizontalScrollBar().value(),
            -self.verticalScrollBar().value()).toAlignedRect()
