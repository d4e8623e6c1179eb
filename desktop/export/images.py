"""Pictures of figures and untranscribed formulas, for the formats that carry them as files."""

from __future__ import annotations

import io
import logging
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

from desktop.document.model import CROPPED, Block
from desktop.errors import VersoError
from desktop.export.atomic import replacing
from desktop.export.base import ExportOptions
from desktop.intake.model import RenderedPage
from desktop.jobs.events import PageResult
from desktop.jobs.figures import MAX_CROPS
from desktop.protocol.messages import Box

log = logging.getLogger(__name__)


def union(boxes: Sequence[Box]) -> Box:
    """The smallest box that holds all of BOXES (at least one)."""
    left, top, right, bottom = zip(*boxes, strict=True)
    return min(left), min(top), max(right), max(bottom)


def pixels(box: Box, width: int, height: int) -> Box:
    """BOX (0–999) in pixels of a page, as the official scripts count them."""
    x1, y1, x2, y2 = box
    return (int(x1 / 999 * width), int(y1 / 999 * height),
            int(x2 / 999 * width), int(y2 / 999 * height))


@contextmanager
def bitmap_of(page: PageResult, options: ExportOptions) -> Iterator[RenderedPage | None]:
    """The bitmap of a page, deleted afterwards; None where there is no way to get one.

    A file that was moved or locked meanwhile costs the pictures, not the text.
    """
    bitmap = None
    if options.bitmap:
        try:
            bitmap = options.bitmap(page.view.id)
        except VersoError as error:
            log.warning("page %d without pictures: %s", page.view.number, error)
    try:
        yield bitmap
    finally:
        if bitmap:
            bitmap.delete()


def write_crops(page: PageResult, folder: Path, options: ExportOptions) -> dict[str, str]:
    """Write the pictures of PAGE as ``pPAGE-N.png`` below FOLDER; block id → file name.

    Kept crops are used; one that is missing is cut from the bitmap where that can be had.
    """
    wanted = [block for block in page.blocks if block.label in CROPPED and block.boxes]
    wanted = wanted[:MAX_CROPS]
    names: dict[str, str] = {}
    missing: list[tuple[Block, str]] = []
    for number, block in enumerate(wanted, 1):
        name = f"p{page.view.number}-{number}.png"
        crop = page.crops.get(block.id)
        if crop and Path(crop).is_file():
            with open(crop, "rb") as source, replacing(folder / name) as target:
                shutil.copyfileobj(source, target)
            names[block.id] = name
        else:
            missing.append((block, name))
    if missing and options.bitmap:
        with bitmap_of(page, options) as bitmap:
            if bitmap:
                with Image.open(bitmap.image) as image:
                    for block, name in missing:
                        if write_crop(image, union(block.boxes), folder / name):
                            names[block.id] = name
    return names


def write_crop(image: Image.Image, box: Box, path: Path) -> bool:
    """Write a part of a page as PNG or JPEG, by PATH's suffix; False when BOX is empty."""
    left, top, right, bottom = pixels(box, image.width, image.height)
    if right <= left or bottom <= top:
        return False
    part = image.crop((left, top, right, bottom))
    with replacing(path) as file:
        if path.suffix == ".png":
            part.save(file, "PNG", compress_level=3)
        else:
            part.convert("RGB").save(file, "JPEG", quality=95)
    return True


def jpeg_of(image: Image.Image) -> bytes:
    """A page as JPEG, as the official layouts have it."""
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, "JPEG", quality=95)
    return buffer.getvalue()
