"""Regions of a page by the layout model (PicoDet, CDLA classes)."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from desktop.engines.embedded.model import Box, Pixels

LABELS = ("text", "title", "figure", "figure_caption", "table", "table_caption", "header",
          "footer", "reference", "equation")
_HEIGHT, _WIDTH = 800, 608
_STRIDES = (8, 16, 32, 64)
_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)
_LEAST_SCORE, _SAME = 0.4, 0.5


@dataclass(frozen=True)
class Found:
    """A region: one of :data:`LABELS`, its place in pixels, the model's score 0–1."""

    label: str
    box: Box
    score: float


def find(session: ort.InferenceSession, image: Pixels) -> list[Found]:
    """The regions of IMAGE, best score first."""
    height, width = image.shape[:2]
    small = cv2.resize(image, (_WIDTH, _HEIGHT), interpolation=cv2.INTER_AREA
                       if height * width > _HEIGHT * _WIDTH else cv2.INTER_LINEAR)
    blob = (small[:, :, ::-1].astype(np.float32) / 255 - _MEAN) / _DEVIATION
    out = session.run(None, {"image": blob.transpose(2, 0, 1)[None].astype(np.float32)})
    levels = len(_STRIDES)
    boxes: list[NDArray[np.float32]] = []
    scores: list[NDArray[np.float32]] = []
    for stride, score, distances in zip(_STRIDES, out[:levels], out[levels:], strict=True):
        kept = np.flatnonzero(score[0].max(axis=1) > _LEAST_SCORE)
        if not kept.size:
            continue
        columns = -(-_WIDTH // stride)
        centre_x = (kept % columns + 0.5) * stride
        centre_y = (kept // columns + 0.5) * stride
        # Each side's distance is the mean of a distribution over 0 … 7 strides.
        spread = distances[0][kept].reshape(kept.size, 4, -1)
        spread = np.exp(spread - spread.max(axis=2, keepdims=True))
        steps = np.arange(spread.shape[2], dtype=np.float32)
        side = (spread * steps).sum(axis=2) / spread.sum(axis=2) * stride
        boxes.append(np.stack([centre_x - side[:, 0], centre_y - side[:, 1],
                               centre_x + side[:, 2], centre_y + side[:, 3]], axis=1))
        scores.append(score[0][kept])
    if not boxes:
        return []
    return _best(np.concatenate(boxes) * np.array(
        [width / _WIDTH, height / _HEIGHT] * 2, np.float32), np.concatenate(scores),
        float(width), float(height))


def _best(boxes: NDArray[np.float32], scores: NDArray[np.float32],
          width: float, height: float) -> list[Found]:
    """Non-maximum suppression within each class."""
    found: list[Found] = []
    for index, label in enumerate(LABELS):
        rows = np.flatnonzero(scores[:, index] > _LEAST_SCORE)
        rows = rows[np.argsort(-scores[rows, index])]
        while rows.size:
            first, rows = rows[0], rows[1:]
            x1, y1, x2, y2 = (float(v) for v in boxes[first])
            found.append(Found(label, (max(0.0, x1), max(0.0, y1), min(width, x2),
                                       min(height, y2)), float(scores[first, index])))
            others = boxes[rows]
            common = (np.clip(np.minimum(others[:, 2], x2) - np.maximum(others[:, 0], x1), 0, None)
                      * np.clip(np.minimum(others[:, 3], y2) - np.maximum(others[:, 1], y1),
                                0, None))
            areas = (others[:, 2] - others[:, 0]) * (others[:, 3] - others[:, 1])
            rows = rows[common / (areas + (x2 - x1) * (y2 - y1) - common + 1e-6) < _SAME]
    return sorted(found, key=lambda region: -region.score)
