"""A bitmap that can be zoomed, moved and turned; what lies on it is drawn by subclasses."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QImage,
    QMouseEvent,
    QNativeGestureEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QFrame, QPinchGesture, QWidget

from desktop.ui.review.geometry import Projection, clamp_zoom, next_zoom
from desktop.ui.review.linking import Scroll
from desktop.ui.review.scaled import Exact, ScaledImage
from desktop.ui.theme import LIGHT, Theme, colour, pixmap

FIT_PAGE, FIT_WIDTH, FIT_READABLE = "page", "width", "readable"


class Paper(QAbstractScrollArea):
    """Shows one bitmap; zoom to the cursor, drag, wheel, pinch."""

    scrolled = Signal()
    """A person moved or zoomed the page (not what :meth:`scroll_to` does)."""
    zoom_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.viewport().grabGesture(Qt.GestureType.PinchGesture)
        self._theme = LIGHT
        self._projection = Projection(0, 0)
        self._source: ScaledImage | None = None
        self._fit = FIT_READABLE
        self._pressed: QPointF | None = None
        self._pointer: QPointF | None = None
        self._dragging = False
        self._programmatic = False
        self._message = ("file-text", "")
        for bar in (self.horizontalScrollBar(), self.verticalScrollBar()):
            bar.setSingleStep(40)
            bar.valueChanged.connect(self._moved)

    # --- for subclasses
    def _projected(self) -> None:
        """The page lies otherwise in its content now."""

    def _paint_over(self, painter: QPainter, shown: QRectF) -> None:
        """Draw on the page; the painter draws in content, of which SHOWN is to be drawn."""

    def _pointed(self, spot: QPointF | None) -> None:
        """The pointer is over SPOT of the viewport, or has left it."""

    def _clicked(self, spot: QPointF) -> None:
        """SPOT of the viewport was clicked."""

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

    def apply_theme(self, theme: Theme) -> None:
        """Use THEME's colours round the page."""
        self._theme = theme
        self.viewport().update()

    @property
    def has_image(self) -> bool:
        return self._source is not None

    @property
    def projection(self) -> Projection:
        return self._projection

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

    # --- zoom
    @property
    def zoom(self) -> float:
        """Device pixels per bitmap pixel: 1.0 is 100 %."""
        return self._projection.scale * self.devicePixelRatioF()

    @property
    def fit(self) -> str:
        """``page``, ``width``, ``readable`` (the page, but no stripe of it; so it begins), or ""
        while a zoom was chosen."""
        return self._fit

    @property
    def whole(self) -> bool:
        """Whether the whole page is in sight."""
        return self._projection.scroll_range == (0, 0)

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
        self._projected()
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
            fits = {FIT_PAGE: self._projection.fit_page, FIT_WIDTH: self._projection.fit_width,
                    FIT_READABLE: self._projection.fit_readable}
            self._project(scale=fits[self._fit]())
        self._set_bars((self.horizontalScrollBar().value(), self.verticalScrollBar().value()))
        self.zoom_changed.emit()

    def _project(self, **changes: object) -> None:
        old = self._projection
        view = self.viewport().size()
        fields: dict[str, object] = {
            "width": old.width, "height": old.height, "scale": old.scale,
            "rotation": old.rotation, "viewport": (view.width(), view.height())}
        self._projection = Projection(**(fields | changes))  # type: ignore[arg-type]
        self._projected()

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
        self._paint_over(painter, shown)

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
        if event.type() == QEvent.Type.Leave:
            self._pointer = None
            self._pointed(None)
        return super().viewportEvent(event)

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
            self._pointed(event.position())
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
            self._clicked(event.position())

    def _pan(self, x: int, y: int) -> None:
        self.horizontalScrollBar().setValue(self.horizontalScrollBar().value() + x)
        self.verticalScrollBar().setValue(self.verticalScrollBar().value() + y)

    def sizeHint(self) -> QSize:
        return QSize(460, 620)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 160)

    def page_area(self) -> QRect:
        """The drawn page within the viewport."""
        return self._page_rect().translated(
            -self.horizontalScrollBar().value(),
            -self.verticalScrollBar().value()).toAlignedRect()
