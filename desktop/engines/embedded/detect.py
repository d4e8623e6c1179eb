"""Text lines from pixels by the detection model (PP-OCRv6, differentiable binarisation)."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from desktop.engines.embedded.bitmap import gray, ink
from desktop.engines.embedded.model import Line, Pixels

_MOST_PIXELS = 2_500_000
_LETTER = 6.0
"""Height in pixels at which small letters are still found; larger print is shrunk to it."""
_LEAST_BODY, _MOST_BODY = 0.82, 1.25
_THRESHOLD, _LEAST_SCORE, _GROW = 0.3, 0.5, 1.6


def letter_height(luminance: Pixels) -> float:
    """Typical height in pixels of the page's letters; 0 where there are none."""
    _, _, stats, _ = cv2.connectedComponentsWithStats(ink(luminance), connectivity=8)
    width, height, area = (stats[1:, column].astype(np.float32) for column in
                           (cv2.CC_STAT_WIDTH, cv2.CC_STAT_HEIGHT, cv2.CC_STAT_AREA))
    letters = height[(height >= 5) & (height <= 200) & (width >= 3) & (width < 6 * height)
                     & (area > 0.15 * width * height)]
    return float(np.median(letters)) if letters.size >= 8 else 0.0


def scale_for(image: Pixels) -> float:
    """Factor by which IMAGE is shrunk (or enlarged) before detection."""
    height, width = image.shape[:2]
    letters = letter_height(gray(image))
    wanted = _LETTER / letters if letters else 1.0
    bound = (_MOST_PIXELS / (height * width)) ** 0.5
    return float(min(max(wanted, 0.25), 2.0, bound))


def find(session: ort.InferenceSession, image: Pixels) -> list[Line]:
    """The text lines of IMAGE, not yet recognised, in no particular order."""
    height, width = image.shape[:2]
    scale = scale_for(image)
    size = (max(32, round(width * scale / 32) * 32), max(32, round(height * scale / 32) * 32))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA if scale < 1
                       else cv2.INTER_LINEAR)
    blob = (small[:, :, ::-1].astype(np.float32) / 127.5 - 1).transpose(2, 0, 1)[None]
    heat = np.asarray(session.run(None, {"x": np.ascontiguousarray(blob)})[0])[0, 0]
    mask = cv2.dilate((heat > _THRESHOLD).astype(np.uint8), np.ones((2, 2), np.uint8))
    contours, _ = cv2.findContours(mask, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    factor = np.array([width / size[0], height / size[1]], np.float32)
    lines: list[Line] = []
    for contour in contours:
        line = _line(contour, heat, factor, width, height)
        if line is not None:
            lines.append(line)
    return lines


def settle(lines: list[Line], body: float) -> None:
    """Give lines of about the BODY size just that size: how high the model draws a line depends
    on its letters, by a fifth either way."""
    for line in lines:
        if _LEAST_BODY * body <= line.size <= _MOST_BODY * body:
            line.size = body


def _line(contour: NDArray[Any], heat: NDArray[np.float32], factor: NDArray[np.float32],
          width: int, height: int) -> Line | None:
    (cx, cy), (w, h), angle = cv2.minAreaRect(contour)
    if min(w, h) < 3:
        return None
    left, top, wide, high = cv2.boundingRect(contour)
    part = np.zeros((high, wide), np.uint8)
    corners = cv2.boxPoints(((cx - left, cy - top), (w, h), angle))
    cv2.fillPoly(part, [corners.astype(np.int32)], 1)
    if cv2.mean(heat[top:top + high, left:left + wide], part)[0] < _LEAST_SCORE:
        return None
    # The model marks the core of a line: grow it back to the full height of its letters.
    grow = w * h * _GROW / (2 * (w + h)) * 2
    quad = _ordered(cv2.boxPoints(((cx, cy), (w + grow, h + grow), angle))) * factor
    quad[:, 0] = quad[:, 0].clip(0, width)
    quad[:, 1] = quad[:, 1].clip(0, height)
    x1, y1 = (float(v) for v in quad.min(axis=0))
    x2, y2 = (float(v) for v in quad.max(axis=0))
    if x2 - x1 < 4 or y2 - y1 < 4:
        return None
    across = float(np.linalg.norm(quad[1] - quad[0]))
    down = float(np.linalg.norm(quad[3] - quad[0]))
    vertical = down > 1.5 * across
    return Line((x1, y1, x2, y2), (across if vertical else down) * 0.72,
                quad=quad, vertical=vertical)


def _ordered(corners: NDArray[Any]) -> NDArray[np.float32]:
    """Corners from the top left, clockwise."""
    by_x = corners[np.argsort(corners[:, 0])]
    left = by_x[:2][np.argsort(by_x[:2, 1])]
    right = by_x[2:][np.argsort(by_x[2:, 1])]
    return np.array([left[0], right[0], right[1], left[1]], np.float32)
