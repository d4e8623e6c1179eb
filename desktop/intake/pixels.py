"""Pixels of any kind → 8-bit RGB as the eye sees them, on a ground they stand out from."""

from __future__ import annotations

import functools
import io

import numpy as np
from PIL import Image, ImageCms, ImageFilter

_SPACES = {"RGB ": "RGB", "GRAY": "L", "CMYK": "CMYK", "Lab ": "LAB"}
_DEPTHS = (8, 10, 12, 14, 16)
_WHITE_IS_ZERO = 0
_PHOTOMETRIC = 262
_VISIBLE = 96
"""Alpha (0–255) from which a pixel belongs to the content."""
_CONTRAST = 60
"""Difference of luminance (0–255) that can be read."""


def eight_bit(image: Image.Image) -> Image.Image:
    """IMAGE with 8 bits a channel and no palette: L, LA, RGB, RGBA, CMYK, YCbCr or LAB.

    Orientation and profile stay in ``info``. Deeper greys are scaled by the range they use: 12
    bits stored in 16 would be nearly black otherwise.
    """
    if image.mode in ("L", "LA", "RGB", "RGBA", "CMYK", "YCbCr", "LAB"):
        if image.has_transparency_data and image.mode in ("L", "RGB"):
            return _kept(image, image.convert("RGBA"))
        return image
    if image.mode.startswith("I") or image.mode == "F":
        return _kept(image, _deep(image))
    if image.has_transparency_data or image.mode in ("PA", "La", "RGBa"):
        return _kept(image, image.convert("RGBA"))
    if image.mode == "1":
        return _kept(image, image.convert("L"))
    return _kept(image, image.convert("RGB"))


def to_rgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """An image from :func:`eight_bit` in sRGB, its transparent parts filled with a ground.

    PROFILE is its ICC profile; one that is broken or does not fit the image is ignored.
    """
    alpha = None
    if image.mode in ("LA", "RGBA"):
        alpha = image.getchannel("A")
        image = image.convert(image.mode[:-1])
        if alpha.getextrema() == (255, 255):
            alpha = None
    image = _srgb(image, profile)
    if alpha is None:
        return image
    ground = Image.new("RGB", image.size, (ground_for(image, alpha),) * 3)
    ground.paste(image, mask=alpha)
    return ground


def ground_for(image: Image.Image, alpha: Image.Image) -> int:
    """The grey (0–255) to put behind an RGB image: white unless its content would vanish.

    Only what borders on transparency counts: white letters on a blue box are safe anywhere.
    """
    factor = max(1, round(max(image.size) / 1500))
    small = image.size[0] // factor or 1, image.size[1] // factor or 1
    # Without blending, which would thin out strokes.
    solid = alpha.resize(small, Image.Resampling.NEAREST).point(
        lambda value: 255 if value >= _VISIBLE else 0)
    grey = np.asarray(image.resize(small, Image.Resampling.NEAREST).convert("L")).astype(np.int16)
    outside = np.asarray(solid.filter(ImageFilter.MinFilter(5))) == 0
    edge = grey[(np.asarray(solid) > 0) & outside]
    if edge.size == 0:
        return 255
    shares = {ground: float((np.abs(edge - ground) >= _CONTRAST).mean())
              for ground in (255, 0, 128)}
    if shares[255] >= 0.75:
        return 255
    best = max(shares, key=lambda ground: shares[ground])
    return best if shares[best] > shares[255] + 0.1 else 255


def _kept(before: Image.Image, after: Image.Image) -> Image.Image:
    """AFTER with the orientation of BEFORE, which a conversion may lose."""
    orientation = before.getexif().get(0x0112)
    if orientation:
        after.getexif()[0x0112] = orientation
    return after


def _deep(image: Image.Image) -> Image.Image:
    """Greys of 16 or 32 bits, or floats, as 8 bits."""
    values = np.asarray(image).astype(np.float32)
    finite = np.isfinite(values)
    if not finite.all():
        values = np.where(finite, values, 0.0)
    low, high = float(values.min()), float(values.max())
    if image.mode == "F" and low >= 0.0 and high <= 1.0:
        low, high = 0.0, 1.0
    elif image.mode != "F" and low >= 0 and high < 1 << 16:
        low, high = 0.0, float(next((1 << bits) - 1 for bits in _DEPTHS if high < 1 << bits))
    if high <= low:
        return Image.new("L", image.size, 255)
    grey = np.clip((values - low) * (255.0 / (high - low)) + 0.5, 0, 255).astype(np.uint8)
    tags = getattr(image, "tag_v2", {})
    if tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO:
        grey = 255 - grey
    return Image.fromarray(grey)


def _srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    if image.mode == "LAB" or (profile and image.mode in ("L", "RGB", "CMYK")):
        transform = _transform(profile or b"", image.mode)
        if transform is not None:
            return ImageCms.applyTransform(image, transform) or image
    return image if image.mode == "RGB" else image.convert("RGB")


@functools.lru_cache(maxsize=8)
def _transform(profile: bytes, mode: str) -> ImageCms.ImageCmsTransform | None:
    """The way from PROFILE to sRGB; None where there is nothing to do or it does not fit."""
    try:
        if mode == "LAB":
            source = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB"))
        else:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            if _SPACES.get(source.profile.xcolor_space) != mode:
                return None
            if mode == "RGB" and "sRGB" in (source.profile.profile_description or ""):
                return None
        return ImageCms.buildTransform(
            source, _SRGB, mode, "RGB", ImageCms.Intent.RELATIVE_COLORIMETRIC,
            ImageCms.Flags.BLACKPOINTCOMPENSATION)
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return None


_SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
