"""The pool: real processes that crash, hang, grow and are left alone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any

import psutil
import pytest
from PIL import Image

from desktop.intake import words
from desktop.intake.errors import (
    EmptyFile,
    FileMissing,
    IntakeError,
    NoSpace,
    NoSuchPage,
    NotADocument,
    PageFailed,
    PageTooLarge,
    PageTooSlow,
    PasswordNeeded,
    Unreadable,
    WrongPassword,
)
from desktop.intake.model import Kind, RenderedPage, RenderRequest
from desktop.intake.rasterizer import Rasterizer
from tests.intake import pdfs

pytestmark = pytest.mark.usefixtures("no_process_left")

_PATIENCE = 120.0


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Rasterizer]]:
    made: list[Rasterizer] = []

    def rasterizer(**values: Any) -> Rasterizer:
        made.append(Rasterizer(tmp_path / "out", **{"processes": 1, **values}))
        return made[-1]

    yield rasterizer
    for each in made:
        each.close()


def _until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + _PATIENCE
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return value


def _got(future: Future[Any]) -> Any:
    return future.result(_PATIENCE)


def _drawing(rasterizer: Rasterizer, future: Future[Any]) -> int:
    """The process that draws FUTURE's page, once it is at it."""
    _until(future.running)
    pid = _until(lambda: next(iter(rasterizer.pids()), 0))
    process = psutil.Process(pid)
    # Busy for a while: past its start and in the middle of the page.
    before = _until(lambda: process.cpu_times().user > 0.2 and process.cpu_times().user)
    _until(lambda: process.cpu_times().user > before + 0.5)
    return pid


def test_open_and_draw(make: Callable[..., Rasterizer], sample_pdf: Path, tmp_path: Path) -> None:
    rasterizer = make(processes=2)
    info = _got(rasterizer.open(sample_pdf))
    assert (info.path, info.kind, info.encrypted) == (str(sample_pdf), Kind.PDF, False)
    assert info.pages == 3
    pages = [rasterizer.render(RenderRequest(str(sample_pdf), number, words=True))
             for number in (1, 2, 3)]
    for page in map(_got, pages):
        with Image.open(page.image) as picture:
            assert (picture.format, picture.mode, picture.size) == (
                "PPM", "RGB", (page.width, page.height))
        assert words.load(Path(page.words)).words
        assert not page.blank
        page.delete()
    assert not list((tmp_path / "out").iterdir())


def test_what_is_wrong_with_a_file(make: Callable[..., Rasterizer], samples: Path) -> None:
    rasterizer = make()
    for name, password, kind in (
            ("none.pdf", None, FileMissing), ("not_an_image.png", None, NotADocument),
            ("header_only.pdf", None, Unreadable), ("empty.pdf", None, EmptyFile),
            ("encrypted.pdf", None, PasswordNeeded), ("encrypted.pdf", "x", WrongPassword),
            ("encrypted.pdf", "\udcff", WrongPassword), (".", None, Unreadable)):
        with pytest.raises(kind):
            _got(rasterizer.open(samples / name, password))
    assert _got(rasterizer.open(samples / "encrypted.pdf", "verso")).encrypted
    with pytest.raises(NoSuchPage):
        _got(rasterizer.render(RenderRequest(str(samples / "bilevel.png"), 2)))
    assert len(rasterizer.pids()) == 1, "none of it needed another process"


def test_a_page_says_whether_it_is_of_a_document_or_an_image(
    make: Callable[..., Rasterizer], samples: Path,
) -> None:
    rasterizer = make()
    for name, paged in (("blank.pdf", True), ("bilevel.png", False)):
        assert _got(rasterizer.render(RenderRequest(str(samples / name), 1))).paged is paged


def test_a_page_that_has_lost_its_content_fails(make: Callable[..., Rasterizer],
                                                samples: Path) -> None:
    rasterizer = make()
    assert _got(rasterizer.render(RenderRequest(str(samples / "broken.pdf"), 1))).damaged
    with pytest.raises(PageFailed):
        _got(rasterizer.render(RenderRequest(str(samples / "broken.pdf"), 2)))
    assert _got(rasterizer.render(RenderRequest(str(samples / "blank.pdf"), 1))).blank


def test_names_that_are_no_text(make: Callable[..., Rasterizer], samples: Path,
                                tmp_path: Path) -> None:
    for source in ("twenty_pages.pdf", "bilevel.png"):
        path = tmp_path / os.fsdecode(b"\xff\xfe page")
        path.write_bytes((samples / source).read_bytes())
        rasterizer = make()
        assert _got(rasterizer.open(path)).path == str(path)
        assert _got(rasterizer.render(RenderRequest(str(path), 1))).width


def test_a_file_that_changes_is_read_anew(make: Callable[..., Rasterizer], samples: Path,
                                          tmp_path: Path) -> None:
    path = tmp_path / "x.pdf"
    rasterizer = make()
    path.write_bytes((samples / "twenty_pages.pdf").read_bytes())
    assert _got(rasterizer.open(path)).pages == 20
    path.write_bytes((samples / "blank.pdf").read_bytes())
    assert _got(rasterizer.open(path)).pages == 2
    path.unlink()
    with pytest.raises(FileMissing):
        _got(rasterizer.render(RenderRequest(str(path), 1)))


def test_a_slow_page_dies_alone(make: Callable[..., Rasterizer], samples: Path,
                                tmp_path: Path) -> None:
    rasterizer = make()
    slow = pdfs.slow(tmp_path / "slow.pdf", 12)
    _got(rasterizer.open(slow))
    first = rasterizer.pids()
    futures = [rasterizer.render(RenderRequest(str(slow), 1, seconds=1.0)),
               rasterizer.render(RenderRequest(str(samples / "twenty_pages.pdf"), 5))]
    with pytest.raises(PageTooSlow) as caught:
        _got(futures[0])
    assert "1 s" in caught.value.problem().message
    assert _got(futures[1]).width
    assert rasterizer.pids() != first
    assert not psutil.pid_exists(first[0])


@pytest.mark.parametrize("death", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_a_page_that_brings_down_its_process_dies_alone(
        make: Callable[..., Rasterizer], samples: Path, tmp_path: Path,
        death: signal.Signals) -> None:
    rasterizer = make()
    slow = pdfs.slow(tmp_path / "slow.pdf", 12)
    future = rasterizer.render(RenderRequest(str(slow), 1))
    os.kill(_drawing(rasterizer, future), death)
    with pytest.raises(PageFailed) as caught:
        _got(future)
    assert death.name in caught.value.detail
    page = _got(rasterizer.render(RenderRequest(str(samples / "twenty_pages.pdf"), 5)))
    assert os.listdir(tmp_path / "out") == [Path(page.image).name]


def test_a_page_is_not_blamed_for_a_process_that_did_other_things_before(
        make: Callable[..., Rasterizer], samples: Path, tmp_path: Path) -> None:
    rasterizer = make()
    _got(rasterizer.open(samples / "twenty_pages.pdf"))
    rather_slow = pdfs.slow(tmp_path / "slow.pdf", 5)
    future = rasterizer.render(RenderRequest(str(rather_slow), 1, dpi=360))
    os.kill(_drawing(rasterizer, future), signal.SIGKILL)
    assert _got(future).width == 1500


def test_a_process_that_dies_between_pages_is_not_noticed(
        make: Callable[..., Rasterizer], samples: Path) -> None:
    rasterizer = make()
    request = RenderRequest(str(samples / "twenty_pages.pdf"), 5)
    _got(rasterizer.render(request))
    (pid,) = rasterizer.pids()
    os.kill(pid, signal.SIGKILL)
    assert _got(rasterizer.render(request)).width
    assert pid not in rasterizer.pids()


def test_the_memory_limit(make: Callable[..., Rasterizer], samples: Path, tmp_path: Path) -> None:
    rasterizer = make(memory_mb=256)
    huge = pdfs.one_page(tmp_path / "x.pdf", "0 0 9 9 re f", page="/MediaBox[0 0 6000 6000]")
    with pytest.raises(PageTooLarge):
        _got(rasterizer.render(RenderRequest(str(huge), 1, max_pixels=200_000_000)))
    assert _got(rasterizer.render(RenderRequest(str(huge), 1, max_pixels=2_000_000))).lowered
    assert _got(rasterizer.render(RenderRequest(str(samples / "scan.jpg"), 1))).width


def test_no_room_for_the_bitmap(samples: Path, tmp_path: Path,
                                make: Callable[..., Rasterizer]) -> None:
    rasterizer = make()
    request = RenderRequest(str(samples / "twenty_pages.pdf"), 1)
    _got(rasterizer.render(request)).delete()
    (pid,) = rasterizer.pids()
    # A disk that is full after 1,000 bytes, for this process.
    psutil.Process(pid).rlimit(psutil.RLIMIT_FSIZE, (1000, 1000))
    with pytest.raises(NoSpace):
        _got(rasterizer.render(request))
    assert rasterizer.pids() == [pid]
    assert not list((tmp_path / "out").iterdir())
    (tmp_path / "out").rmdir()
    (tmp_path / "out").touch()
    with pytest.raises(NoSpace):
        _got(rasterizer.render(request))


def test_urgent_pages_go_first_and_cancelled_ones_cost_nothing(
        make: Callable[..., Rasterizer], samples: Path, tmp_path: Path) -> None:
    rasterizer = make()
    path = str(samples / "twenty_pages.pdf")
    # Never done: its process is killed when all others wait.
    first = rasterizer.render(RenderRequest(str(pdfs.slow(tmp_path / "s.pdf", 12)), 1))
    pid = _drawing(rasterizer, first)
    done: list[str] = []

    def add(name: str, priority: int) -> Future[RenderedPage]:
        future = rasterizer.render(RenderRequest(path, 1), priority=priority)
        future.add_done_callback(lambda _future: done.append(name))
        return future

    later = [add("thumbnail", 2), add("page", 1), add("cancelled", 1), add("looked at", 0)]
    assert later[2].cancel()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(PageFailed):
        _got(first)
    for future in (*later[:2], later[3]):
        _got(future)
    assert done == ["cancelled", "looked at", "page", "thumbnail"]
    assert len(os.listdir(tmp_path / "out")) == 3
def test_closing_ends_everything(make: Callable[..., Rasterizer], tmp_path: Path) -> None:
    rasterizer = make()
    slow = RenderRequest(str(pdfs.slow(tmp_path / "slow.pdf", 12)), 1)
    running, waiting = rasterizer.render(slow), rasterizer.render(slow)
    pid = _drawing(rasterizer, running)
    rasterizer.close()
    assert not psutil.pid_exists(pid)
    with pytest.raises(CancelledError):
        _got(running)
    assert waiting.cancelled()
    assert rasterizer.render(slow).cancelled()
    rasterizer.close()


def test_the_processes_start_when_first_needed_or_warmed_up(
        make: Callable[..., Rasterizer]) -> None:
    rasterizer = make(processes=2)
    assert rasterizer.pids() == []
    rasterizer.warm_up()
    assert len(_until(rasterizer.pids)) == 1


_APPLICATION = """
import sys, time
from pathlib import Path
from desktop.intake.model import RenderRequest
from desktop.intake.rasterizer import Rasterizer
rasterizer = Rasterizer(Path(sys.argv[1]), processes=2)
futures = [rasterizer.render(RenderRequest(sys.argv[2], 1)) for _ in range(2)]
while len(rasterizer.pids()) < 2:
    time.sleep(0.02)
print(*rasterizer.pids(), flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("busy", [True, False])
def test_killing_the_application_leaves_no_process(tmp_path: Path, samples: Path,
                                                   busy: bool) -> None:
    path = pdfs.slow(tmp_path / "slow.pdf", 12) if busy else samples / "twenty_pages.pdf"
    application = subprocess.Popen([sys.executable, "-c", _APPLICATION, str(tmp_path), str(path)],
                                   stdout=subprocess.PIPE, text=True)
    assert application.stdout is not None
    pids = [int(pid) for pid in application.stdout.readline().split()]
    assert len(pids) == 2
    if busy:
        _until(lambda: all(psutil.Process(pid).cpu_times().user > 0.8 for pid in pids))
    application.kill()
    application.wait()
    application.stdout.close()
    _until(lambda: not any(_lives(pid) for pid in pids))


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


_FUZZED = ("chinese.pdf", "scan.jpg", "bilevel.png", "frames.tif", "animated.gif", "card.webp",
           "card.jp2", "cmyk.jpg", "card.bmp", "grey16.png", "comic.cbz", "card.avif")


def test_damaged_bytes_end_in_a_page_or_an_intake_error(
        make: Callable[..., Rasterizer], samples: Path, tmp_path: Path) -> None:
    dice = random.Random(7)
    rasterizer = make(processes=2)
    futures = []
    for name in _FUZZED:
        whole = (samples / name).read_bytes()
        for number in range(10):
            data = bytearray(whole)
            for _byte in range(dice.choice((1, 5, 40))):
                data[dice.randrange(4, len(data))] = dice.randrange(256)
            path = tmp_path / f"{number} {name}"
            path.write_bytes(data)
            futures.append(rasterizer.render(
                RenderRequest(str(path), 1, words=True, seconds=20, max_pixels=1_000_000)))
    drawn = 0
    for future in futures:
        try:
            page = _got(future)
        except IntakeError:
            continue
        drawn += 1
        assert os.path.getsize(page.image) > page.width * page.height * 3
        page.delete()
    assert 0 < drawn < len(futures)
