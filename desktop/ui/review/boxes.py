"""Drawing of boxes on the page: frame in the colour of the label, order number, name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen

from desktop.document.model import Block
from desktop.protocol.messages import Box, Region
from desktop.ui.labels import style_of, title_of
from desktop.ui.review.geometry import Projection, Rect

_TAG_HEIGHT = 16.0
_SMALL_HEIGHT = 13.0


@dataclass(frozen=True)
class Mark:
    """What is drawn for one block."""

    id: str
    order: int
    label: str
    boxes: tuple[Box, ...]


def marks_of(blocks: Iterable[Block]) -> list[Mark]:
    """Blocks that have a place on the page, in reading order."""
    return [Mark(block.id, block.index + 1, block.label, block.boxes)
            for block in blocks if block.boxes]


def still_provisional(regions: Sequence[Region], marks: Sequence[Mark]) -> list[Region]:
    """The regions no block has taken over yet."""
    taken = [box for mark in marks for box in mark.boxes]
    return [region for region in regions if not any(_same(region.box, box) for box in taken)]


def paint_region(painter: QPainter, projection: Projection, region: Region) -> None:
    """A box known before its text: faint, without a tag."""
    colour = QColor(style_of(region.label).colour)
    rect = _qrect(projection.box(region.box))
    ground = QColor(colour)
    ground.setAlpha(14)
    colour.setAlpha(120)
    painter.setPen(QPen(colour, 1, Qt.PenStyle.DotLine))
    painter.setBrush(ground)
    painter.drawRoundedRect(rect, 3, 3)


class BoxPainter:
    """Draws marks for one paint event.

    The name of a label stands above its box where that covers no other box; else only its number
    shows, beside the box, so that what is to be read stays readable. MARKS are all that are
    drawn.
    """

    def __init__(self, painter: QPainter, projection: Projection, marks: Sequence[Mark]) -> None:
        self._painter = painter
        self._projection = projection
        self._font = QFont(painter.font())
        self._font.setPixelSize(11)
        self._small = QFont(self._font)
        self._small.setPixelSize(10)
        self._metrics = QFontMetricsF(self._font)
        self._small_metrics = QFontMetricsF(self._small)
        self._rects = {mark.id: [_qrect(projection.box(box)) for box in mark.boxes]
                       for mark in marks}
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def paint(self, mark: Mark, *, hovered: bool = False, chosen: bool = False) -> None:
        """Frame and tag of MARK; the marked one is tinted and stronger."""
        style = style_of(mark.label)
        colour = QColor(style.colour)
        pen = QPen(colour, 2.5 if chosen else 2 if hovered else 1.25)
        if style.dashed:
            pen.setStyle(Qt.PenStyle.DashLine)
        ground = QColor(colour)
        ground.setAlpha(34 if chosen else 22 if hovered else 0)
        rects = self._rects.get(mark.id) or [
            _qrect(self._projection.box(box)) for box in mark.boxes]
        for rect in rects:
            self._painter.setPen(pen)
            self._painter.setBrush(ground)
            self._painter.drawRoundedRect(rect, 3, 3)
        name = f"{mark.order} {title_of(mark.label)}"
        for index, rect in enumerate(rects):
            above = QRectF(rect.left() - 1, rect.top() - _TAG_HEIGHT,
                           self._metrics.horizontalAdvance(name) + 8, _TAG_HEIGHT)
            if hovered or chosen or (index == 0 and self._free(above, mark.id)):
                self._tag(above, name, colour, self._font, self._metrics)
            else:
                text = str(mark.order)
                width = self._small_metrics.horizontalAdvance(text) + 5
                beside = QRectF(rect.left() - width, rect.top(), width, _SMALL_HEIGHT)
                self._tag(beside, text, colour, self._small, self._small_metrics)

    def _free(self, tag: QRectF, mark_id: str) -> bool:
        inner = tag.adjusted(1, 2, -1, -1)
        return not any(rect.intersects(inner) for other, rects in self._rects.items()
                       if other != mark_id for rect in rects)

    def _tag(self, tag: QRectF, text: str, colour: QColor, font: QFont,
             metrics: QFontMetricsF) -> None:
        self._painter.setPen(Qt.PenStyle.NoPen)
        self._painter.setBrush(colour)
        self._painter.drawRoundedRect(tag, 2, 2)
        self._painter.setPen(readable_on(colour))
        self._painter.setFont(font)
        left = tag.left() + (tag.width() - metrics.horizontalAdvance(text)) / 2
        baseline = tag.top() + (tag.height() + metrics.capHeight()) / 2
        self._painter.drawText(QPointF(left, baseline), text)


def readable_on(colour: QColor) -> QColor:
    """White, or nearly black where white would not stand out (3:1) on COLOUR."""
    white = QColor("#ffffff")
    return white if _contrast(colour, white) >= 3 else QColor("#1a1a1a")


def _contrast(one: QColor, two: QColor) -> float:
    light, dark = sorted((_luminance(one), _luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: QColor) -> float:
    def linear(value: float) -> float:
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
    return (0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF())
            + 0.0722 * linear(colour.blueF()))


def _qrect(rect: Rect) -> QRectF:
    return QRectF(rect.left, rect.top, rect.width, rect.height)


def _same(one: Box, two: Box) -> bool:
    """Whether two boxes cover mostly the same (intersection over the smaller ≥ 0.7)."""
    width = min(one[2], two[2]) - max(one[0], two[0])
    height = min(one[3], two[3]) - max(one[1], two[1])
    if width <= 0 or height <= 0:
        return False
    smaller = min((b[2] - b[0]) * (b[3] - b[1]) for b in (one, two))
    return width * height >= 0.7 * smaller
