"""The pages on which the built-in engine is measured, drawn once, and reading one of them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from desktop.engines.base import Finish, Output, Text  # noqa: E402
from desktop.engines.embedded import models  # noqa: E402
from desktop.engines.embedded.reader import PageReader  # noqa: E402
from desktop.intake.model import RenderRequest  # noqa: E402
from desktop.intake.rasterizer import Rasterizer  # noqa: E402
from desktop.protocol.messages import SubmitPage  # noqa: E402
from tests.support.data import corpus_dir  # noqa: E402

FURNITURE = {"header", "footer", "page_number"}
_BLOCK = re.compile(r"<\|ref\|>(.*?)<\|/ref\|><\|det\|>.*?<\|/det\|>\n")


@dataclass(frozen=True)
class Page:
    """A page of the list: what is expected of it, and where it was drawn to."""

    name: str
    expected: dict[str, Any]
    image: str
    words: str
    width: int
    height: int

    def submit(self, **settings: Any) -> SubmitPage:
        """The command that has it read."""
        return SubmitPage(self.name, self.image, self.width, self.height, self.words, settings)


def corpus() -> Path:
    """The folder of the corpus; ends the program where there is none."""
    folder = corpus_dir()
    if folder is None:
        sys.exit("no corpus: set VERSO_CORPUS to its folder")
    return folder


def drawn(out: Path, wanted: Callable[[dict[str, Any]], bool] = lambda page: True) -> list[Page]:
    """The pages of the list that are WANTED, drawn at 144 dpi under OUT."""
    listed = json.loads((Path(__file__).parent / "engine_pages.json").read_text("utf-8"))["pages"]
    rasterizer = Rasterizer(out, processes=2)
    pages: list[Page] = []
    try:
        for page in filter(wanted, listed):
            file = corpus() / "files" / page["file"]
            rasterizer.open(file).result()
            drawn = rasterizer.render(RenderRequest(str(file), page["page"], words=True)).result()
            pages.append(Page(f"{page['file']}:{page['page']}", page, drawn.image, drawn.words,
                              drawn.width, drawn.height))
    finally:
        rasterizer.close()
    return pages


def reader() -> PageReader:
    """A page reader with its models loaded."""
    return PageReader(models.load(lambda step, fraction: None))


def read(engine: PageReader, page: Page, **settings: Any) -> list[Output]:
    """All outputs for PAGE."""
    return list(engine.read(page.submit(**settings), lambda: False))


def finished(outputs: list[Output]) -> str:
    """How the page ended."""
    return outputs[-1].reason if outputs and isinstance(outputs[-1], Finish) else "failed"


def blocks(outputs: list[Output]) -> list[tuple[str, str]]:
    """Label and content of each block."""
    parts = _BLOCK.split("".join(o.text for o in outputs if isinstance(o, Text)))
    return [(label, content.strip()) for label, content in
            zip(parts[1::2], parts[2::2], strict=True)]


def markdown(outputs: list[Output]) -> str:
    """The page's Markdown without running headers, footers and page numbers."""
    return "\n\n".join(content for label, content in blocks(outputs)
                       if label not in FURNITURE and content)
