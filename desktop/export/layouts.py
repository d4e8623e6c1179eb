"""A PDF of the pages with the boxes of their blocks drawn on them, written page by page."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import pymupdf
from PIL import Image

from desktop.document.model import Block
from desktop.export.atomic import PREFIX, replacing_path
from desktop.export.images import jpeg_of, pixels
from desktop.jobs.events import PageResult, PageState

_BATCH = 16
"""Pages held in memory before they go to the disk."""
_DPI = 144.0

# Colour-blind safe (Okabe–Ito), as in the window.
_COLOURS = {
    "title": "#0072B2", "sub_title": "#0072B2", "table": "#D98E04", "equation": "#7B4FB5",
    "equation_image": "#7B4FB5", "image": "#1A9E5C", "figure": "#1A9E5C", "chart": "#1A9E5C",
    "header": "#B8BDC7", "footer": "#B8BDC7", "page_number": "#B8BDC7",
}
_CAPTION, _OTHER = "#0F8B8D", "#6B7280"
_INCOMPLETE = {
    PageState.LENGTH: "cut: the output reached its limit",
    PageState.LOOP: "cut: the output repeated itself",
    PageState.FAILED: "failed",
    PageState.CANCELLED: "cancelled",
    PageState.EMPTY: "no output",
}


class LayoutsWriter:
    """Writes PATH when its block ends well and there was a page; holds a few pages at a time."""

    def __init__(self, path: Path) -> None:
        self.pages = 0
        self._path = path
        self._partial = path.with_name(f"{PREFIX}{path.stem[:40]}.part.pdf")
        self._document: pymupdf.Document | None = None

    def __enter__(self) -> LayoutsWriter:
        self._partial.unlink(missing_ok=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        try:
            if kind is None and self.pages:
                self._flush()
                with replacing_path(self._path) as partial:
                    self._partial.replace(partial)
        finally:
            if self._document is not None:
                self._document.close()
            self._partial.unlink(missing_ok=True)

    def add(self, page: PageResult, image: Image.Image, dpi: float) -> None:
        """Append PAGE: its bitmap with boxes and labels."""
        if self._document is None:
            self._document = (pymupdf.open(self._partial) if self.pages else pymupdf.open())
        scale = 72.0 / (dpi if dpi >= 36 else _DPI)
        sheet = self._document.new_page(width=image.width * scale, height=image.height * scale)
        sheet.insert_image(sheet.rect, stream=jpeg_of(image))
        for block in page.blocks:
            _draw(sheet, block, image.width, image.height, scale)
        note = _INCOMPLETE.get(page.view.state)
        if note:
            _write(sheet, pymupdf.Point(4, 11), note, "#B3261E")
        self.pages += 1
        if self.pages % _BATCH == 0:
            self._flush()

    def _flush(self) -> None:
        if self._document is None:
            return
        if self._document.name:
            self._document.saveIncr()
        else:
            self._document.save(self._partial, deflate=True)
        self._document.close()
        self._document = None


def _draw(sheet: pymupdf.Page, block: Block, width: int, height: int, scale: float) -> None:
    colour = _COLOURS.get(block.label) or (
        _CAPTION if block.label.endswith("caption") else _OTHER)
    line = 2.0 if block.label == "title" else 1.0
    for box in block.boxes:
        rect = pymupdf.Rect(*(value * scale for value in pixels(box, width, height)))
        sheet.draw_rect(rect, color=_rgb(colour), fill=_rgb(colour), fill_opacity=0.08,
                        width=line, dashes="[3 2] 0" if block.label == "image" else None)
        _write(sheet, pymupdf.Point(rect.x0, max(7.0, rect.y0 - 1.5)),
               f"{block.index + 1} {block.label}", colour)


def _write(sheet: pymupdf.Page, at: pymupdf.Point, text: str, colour: str) -> None:
    # Labels come from the model: only what the built-in font can show.
    text = text.encode("latin-1", "replace").decode("latin-1")[:60]
    sheet.insert_text(at, text, fontsize=7, fontname="helv", color=_rgb(colour))


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue
