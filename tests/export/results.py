"""Results to export: read from recordings, with real bitmaps in real files."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from PIL import Image, ImageDraw

from desktop.document.parser import parse
from desktop.errors import Problem
from desktop.intake.model import RenderedPage
from desktop.jobs.events import (
    DocumentResult,
    DocumentState,
    DocumentView,
    PageResult,
    PageState,
    PageView,
)

WIDTH, HEIGHT = 500, 700
SHA = "0123456789abcdef" * 4


def page(number: int, raw: str, state: PageState = PageState.COMPLETE,
         problem: Problem | None = None) -> PageResult:
    """A page that an engine wrote RAW for."""
    view = PageView(
        id=f"1-{number}", document_id=1, number=number, state=state, problem=problem,
        seconds=1.23456, prompt_tokens=1121, output_tokens=len(raw) // 4, width=WIDTH,
        height=HEIGHT)
    return PageResult(view, parse(raw), raw)


def document(pages: Iterable[PageResult], path: str = "/documents/report.pdf",
             count: int = 3) -> DocumentResult:
    """A document; PAGES may be read one by one."""
    view = DocumentView(id=1, path=path, name=Path(path).name, state=DocumentState.OPEN,
                        pages=count)
    return DocumentResult(view, SHA, "embedded", "none", {"dpi": 144, "furniture": False},
                          pages)  # type: ignore[arg-type]


class Bitmaps:
    """Gives out bitmaps and knows which of them were not deleted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()
        self.given = 0

    def __call__(self, page_id: str) -> RenderedPage:
        image = Image.new("RGB", (WIDTH, HEIGHT), "white")
        draw = ImageDraw.Draw(image)
        draw.rectangle((50, 70, 250, 350), fill=(200, 30, 30))
        path = self._folder / f"{next(self._numbers)}.ppm"
        image.save(path)
        self.given += 1
        return RenderedPage(str(path), WIDTH, HEIGHT, 144.0)

    def left(self) -> list[Path]:
        return list(self._folder.glob("*.ppm"))


class Pages:
    """Pages that are made when they are asked for, never two at a time."""

    def __init__(self, count: int, raw: str) -> None:
        self._count = count
        self._raw = raw
        self.rounds = 0

    def __iter__(self) -> Iterable[PageResult]:  # type: ignore[override]
        self.rounds += 1
        blocks = page(1, self._raw)
        for number in range(1, self._count + 1):
            yield replace(blocks, view=replace(blocks.view, number=number, id=f"1-{number}"))
