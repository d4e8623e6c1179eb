"""The page as it is sent: its size, its pixels, and what it costs.

"Crop off" is done by shrinking the page to one tile. The engine's own switch for it is not used:
vLLM counts a page's tokens from constants, and the disagreement kills the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from PIL import Image

from desktop.engines import slices
from desktop.engines.visual_tokens import TILE, visual_tokens
from desktop.errors import VersoError
from desktop.i18n import N_
from desktop.protocol.messages import SubmitPage

PROMPT_TOKENS = 16
"""About what a prompt's words take beside the page."""

TYPICAL_OUTPUT = 1200
"""Output tokens of a full page before any was seen; a page of one small view is taken to hold a
third of it."""


class PageUnreadable(VersoError):
    """The page's bitmap cannot be read."""

    code = "engine.page_image"
    message = N_("The page's image cannot be read.")
    hint = N_("Read the page again; if this repeats, the disk may be full or the temporary "
              "folder may have been emptied.")


class Sent(NamedTuple):
    """What is sent of a page: pixels, and the visual tokens they cost."""

    width: int
    height: int
    tokens: int


def sent(width: int, height: int, settings: Mapping[str, Any]) -> Sent:
    """What is sent of a page of WIDTH × HEIGHT pixels; the setting ``crop`` counts."""
    if settings.get("crop") == "off" and max(width, height) > TILE:
        scale = TILE / max(width, height)
        width, height = (max(1, min(TILE, round(side * scale))) for side in (width, height))
    return Sent(width, height, visual_tokens(width, height).tokens)


def parts(page: SubmitPage) -> tuple[tuple[int, int, int, int], ...]:
    """The slices as which PAGE is to be read (``Engine.parts``): none unless the model would see
    it squashed."""
    if not page.settings.get("slice_pages", True):
        return ()
    return slices.needed(page.width, page.height, str(page.settings.get("crop", "auto")))


def load(page: SubmitPage) -> Image.Image:
    """The page's RGB pixels at the size that is sent; raises :class:`PageUnreadable`.

    Reads a file and may resample: not for an event loop's thread.
    """
    size = sent(page.width, page.height, page.settings)
    try:
        with Image.open(page.image) as file:
            image = file.convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise PageUnreadable(detail=f"{page.image}: {error}") from error
    return fit(image, size)


def fit(image: Image.Image, size: Sent) -> Image.Image:
    """IMAGE at SIZE; the same object where it has that size already."""
    if image.size == (size.width, size.height):
        return image
    return image.resize((size.width, size.height), Image.Resampling.LANCZOS, reducing_gap=3.0)


class Expectation:
    """Output tokens to be expected of a page, from what pages had so far.

    Pages are admitted by it; too low a figure makes vLLM put pages back that it has begun, too
    high a one leaves the device idle. So it is a moving average with half its deviation on top.
    """

    def __init__(self, first: float = TYPICAL_OUTPUT) -> None:
        self._mean = first
        self._deviation = first / 4

    def of(self, visual: int, most: int) -> int:
        """For a page of VISUAL tokens whose output may have MOST tokens."""
        share = 1.0 if visual > 300 else 1 / 3
        return max(1, min(most, round(share * (self._mean + self._deviation / 2))))

    def learn(self, visual: int, output: int) -> None:
        """A page of VISUAL tokens came to an end by itself after OUTPUT tokens."""
        seen = output if visual > 300 else 3 * output
        self._deviation += 0.05 * (abs(seen - self._mean) - self._deviation)
        self._mean += 0.05 * (seen - self._mean)
