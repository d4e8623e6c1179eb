"""A page as it travels: compressed, within the limit, as a data URL."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import Any, NamedTuple

from PIL import Image

from desktop.engines.model import fitting
from desktop.engines.remote.errors import ImageTooLarge, OverUploadLimit
from desktop.engines.visual_tokens import TILE, visual_tokens
from desktop.i18n import _
from desktop.protocol.messages import SubmitPage

MEGABYTE = 1_000_000

_COMPRESSION = 3
"""zlib level of a PNG: 9 is a tenth smaller and takes many times as long."""
_QUALITIES = (95, 88, 80, 70)
"""Of a JPEG, one after the other until it fits."""


class Upload(NamedTuple):
    """A page ready to be sent."""

    url: str
    """``data:image/…;base64,…``"""
    size: int
    """Bytes of the image."""
    tokens: int
    """Visual tokens that the server should count."""


def prepare(page: SubmitPage) -> Upload:
    """PAGE as its values want it (``crop``, ``upload_format``, ``upload_limit``).

    Slow: reads, resamples, compresses; for a thread. Raises PageUnreadable, OverUploadLimit,
    ImageTooLarge.
    """
    image = fitting.load(page)
    tokens = fitting.sent(page.width, page.height, page.settings).tokens
    kind, data = compress(image, page.settings)
    return Upload(f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}",
                  len(data), tokens)


def compress(image: Image.Image, settings: Mapping[str, Any]) -> tuple[str, bytes]:
    """``png`` or ``jpeg``, and the file.

    What does not fit as a JPEG of fair quality is shrunk as far as the model's tiles allow: it
    would be shrunk to them in any case.
    """
    limit = int(settings.get("upload_limit") or 8) * MEGABYTE
    kind = settings.get("upload_format") or "auto"
    if kind != "jpeg":
        data = _png(image)
        if len(data) <= limit:
            return "png", data
        if kind == "png":
            raise OverUploadLimit(size=len(data) / MEGABYTE, limit=limit // MEGABYTE)
    for quality in _QUALITIES:
        data = _jpeg(image, quality)
        if len(data) <= limit:
            return "jpeg", data
    smaller = _to_tiles(image)
    for quality in _QUALITIES:
        data = _jpeg(smaller, quality)
        if len(data) <= limit:
            return "jpeg", data
    raise ImageTooLarge(size=len(data) / MEGABYTE, whose=_("the upload limit"))


def _to_tiles(image: Image.Image) -> Image.Image:
    """IMAGE no larger than the tiles it is cut into; its token count stays the same."""
    cost = visual_tokens(*image.size)
    across, down = max(1, cost.across) * TILE, max(1, cost.down) * TILE
    scale = max(across / image.width, down / image.height)
    if scale >= 1:
        return image
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    if visual_tokens(*size).tokens != cost.tokens:
        return image
    return image.resize(size, Image.Resampling.LANCZOS)


def _png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=_COMPRESSION)
    return file.getvalue()


def _jpeg(image: Image.Image, quality: int) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality, subsampling=0)
    return file.getvalue()
