"""Markdown with its images: one file, or one a page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from desktop.document.markdown import document_markdown, page_markdown
from desktop.export.atomic import encoded, replacing, write_text
from desktop.export.base import Exporter, ExportOptions, pages_of
from desktop.export.images import write_crops
from desktop.i18n import N_
from desktop.jobs.events import DocumentResult, PageResult

IMAGES = "images"


class MarkdownExporter(Exporter):
    """``NAME.md`` and ``images/``; with one file a page ``NAME-0001.md`` and so on."""

    name = "md"
    title = N_("Markdown")
    suffix = ".md"

    def write(self, result: DocumentResult, folder: Path, options: ExportOptions) -> list[Path]:
        if options.file_per_page:
            return self._write_pages(result, folder, options)
        images: list[Path] = []

        def texts() -> Iterator[tuple[int, str]]:
            for page in pages_of(result):
                yield page.view.number, _page(page, folder, options, images)

        path = folder / f"{folder.name}{self.suffix}"
        with replacing(path) as file:
            for piece in document_markdown(texts(), separator=options.page_separator):
                file.write(encoded(piece))
        return [path, *images]

    def _write_pages(self, result: DocumentResult, folder: Path,
                     options: ExportOptions) -> list[Path]:
        files: list[Path] = []
        images: list[Path] = []
        digits = max(4, len(str(result.view.pages)))
        for page in pages_of(result):
            text = _page(page, folder, options, images)
            path = folder / f"{folder.name}-{page.view.number:0{digits}}{self.suffix}"
            files.append(write_text(path, text + "\n" if text else ""))
        return files + images


def _page(page: PageResult, folder: Path, options: ExportOptions, images: list[Path]) -> str:
    names = write_crops(page, folder / IMAGES, options)
    images += (folder / IMAGES / name for name in names.values())
    paths = {block: f"{IMAGES}/{name}" for block, name in names.items()}
    return page_markdown(page.blocks, image=lambda block: paths.get(block.id),
                         furniture=options.furniture)
