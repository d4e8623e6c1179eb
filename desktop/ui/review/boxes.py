"""Drawing of boxes on the page: frame in the colour of the label, order number, name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen

from desktop.document.model import Block
from desktop.protocol.messages import Box, Region
from desktop.ui.labels import doubtful, style_of, title_of
from desktop.ui.review.geometry import Projection, Rect

_TAG_HEIGHT = 16.0
_SMALL_HEIGHT = 13.0
_FULL_TAGS = 560
"""Width of the drawn page from which on the tags have their full size."""
_BAND = 64
"""Boxes are looked up by stripes of this height."""


@dataclass(frozen=True)
class Mark:
    """What is drawn for one block."""

    id: str
    order: int
    label: str
    boxes: tuple[Box, ...]
    confidence: float | None = None


def marks_of(blocks: Iterable[Block]) -> list[Mark]:
    """Blocks that have a place on the page, in reading order."""
    return [Mark(block.id, block.index + 1, block.label, block.boxes, block.confidence)
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


class BoxLayer:
    """All boxes of a page: where they lie, and how they are drawn.

    The name of a label stands above its box where that covers no other box; else only its number
    shows, beside the box, so that what is to be read stays readable. Places are kept until marks
    or projection change: a page can have hundreds of boxes and is drawn while text streams.
    """

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self._projection = Projection(0, 0)
        self._rects: dict[Mark, list[QRectF]] = {}
        self._bands: dict[int, list[tuple[str, QRectF]]] = {}
        self._named: dict[str, QRectF] | None = None
        """The tags that hold a name, by block; None while it is not known."""

    def set_projection(self, projection: Projection) -> None:
        """The page lies otherwise in its content now."""
        if projection != self._projection:
            self._projection = projection
            self._place({})

    def set_marks(self, marks: list[Mark]) -> list[Mark]:
        """Draw these from now on; those that came, went or changed."""
        old, new = set(self.marks), set(marks)
        self.marks = marks
        if old != new:
            self._place(self._rects)
        return list(old ^ new)

    def rects(self, mark: Mark) -> list[QRectF]:
        """The boxes of MARK in the content."""
        found = self._rects.get(mark)
        return found if found is not None else [
            _qrect(self._projection.box(box)) for box in mark.boxes]

    def area(self, mark: Mark) -> QRectF:
        """All that drawing MARK can touch."""
        whole = QRectF()
        for rect in self.rects(mark):
            whole = whole.united(rect)
        least = max(4.0, 160 - whole.width())  # the name may be longer than its box
        return whole.adjusted(-28 - least, -_TAG_HEIGHT - 4, least, 4)

    def _place(self, known: dict[Mark, list[QRectF]]) -> None:
        self._rects = {mark: known.get(mark) or [_qrect(self._projection.box(box))
                                                 for box in mark.boxes] for mark in self.marks}
        self._named = None
        self._bands = {}
        for mark, rects in self._rects.items():
            for rect in rects:
                for band in _bands(rect):
                    self._bands.setdefault(band, []).append((mark.id, rect))

    def paint(self, painter: QPainter, marks: Iterable[Mark], *, hover: str = "",
              choice: str = "") -> None:
        """Frames and tags of MARKS; those marked are tinted and stronger."""
        fonts = _Fonts(painter.font(), self._projection)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._named is None:
            self._named = self._find_room(fonts)
        for mark in marks:
            self._paint(painter, fonts, mark, mark.id == hover, mark.id == choice)

    def _paint(self, painter: QPainter, fonts: _Fonts, mark: Mark, hovered: bool,
               chosen: bool) -> None:
        style = style_of(mark.label)
        colour = QColor(style.colour)
        pen = QPen(colour, 2.5 if chosen else 2 if hovered else 1.25)
        if style.dashed:
            pen.setStyle(Qt.PenStyle.DashLine)
        ground = QColor(colour)
        ground.setAlpha(34 if chosen else 22 if hovered else 0)
        rects = self.rects(mark)
        painter.setPen(pen)
        painter.setBrush(ground)
        for rect in rects:
            painter.drawRoundedRect(rect, 3, 3)
        named = self._named.get(mark.id) if self._named else None
        for index, rect in enumerate(rects):
            if hovered or chosen or (index == 0 and named is not None):
                _tag(painter, fonts.above(rect, mark), _name(mark), colour, fonts.font,
                     fonts.metrics)
                continue
            text = f"{mark.order}{_doubt(mark)}"
            width = fonts.small_metrics.horizontalAdvance(text) + 5
            beside = QRectF(rect.left() - width, rect.top(), width, fonts.small_height)
            _tag(painter, beside, text, colour, fonts.small, fonts.small_metrics)

    def _find_room(self, fonts: _Fonts) -> dict[str, QRectF]:
        """The names that cover neither a box nor each other, in reading order."""
        found: dict[str, QRectF] = {}
        taken: dict[int, list[QRectF]] = {}
        for mark, rects in self._rects.items():
            tag = fonts.above(rects[0], mark)
            inner = tag.adjusted(1, 2, -1, -1)
            bands = _bands(tag)
            if any(rect.intersects(inner) for band in bands
                   for other, rect in self._bands.get(band, ()) if other != mark.id) \
                    or any(other.intersects(inner) for band in bands
                           for other in taken.get(band, ())):
                continue
            found[mark.id] = tag
            for band in bands:
                taken.setdefault(band, []).append(tag)
        return found


class _Fonts:
    """Fonts and heights of the tags; smaller on a page that is drawn small."""

    def __init__(self, base: QFont, projection: Projection) -> None:
        size = min(1.0, max(0.7, (projection.page_size[0] / _FULL_TAGS) ** 0.5))
        self._content_width = projection.content_size[0]
        self.height = round(_TAG_HEIGHT * size)
        self.small_height = round(_SMALL_HEIGHT * size)
        self.font = QFont(base)
        self.font.setPixelSize(round(11 * size))
        self.small = QFont(base)
        self.small.setPixelSize(round(10 * size))
        self.metrics = QFontMetricsF(self.font)
        self.small_metrics = QFontMetricsF(self.small)

    def above(self, rect: QRectF, mark: Mark) -> QRectF:
        """Where the name of MARK stands over its box RECT; it ends where the content ends."""
        width = self.metrics.horizontalAdvance(_name(mark)) + 8
        left = max(0.0, min(rect.left() - 1, self._content_width - width))
        return QRectF(left, rect.top() - self.height, width, self.height)


def _name(mark: Mark) -> str:
    return f"{mark.order} {title_of(mark.label)}{_doubt(mark)}"


def _doubt(mark: Mark) -> str:
    return " ?" if doubtful(mark.confidence) else ""


def _tag(painter: QPainter, tag: QRectF, text: str, colour: QColor, font: QFont,
         metrics: QFontMetricsF) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawRoundedRect(tag, 2, 2)
    painter.setPen(readable_on(colour))
    painter.setFont(font)
    left = tag.left() + (tag.width() - metrics.horizontalAdvance(text)) / 2
    baseline = tag.top() + (tag.height() + metrics.capHeight()) / 2
    painter.drawText(QPointF(left, baseline), text)


def _bands(rect: QRectF) -> range:
    return range(int(rect.top() // _BAND), int(rect.bottom() // _BAND) + 1)


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
