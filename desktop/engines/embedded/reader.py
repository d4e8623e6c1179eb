"""One page from bitmap to grounded Markdown, as a plain generator: runs in a thread."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from desktop.engines.base import Confidence, Finish, Oriented, Output, Regions, Text
from desktop.engines.embedded import (
    bitmap,
    blocks,
    bullets,
    detect,
    emphasis,
    headings,
    initials,
    layout,
    legible,
    orientation,
    recognize,
    refine,
    rulelines,
    textlayer,
    write,
)
from desktop.engines.embedded.model import BOLD, Block, Line, Pixels
from desktop.engines.embedded.models import Models
from desktop.engines.embedded.order import reading_order
from desktop.intake import words as intake
from desktop.protocol.messages import Region, SubmitPage

_LEAST_CONFIDENCE = 0.5
"""A line that is less sure than this is noise: texture, drawings, scripts the model lacks."""
_UPRIGHT_SURE = 0.68
_WINDOW = 2.2
"""Height over width from which on a page is looked at in windows, so that it is not squashed."""


@dataclass(frozen=True)
class _Sheet:
    """A page ready to be written: its blocks in reading order, lines perhaps not yet read."""

    image: Pixels
    blocks: list[Block]
    body: float
    read: bool
    """Whether the lines have their words already."""


class PageReader:
    """Reads pages; may be used by several threads at once."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._recognizer = recognize.Recognizer(models.recognition)
        self._recognizer_alone = recognize.Recognizer(models.recognition_alone)
        self._active = 0
        self._fonts: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def read(self, page: SubmitPage, cancelled: Callable[[], bool]) -> Iterator[Output]:
        """The outputs of PAGE; ends early, without Finish, once CANCELLED says so."""
        with self._lock:
            self._active += 1
        try:
            yield from self._outputs(page, cancelled)
        finally:
            with self._lock:
                self._active -= 1

    def _outputs(self, page: SubmitPage, cancelled: Callable[[], bool]) -> Iterator[Output]:
        image = bitmap.read_ppm(Path(page.image))
        if _even(image):
            yield Finish("blank")
            return
        sheet: _Sheet | None = None
        layer = str(page.settings.get("text_layer", "auto"))
        if page.words and layer != "never":
            sheet = self._digital(page, image, layer == "always")
        if sheet is None:
            clockwise = self._clockwise(image) if page.settings.get("orientation", True) else 0
            if cancelled():
                return
            if clockwise:
                image = bitmap.turned(image, clockwise)
                yield Oriented(clockwise)
            # The layout model is done long before all lines are found: show what it sees.
            seen = self._layout(image)
            if early := _provisional(seen, image):
                yield early
            sheet = self._scanned(image, seen, cancelled)
        if cancelled():
            return
        yield from self._written(sheet, cancelled)

    # --- the two ways to lines and blocks ------------------------------------------------------

    def _digital(self, page: SubmitPage, image: Pixels, always: bool) -> _Sheet | None:
        """The page by its own words; None where they cannot be trusted."""
        own = intake.load(Path(page.words))
        # A page's id is its document's and its number; fonts are known for a document only.
        document = re.sub(r"[-:]\d+$", "", page.page_id)

        def known(font: str) -> bool:
            return (document, font) in self._fonts

        def verified(fonts: Iterable[str]) -> None:
            with self._lock:
                self._fonts.update((document, font) for font in fonts)

        if not always and not (
                textlayer.tells_all(own, image)
                and textlayer.trusted(own, image, self._recognizer, known, verified)):
            return None
        lines = textlayer.lines_of(own)
        if not lines:
            return None
        return self._sheet(image, lines, own.rules, own.images, self._layout(image),
                           read=True)

    def _layout(self, image: Pixels) -> list[list[layout.Found]]:
        """What the layout model sees in each window of the page."""
        return [[layout.Found(f.label, (f.box[0], f.box[1] + top, f.box[2], f.box[3] + top),
                              f.score)
                 for f in layout.find(self._models.layout, image[top:bottom])]
                for top, bottom in _windows(image)]

    def _scanned(self, image: Pixels, seen: list[list[layout.Found]],
                 cancelled: Callable[[], bool]) -> _Sheet:
        lines: list[Line] = []
        detection = self._models.detection_alone if self._alone else self._models.detection
        for top, bottom in _windows(image):
            if cancelled():
                break
            for line in detect.find(detection, image[top:bottom]):
                x1, y1, x2, y2 = line.box
                line.box = (x1, y1 + top, x2, y2 + top)
                if line.quad is not None:
                    line.quad = line.quad + np.array([0, top], np.float32)
                lines.append(line)
        detect.settle(lines, blocks.body_size(lines))
        return self._sheet(image, lines, (), (), seen, read=False)

    @property
    def _alone(self) -> bool:
        """Whether no other page is being read: this one may use all cores."""
        return self._active == 1

    def _sheet(self, image: Pixels, lines: list[Line], rules: Iterable[Any],
               images: Iterable[Any], seen: list[list[layout.Found]], *, read: bool) -> _Sheet:
        height, width = image.shape[:2]
        found: list[Block] = []
        images = list(images)
        luminance = bitmap.gray(image)
        if not any(line.style & BOLD for line in lines):
            emphasis.set_bold(lines, luminance)
        bullets.mark(lines, luminance)
        rules = rulelines.joined(rules if read else rulelines.find(
            luminance, 2.5 * blocks.body_size(lines)))
        windows = _windows(image)
        for (top, bottom), regions in zip(windows, seen, strict=True):
            inside = [line for line in lines
                      if top <= (line.box[1] + line.box[3]) / 2 < bottom] if len(
                          windows) > 1 else lines
            sheet = blocks.Sheet(width, height, regions, rules, images if top == 0 else ())
            found += blocks.build(inside, sheet)
        return _Sheet(image, found, blocks.body_size(lines), read)

    def _clockwise(self, image: Pixels) -> int:
        clockwise, sure = orientation.clockwise_to_upright(self._models.orientation, image)
        return clockwise if sure > _UPRIGHT_SURE else 0

    # --- text ----------------------------------------------------------------------------------

    def _written(self, sheet: _Sheet, cancelled: Callable[[], bool]) -> Iterator[Output]:
        height, width = sheet.image.shape[:2]
        headings.set_levels(sheet.blocks, sheet.body)
        yield Regions(tuple(Region(block.label, write.grid(block.box, width, height))
                            for block in sheet.blocks))
        index = 0
        tally = legible.Tally()
        for block in sheet.blocks:
            if not sheet.read and block.label != "image":
                recognizer = self._recognizer_alone if self._alone else self._recognizer
                recognize.recognize(recognizer, sheet.image, block.lines, cancelled)
                if cancelled():
                    return
                share = tally.block(block.lines)
                if share < 0.5 and block.label not in ("header", "footer"):
                    # Kept as a picture: nothing is lost, and nothing made up.
                    yield Text(write.tag("image", write.grid(block.box, width, height)) + "\n\n")
                    yield Confidence(index, min(share, legible.UNSURE))
                    index += 1
                    continue
                block.lines = [line for line in block.lines
                               if line.words and (line.confidence or 0) >= _LEAST_CONFIDENCE]
                if not block.lines:
                    continue
            initials.attach(block)
            for part in refine.refine(block, height):
                content = write.markdown(part)
                if not content and part.label != "image":
                    continue
                yield Text(write.tag(part.label, write.grid(part.box, width, height)) + content
                           + "\n\n")
                if part.confidence is not None:
                    yield Confidence(index, min(part.confidence, legible.UNSURE)
                                     if tally.doubtful else part.confidence)
                index += 1
            if cancelled():
                return
        if not index:
            # Something is there, or it would have been blank: what cannot be read is a picture.
            whole = write.grid((0, 0, width, height), width, height)
            yield Text(write.tag("image", whole) + "\n\n")
            yield Confidence(0, legible.UNSURE)
        yield Finish()


def _provisional(seen: list[list[layout.Found]], image: Pixels) -> Regions | None:
    """The regions of a page's layout as boxes, until its lines are known."""
    height, width = image.shape[:2]
    found = [region for part in seen for region in part]
    return Regions(tuple(Region(blocks.LABELS[found[i].label],
                                write.grid(found[i].box, width, height))
                         for i in reading_order([region.box for region in found]))
                   ) if found else None


def _even(image: Pixels) -> bool:
    """Whether nothing stands out from the paper."""
    height, width = image.shape[:2]
    if min(height, width) < 8:
        return True
    step = max(1, int((height * width / 1_000_000) ** 0.5))
    marks = bitmap.ink(bitmap.gray(np.ascontiguousarray(image[::step, ::step])))
    return int(cv2.countNonZero(marks)) < 12


def _windows(image: Pixels) -> list[tuple[int, int]]:
    """The page cut into parts from top to bottom, at rows without ink, if it is very long."""
    height, width = image.shape[:2]
    if height <= _WINDOW * width:
        return [(0, height)]
    rows = bitmap.ink(bitmap.gray(image)).mean(axis=1)
    target = max(int(1.4 * width), 640)
    cuts = [0]
    while height - cuts[-1] > 1.5 * target:
        low, high = cuts[-1] + int(0.7 * target), cuts[-1] + int(1.3 * target)
        empty = np.convolve(rows[low:high], np.ones(5) / 5, "same")
        # The emptiest row; among equals the one nearest to the target.
        best = min(range(len(empty)),
                   key=lambda i: (round(float(empty[i]), 4), abs(low + i - cuts[-1] - target)))
        cuts.append(low + best)
    return list(pairwise([*cuts, height]))
