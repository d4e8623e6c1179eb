"""Crops of figures and untranscribed formulas, cut from the page bitmap when a page finishes."""

from __future__ import annotations

import logging
import mmap
import shutil
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from desktop.document.model import CROPPED, Block
from desktop.jobs.records import PageKey
from desktop.protocol.messages import Box

log = logging.getLogger(__name__)

MAX_CROPS = 100
"""On one page; output that loops may claim thousands of figures."""

_TURNS = {90: Image.Transpose.ROTATE_270, 180: Image.Transpose.ROTATE_180,
          270: Image.Transpose.ROTATE_90}
"""Clockwise degrees → Pillow's counter-clockwise constants."""


class Figures:
    """The crops of one journal's pages, as PNG files below FOLDER."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, key: PageKey, block: int) -> Path:
        """Where the crop of the BLOCKth block (from 0) is."""
        return self._folder / str(key.document_id) / f"{key.number}-b{block + 1}.png"

    def cut(self, key: PageKey, blocks: Sequence[Block], bitmap: Path,
            clockwise: int) -> tuple[int, ...]:
        """Cut all crops of a page; the indices of the blocks that have one.

        BITMAP is a binary PPM that has to be turned CLOCKWISE to be upright; boxes refer to the
        upright page. Slow (PNG compression): not for the session's loop.
        """
        wanted = [block for block in blocks if block.label in CROPPED and block.boxes]
        if len(wanted) > MAX_CROPS:
            log.warning("page %s: %d of %d figures kept", key.id, MAX_CROPS, len(wanted))
        done = []
        for block in wanted[:MAX_CROPS]:
            image = crop(bitmap, _union(block.boxes), clockwise)
            if image is None:
                continue
            target = self.path(key, block.index)
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_suffix(".part")
            image.save(partial, "PNG", compress_level=3)
            partial.replace(target)
            done.append(block.index)
        return tuple(done)

    def delete(self, key: PageKey) -> None:
        """Remove the crops of a page."""
        for path in (self._folder / str(key.document_id)).glob(f"{key.number}-b*.png"):
            path.unlink(missing_ok=True)

    def delete_document(self, document_id: int) -> None:
        """Remove the crops of a document."""
        shutil.rmtree(self._folder / str(document_id), ignore_errors=True)


def crop(bitmap: Path, box: Box, clockwise: int = 0) -> Image.Image | None:
    """The part BOX (0–999 of the upright page) of a binary PPM, upright; None when it is empty.

    Reads the rows it needs and not the page.
    """
    with open(bitmap, "rb") as file:
        width, height, start = _header(file.read(64))
        left, top, right, bottom = _pixels(box, width, height, clockwise)
        if right <= left or bottom <= top:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            stride = width * 3
            first = start + top * stride + left * 3
            last = start + (bottom - 1) * stride + right * 3
            rows = data[first:last]
    size = (right - left, bottom - top)
    image = Image.frombytes("RGB", size, rows, "raw", "RGB", stride)
    return image.transpose(_TURNS[clockwise]) if clockwise else image


def _pixels(box: Box, width: int, height: int, clockwise: int) -> tuple[int, int, int, int]:
    """BOX of the upright page as pixels (right and bottom exclusive) of the bitmap not turned."""
    x1, y1, x2, y2 = (min(max(value, 0), 999) / 999 for value in box)
    # A point of the upright page, where it lay before the turn.
    if clockwise == 90:
        x1, y1, x2, y2 = y1, 1 - x2, y2, 1 - x1
    elif clockwise == 180:
        x1, y1, x2, y2 = 1 - x2, 1 - y2, 1 - x1, 1 - y1
    elif clockwise == 270:
        x1, y1, x2, y2 = 1 - y2, x1, 1 - y1, x2
    return (int(x1 * width), int(y1 * height),
            min(width, round(x2 * width + 0.499)), min(height, round(y2 * height + 0.499)))


def _header(start: bytes) -> tuple[int, int, int]:
    """Width, height and offset of the pixels of a binary PPM without comments."""
    magic, width, height, depth = start.split(maxsplit=4)[:4]
    if magic != b"P6" or depth != b"255":
        raise ValueError(f"not an 8-bit binary PPM: {start[:16]!r}")
    # Exactly one white space byte follows the last number of the header.
    offset = 0
    for field in (magic, width, height, depth):
        offset = start.index(field, offset) + len(field)
    return int(width), int(height), offset + 1


def _union(boxes: Sequence[Box]) -> Box:
    return (min(box[0] for box in boxes), min(box[1] for box in boxes),
            max(box[2] for box in boxes), max(box[3] for box in boxes))
