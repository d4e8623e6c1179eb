"""Which pages are read, how they are made ready, and what makes them unique."""

from __future__ import annotations

import asyncio
import io
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops

from desktop.benchmark import unique
from desktop.benchmark.errors import FileUnusable, NothingToRead
from desktop.benchmark.feed import Drawn, Ready
from desktop.benchmark.workload import Page, gather, samples
from desktop.intake.errors import WrongPassword
from desktop.intake.rasterizer import Rasterizer
from desktop.settings import Values


def test_a_folder_with_pdfs_page_by_page(samples: Path, tmp_path: Path,
                                         no_process_left: object) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    for name in ("card.webp", "scan.png", "twenty_pages.pdf", "frames.tif", "empty.pdf"):
        shutil.copy(samples / name, folder)
    found = gather([folder], tmp_path / "cache")
    assert found.files == 4
    names = [page.name for page in found.pages]
    assert names[0] == "card.webp"
    assert names.count("twenty_pages.pdf #20") == 1
    assert [name for name in names if name.startswith("frames")][:2] == [
        "frames.tif #1", "frames.tif #2"]
    assert [Path(path).name for path, _problem in found.left_out] == ["empty.pdf"]
    assert found.page(0) == found.page(len(found.pages)) == found.pages[0]
    again = tmp_path / "elsewhere"
    shutil.copytree(folder, again)
    assert gather([again], tmp_path / "cache").digest == found.digest
    (again / "scan.png").unlink()
    assert gather([again], tmp_path / "cache").digest != found.digest


def test_the_samples_that_come_with_verso(tmp_path: Path) -> None:
    found = gather([], tmp_path)
    assert found.files == len(samples())
    assert found.sources == ()
    assert found.pages


def test_pages_of_files_of_one_name_are_told_apart(samples: Path, tmp_path: Path,
                                                   no_process_left: object) -> None:
    for folder in ("a", "b/c"):
        (tmp_path / folder).mkdir(parents=True)
        shutil.copy(samples / "scan.png", tmp_path / folder)
    shutil.copy(samples / "card.webp", tmp_path / "a")
    names = [page.name for page in gather([tmp_path / "a", tmp_path / "b"], tmp_path / "x").pages]
    assert sorted(names) == ["a/scan.png", "b/c/scan.png", "card.webp"]


def test_what_is_named_and_cannot_be_read_is_said(samples: Path, tmp_path: Path) -> None:
    with pytest.raises(FileUnusable) as caught:
        gather([samples / "scan.png", samples / "empty.pdf"], tmp_path)
    assert caught.value.problem().message == (
        f"{samples / 'empty.pdf'}: {caught.value.cause.problem().message}")
    with pytest.raises(FileUnusable) as caught:
        gather([samples / "encrypted.pdf"], tmp_path)
    assert caught.value.problem().code == "intake.password_needed"
    assert "--password-file" in caught.value.problem().line()
    with pytest.raises(FileUnusable) as caught:
        gather([samples / "encrypted.pdf"], tmp_path, lambda _path: ["Verso", "other"])
    assert isinstance(caught.value.cause, WrongPassword)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(NothingToRead):
        gather([tmp_path / "nothing"], tmp_path)


def test_protected_files_open_with_the_passwords_that_are_known(
        samples: Path, tmp_path: Path, no_process_left: object) -> None:
    shutil.copy(samples / "encrypted.pdf", tmp_path / "locked.pdf")
    shutil.copy(samples / "scan.png", tmp_path / "open.png")
    asked: list[str] = []

    def known(path: Path) -> list[str]:
        asked.append(path.name)
        return ["wrong", "verso"]

    found = gather([tmp_path], tmp_path / "cache", known)
    assert asked == ["locked.pdf"]
    assert found.passwords == {str(tmp_path / "locked.pdf"): "verso"}
    assert (found.files, found.left_out) == (2, ())
    assert "'verso'" not in repr(found)
    left = gather([tmp_path], tmp_path / "cache").left_out
    assert [(Path(path).name, problem.code) for path, problem in left] == [
        ("locked.pdf", "intake.password_needed")]


@pytest.fixture
def ppm(tmp_path: Path) -> Callable[[tuple[int, int]], Path]:
    def make(size: tuple[int, int]) -> Path:
        path = tmp_path / "page.ppm"
        image = Image.new("RGB", size, "white")
        for left in range(0, size[0], 3):
            image.putpixel((left, size[1] // 2), (0, 0, left % 256))
        image.save(path)
        return path
    return make


def pixels(path: Path) -> Image.Image:
    with Image.open(path) as image:
        return image.convert("RGB")


@pytest.mark.parametrize("size", [(600, 800), (97, 64), (64, 24)])
def test_every_copy_is_another_image_and_looks_the_same(
        ppm: Callable[[tuple[int, int]], Path], size: tuple[int, int]) -> None:
    seen: set[bytes] = set()
    squeezed: set[bytes] = set()
    plain = pixels(ppm(size))
    for serial in [*range(1, 40), 1000, 65536, 2 ** 24 - 1]:
        path = ppm(size)
        unique.mark(path, serial)
        marked = pixels(path)
        assert max(high for _low, high in ImageChops.difference(plain, marked).getextrema()) <= 6
        seen.add(marked.tobytes())
        file = io.BytesIO()
        marked.save(file, "JPEG", quality=80)
        squeezed.add(Image.open(file).tobytes())
    assert len(seen) == len(squeezed) == 42
    assert plain.tobytes() not in seen


def test_a_page_too_small_to_be_marked(ppm: Callable[[tuple[int, int]], Path]) -> None:
    with pytest.raises(ValueError, match="30 × 30 pixels are too few"):
        unique.mark(ppm((30, 30)), 1)


@pytest.fixture
def drawing(tmp_path: Path, no_process_left: object) -> Iterator[Callable[..., Any]]:
    rasterizer = Rasterizer(tmp_path / "drawn")
    helper = ThreadPoolExecutor(2)

    def run(script: Callable[[Drawn], Any], *, ahead: bool, marked: bool,
            passwords: dict[str, str] | None = None, **values: object) -> Any:
        source = Drawn(rasterizer, helper, Values(values), ahead=ahead, marked=marked,
                       passwords=passwords)
        try:
            return asyncio.run(script(source))
        finally:
            source.close()

    yield run
    rasterizer.close()
    helper.shutdown()


def test_a_page_that_cannot_be_made_unique_says_so(tmp_path: Path,
                                                   drawing: Callable[..., Any]) -> None:
    Image.new("RGB", (9, 9), "red").save(tmp_path / "dot.png")
    page = Page(str(tmp_path / "dot.png"), 1, "dot.png")
    ready = drawing(lambda source: source.page(page, 1), ahead=False, marked=True)
    assert ready.rendered is None
    assert ready.problem.problem().line() == (
        "The page cannot be made unique: 9 × 9 pixels are too few. Measure it as it is, without "
        "--unique.")
    assert list((tmp_path / "drawn").iterdir()) == []


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("marked", [False, True])
def test_pages_are_drawn_as_the_engine_gets_them(
        samples: Path, tmp_path: Path, drawing: Callable[..., Any], ahead: bool,
        marked: bool) -> None:
    page = Page(str(samples / "twenty_pages.pdf"), 3, "x")

    async def script(source: Drawn) -> list[Ready]:
        await source.prepare([page, page])
        return [await source.page(page, serial) for serial in (1, 2)]

    found = drawing(script, ahead=ahead, marked=marked, engine="embedded", dpi=72)
    assert [ready.problem for ready in found] == [None, None]
    first, second = (ready.rendered for ready in found)
    assert first.image != second.image
    assert first.words
    assert first.paged
    assert (pixels(first.image).tobytes() == pixels(second.image).tobytes()) is not marked
    assert first.dpi == 72
    for ready in found:
        ready.discard()
    assert list((tmp_path / "drawn").iterdir()) == []


def test_a_page_that_cannot_be_drawn_says_why(samples: Path, drawing: Callable[..., Any]) -> None:
    page = Page(str(samples / "twenty_pages.pdf"), 99, "x")

    async def script(source: Drawn) -> Ready:
        await source.prepare([page])
        return await source.page(page, 1)

    for ahead in (False, True):
        ready = drawing(script, ahead=ahead, marked=True)
        assert ready.rendered is None
        assert ready.problem is not None


def test_a_protected_page_is_drawn_with_its_password(samples: Path,
                                                     drawing: Callable[..., Any]) -> None:
    page = Page(str(samples / "encrypted.pdf"), 1, "x")

    async def script(source: Drawn) -> Ready:
        await source.prepare([page])
        return await source.page(page, 1)

    for ahead in (False, True):
        ready = drawing(script, ahead=ahead, marked=False, passwords={page.path: "verso"})
        assert ready.problem is None
        ready.discard()
        assert drawing(script, ahead=ahead, marked=False).problem.code == "intake.password_needed"
