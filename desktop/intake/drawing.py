"""What a drawing process does with a request. Single-threaded."""

from __future__ import annotations

import gc
import os
from collections import OrderedDict
from pathlib import Path
from typing import Protocol

import msgspec

from desktop.intake import blank, limits, wire, words
from desktop.intake.bitmap import Bitmap
from desktop.intake.detect import Detected, detect, opened
from desktop.intake.errors import NoPages, NoSuchPage, PageFailed
from desktop.intake.images import ImageSource
from desktop.intake.model import Kind
from desktop.intake.paged import PagedFile

_HELD = 4
"""Documents kept open, so that a book is not opened anew for every page."""

_COLLECTED = 25
"""Pages between two garbage collections (see drawer)."""

_Key = tuple[bytes, int, int, str | None]


class Source(Protocol):
    """An opened file."""

    @property
    def encrypted(self) -> bool:
        """Whether a password was needed."""

    @property
    def pages(self) -> int:
        """How many there are."""

    def draw(self, request: wire.DrawPage) -> Bitmap:
        """A page, upright, at most ``max_pixels`` large; not yet turned by ``clockwise``."""

    def relax(self) -> None:
        """Give back what was only needed for the last page."""

    def close(self) -> None:
        """Release the file."""


class Drawing:
    """Files that are open, and what is done with them."""

    def __init__(self, memory_mb: int) -> None:
        self._memory_mb = memory_mb
        self._open: OrderedDict[_Key, Source] = OrderedDict()
        self._pages = 0

    def open(self, request: wire.OpenFile) -> wire.Opened:
        """Examine a file; raises what ``Rasterizer.open`` raises."""
        found = detect(Path(os.fsdecode(request.path)))
        source = self._source(request.path, request.password, found)
        if source.pages < 1:
            self.forget()
            raise NoPages
        return wire.Opened(found.kind, source.pages, source.encrypted)

    def draw(self, request: wire.DrawPage) -> wire.Drawn:
        """Draw a page into its files."""
        source = self._source(request.path, request.password)
        if not 1 <= request.number <= source.pages:
            raise NoSuchPage(number=request.number, pages=source.pages)
        upright = source.draw(request)
        own = upright.words
        is_blank = blank.is_blank(upright)
        if is_blank and upright.damage:
            # Not empty: what was on it is lost.
            raise PageFailed(detail=upright.damage)
        bitmap = upright.turned(request.clockwise)
        bitmap.write(request.image)
        kept = bool(own and own.words and request.words)
        if own and kept:
            path = Path(os.fsdecode(request.words))
            words.save(own, path)
        drawn = wire.Drawn(bitmap.width, bitmap.height, bitmap.dpi, kept, is_blank,
                           bitmap.lowered, bool(bitmap.damage), isinstance(source, PagedFile))
        del upright, bitmap, own
        source.relax()
        self._pages += 1
        if self._pages % _COLLECTED == 0:
            gc.collect()
        return msgspec.structs.replace(drawn, memory_mb=limits.resident_mb())

    def forget(self) -> None:
        """Close every file."""
        while self._open:
            self._open.popitem()[1].close()

    def _source(self, path: bytes, password: str | None, found: Detected | None = None) -> Source:
        with opened(Path(os.fsdecode(path))) as file:
            status = os.fstat(file.fileno())
        key = (path, status.st_size, status.st_mtime_ns, password)
        source = self._open.get(key)
        if source is None:
            found = found or detect(Path(os.fsdecode(path)))
            if found.kind is Kind.IMAGE:
                source = ImageSource(path, self._memory_mb)
            else:
                source = PagedFile(path, found.format, password)
            self._open[key] = source
            while len(self._open) > _HELD:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(key)
        return source
