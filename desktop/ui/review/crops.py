"""Pictures of figures: from the kept crop, else cut from the page bitmap that is on show."""

from __future__ import annotations

import io
import logging
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QImage

from desktop.protocol.messages import Box
from desktop.ui.review.scaled import to_pillow

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
    """The picture, at most 1600 pixels long; None where it cannot be had."""
    image = QImage(source.path) if source.path else QImage()
    if image.isNull():
        image = _cut(source)
    if image.isNull():
        if source.path:
            log.warning("The picture %s cannot be read.", source.path)
        return None
    if max(image.width(), image.height()) > _LARGEST_SIDE:
        image = image.scaled(_LARGEST_SIDE, _LARGEST_SIDE, Qt.AspectRatioMode.KeepAspectRatio,
                             Qt.TransformationMode.SmoothTransformation)
    return image


def crop_bytes(source: CropSource) -> bytes | None:
    """The picture as PNG, for a thread: leaves Python's lock to the window while it works."""
    if source.path:
        try:
            return Path(source.path).read_bytes()
        except OSError as error:
            log.warning("The picture %s cannot be read: %s", source.path, error)
    image = _cut(source)
    if image.isNull():
        return None
    picture = to_pillow(image)
    picture.thumbnail((_LARGEST_SIDE, _LARGEST_SIDE), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    # Weak compression: it only goes to the next process.
    picture.save(out, "PNG", compress_level=1)
    return out.getvalue()


def _cut(source: CropSource) -> QImage:
    if source.bitmap is None or source.box is None:
        return QImage()
    return source.bitmap.copy(pixels(source.box, source.bitmap))


def pixels(box: Box, image: QImage) -> QRect:
    """BOX in the pixels of IMAGE; at least one pixel."""
    left, top = round(box[0] / 999 * image.width()), round(box[1] / 999 * image.height())
    right, bottom = round(box[2] / 999 * image.width()), round(box[3] / 999 * image.height())
    return QRect(left, top, max(1, right - left), max(1, bottom - top))
