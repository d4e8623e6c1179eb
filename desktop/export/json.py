"""``NAME.json``: everything there is about a document, for programs.

The format is described by ``resources/schema/report.schema.json``; its version changes with
every change that could break a reader.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from desktop.document.model import Block
from desktop.export.atomic import replacing
from desktop.export.base import Exporter, ExportOptions
from desktop.i18n import N_
from desktop.jobs.events import DocumentResult, PageResult

VERSION = 1


class JsonExporter(Exporter):
    """The report; pages that have not been read yet are not in it."""

    name = "json"
    title = N_("JSON report")
    suffix = ".json"

    def write(self, result: DocumentResult, folder: Path, options: ExportOptions) -> list[Path]:
        path = folder / f"{folder.name}{self.suffix}"
        head = _text({
            "version": VERSION,
            "source": {"path": result.view.path, "sha256": result.sha256,
                       "pages": result.view.pages},
            "engine": {"name": result.engine, "model": result.model,
                       "settings": result.settings},
        })
        with replacing(path) as file:
            file.write(head[:-1] + b',"pages":[')
            first = True
            for page in result.pages:
                if page.view.state.final:
                    file.write((b"\n" if first else b",\n") + _text(page_report(page)))
                    first = False
            file.write(b"\n]}\n")
        return [path]


def page_report(page: PageResult) -> dict[str, Any]:
    """What the report says about a page."""
    view = page.view
    return {
        "number": view.number, "width": view.width, "height": view.height,
        "rotation": view.rotation, "status": view.state.value,
        "error": {"code": view.problem.code, "message": view.problem.message}
        if view.problem else None,
        "seconds": round(view.seconds, 3),
        "tokens": {"prompt": view.prompt_tokens, "output": view.output_tokens},
        "blocks": [_block(block) for block in page.blocks],
    }


def _block(block: Block) -> dict[str, Any]:
    confidence = block.confidence
    return {
        "id": block.id, "label": block.label, "boxes": [list(box) for box in block.boxes],
        "markdown": block.markdown, "edited": block.edited,
        "confidence": None if confidence is None else round(min(max(confidence, 0.0), 1.0), 4),
    }


def _text(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    # A lone surrogate (an undecodable file name, broken output) has no UTF-8 form.
    return text.encode("utf-8", "backslashreplace")
