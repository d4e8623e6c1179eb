"""Image files, by Pillow: every TIFF frame is a page, of what moves the first frame is.

The header is read before anything is decoded: an image that cannot fit into memory is refused,
one that is larger than the pixel cap is decoded smaller or reduced.
"""

from __future__ import annotations

import contextlib
import math
import struct
import warnings
from collections.abc import Iterator

import pillow_heif
from PIL import Image, ImageFile, ImageOps, TiffImagePlugin, UnidentifiedImageError

from desktop.intake import wire
from desktop.intake.bitmap import Bitmap
from desktop.intake.errors import ImageDamaged, ImageTooLarge, Unreadable
from desktop.intake.pixels import eight_bit, to_rgb

pillow_heif.register_heif_opener()
# Sizes are judged here, by what decoding takes and what there is.
Image.MAX_IMAGE_PIXELS = None
warnings.simplefilter("ignore")

_FORMATS = ("PNG", "JPEG", "GIF", "TIFF", "BMP", "DIB", "WEBP", "JPEG2000", "HEIF", "AVIF", "PPM",
            "PSD")
_DRAFTED = ("JPEG", "MPO")
_BYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2}
"""Bytes a pixel in Pillow's memory; 4 for all else."""
_COPIES = 2.5
"""Decoding and converting hold so many times the image at their peak."""
_BROKEN = (OSError, SyntaxError, ValueError, EOFError, RuntimeError, KeyError, TypeError,
           IndexError, OverflowError, ZeroDivisionError, struct.error)
"""What Pillow's decoders raise on damaged data."""

_ORIENTATION = 0x0112
_SUBFILE = 254
_REDUCED_OR_MASK = 1 | 4

_Resolution = tuple[float, float]


class ImageSource:
    """An image file. Nothing of it is kept open between pages."""

    encrypted = False

    def __init__(self, path: bytes, memory_mb: int) -> None:
        """Raises Unreadable, ImageTooLarge."""
        self._path = path
        self._memory = memory_mb * 1024 * 1024
        with _opened(path) as image:
            _check_size(image, self._memory)
            self._frames = _frames(image)

    @property
    def pages(self) -> int:
        """How many frames are pages."""
        return len(self._frames)

    def draw(self, request: wire.DrawPage) -> Bitmap:
        """A frame, upright, RGB. Raises ImageDamaged, ImageTooLarge."""
        frame = self._frames[request.number - 1]
        try:
            return self._draw(frame, request)
        except _BROKEN as error:
            first = error
        # What there is of a file that was cut off is worth more than an error.
        ImageFile.LOAD_TRUNCATED_IMAGES = True
        try:
            return self._draw(frame, request, damage=str(first))
        except _BROKEN as error:
            raise ImageDamaged(detail=f"{first}; {error}") from error
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES = False

    def relax(self) -> None:
        """Nothing is kept between pages."""

    def close(self) -> None:
        """Nothing is open."""

    def _draw(self, frame: int, request: wire.DrawPage, damage: str = "") -> Bitmap:
        with _opened(self._path) as image:
            if frame:
                image.seek(frame)
            _check_size(image, self._memory)
            stored = image.size
            wanted = _fitting(_square(stored, _resolution(image)), request)
            if image.format in _DRAFTED:
                # The decoder shrinks by 2, 4 or 8 for free, to no less than is wanted.
                image.draft(image.mode, (min(wanted), min(wanted))
                            if _turned_sideways(image) else wanted)
            resolution = _resolution(image)
            image.load()
            profile = image.info.get("icc_profile")
            upright = ImageOps.exif_transpose(eight_bit(image))
        if (stored[0] < stored[1]) != (upright.width < upright.height):
            stored, resolution = stored[::-1], resolution[::-1]
        full = _square(stored, resolution)
        target = _fitting(full, request)
        if target != upright.size:
            upright = upright.resize(target, Image.Resampling.LANCZOS, reducing_gap=2.0)
        dpi = max(resolution) * target[0] / full[0]
        return Bitmap.of(to_rgb(upright, profile), dpi,
                         lowered=target != full and not request.max_side, damage=damage)


@contextlib.contextmanager
def _opened(path: bytes) -> Iterator[Image.Image]:
    # Pillow gets a file and not its name: by name it would map uncompressed pixels into memory,
    # which takes the process down when the file is cut meanwhile, and leaves turned TIFFs as
    # they are.
    with open(path, "rb") as file:
        try:
            image = Image.open(file, formats=_FORMATS)
        except (UnidentifiedImageError, *_BROKEN) as error:
            raise Unreadable(detail=f"{type(error).__name__}: {error}") from error
        with image:
            yield image


def _frames(image: Image.Image) -> list[int]:
    """Numbers of the frames that are pages."""
    if not isinstance(image, TiffImagePlugin.TiffImageFile):
        return [0]
    pages: list[int] = []
    frame = 0
    while True:
        try:
            image.seek(frame)
        except EOFError:
            break
        except _BROKEN as error:
            if not pages:
                raise Unreadable(detail=f"{type(error).__name__}: {error}") from error
            break
        kind = image.tag_v2.get(_SUBFILE, 0)
        if not (isinstance(kind, int) and kind & _REDUCED_OR_MASK):
            pages.append(frame)
        frame += 1
    # A file of thumbnails alone is still a picture.
    return pages or [0]


def _check_size(image: Image.Image, memory: int) -> None:
    """Raise ImageTooLarge if decoding IMAGE cannot fit into MEMORY bytes."""
    width, height = image.size
    pixels = width * height
    # A baseline JPEG is decoded an eighth of its size where need be.
    needed = pixels // 16 if image.format in _DRAFTED else int(
        pixels * _BYTES.get(image.mode, 4) * _COPIES)
    if needed > memory:
        raise ImageTooLarge(width=width, height=height)


def _fitting(size: tuple[int, int], request: wire.DrawPage) -> tuple[int, int]:
    """SIZE, shrunk to the pixel cap and to ``max_side``; never enlarged."""
    width, height = size
    scale = min(1.0, math.sqrt(request.max_pixels / (width * height)))
    if request.max_side:
        scale = min(scale, request.max_side / max(width, height))
    if scale >= 1.0:
        return size
    width, height = max(1, int(width * scale)), max(1, int(height * scale))
    # A line of pixels cannot get thinner, only shorter.
    return min(width, request.max_pixels // height or 1), min(height, request.max_pixels // width)


def _resolution(image: Image.Image) -> _Resolution:
    """Dots per inch across and down as the file says; 0 where it does not, or nonsense."""
    try:
        across, down = (float(value) for value in image.info.get("dpi", (0, 0)))
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return 0.0, 0.0
    if not (1 <= across <= 20_000 and 1 <= down <= 20_000):
        return 0.0, 0.0
    return across, down


def _square(size: tuple[int, int], resolution: _Resolution) -> tuple[int, int]:
    """SIZE with square pixels: fax pages have half as many lines as columns to the inch."""
    across, down = resolution
    if across and down and 1.5 <= across / down <= 2.6:
        return size[0], round(size[1] * across / down)
    if across and down and 1.5 <= down / across <= 2.6:
        return round(size[0] * down / across), size[1]
    return size


def _turned_sideways(image: Image.Image) -> bool:
    return int(image.getexif().get(_ORIENTATION, 1)) >= 5
