"""The shipped sample and the test documents are what their descriptions say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pymupdf
import pytest

from tests.support.scripts import load


def words(pdf: Path) -> list[list[str]]:
    with pymupdf.open(pdf) as document:
        return [page.get_text().split() for page in document]


def test_the_sample_is_what_its_script_makes(
    tmp_path: Path, sample_pdf: Path, samples: Path,
) -> None:
    load("packaging/make_sample.py").make(tmp_path / "a.pdf", tmp_path / "a.json")
    assert words(tmp_path / "a.pdf") == words(sample_pdf)
    assert (tmp_path / "a.json").read_text() == (samples / "sample_expected.json").read_text()


def test_the_sample_contains_what_a_real_document_has(sample_pdf: Path, samples: Path) -> None:
    parts = json.loads((samples / "sample_expected.json").read_text("utf-8"))
    labels = {part["label"] for part in parts}
    assert labels == {"heading1", "heading2", "heading3", "text", "list", "table",
                      "table_caption", "equation", "image", "image_caption", "header"}
    assert [len(page) > 60 for page in words(sample_pdf)] == [True] * 3
    with pymupdf.open(sample_pdf) as document:
        for part in parts:
            if isinstance(part["content"], str) and part["label"] not in ("equation", "image"):
                text = " ".join(document[part["page"] - 1].get_text().split())
                assert " ".join(part["content"].split()) in text


def test_every_test_document_is_described_and_small(samples: Path) -> None:
    files = {p.name for p in samples.iterdir()
             if p.is_file() and p.name not in ("README.md", "make_samples.py")}
    cells = re.findall(r"^\| ([^|]+) \|", (samples / "README.md").read_text("utf-8"), re.M)[1:]
    described = {name for cell in cells for name in re.split(r", | … ", cell)}
    described |= {f"exif_{n}.jpg" for n in range(1, 9)}
    assert files == described
    assert sum((samples / name).stat().st_size for name in files) < 1_000_000


@pytest.mark.parametrize("name", ["blank.pdf", "twenty_pages.pdf", "rotated_cropped.pdf"])
def test_test_documents_are_what_their_script_makes(
    tmp_path: Path, samples: Path, name: str,
) -> None:
    load("tests/samples/make_samples.py").documents(tmp_path)
    assert words(tmp_path / name) == words(samples / name)
