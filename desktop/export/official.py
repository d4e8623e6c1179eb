"""The file set that the model's official scripts write, for tools that build on it.

``NAME_det.mmd`` (output as it came), ``NAME.mmd`` (cleaned), ``NAME_layouts.pdf`` (pages with
boxes), ``images/PAGE_N.jpg``, both counted from 0. Differences to the originals, on purpose: a
page that was cut or failed keeps its place, boxes are parsed and never evaluated, and a page
whose text was corrected is written as corrected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from desktop.document.grounding import LABELS, boxes_of, is_identifier, normalise
from desktop.document.model import CROPPED, Block
from desktop.export.atomic import encoded, replacing
from desktop.export.base import Exporter, ExportOptions, pages_of
from desktop.export.images import bitmap_of, union, write_crop
from desktop.export.markdown import IMAGES
from desktop.i18n import N_
from desktop.jobs.events import DocumentResult, PageResult
from desktop.jobs.figures import MAX_CROPS

PAGE_END = "\n\n<--- Page Split --->\n"

_END_TOKEN = "<｜end▁of▁sentence｜>"
_TAG = re.compile(r"<\|ref\|>(.*?)<\|/ref\|><\|det\|>(.*?)<\|/det\|>", re.DOTALL)


class OfficialExporter(Exporter):
    """Needs bitmaps for the layouts and for the images; without them only text is written."""

    name = "official"
    title = N_("Official set (.mmd, layouts)")
    suffix = ".mmd"

    def write(self, result: DocumentResult, folder: Path, options: ExportOptions) -> list[Path]:
        # MuPDF takes a third of a second to import: only when it is needed.
        from desktop.export.layouts import LayoutsWriter

        stem = folder / folder.name
        clean_path = stem.with_name(f"{folder.name}.mmd")
        raw_path = stem.with_name(f"{folder.name}_det.mmd")
        layouts_path = stem.with_name(f"{folder.name}_layouts.pdf")
        files = [clean_path, raw_path]
        images: list[Path] = []
        with (replacing(clean_path) as clean, replacing(raw_path) as raw,
              LayoutsWriter(layouts_path) as layouts):
            for index, page in enumerate(pages_of(result)):
                text = grounded(page)
                raw.write(encoded(text + PAGE_END))
                with bitmap_of(page, options) as bitmap:
                    if bitmap is None:
                        names = {}
                    else:
                        with Image.open(bitmap.image) as image:
                            names = _write_images(text, index, image, folder / IMAGES)
                            layouts.add(page, image, bitmap.dpi)
                images += (folder / IMAGES / name for name in names.values())
                clean.write(encoded(cleaned(text, names) + PAGE_END))
            pages = layouts.pages
        if pages:
            files.append(layouts_path)
        return files + images


def grounded(page: PageResult) -> str:
    """The output of the model for a page, without its end token.

    Written anew from the blocks where they were edited, or where it came without its tags.
    """
    edited = any(block.edited for block in page.blocks)
    if page.raw and not edited and ("<|ref|>" in page.raw or not _tagged(page.blocks)):
        return page.raw.replace(_END_TOKEN, "")
    return "\n\n".join(_grounded_block(block) for block in page.blocks)


def _tagged(blocks: Sequence[Block]) -> bool:
    return any(block.boxes for block in blocks)


def _grounded_block(block: Block) -> str:
    if not block.label or not block.boxes:
        return block.markdown
    boxes = ", ".join(str(list(box)) for box in block.boxes)
    return f"<|ref|>{block.label}<|/ref|><|det|>[{boxes}]<|/det|>\n{block.markdown}"


def cleaned(text: str, images: dict[int, str]) -> str:
    """Output without its tags, as the official scripts clean it. IMAGES: the number of an image
    tag, from 0, → the name of its file."""
    number = -1

    def replaced(match: re.Match[str]) -> str:
        nonlocal number
        label = normalise(match[1])
        if label in CROPPED:
            number += 1
            return f"![]({IMAGES}/{images[number]})\n" if number in images else ""
        # The scripts drop recognised text that stands in the place of a label.
        return "" if label in LABELS or is_identifier(match[1]) else match[1]

    text = _TAG.sub(replaced, text)
    text = text.replace(r"\coloneqq", ":=").replace(r"\eqqcolon", "=:")
    return text.replace("\n\n\n\n", "\n\n").replace("\n\n\n", "\n\n")


def _write_images(text: str, page: int, image: Image.Image, folder: Path) -> dict[int, str]:
    names: dict[int, str] = {}
    tags = [match for match in _TAG.finditer(text) if normalise(match[1]) in CROPPED]
    for number, match in enumerate(tags[:MAX_CROPS]):
        boxes = boxes_of(match[2])
        name = f"{page}_{number}.jpg"
        if boxes and write_crop(image, union(boxes), folder / name):
            names[number] = name
    return names
