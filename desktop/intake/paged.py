"""PDF and everything else that MuPDF opens as pages."""

from __future__ import annotations

import math
import os
import re
import time

import pymupdf

from desktop.intake import wire
from desktop.intake.bitmap import Bitmap
from desktop.intake.errors import (
    PageFailed,
    PageTooLarge,
    PasswordNeeded,
    Unreadable,
    WrongPassword,
)
from desktop.intake.textlayer import has_visible_text, image_boxes, text_layer

_LONGEST = 60_000
"""Longest side in pixels; beyond, MuPDF's own arithmetic is at its limit."""
_NO_MEMORY = re.compile(r"\b[mc]?(re)?alloc \(|FzErrorLimit")
_INCOMPLETE = re.compile(r"is not a stream|premature end|zlib error|cannot find object|corrupt")
"""Messages after which something of the page is missing."""
_REOPEN_PAGES = 25
_REOPEN_SHARE = 0.004
"""MuPDF keeps every object it has ever read: a document is opened anew after so many pages, or
later where opening it would take more than so many seconds for each page drawn."""

pymupdf.TOOLS.mupdf_display_errors(False)
pymupdf.TOOLS.mupdf_display_warnings(False)


class PagedFile:
    """A document of pages, open."""

    def __init__(self, path: bytes, kind: str, password: str | None) -> None:
        """Raises Unreadable, PasswordNeeded, WrongPassword."""
        self._path = path
        self._kind = kind
        self._password = password
        self._open()

    def _open(self) -> None:
        begun = time.monotonic()
        self._document, self.encrypted = _opened(self._path, self._kind, self._password)
        self.pages = _page_count(self._document)
        self._drawn = 0
        self._reopen = max(_REOPEN_PAGES, int((time.monotonic() - begun) / _REOPEN_SHARE))

    def draw(self, request: wire.DrawPage) -> Bitmap:
        """A page on white, annotations and form fields drawn."""
        self._drawn += 1
        pymupdf.TOOLS.reset_mupdf_warnings()
        try:
            return self._draw(request)
        except (RuntimeError, ValueError, pymupdf.mupdf.FzErrorBase) as error:
            detail = f"{type(error).__name__}: {error}; {pymupdf.TOOLS.mupdf_warnings()}"
            if _NO_MEMORY.search(detail):
                raise PageTooLarge(detail=detail) from error
            raise PageFailed(detail=detail) from error

    def _draw(self, request: wire.DrawPage) -> Bitmap:
        page = self._document.load_page(request.number - 1)
        pictures = page.get_displaylist(annots=1)
        area = pictures.rect
        zoom, lowered = _zoom(area.width, area.height, request)
        pixmap = pictures.get_pixmap(matrix=pymupdf.Matrix(zoom, zoom),
                                     colorspace=pymupdf.csRGB, alpha=0)
        messages = pymupdf.TOOLS.mupdf_warnings()
        if _NO_MEMORY.search(messages):
            # A picture was left out for want of memory: an incomplete page is no page.
            raise PageTooLarge(detail=messages)
        bitmap = Bitmap(pixmap.width, pixmap.height, pixmap.samples_mv, zoom * 72.0, lowered,
                        messages if _INCOMPLETE.search(messages) else "", owner=pixmap)
        if request.words:
            bitmap.words = text_layer(page, pictures, zoom, pixmap, request.clockwise)
            bitmap.has_text = bitmap.words is not None and bitmap.words.hidden < 1.0
        else:
            bitmap.has_text = has_visible_text(pictures)
        bitmap.drawn = not bitmap.has_text and not image_boxes(pictures)
        if bitmap.drawn and self._is_lost(page):
            bitmap.damage = "page object missing"
        return bitmap

    def _is_lost(self, page: pymupdf.Page) -> bool:
        """Whether the list of pages names a page that is not in the file: MuPDF draws it empty."""
        if not page.xref:
            return False
        try:
            return bool(self._document.xref_object(page.xref) == "null")
        except RuntimeError:
            return True

    def relax(self) -> None:
        """Keep neither the store of pictures nor a document that has grown."""
        pymupdf.TOOLS.store_shrink(75)
        if self._drawn >= self._reopen:
            self.close()
            self._open()

    def close(self) -> None:
        """Release the file."""
        self._document.close()
        pymupdf.TOOLS.store_shrink(100)


def _opened(path: bytes, kind: str, password: str | None) -> tuple[pymupdf.Document, bool]:
    pymupdf.TOOLS.reset_mupdf_warnings()
    try:
        document = _document(path, kind)
        # Read once: reading it again after authenticate() makes pages blank.
        encrypted = bool(document.needs_pass)
        if encrypted:
            if password is None:
                raise PasswordNeeded
            if not _unlocks(document, password):
                raise WrongPassword
    except (RuntimeError, ValueError, pymupdf.mupdf.FzErrorBase) as error:
        raise Unreadable(
            detail=f"{error}; {pymupdf.TOOLS.mupdf_warnings()}"[:2000]) from error
    return document, encrypted


def _document(path: bytes, kind: str) -> pymupdf.Document:
    try:
        return pymupdf.open(path.decode("utf-8"), filetype=kind)
    except UnicodeDecodeError:
        # MuPDF takes names in UTF-8 only; this file has another one.
        file = os.open(path, os.O_RDONLY)
        try:
            return pymupdf.open(f"/dev/fd/{file}", filetype=kind)
        finally:
            os.close(file)


def _unlocks(document: pymupdf.Document, password: str) -> bool:
    try:
        password.encode()
    except UnicodeEncodeError:
        # Not a text that a document could have been locked with.
        return False
    return bool(document.authenticate(password))


def _page_count(document: pymupdf.Document) -> int:
    try:
        return int(document.page_count)
    except (RuntimeError, ValueError, pymupdf.mupdf.FzErrorBase) as error:
        raise Unreadable(detail=f"page count: {error}") from error


def _zoom(width: float, height: float, request: wire.DrawPage) -> tuple[float, bool]:
    """Pixels a point, and whether that is less than asked for."""
    if not (0 < width < 1e7 and 0 < height < 1e7):
        raise PageFailed(detail=f"page of {width} × {height} pt")
    wanted = request.max_side / max(width, height) if request.max_side else request.dpi / 72.0
    zoom = min(wanted, _LONGEST / max(width, height))
    for _step in range(50):
        if _pixels(width, zoom) * _pixels(height, zoom) <= request.max_pixels:
            break
        zoom *= min(0.998, math.sqrt(request.max_pixels / (width * height)) / zoom)
    return zoom, zoom < wanted and not request.max_side


def _pixels(points: float, zoom: float) -> int:
    return max(1, math.ceil(points * zoom) + 1)
