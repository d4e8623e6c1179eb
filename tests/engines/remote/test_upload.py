"""A page as it travels."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageChops

from desktop.engines.model.fitting import PageUnreadable
from desktop.engines.remote import errors, testpage, upload
from desktop.engines.visual_tokens import visual_tokens
from desktop.protocol.messages import SubmitPage


def noise(width: int, height: int) -> Image.Image:
    """Nothing compresses it."""
    values = np.random.default_rng(1).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(values)


def opened(sent: upload.Upload) -> Image.Image:
    head, _, data = sent.url.partition(",")
    image = Image.open(io.BytesIO(base64.b64decode(data)))
    assert head == f"data:image/{image.format.lower()};base64"
    return image


def test_a_png_is_exact(a_page: Callable[..., SubmitPage]) -> None:
    sent = upload.prepare(a_page((1190, 1684)))
    picture = opened(sent)
    assert picture.format == "PNG"
    assert sent.tokens == 1121
    assert ImageChops.difference(picture, testpage.draw((1190, 1684))).getbbox() is None


def test_jpeg_when_it_is_wanted_or_needed() -> None:
    image = noise(800, 800)
    assert upload.compress(image, {"upload_format": "jpeg", "upload_limit": 8})[0] == "jpeg"
    assert upload.compress(image, {"upload_format": "auto", "upload_limit": 8})[0] == "png"
    kind, data = upload.compress(image, {"upload_format": "auto", "upload_limit": 1})
    assert kind == "jpeg"
    assert len(data) <= upload.MEGABYTE
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.size == image.size


def test_png_beyond_the_limit_is_an_error() -> None:
    with pytest.raises(errors.OverUploadLimit, match=r"limit of 1 MB"):
        upload.compress(noise(1000, 1000), {"upload_format": "png", "upload_limit": 1})


def test_the_last_resort_costs_no_tokens() -> None:
    image = noise(900, 1260).resize((1800, 2520))
    kind, data = upload.compress(image, {"upload_format": "jpeg", "upload_limit": 3})
    assert kind == "jpeg"
    assert len(data) <= 3 * upload.MEGABYTE
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.size < image.size
        assert visual_tokens(*picture.size) == visual_tokens(*image.size)
    with pytest.raises(errors.ImageTooLarge):
        upload.compress(image, {"upload_format": "jpeg", "upload_limit": 1})


def test_crop_off_shrinks_before_it_compresses(a_page: Callable[..., SubmitPage]) -> None:
    sent = upload.prepare(a_page((1190, 1684), crop="off"))
    assert max(opened(sent).size) == 768
    assert sent.tokens == 257


def test_a_bitmap_that_is_gone(a_page: Callable[..., SubmitPage]) -> None:
    page = SubmitPage("p", "/nowhere/page.ppm", 10, 10)
    with pytest.raises(PageUnreadable):
        upload.prepare(page)
