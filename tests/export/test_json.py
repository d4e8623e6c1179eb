from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from desktop import paths
from desktop.errors import Problem
from desktop.export import ExportOptions, export
from desktop.jobs.events import PageState
from tests.document.recordings import OWN, read
from tests.export.results import SHA, Pages, document, page

SCHEMA: Any = json.loads(
    (paths.resources() / "schema" / "report.schema.json").read_text("utf-8"))


def report(out: Path, pages: Any, path: str = "/documents/report.pdf") -> Any:
    (file,) = export(document(pages, path), out, ["json"], ExportOptions())
    value = json.loads(file.read_bytes())
    jsonschema.Draft202012Validator(SCHEMA).validate(value)
    return value


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_everything_that_is_known_is_in_it(out: Path) -> None:
    raw = "<|ref|>text<|/ref|><|det|>[[1, 2, 3, 4], [5, 6, 7, 8]]<|/det|>\nÜber \\(x\\) 漢字\n"
    problem = Problem("engine.loop", "It repeated itself.", "Look at it.", "detail")
    pages = [page(1, raw), page(2, "Untagged", PageState.LOOP, problem),
             page(3, "", PageState.BLANK), page(4, "", PageState.WAITING)]
    edited = replace(pages[0].blocks[0], edited=True, confidence=0.98765)
    pages[0] = replace(pages[0], blocks=(edited,))
    value = report(out, pages)
    assert value["version"] == 1
    assert value["source"] == {"path": "/documents/report.pdf", "sha256": SHA, "pages": 3}
    assert value["engine"] == {"name": "embedded", "model": "none",
                               "settings": {"dpi": 144, "furniture": False}}
    assert [p["status"] for p in value["pages"]] == ["complete", "loop", "blank"]
    assert value["pages"][0] == {
        "number": 1, "width": 500, "height": 700, "rotation": 0, "status": "complete",
        "error": None, "seconds": 1.235, "tokens": {"prompt": 1121, "output": len(raw) // 4},
        "blocks": [{"id": "b1", "label": "text", "boxes": [[1, 2, 3, 4], [5, 6, 7, 8]],
                    "markdown": "Über \\(x\\) 漢字", "edited": True, "confidence": 0.9877}]}
    assert value["pages"][1]["error"] == {"code": "engine.loop", "message": "It repeated itself."}
    assert value["pages"][1]["blocks"][0]["label"] == ""


@pytest.mark.parametrize("state", [state for state in PageState if state.final])
def test_every_final_state_is_a_word_of_the_schema(out: Path, state: PageState) -> None:
    assert report(out, [page(1, "x", state)])["pages"][0]["status"] == state.value


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_recordings(out: Path, path: Path) -> None:
    result = page(1, read(path))
    blocks = report(out, [result])["pages"][0]["blocks"]
    assert [block["markdown"] for block in blocks] == [b.markdown for b in result.blocks]


def test_an_empty_document_and_a_long_one(out: Path) -> None:
    assert report(out, [])["pages"] == []
    pages = Pages(500, "Hello")
    assert len(report(out, pages)["pages"]) == 500
    assert pages.rounds == 1


def test_broken_characters_do_not_break_it(out: Path) -> None:
    value = report(out, [page(1, "a\ud800b\x00c")], "/documents/caf\udce9.pdf")
    assert value["pages"][0]["blocks"][0]["markdown"] == "a\ud800b\x00c"
