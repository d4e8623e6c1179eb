"""Page bitmaps: reading the PPM file, turning it, judging ink."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from desktop.engines.embedded.model import Pixels
from desktop.errors import VersoError
from desktop.i18n import N_


class UnreadableBitmap(VersoError):
    """The page bitmap is missing or is not a binary PPM of the announced size."""

    code = "engine.bitmap"
    message = N_("The picture of this page could not be read.")
    hint = N_("Run the page again.")


def read_ppm(path: Path) -> Pixels:
    """The pixels of an 8-bit binary PPM (P6), height × width × 3, RGB, read-only."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableBitmap(detail=str(error)) from error
    fields: list[bytes] = []
    at = 0
    while len(fields) < 4 and at < len(data):
        while at < len(data) and data[at:at + 1].isspace():
            at += 1
        if data[at:at + 1] == b"#":
            at = data.find(b"\n", at) + 1 or len(data)
            continue
        start = at
        while at < len(data) and not data[at:at + 1].isspace():
            at += 1
        fields.append(data[start:at])
    at += 1
    try:
        width, height, depth = (int(value) for value in fields[1:4])
    except ValueError as error:
        raise UnreadableBitmap(detail=f"{path}: header {fields!r}") from error
    size = width * height * 3
    if fields[0] != b"P6" or depth != 255 or size <= 0 or len(data) - at < size:
        raise UnreadableBitmap(detail=f"{path}: header {fields!r}, {len(data)} bytes")
    return np.frombuffer(data, np.uint8, size, at).reshape(height, width, 3)


def turned(image: Pixels, clockwise: int) -> Pixels:
    """IMAGE turned clockwise by 0, 90, 180 or 270 degrees."""
    return np.ascontiguousarray(np.rot90(image, -clockwise // 90)) if clockwise else image


def gray(image: Pixels) -> Pixels:
    """Luminance, height × width."""
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), dtype=np.uint8)


def ink(luminance: Pixels) -> Pixels:
    """1 where a pixel stands out from its surroundings (dark on light or light on dark), else 0.

    The ground is estimated locally, so shadows and coloured boxes are not ink.
    """
    height, width = luminance.shape[:2]
    small = cv2.resize(luminance, (max(1, width // 8), max(1, height // 8)),
                       interpolation=cv2.INTER_AREA)
    ground = cv2.resize(cv2.medianBlur(small, 7), (width, height),
                        interpolation=cv2.INTER_LINEAR)
    return np.asarray((cv2.absdiff(luminance, ground) > 48).astype(np.uint8))
