"""Text of line images by the recognition model (PP-OCRv6, CTC)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np
import onnxruntime as ort

from desktop.engines.embedded.model import Box, Line, Pixels, Word

_HEIGHT = 48
_STEP = 8
"""Input columns of one output step."""
_WIDEST = 2400
"""Input columns of one call; longer lines are cut at a gap between words."""
_ROOM = 0.0
"""Share of a line's height that is seen above and below it as well. Room makes reading cheaper
(a line's cost goes by its width over its height), but narrow letters of small type then vanish:
at 0.15 the error rate of scanned pages in 150 dpi rose from 0.07 to 0.26 and 0.015 to 0.17."""
_BATCH = 1600
"""Input columns of one batch; more at once is no faster."""


@dataclass(frozen=True)
class Reading:
    """The text of one image: characters, where each stands (0–1 of the width), how sure (0–1)."""

    characters: tuple[str, ...]
    places: tuple[float, ...]
    confidences: tuple[float, ...]

    @property
    def text(self) -> str:
        return "".join(self.characters)

    @property
    def confidence(self) -> float:
        return sum(self.confidences) / len(self.confidences) if self.confidences else 0.0


class Recognizer:
    """Reads line images; stateless, may be used by several threads."""

    def __init__(self, session: ort.InferenceSession) -> None:
        self._session = session
        listed = session.get_modelmeta().custom_metadata_map["character"].split("\n")
        # CTC: class 0 is "nothing here", the last one is the space.
        self._characters = ["", *listed, " "]
        self.alphabet = frozenset(listed)

    def read(self, images: Sequence[Pixels]) -> list[Reading]:
        """The text of each image (RGB, one line each, any size)."""
        cuts = [_cuts(image) for image in images]
        parts = iter(self._read([image[:, a:b] for image, edges in zip(images, cuts, strict=True)
                                 for a, b in pairwise(edges)]))
        return [_whole([next(parts) for _ in edges[1:]], edges) for edges in cuts]

    def _read(self, images: Sequence[Pixels]) -> list[Reading]:
        readings: list[Reading] = [Reading((), (), ())] * len(images)
        widths = [self._columns(image) for image in images]
        for batch in _batches(widths):
            for index, reading in zip(batch, self._run([images[i] for i in batch],
                                                       [widths[i] for i in batch]), strict=True):
                readings[index] = reading
        return readings

    @staticmethod
    def _columns(image: Pixels) -> int:
        height, width = image.shape[:2]
        if min(height, width) < 2:
            return 0
        columns: int = round(width * _HEIGHT / height)
        return max(_STEP, min(_WIDEST, columns))

    def _run(self, images: Sequence[Pixels], widths: Sequence[int]) -> Iterator[Reading]:
        padded = max(64, -(-max(widths) // 32) * 32)
        blob = np.zeros((len(images), 3, _HEIGHT, padded), np.float32)
        for row, (image, width) in enumerate(zip(images, widths, strict=True)):
            small = cv2.resize(image, (width, _HEIGHT), interpolation=cv2.INTER_LINEAR)
            blob[row, :, :, :width] = (small[:, :, ::-1].astype(np.float32) / 127.5 - 1
                                       ).transpose(2, 0, 1)
        out = np.asarray(self._session.run(None, {"x": blob})[0])
        best = out.argmax(axis=2)
        sure = np.take_along_axis(out, best[:, :, None], axis=2)[:, :, 0]
        for row, width in enumerate(widths):
            steps = best[row]
            kept = np.flatnonzero((steps != 0) & np.concatenate(
                ([True], steps[1:] != steps[:-1])))
            scale = padded / (out.shape[1] * width)
            yield Reading(tuple(self._characters[steps[i]] for i in kept),
                          tuple(min(1.0, (int(i) + 0.5) * scale) for i in kept),
                          tuple(float(sure[row, i]) for i in kept))


def _cuts(image: Pixels) -> list[int]:
    """Where IMAGE begins, is cut and ends, so that no part is wider than the model reads well."""
    height, width = image.shape[:2]
    count = -(-width * _HEIGHT // max(1, height * _WIDEST))
    if count < 2:
        return [0, width]
    # The widest gap near the place where equal parts would meet.
    part = image.mean(axis=2)
    ink = np.abs(part - np.median(part)).max(axis=0)
    gap = max(1, height // 3)
    smooth = np.convolve(ink, np.ones(gap) / gap, "same")
    edges = [0]
    for index in range(1, count):
        low = max(edges[-1] + 1, index * width // count - 3 * height)
        high = min(width - 1, index * width // count + 3 * height)
        edges.append(low + int(smooth[low:high].argmin()))
    return [*edges, width]


def _whole(parts: Sequence[Reading], edges: Sequence[int]) -> Reading:
    """The readings of the parts of one line between EDGES as one."""
    if len(parts) == 1:
        return parts[0]
    characters: list[str] = []
    places: list[float] = []
    confidences: list[float] = []
    for part, (a, b) in zip(parts, pairwise(edges), strict=True):
        if characters and part.characters and max(characters[-1], part.characters[0]) < "\u2e80":
            characters.append(" ")
            places.append(a / edges[-1])
            confidences.append(1.0)
        characters += part.characters
        places += [(a + place * (b - a)) / edges[-1] for place in part.places]
        confidences += part.confidences
    return Reading(tuple(characters), tuple(places), tuple(confidences))


def _batches(widths: Sequence[int]) -> Iterator[list[int]]:
    """Indices of images of like width, so that little is padding; empty images are left out."""
    batch: list[int] = []
    for index in sorted((i for i, width in enumerate(widths) if width), key=lambda i: widths[i]):
        if batch and (widths[index] > 1.15 * widths[batch[0]] + 16
                      or widths[index] * (len(batch) + 1) > _BATCH):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def crop(image: Pixels, line: Line) -> Pixels:
    """The pixels of LINE with some room above and below, straightened; a vertical line is laid
    down."""
    x1, y1, x2, y2 = line.box
    quad = line.quad
    room = _ROOM * min(x2 - x1, y2 - y1)
    if quad is not None and max(abs(quad[1, 1] - quad[0, 1]), abs(quad[3, 0] - quad[0, 0])) > 1.5:
        across = float(np.linalg.norm(quad[1] - quad[0]))
        down = float(np.linalg.norm(quad[3] - quad[0]))
        room = _ROOM * min(across, down)
        side = (quad[1] - quad[0]) / across if line.vertical else (quad[3] - quad[0]) / down
        grown = np.array([quad[0] - room * side, quad[1] - room * side, quad[2] + room * side,
                          quad[3] + room * side], np.float32)
        if line.vertical:
            grown = np.array([quad[0] - room * side, quad[1] + room * side,
                              quad[2] + room * side, quad[3] - room * side], np.float32)
            across += 2 * room
        else:
            down += 2 * room
        size = max(1, round(across)), max(1, round(down))
        target = np.array([[0, 0], [size[0], 0], size, [0, size[1]]], np.float32)
        part = np.asarray(cv2.warpPerspective(
            image, cv2.getPerspectiveTransform(grown, target), size,
            flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), dtype=np.uint8)
    elif line.vertical:
        part = slice_of(image, (x1 - room, y1, x2 + room, y2))
    else:
        part = slice_of(image, (x1, y1 - room, x2, y2 + room))
    return np.ascontiguousarray(np.rot90(part)) if line.vertical else part


def slice_of(image: Pixels, box: Box) -> Pixels:
    """The part of IMAGE inside BOX (clamped; at least one pixel)."""
    height, width = image.shape[:2]
    x1, y1 = min(max(0, int(box[0])), width - 1), min(max(0, int(box[1])), height - 1)
    x2, y2 = max(x1 + 1, min(width, round(box[2]))), max(y1 + 1, min(height, round(box[3])))
    return image[y1:y2, x1:x2]


def recognize(recognizer: Recognizer, image: Pixels, lines: Sequence[Line],
              cancelled: Callable[[], bool]) -> None:
    """Fill in words and confidence of LINES; returns early when CANCELLED."""
    step = 8
    for start in range(0, len(lines), step):
        if cancelled():
            return
        some = lines[start:start + step]
        for line, reading in zip(some, recognizer.read([crop(image, line) for line in some]),
                                 strict=True):
            line.words = words_of(reading, line)
            line.confidence = reading.confidence


def words_of(reading: Reading, line: Line) -> list[Word]:
    """READING cut at its spaces, each word with its place on the line."""
    x1, y1, x2, y2 = line.box
    words: list[Word] = []
    current: list[int] = []

    def close() -> None:
        if not current:
            return
        half = 0.5 * min(line.size / max(x2 - x1, 1.0), 0.5) * 0.6
        left = max(0.0, reading.places[current[0]] - half)
        right = min(1.0, reading.places[current[-1]] + half)
        box = ((x1, y1 + (y2 - y1) * left, x2, y1 + (y2 - y1) * right) if line.vertical
               else (x1 + (x2 - x1) * left, y1, x1 + (x2 - x1) * right, y2))
        words.append(Word("".join(reading.characters[i] for i in current), box))
        current.clear()

    for index, character in enumerate(reading.characters):
        if character.isspace():
            close()
        else:
            current.append(index)
    close()
    return words
