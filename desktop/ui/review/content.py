"""What is known of the page on show: its blocks, regions, raw text, bitmap and crops."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from PySide6.QtGui import QImage

from desktop.document.html import block_html
from desktop.document.markdown import page_markdown
from desktop.document.model import CROPPED, Block
from desktop.protocol.messages import Region
from desktop.ui.review.crops import SCHEME, CropSource, pixels

_keys = itertools.count(1)


@dataclass
class PageContent:
    """One page. Plain data on the UI thread; widgets are told what changed by whoever changes
    it."""

    page_id: str
    blocks: dict[str, Block] = field(default_factory=dict)
    regions: tuple[Region, ...] = ()
    raw: list[str] = field(default_factory=list)
    bitmap: QImage | None = None
    crops: dict[str, str] = field(default_factory=dict)
    key: int = field(default_factory=lambda: next(_keys))
    """Changes with what the crops are cut from, so that no stale picture shows."""

    def update(self, blocks: Iterable[Block]) -> list[Block]:
        """Take blocks in; those that really differ."""
        changed = [block for block in blocks if self.blocks.get(block.id) != block]
        self.blocks.update((block.id, block) for block in changed)
        return changed

    def clear(self) -> None:
        """The page is read again; its bitmap is still right."""
        self.blocks.clear()
        self.regions = ()
        self.raw.clear()
        self.crops = {}
        self.key = next(_keys)

    def new_pictures(self) -> list[Block]:
        """The bitmap or the crops came: the blocks whose picture is another now."""
        self.key = next(_keys)
        return [block for block in self.blocks.values() if block.label in CROPPED]

    @property
    def ordered(self) -> list[Block]:
        """The blocks in reading order."""
        return sorted(self.blocks.values(), key=lambda block: block.index)

    @property
    def live_end(self) -> str:
        """The block that still grows; "" for none."""
        growing = [block for block in self.blocks.values() if block.open]
        return max(growing, key=lambda block: block.index).id if growing else ""

    def crop_source(self, block_id: str) -> CropSource | None:
        """Where the picture of a block comes from."""
        block = self.blocks.get(block_id)
        if block is None:
            return None
        path = self.crops.get(block_id, "")
        box = block.boxes[0] if block.boxes else None
        if not path and (self.bitmap is None or box is None):
            return None
        return CropSource(path, self.bitmap, box)

    def pictures(self) -> dict[str, Picture]:
        """The crops there are, by block."""
        found = {}
        for block in self.blocks.values():
            if block.label in CROPPED and self.crop_source(block.id) is not None:
                size = None
                if self.bitmap is not None and block.boxes:
                    area = pixels(block.boxes[0], self.bitmap)
                    size = (area.width(), area.height())
                url = f"{SCHEME}://page/crop/{self.key}/{block.id}"
                found[block.id] = Picture(url, size)
        return found


def markdown_of(content: PageContent, *, furniture: bool) -> str:
    """The page's Markdown as an export would write it, without its pictures; FURNITURE keeps
    running headers, footers and page numbers."""
    text = page_markdown(content.ordered, furniture=furniture)
    return f"{text}\n" if text else ""


@dataclass(frozen=True)
class Picture:
    """How the crop of a block is shown: its address, and its pixels where they are known."""

    url: str
    size: tuple[int, int] | None


def html_of(block: Block, picture: Picture | None) -> str:
    """A block as safe HTML; with PICTURE as a crop of the page.

    The picture's size goes with it, so that the text below does not move when it has loaded.
    """
    if picture is None:
        return block_html(block)
    made = block_html(block, picture=picture.url)
    if picture.size is not None:
        width, height = picture.size
        made = made.replace("<img ", f'<img width="{width}" height="{height}" ', 1)
    return made
