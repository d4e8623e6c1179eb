from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from desktop.export import CannotWrite, ExportOptions, export
from desktop.intake.model import RenderedPage
from desktop.jobs.events import PageState
from tests.document.recordings import OWN, read
from tests.export.results import Bitmaps, Pages, document, page

FIGURE = ("<|ref|>title<|/ref|><|det|>[[100, 20, 500, 60]]<|/det|>\n# Head\n\n"
          "<|ref|>header<|/ref|><|det|>[[0, 0, 999, 10]]<|/det|>\nJournal\n\n"
          "<|ref|>image<|/ref|><|det|>[[100, 100, 500, 500]]<|/det|>\n"
          "<|ref|>image_caption<|/ref|><|det|>[[100, 510, 500, 530]]<|/det|>\n"
          "<center>Fig. 1: Red </center>\n")


def test_one_file_with_images(out: Path, bitmaps: Bitmaps) -> None:
    files = export(document([page(1, FIGURE), page(2, "Two"), page(3, "", PageState.BLANK)]),
                   out, ["md"], ExportOptions(bitmap=bitmaps))
    assert files == [out / "report" / "report.md", out / "report" / "images" / "p1-1.png"]
    assert files[0].read_text("utf-8") == (
        "# Head\n\n![Fig. 1: Red](images/p1-1.png)\n\nFig. 1: Red\n\nTwo\n")
    with Image.open(files[1]) as image:
        assert image.size == (200, 280)
        assert image.getpixel((100, 100)) == (200, 30, 30)
    assert bitmaps.given == 1
    assert bitmaps.left() == []


def test_crops_that_were_kept_are_used(out: Path, tmp_path: Path, bitmaps: Bitmaps) -> None:
    crop = tmp_path / "crop.png"
    Image.new("RGB", (7, 9), "blue").save(crop)
    figure = replace(page(1, FIGURE), crops={"b3": str(crop)})
    files = export(document([figure]), out, ["md"], ExportOptions(bitmap=bitmaps))
    assert files[1].read_bytes() == crop.read_bytes()
    assert bitmaps.given == 0


def test_without_crops_and_bitmaps_there_is_no_broken_link(out: Path) -> None:
    files = export(document([page(1, FIGURE)]), out, ["md"], ExportOptions())
    assert [file.name for file in files] == ["report.md"]
    assert files[0].read_text("utf-8") == "# Head\n\nFig. 1: Red\n"


def test_a_file_that_is_gone_costs_the_pictures_and_not_the_text(out: Path) -> None:
    def gone(page_id: str) -> RenderedPage:
        raise CannotWrite(path=page_id, reason="gone")

    files = export(document([page(1, FIGURE)]), out, ["md", "official"],
                   ExportOptions(bitmap=gone))
    assert [file.name for file in files] == ["report.md", "report.mmd", "report_det.mmd"]
    assert files[0].read_text("utf-8") == "# Head\n\nFig. 1: Red\n"
    assert "Fig. 1: Red" in files[1].read_text("utf-8")


def test_a_page_that_looped_over_figures_writes_a_bounded_number(
    out: Path, bitmaps: Bitmaps,
) -> None:
    raw = "<|ref|>image<|/ref|><|det|>[[0, 100, 18, 118]]<|/det|>\n\n" * 250
    files = export(document([page(1, raw, PageState.LOOP)]), out, ["md"],
                   ExportOptions(bitmap=bitmaps))
    assert len(files) == 101
    assert files[0].read_text("utf-8").count("![") == 100


def test_options(out: Path) -> None:
    pages = [page(1, FIGURE), page(2, "Two", PageState.LOOP), page(3, "", PageState.WAITING)]
    options = ExportOptions(furniture=True, page_separator="heading")
    (file,) = export(document(pages), out, ["md"], options)
    assert file.read_text("utf-8") == (
        "## Page 1\n\n# Head\n\nJournal\n\nFig. 1: Red\n\n## Page 2\n\nTwo\n")


def test_one_file_a_page(out: Path) -> None:
    pages = [page(1, "One"), page(2, "", PageState.BLANK), page(3, "Three")]
    files = export(document(pages), out, ["md"], ExportOptions(file_per_page=True))
    assert [(file.name, file.read_text("utf-8")) for file in files] == [
        ("report-0001.md", "One\n"), ("report-0002.md", ""), ("report-0003.md", "Three\n")]


def test_pages_may_come_one_by_one(out: Path) -> None:
    pages = Pages(300, "Hello")
    (file,) = export(document(pages, count=300), out, ["md"],  # type: ignore[arg-type]
                     ExportOptions())
    assert file.read_text("utf-8") == "\n\n".join(["Hello"] * 300) + "\n"
    assert pages.rounds == 1


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_a_recording_loses_no_word(path: Path, out: Path) -> None:
    result = page(1, read(path))
    (file,) = export(document([result]), out, ["md"], ExportOptions())
    text = file.read_text("utf-8")
    for block in result.blocks:
        if block.label == "text":
            assert block.markdown in text
