"""Pillow's bicubic resampling, bit for bit, by tensor operations.

The model's processor stretches a page with Pillow. Done on the device, a page crosses to the
engine core as it is (6 MB for A4 at 144 dpi) instead of as float views (27 MB), and costs no
processor time. Pillow (src/libImaging/Resample.c) works on 8-bit pixels in two passes, with
weights rounded to 22 binary places and each pass rounded to 8 bits: integers, so that the result
can be the same on any device. Which pass is first is part of the result, and depends on the
version: see :func:`order`.
"""

from __future__ import annotations

import functools
import math
import random
from typing import Callable, Tuple

import torch
from PIL import Image

from verso_vllm_plugin import NotHere

_PLACES = 32 - 8 - 2
"""Binary places of a weight: what an int32 leaves beside a pixel and the sum's growth."""
_SUPPORT = 2.0
_SLOPE = -0.5


def resized(image: torch.Tensor, width: int, height: int) -> torch.Tensor:
    """IMAGE (height, width, channels; uint8) stretched to WIDTH × HEIGHT, as
    ``PIL.Image.resize`` with ``BICUBIC`` does it; the same tensor where the size is the same."""
    before = image.shape[1], image.shape[0]
    for axis in ((0, 1) if order()(*before, width, height) else (1, 0)):
        size = (height, width)[axis]
        if image.shape[axis] != size:
            taps, weights = _table(image.shape[axis], size, str(image.device))
            image = _pass(image, axis, taps, weights)
    return image


Rule = Callable[[int, int, int, int], bool]
"""Width and height before and after → whether the columns are done before the rows."""


def _since_13(width: int, height: int, to_width: int, to_height: int) -> bool:
    return height > to_height and height - to_height > 2 * (width - to_width)


def _until_12(width: int, height: int, to_width: int, to_height: int) -> bool:
    return height > 100 * width and height > to_height


@functools.lru_cache(maxsize=1)
def order() -> Rule:
    """The installed Pillow's choice, found out by trying; raises :class:`NotHere` for one that
    is neither of those known."""
    for rule in (_since_13, _until_12):
        if all(rule(*case) == _columns_first(*case) for case in _CASES):
            return rule
    raise NotHere("this Pillow resamples in another order")


_CASES = ((50, 50, 45, 35), (50, 60, 64, 96), (60, 50, 96, 64), (50, 150, 45, 120),
          (150, 50, 120, 20), (50, 50, 20, 20), (3, 400, 5, 300), (50, 71, 43, 61))
"""Sizes before and after that tell the rules apart."""


def _columns_first(width: int, height: int, to_width: int, to_height: int) -> bool:
    noise = random.Random(width * height).randbytes(width * height * 3)
    image = Image.frombytes("RGB", (width, height), noise)
    first = image.resize((width, to_height), Image.Resampling.BICUBIC)
    both = first.resize((to_width, to_height), Image.Resampling.BICUBIC)
    return (image.resize((to_width, to_height), Image.Resampling.BICUBIC).tobytes()
            == both.tobytes())


def contained(width: int, height: int, side: int) -> Tuple[int, int]:
    """The size to which ``PIL.ImageOps.contain`` brings WIDTH × HEIGHT for a square of SIDE."""
    if width > height:
        return side, round(height / width * side)
    if width < height:
        return round(width / height * side), side
    return side, side


def _pass(image: torch.Tensor, axis: int, taps: torch.Tensor,
          weights: torch.Tensor) -> torch.Tensor:
    """One pass along AXIS. TAPS and WEIGHTS (taps, size): where each output pixel looks."""
    shape = [1, 1, 1]
    shape[axis] = -1
    size = list(image.shape)
    size[axis] = taps.shape[1]
    total = torch.full(size, 1 << (_PLACES - 1), dtype=torch.int32, device=image.device)
    for tap, weight in zip(taps, weights, strict=True):
        total += image.index_select(axis, tap) * weight.view(shape)
    return (total >> _PLACES).clamp_(0, 255).to(torch.uint8)


@functools.lru_cache(maxsize=64)
def _table(before: int, after: int, device: str) -> Tuple[torch.Tensor, torch.Tensor]:
    """Per tap and output pixel: the input pixel, and its weight."""
    scale = before / after
    stretch = max(scale, 1.0)
    support = _SUPPORT * stretch
    taps, weights = [], []
    for place in range(after):
        centre = (place + 0.5) * scale
        first = max(0, int(centre - support + 0.5))
        last = min(before, int(centre + support + 0.5))
        values = [_bicubic((x - centre + 0.5) * (1.0 / stretch)) for x in range(first, last)]
        total = 0.0
        for value in values:  # in this order: the rounding of the sum is part of the result
            total += value
        taps.append(range(first, last))
        weights.append([_rounded(value / total) for value in values])
    most = max(map(len, taps))
    # A row with fewer taps looks at its last pixel again with a weight of 0.
    table = [[*row, *[row[-1]] * (most - len(row))] for row in taps]
    padded = [row + [0] * (most - len(row)) for row in weights]
    return (torch.tensor(table, dtype=torch.int64).t().contiguous().to(device),
            torch.tensor(padded, dtype=torch.int32).t().contiguous().to(device))


def _rounded(weight: float) -> int:
    return int(math.copysign(0.5, weight) + weight * (1 << _PLACES))


def _bicubic(x: float) -> float:
    x = abs(x)
    if x < 1.0:
        return ((_SLOPE + 2.0) * x - (_SLOPE + 3.0)) * x * x + 1
    if x < 2.0:
        return (((x - 5) * x + 8) * x - 4) * _SLOPE
    return 0.0
