"""What holds for all exporters."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from desktop.export import EXPORTERS, CannotWrite, ExportOptions, UnknownFormat, export, exporters
from desktop.export.atomic import replacing, replacing_path, write_text
from desktop.settings import Values
from tests.export.results import Bitmaps, document, page
from tests.support.processes import run_without_qt

ALL = sorted(EXPORTERS)


def test_formats_are_found_by_name_each_once() -> None:
    assert [e.name for e in exporters(["json", "md", "json"])] == ["json", "md"]
    with pytest.raises(UnknownFormat) as caught:
        exporters(["md", "doc"])
    assert caught.value.problem().hint == "Choose from: md, json, official."


def test_every_exporter_says_what_it_is() -> None:
    for name, exporter in EXPORTERS.items():
        assert exporter.name == name
        assert exporter.title
        assert exporter.suffix.startswith(".")


def test_options_come_from_the_settings() -> None:
    values = Values({"furniture": True, "page_separator": "rule", "file_per_page": True})
    assert ExportOptions.of(values) == ExportOptions(True, "rule", True)


@pytest.mark.parametrize("name", ALL)
def test_writing_again_replaces_what_was_there(name: str, out: Path, bitmaps: Bitmaps) -> None:
    options = ExportOptions(bitmap=bitmaps)
    first = export(document([page(1, "First, and longer")]), out, [name], options)
    second = export(document([page(1, "Second")]), out, [name], options)
    assert first == second
    assert b"First" not in second[0].read_bytes()


@pytest.mark.parametrize("name", ALL)
def test_a_page_that_cannot_be_read_leaves_no_half_file(
    name: str, out: Path, bitmaps: Bitmaps,
) -> None:
    def pages():  # type: ignore[no-untyped-def]
        yield page(1, "One")
        raise RuntimeError("the journal is gone")

    with pytest.raises(RuntimeError):
        export(document(pages()), out, [name], ExportOptions(bitmap=bitmaps))
    assert [path.name for path in (out / "report").iterdir()] == [".verso-source.json"]
    assert bitmaps.left() == []


@pytest.mark.parametrize("name", ALL)
def test_a_folder_that_cannot_be_made_is_one_clear_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file where the folder should be")
    with pytest.raises(CannotWrite) as caught:
        export(document([page(1, "One")]), tmp_path / "out", [name], ExportOptions())
    assert caught.value.code == "export.write"
    assert str(tmp_path / "out") in caught.value.problem().message


def _half_a_file(path: Path) -> None:
    with replacing(path) as file:
        file.write(b"new")
        raise KeyError


def _half_a_path(path: Path) -> None:
    with replacing_path(path) as partial:
        partial.write_bytes(b"new")
        raise KeyError


def test_files_appear_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "x.txt"
    write_text(path, "old \ud800")
    assert path.read_bytes() == b"old ?"
    for interrupted in (_half_a_file, _half_a_path):
        with pytest.raises(KeyError):
            interrupted(path)
    assert path.read_bytes() == b"old ?"
    with replacing_path(path) as partial:
        assert partial.suffix == ".txt"
        partial.write_bytes(b"new")
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_files_get_the_rights_of_other_new_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "x", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


def test_importing_the_exporters_needs_neither_qt_nor_mupdf() -> None:
    done = run_without_qt(
        "import sys, desktop.export; print(sorted({'pymupdf', 'PySide6'} & set(sys.modules)))")
    assert done.stdout.strip() == "[]", done.stderr
