"""Threads and the window."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import QObject
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication

from desktop.ui.review.background import Background, forget
from desktop.ui.review.crops import CropSource, crop_bytes, crop_image
from desktop.ui.review.scaled import Exact, ScaledImage, to_pillow, to_qimage
from tests.ui.review.helpers import bitmap, pause, wait_for


def test_results_come_on_the_ui_thread(qapp: QApplication) -> None:
    got: list[tuple[object, bool]] = []
    owner = QObject()
    threads: list[threading.Thread] = []

    def work() -> int:
        threads.append(threading.current_thread())
        return 42
    Background("test").run(owner, work, lambda value: got.append(
        (value, threading.current_thread() is threading.main_thread())))
    wait_for(lambda: bool(got))
    assert got == [(42, True)]
    assert threads[0] is not threading.main_thread()


def test_nobody_is_told_who_is_gone_or_does_not_wait(qapp: QApplication) -> None:
    got: list[object] = []
    background, gate = Background("test"), threading.Event()
    owner, other = QObject(), QObject()
    background.run(owner, gate.wait, got.append)
    number = background.run(other, gate.wait, got.append)
    owner.deleteLater()
    forget(number)
    pause(20)
    gate.set()
    last: list[object] = []
    background.run(other, lambda: "last", last.append)
    wait_for(lambda: last == ["last"])
    assert got == []


@pytest.mark.logs_errors
def test_work_that_fails_is_none(qapp: QApplication) -> None:
    got: list[object] = []
    owner = QObject()
    Background("test").run(owner, lambda: 1 // 0, got.append)
    wait_for(lambda: got == [None])


@pytest.mark.parametrize("kind", [
    QImage.Format.Format_RGB888, QImage.Format.Format_RGB32, QImage.Format.Format_ARGB32,
    QImage.Format.Format_Grayscale8])
def test_bitmaps_of_every_kind_keep_their_colours(kind: QImage.Format) -> None:
    image = bitmap(101, 50).convertToFormat(kind)
    there = to_pillow(image)
    assert there.size == (101, 50)
    assert there.mode == "RGB"
    back = to_qimage(there)
    for x, y in ((3, 3), (99, 48)):
        assert back.pixelColor(x, y) == image.pixelColor(x, y)


def test_copies_at_any_size(qapp: QApplication) -> None:
    owner = QObject()
    scaled = ScaledImage(bitmap(4000, 3000), owner)
    wait_for(lambda: scaled.level_for(0.1).width() < 4000)
    widths = [scaled.level_for(scale).width() for scale in (1.0, 0.6, 0.5, 0.3, 0.2)]
    assert widths == [4000, 4000, 2000, 2000, 1000]
    for rotation, red in ((0, (290, 215)), (90, (10, 290))):
        wanted = Exact(300, 225, rotation) if not rotation else Exact(225, 300, rotation)
        assert scaled.exact(wanted) is None
        wait_for(lambda wanted=wanted: scaled.exact(wanted) is not None)
        exact = scaled.exact(wanted)
        assert exact is not None
        assert (exact.width(), exact.height()) == wanted[:2]
        assert exact.pixelColor(*red) == QColor("red")
    scaled.close()


def test_crops_come_from_the_file_or_the_bitmap(tmp_path) -> None:
    path = tmp_path / "crop.png"
    bitmap(20, 10).save(str(path))
    assert crop_bytes(CropSource(str(path))) == path.read_bytes()
    source = CropSource("", bitmap(), (500, 500, 999, 999))
    made = QImage.fromData(crop_bytes(source) or b"")
    assert (made.width(), made.height()) == (350, 499)
    assert made.pixelColor(100, 100) == QColor("red")
    plain = crop_image(source)
    assert plain is not None
    assert plain.size() == made.size()
    assert crop_bytes(CropSource()) is None
    assert crop_bytes(CropSource(str(tmp_path / "missing.png"))) is None
