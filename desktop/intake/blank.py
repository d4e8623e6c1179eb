"""Whether there is anything to read on a page."""

from __future__ import annotations

import numpy as np

from desktop.intake.bitmap import Bitmap


def is_blank(bitmap: Bitmap) -> bool:
    """True for even paper, specks, shadows and bleed-through aside."""
    factor = max(1, round(max(bitmap.width, bitmap.height) / 1000))
    grey = np.asarray(bitmap.image().reduce(factor).convert("L"))
    return bool(grey.max() - grey.min() < 16)
