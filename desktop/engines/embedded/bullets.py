"""Marks of list items that are drawn: on digital pages they are no characters, on scans the
detection leaves them out."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from desktop.engines.embedded.model import Line, Pixels, overlap

_REACH, _CLOSE = 2.3, 0.12
"""Sizes left of the text between which a mark stands."""
_SMALLEST, _LARGEST = 0.14, 0.95
_CONTRAST = 60


def mark(lines: Sequence[Line], luminance: Pixels) -> None:
    """Set ``bullet`` of those LINES that a small lone spot stands before."""
    upright = [line for line in lines if not line.vertical and not line.leftwards]
    if not upright:
        return
    boxes = np.array([line.box for line in upright])
    for index, line in enumerate(upright):
        height = line.box[3] - line.box[1]
        size = min(line.size, height)
        left = line.box[0] - _REACH * size
        beside = ((boxes[:, 0] < line.box[0]) & (boxes[:, 2] > left)
                  & (np.minimum(boxes[:, 3], line.box[3])
                     - np.maximum(boxes[:, 1], line.box[1]) > 0.3 * height))
        beside[index] = False
        if not beside.any() and left >= 0 and _spot(line, left, size, luminance):
            line.bullet = True


def _spot(line: Line, left: float, size: float, luminance: Pixels) -> bool:
    x1, x2 = int(left), int(line.box[0] - _CLOSE * size)
    y1, y2 = max(0, int(line.box[1])), int(line.box[3])
    part = luminance[y1:y2, x1:x2]
    if min(part.shape) < 4:
        return False
    ground = float(np.median(part))
    mask = (np.abs(part.astype(np.int16) - int(ground)) > _CONTRAST).astype(np.uint8)
    if not mask.any():
        return False
    count, _, stats, centres = cv2.connectedComponentsWithStats(mask, connectivity=8)
    spots = [i for i in range(1, count) if stats[i, cv2.CC_STAT_AREA] > 2]
    if len(spots) != 1:
        return False
    x, y, width, height, area = (int(v) for v in stats[spots[0]])
    middle = y1 + float(centres[spots[0]][1])
    centre = (line.box[1] + line.box[3]) / 2
    return (_SMALLEST * size < min(width, height) and max(width, height) < _LARGEST * size
            and max(width, height) < 1.7 * min(width, height)
            and area > 0.25 * width * height
            and x > 0 and y > 0 and x + width < mask.shape[1] and y + height < mask.shape[0]
            and overlap(middle, middle, centre - 0.3 * size, centre + 0.3 * size) >= 0)
