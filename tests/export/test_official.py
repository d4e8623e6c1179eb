"""The official file set against what the official scripts write, reckoned here from the raw
output as those scripts do."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import pymupdf
import pytest
from PIL import Image

from desktop.export import ExportOptions, export
from desktop.jobs.events import PageState
from tests.document.recordings import OWN, read
from tests.export.results import HEIGHT, WIDTH, Bitmaps, Pages, document, page

EOS = "<｜end▁of▁sentence｜>"


def original(raw: str, number: int) -> str:
    """The clean text of a page as the official script makes it."""
    text = raw.replace(EOS, "")
    tags = re.findall(r"(<\|ref\|>(.*?)<\|/ref\|><\|det\|>(.*?)<\|/det\|>)", text, re.DOTALL)
    images = [tag for tag, label, _ in tags if label == "image"]
    for index, tag in enumerate(images):
        text = text.replace(tag, f"![](images/{number}_{index}.jpg)\n")
    for tag, label, _ in tags:
        if label != "image":
            text = text.replace(tag, "").replace("\\coloneqq", ":=").replace("\\eqqcolon", "=:")
            text = text.replace("\n\n\n\n", "\n\n").replace("\n\n\n", "\n\n")
    return text


def test_recordings_come_out_as_from_the_scripts(out: Path, bitmaps: Bitmaps) -> None:
    raws = [read(path) for path in OWN]
    pages = [page(number, raw + EOS) for number, raw in enumerate(raws, 1)]
    files = export(document(pages), out, ["official"], ExportOptions(bitmap=bitmaps))
    folder = out / "report"
    assert files[:3] == [folder / "report.mmd", folder / "report_det.mmd",
                         folder / "report_layouts.pdf"]
    end = "\n\n<--- Page Split --->\n"
    assert (folder / "report_det.mmd").read_text("utf-8") == "".join(raw + end for raw in raws)
    clean = (folder / "report.mmd").read_text("utf-8").split(end)
    assert clean == [*(original(raw, number) for number, raw in enumerate(raws)), ""]
    expected = {f"{number}_{index}.jpg" for number, raw in enumerate(raws)
                for index in range(raw.count("<|ref|>image<|/ref|>"))}
    assert {path.name for path in (folder / "images").iterdir()} == expected
    assert {path.name for path in files[3:]} == expected
    assert len(expected) > 5
    assert bitmaps.left() == []


def test_an_image_is_the_part_of_the_page_its_box_says(out: Path, bitmaps: Bitmaps) -> None:
    box = [100, 100, 500, 500]
    raw = f"<|ref|>image<|/ref|><|det|>[{box}]<|/det|>\n"
    files = export(document([page(1, raw)]), out, ["official"], ExportOptions(bitmap=bitmaps))
    x1, y1, x2, y2 = ast.literal_eval(str(box))
    with Image.open(files[-1]) as image:
        assert files[-1].name == "0_0.jpg"
        assert image.format == "JPEG"
        assert image.size == (int(x2 / 999 * WIDTH) - int(x1 / 999 * WIDTH),
                              int(y2 / 999 * HEIGHT) - int(y1 / 999 * HEIGHT))
        red = image.getpixel((100, 100))
    assert isinstance(red, tuple)
    assert max(abs(a - b) for a, b in zip(red, (200, 30, 30), strict=True)) < 8


def test_the_layouts_show_every_page_with_its_boxes(out: Path, bitmaps: Bitmaps) -> None:
    raw = "<|ref|>title<|/ref|><|det|>[[100, 200, 400, 300], [500, 200, 900, 300]]<|/det|>\n# A"
    pages = [page(1, raw), page(2, "", PageState.BLANK), page(3, raw, PageState.LOOP)]
    files = export(document(pages), out, ["official"], ExportOptions(bitmap=bitmaps))
    with pymupdf.open(files[2]) as pdf:
        assert pdf.page_count == 3
        first = pdf[0]
        assert (round(first.rect.width), round(first.rect.height)) == (WIDTH // 2, HEIGHT // 2)
        assert len(first.get_images()) == 1
        drawn = [tuple(drawing["rect"]) for drawing in first.get_drawings()]
        boxes = [tuple(int(v / 999 * size) / 2 for v, size in zip(
                     box, (WIDTH, HEIGHT, WIDTH, HEIGHT), strict=True))
                 for box in ((100, 200, 400, 300), (500, 200, 900, 300))]
        assert drawn == [pytest.approx(box, abs=0.01) for box in boxes]
        assert first.get_text().split() == ["1", "title", "1", "title"]
        assert pdf[1].get_text() == ""
        assert "repeated" in pdf[2].get_text()


def test_a_corrected_page_is_written_as_corrected(out: Path, bitmaps: Bitmaps) -> None:
    raw = "<|ref|>text<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>\nWorng.  \n\nLogged"
    result = page(1, raw)
    block = replace(result.blocks[0], markdown="Right.", edited=True)
    files = export(document([replace(result, blocks=(block,))]), out, ["official"],
                   ExportOptions(bitmap=bitmaps))
    assert files[1].read_text("utf-8") == (
        "<|ref|>text<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>\nRight.\n\n<--- Page Split --->\n")
    assert files[0].read_text("utf-8") == "\nRight.\n\n<--- Page Split --->\n"


def test_stripped_tags_are_written_whole(out: Path) -> None:
    files = export(document([page(1, "title[[1, 2, 3, 4]]\n# Head\n\ntext[[5, 6, 7, 8]]\nBody")]),
                   out, ["official"], ExportOptions())
    assert [file.name for file in files] == ["report.mmd", "report_det.mmd"]
    assert files[1].read_text("utf-8").startswith(
        "<|ref|>title<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>\n# Head\n\n<|ref|>text<|/ref|>")
    assert "[[" not in files[0].read_text("utf-8")


def test_recognised_text_in_the_place_of_labels_is_kept(out: Path) -> None:
    raw = ("<|ref|>Two words<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>\n"
           "<|ref|>text<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>\nBody")
    files = export(document([page(1, raw)]), out, ["official"], ExportOptions())
    assert files[0].read_text("utf-8").split("\n")[:3] == ["Two words", "", "Body"]


def test_code_in_a_box_is_not_run(out: Path, bitmaps: Bitmaps, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    raw = f"<|ref|>image<|/ref|><|det|>open({str(trap)!r}, 'w')<|/det|>\n"
    export(document([page(1, raw)]), out, ["official"], ExportOptions(bitmap=bitmaps))
    assert not trap.exists()


@pytest.mark.parametrize("count", [16, 40])
def test_many_pages_are_written_a_few_at_a_time(out: Path, bitmaps: Bitmaps, count: int) -> None:
    pages = Pages(count, "<|ref|>text<|/ref|><|det|>[[1, 2, 300, 400]]<|/det|>\nHello")
    files = export(document(pages), out, ["official"],  # type: ignore[arg-type]
                   ExportOptions(bitmap=bitmaps))
    with pymupdf.open(files[2]) as pdf:
        assert pdf.page_count == count
        assert "text" in pdf[count - 1].get_text()
    assert pages.rounds == 1
    assert bitmaps.left() == []
    assert sorted(path.name for path in (out / "report").iterdir()) == [
        ".verso-source.json", "report.mmd", "report_det.mmd", "report_layouts.pdf"]
