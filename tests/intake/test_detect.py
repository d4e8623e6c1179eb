"""The content decides what a file is."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from desktop.intake.detect import Detected, detect
from desktop.intake.errors import (
    EmptyFile,
    FileMissing,
    NotADocument,
    NotAllowed,
    Unreadable,
)
from desktop.intake.model import Kind

_IMAGE = Detected(Kind.IMAGE, "image")
_PDF = Detected(Kind.PDF, "pdf")


@pytest.mark.parametrize(("name", "found"), [
    ("twenty_pages.pdf", _PDF), ("pdf_inside", _PDF), ("header_only.pdf", _PDF),
    ("png_inside.jpg", _IMAGE), ("scan.jpg", _IMAGE), ("card.webp", _IMAGE),
    ("card.bmp", _IMAGE), ("card.jp2", _IMAGE), ("card.heic", _IMAGE), ("card.avif", _IMAGE),
    ("frames.tif", _IMAGE), ("animated.gif", _IMAGE),
    ("drawing.svg", Detected(Kind.DOCUMENT, "svg")),
    ("comic.cbz", Detected(Kind.DOCUMENT, "cbz")),
])
def test_samples(samples: Path, name: str, found: Detected) -> None:
    assert detect(samples / name) == found


@pytest.mark.parametrize("suffix", ["BMP", "PPM", "TIFF", "GIF", "PNG", "JPEG", "WEBP", "JPEG2000"])
def test_what_pillow_writes(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "no-extension"
    Image.new("RGB", (40, 30), "red").save(path, suffix)
    assert detect(path) == _IMAGE


@pytest.mark.parametrize(("data", "found"), [
    (b"junk before\n%PDF-1.4\n", _PDF),
    (b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- x --><svg xmlns='x'>",
     Detected(Kind.DOCUMENT, "svg")),
    (b"<?xml version='1.0'?><FictionBook xmlns='x'>", Detected(Kind.DOCUMENT, "fb2")),
])
def test_markup_and_junk(tmp_path: Path, data: bytes, found: Detected) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(data)
    assert detect(path) == found


@pytest.mark.parametrize(("data", "words"), [
    (b"version https://git-lfs.github.com/spec/v1\n", "plain text"),
    (b"<!DOCTYPE html><html>", "a web page or XML"),
    (b"\x7fELF\x02\x01", "a program"),
    (b"{\\rtf1\\ansi", "an RTF document"),
    (b"\x01\x02\x03\x04", "unknown content"),
])
def test_what_is_none_is_named(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(data)
    with pytest.raises(NotADocument) as caught:
        detect(path)
    assert words in caught.value.problem().message


@pytest.mark.parametrize(("names", "found"), [
    (["META-INF/container.xml", "mimetype"], "epub"),
    (["[Content_Types].xml", "FixedDocSeq.fdseq"], "xps"),
    (["1.JPG", "2.jpg", "ComicInfo.xml"], "cbz"),
    (["[Content_Types].xml", "word/document.xml"], None),
    (["mimetype", "content.xml"], None),
    (["readme.txt", "setup.py", "logo.png"], None),
])
def test_zip_files(tmp_path: Path, names: list[str], found: str | None) -> None:
    path = tmp_path / "x"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    if found is None:
        with pytest.raises(NotADocument):
            detect(path)
    else:
        assert detect(path) == Detected(Kind.DOCUMENT, found)


def test_a_broken_archive_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "book.epub"
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(Unreadable):
        detect(path)


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        detect(tmp_path / "none.pdf")
    with pytest.raises(FileMissing):
        detect(tmp_path / "none" / "none.pdf")
    with pytest.raises(Unreadable):
        detect(tmp_path)
    (tmp_path / "empty.pdf").touch()
    with pytest.raises(EmptyFile):
        detect(tmp_path / "empty.pdf")
    with pytest.raises(Unreadable):
        detect(tmp_path / ("n" * 300))


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pdf")
    with pytest.raises(Unreadable):
        detect(tmp_path / "pipe.pdf")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "secret.pdf"
    path.write_bytes(b"%PDF-1.4")
    path.chmod(0)
    with pytest.raises(NotAllowed):
        detect(path)
