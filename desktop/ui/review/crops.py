"""Pictures of figures: from the kept crop, else cut from the page bitmap that is on show."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from PySide6.QtCore import QBuffer, QIODevice, QRect, Qt
from PySide6.QtGui import QImage

from desktop.protocol.messages import Box

log = logging.getLogger(__name__)

SCHEME = "verso-page"

_LARGEST_SIDE = 1600


@dataclass(frozen=True)
class CropSource:
    """Where the picture of a block comes from: PATH of a PNG, or BOX of BITMAP."""

    path: str = ""
    bitmap: QImage | None = None
    box: Box | None = None


def crop_image(source: CropSource) -> QImage | None:
    """The picture, at most 1600 pixels long; None where it cannot be had. Any thread."""
    image = QImage(source.path) if source.path else QImage()
    if image.isNull() and source.bitmap is not None and source.box is not None:
        image = source.bitmap.copy(_pixels(source.box, source.bitmap))
    if image.isNull():
        if source.path:
            log.warning("The picture %s cannot be read.", source.path)
        return None
    if max(image.width(), image.height()) > _LARGEST_SIDE:
        image = image.scaled(_LARGEST_SIDE, _LARGEST_SIDE, Qt.AspectRatioMode.KeepAspectRatio,
                             Qt.TransformationMode.SmoothTransformation)
    return image


def crop_bytes(source: CropSource) -> bytes | None:
    """The picture as PNG."""
    image = crop_image(source)
    if image is None:
        return None
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    # Weak compression: it only goes to the next process.
    return bytes(buffer.data().data()) if image.save(buffer, "PNG", 90) else None


def _pixels(box: Box, image: QImage) -> QRect:
    left, top = round(box[0] / 999 * image.width()), round(box[1] / 999 * image.height())
    right, bottom = round(box[2] / 999 * image.width()), round(box[3] / 999 * image.height())
    return QRect(left, top, max(1, right - left), max(1, bottom - top))
