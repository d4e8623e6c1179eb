"""Drawn lines: found in the pixels, and pieces of one line put together."""

from __future__ import annotations

from collections.abc import Iterable

import cv2
import numpy as np

from desktop.engines.embedded.model import Box, Pixels

_STEP = 24
"""Change of luminance that makes an edge: faint cell borders count, paper grain does not."""
_THICK = 10
_CROSSING = 5
_MOST = 2000


def find(luminance: Pixels, length: float) -> list[Box]:
    """Straight horizontal and vertical edges at least LENGTH pixels long, as thin boxes.

    Edges, not dark strokes: the border between two coloured cells separates them as well.
    """
    reach = max(12, round(length))
    found: list[Box] = []
    for upright in (False, True):
        values = luminance.T if upright else luminance
        if values.shape[0] < 3 or values.shape[1] < reach:
            continue
        edge: Pixels = (cv2.absdiff(np.ascontiguousarray(values[1:]),
                            np.ascontiguousarray(values[:-1])) > _STEP).astype(np.uint8)
        # Three rows thick, so that a slightly slanted line stays in one piece.
        edge = np.asarray(cv2.dilate(edge, np.ones((3, 1), np.uint8)), np.uint8)
        # Where another line crosses there is no edge for its thickness.
        edge = np.asarray(cv2.morphologyEx(
            edge, cv2.MORPH_CLOSE, np.ones((1, _CROSSING), np.uint8)), np.uint8)
        edge = np.asarray(cv2.morphologyEx(
            edge, cv2.MORPH_OPEN, np.ones((1, reach), np.uint8)), np.uint8)
        count, _, stats, _ = cv2.connectedComponentsWithStats(edge, connectivity=8)
        if count > _MOST:
            continue
        for x, y, w, h, _area in stats[1:count].tolist():
            if h > max(_THICK, 0.03 * w):
                continue
            middle = y + h / 2 + 0.5
            found.append((middle - 0.5, float(x), middle + 0.5, float(x + w)) if upright
                         else (float(x), middle - 0.5, float(x + w), middle + 0.5))
    return found


def joined(rules: Iterable[Box]) -> list[Box]:
    """Rules with those that lie on one line and touch made one."""
    across: list[tuple[float, float, float]] = []
    down: list[tuple[float, float, float]] = []
    for x1, y1, x2, y2 in rules:
        if x2 - x1 >= y2 - y1:
            across.append(((y1 + y2) / 2, x1, x2))
        else:
            down.append(((x1 + x2) / 2, y1, y2))
    return ([(low, at, high, at) for at, low, high in _chained(across)]
            + [(at, low, at, high) for at, low, high in _chained(down)])


def _chained(segments: list[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """(position, from, to) of the lines that SEGMENTS make."""
    lines: list[list[tuple[float, float, float]]] = []
    for segment in sorted(segments):
        if lines and segment[0] - lines[-1][0][0] <= 5:
            lines[-1].append(segment)
        else:
            lines.append([segment])
    chains: list[tuple[float, float, float]] = []
    for line in lines:
        at = sum(s[0] * (s[2] - s[1] + 1) for s in line) / sum(s[2] - s[1] + 1 for s in line)
        low, high = None, 0.0
        for _, start, end in sorted(line, key=lambda s: s[1]):
            if low is None:
                low, high = start, end
            elif start <= high + 6:
                high = max(high, end)
            else:
                chains.append((at, low, high))
                low, high = start, end
        if low is not None:
            chains.append((at, low, high))
    return chains
