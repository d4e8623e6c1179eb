"""Pages drawn in code, as the engine gets them: a bitmap and, of digital ones, a words file."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pymupdf

from desktop.engines.base import Finish, Output, Regions, Text
from desktop.engines.embedded.reader import PageReader
from desktop.intake import words as intake
from desktop.intake.textlayer import text_layer
from desktop.protocol.messages import SubmitPage

ZOOM = 2.0
_number = itertools.count(1)
_BLOCK = re.compile(r"<\|ref\|>(.*?)<\|/ref\|><\|det\|>\[\[(.*?)\]\]<\|/det\|>\n")


@dataclass(frozen=True)
class Result:
    """What the engine wrote of a page."""

    outputs: list[Output]

    @property
    def blocks(self) -> list[tuple[str, str]]:
        """Label and content of each block."""
        parts = _BLOCK.split("".join(o.text for o in self.outputs if isinstance(o, Text)))
        return [(label, content.strip()) for label, content in
                zip(parts[1::3], parts[3::3], strict=True)]

    @property
    def text(self) -> str:
        """The content of all blocks."""
        return "\n".join(content for _, content in self.blocks)

    def of(self, label: str) -> list[str]:
        """The contents of the blocks with LABEL."""
        return [content for name, content in self.blocks if name == label]

    @property
    def finish(self) -> str:
        last = self.outputs[-1]
        assert isinstance(last, Finish)
        return last.reason

    @property
    def regions(self) -> Regions:
        return next(o for o in self.outputs if isinstance(o, Regions))


class Paper:
    """An A4 page to draw on (points), drawn at 144 dpi."""

    def __init__(self, width: float = 595, height: float = 842) -> None:
        self._document = pymupdf.open()
        self.page = self._document.new_page(width=width, height=height)

    def text(self, x: float, y: float, text: str, size: float = 11, font: str = "helv",
             **options: Any) -> None:
        """Set one line of text with its baseline at Y."""
        self.page.insert_text((x, y), text, fontsize=size, fontname=font, **options)

    def paragraph(self, x: float, y: float, lines: list[str], size: float = 11,
                  font: str = "helv") -> float:
        """Set LINES below each other; the baseline that the next one would have."""
        for line in lines:
            self.text(x, y, line, size, font)
            y += 1.3 * size
        return y

    def submit(self, folder: Path, *, turn: int = 0, words: bool = True,
               change: Any = None, **settings: Any) -> SubmitPage:
        """The page as a command: TURN degrees clockwise, its words left out or CHANGEd."""
        name = folder / f"page{next(_number)}"
        matrix = pymupdf.Matrix(ZOOM, ZOOM).prerotate(turn)
        pixmap = self.page.get_pixmap(matrix=matrix, alpha=False)
        image = name.with_suffix(".ppm")
        pixmap.save(str(image))
        layer = text_layer(self.page, self.page.get_displaylist(), ZOOM, pixmap, 0)
        kept = ""
        if words and layer is not None:
            kept = str(name.with_suffix(".words"))
            intake.save(change(layer) if change else layer, Path(kept))
        return SubmitPage(name.name, str(image), pixmap.width, pixmap.height, kept, settings)


def plain(folder: Path, width: int, height: int, value: int = 255) -> SubmitPage:
    """A page of one colour."""
    image = folder / f"plain{next(_number)}.ppm"
    image.write_bytes(b"P6 %d %d 255\n" % (width, height)
                      + np.full((height, width, 3), value, np.uint8).tobytes())
    return SubmitPage(image.stem, str(image), width, height)


def read(reader: PageReader, page: SubmitPage) -> Result:
    """Everything that the engine gives for PAGE."""
    return Result(list(reader.read(page, lambda: False)))
