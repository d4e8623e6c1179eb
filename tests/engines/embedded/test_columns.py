"""Columns that stand close to each other stay apart."""

from __future__ import annotations

import numpy as np

from desktop.engines.embedded.blocks import Sheet, build
from desktop.engines.embedded.layout import Found
from desktop.engines.embedded.model import Box, Line


def _seen(box: Box) -> Line:
    x1, y1, x2, y2 = box
    return Line(box, 44, quad=np.array([[x1, y1], [x2, y1], [x2, y2], [x1, y2]], np.float32))


def test_a_line_found_across_two_close_columns_does_not_join_them() -> None:
    left = [_seen((100, y, 745, y + 66)) for y in range(200, 1100, 45)]
    right = [_seen((765, y, 1410, y + 66)) for y in range(200, 1100, 45)]
    across = _seen((100, 1100, 1410, 1166))
    regions = [Found("text", (90, 190, 1420, 1180), 0.9)]
    blocks = build([*left, *right, across], Sheet(1500, 2000, regions, ()))
    assert [len(block.lines) for block in blocks if len(block.lines) > 1] == [20, 20]
    assert all(block.box[2] < 760 or block.box[0] > 700 for block in blocks
               if len(block.lines) > 1)
