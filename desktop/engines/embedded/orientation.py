"""By how much a page is turned, from its pixels."""

from __future__ import annotations

import cv2
import numpy as np
import onnxruntime as ort

from desktop.engines.embedded.bitmap import gray, ink
from desktop.engines.embedded.model import Pixels

_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)
_SHORT, _CROP = 256, 224
_VIEWS = 3
"""Squares of a page that are looked at, from one end to the other."""


def clockwise_to_upright(session: ort.InferenceSession, image: Pixels) -> tuple[int, float]:
    """Degrees (0, 90, 180, 270) that IMAGE must be turned clockwise, and how sure that is (0–1).

    The model sees squares. Those along the page that hold text speak by how much they hold.
    """
    height, width = image.shape[:2]
    side = min(height, width)
    if side < 32:
        return 0, 0.0
    scale = _SHORT / side
    small = cv2.resize(image, (max(_SHORT, round(width * scale)),
                               max(_SHORT, round(height * scale))), interpolation=cv2.INTER_AREA)
    marks = ink(gray(np.asarray(small, np.uint8)))
    along = int(small.shape[1] > small.shape[0])
    room = max(small.shape[:2]) - _SHORT
    starts = sorted({round(room * view / (_VIEWS - 1)) for view in range(_VIEWS)})
    views, weights = [], []
    for start in starts[:_VIEWS]:
        part = (slice(None), slice(start, start + _SHORT)) if along else (
            slice(start, start + _SHORT), slice(None))
        views.append(_blob(np.asarray(small[part], np.uint8)))
        weights.append(float(marks[part].sum()))
    if not sum(weights):
        return 0, 0.0
    scores = np.asarray(session.run(None, {"x": np.stack(views)})[0])
    total = (scores * np.array(weights)[:, None]).sum(axis=0) / sum(weights)
    best = int(total.argmax())
    # The classes name how far the content was turned clockwise.
    return -best * 90 % 360, float(total[best])


def _blob(square: Pixels) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    margin = (_SHORT - _CROP) // 2
    middle = square[margin:margin + _CROP, margin:margin + _CROP, ::-1]
    blob = (middle.astype(np.float32) / 255 - _MEAN) / _DEVIATION
    return blob.transpose(2, 0, 1).astype(np.float32)
