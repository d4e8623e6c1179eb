"""By how much a page is turned, from its pixels."""

from __future__ import annotations

import cv2
import numpy as np
import onnxruntime as ort

from desktop.engines.embedded.model import Pixels

_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)
_SHORT, _CROP = 256, 224


def clockwise_to_upright(session: ort.InferenceSession, image: Pixels) -> tuple[int, float]:
    """Degrees (0, 90, 180, 270) that IMAGE must be turned clockwise, and the model's confidence.

    The model sees the middle square of the page, so a long page is judged by its middle.
    """
    height, width = image.shape[:2]
    if min(height, width) < 32:
        return 0, 0.0
    scale = _SHORT / min(height, width)
    square = _square(image)
    side = max(_CROP, round(square.shape[0] * scale))
    small = cv2.resize(square, (_CROP, _CROP) if side == _CROP else (_SHORT, _SHORT),
                       interpolation=cv2.INTER_AREA)
    margin = (small.shape[0] - _CROP) // 2
    small = small[margin:margin + _CROP, margin:margin + _CROP]
    blob = ((small[:, :, ::-1].astype(np.float32) / 255 - _MEAN) / _DEVIATION).transpose(2, 0, 1)
    scores = np.asarray(session.run(None, {"x": blob[None].astype(np.float32)})[0])[0]
    best = int(scores.argmax())
    # The classes name how far the content was turned clockwise.
    return -best * 90 % 360, float(scores[best])


def _square(image: Pixels) -> Pixels:
    height, width = image.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return image[top:top + side, left:left + side]
