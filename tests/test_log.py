from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator

import pytest

from desktop import log, paths


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    level = logging.getLogger().level
    yield
    log.stop()
    logging.getLogger().setLevel(level)


def test_records_reach_the_roles_file() -> None:
    file = log.start("role")
    logging.getLogger("desktop.x").info("page %d of “%s”", 3, "\udcff")
    logging.getLogger("desktop.x").debug("not this")
    assert file == paths.log_dir() / "role.log"
    text = file.read_text("utf-8")
    assert "INFO" in text
    assert "desktop.x: page 3 of “\\udcff”" in text
    assert "not this" not in text


def test_debug_level_and_a_second_start_replace_the_first() -> None:
    first = log.start("first")
    second = log.start("second", debug=True)
    logging.getLogger("desktop.x").debug("details")
    assert second.read_text("utf-8").count("details") == 1
    assert not first.exists()


def test_the_file_rotates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "FILE_BYTES", 2_000)
    log.start("small")
    for number in range(200):
        logging.getLogger("desktop.x").info("line %d %s", number, "x" * 40)
    names = sorted(p.name for p in paths.log_dir().iterdir())
    assert names == ["small.log", "small.log.1", "small.log.2", "small.log.3"]
    assert sum(p.stat().st_size for p in paths.log_dir().iterdir()) <= 4 * 2_000


@pytest.mark.logs_errors
def test_uncaught_exceptions_are_logged_and_reported() -> None:
    file = log.start()
    told: list[BaseException] = []
    log.catch_unhandled(told.append)
    in_thread, in_main = ValueError("in a thread"), ValueError("in main")

    def fail() -> None:
        raise in_thread

    thread = threading.Thread(target=fail, name="unlucky")
    thread.start()
    thread.join()
    sys.excepthook(ValueError, in_main, None)
    text = file.read_text("utf-8")
    assert told == [in_thread, in_main]
    assert "not caught in thread unlucky" in text
    assert "ValueError: in a thread" in text
    assert "Traceback" in text


@pytest.mark.logs_errors
def test_without_a_reporter_one_line_points_to_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    log.start()
    log.catch_unhandled()
    sys.excepthook(ValueError, ValueError("oops"), None)
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "oops" in err
    assert str(paths.log_dir()) in err


def test_a_keyboard_interrupt_is_no_error() -> None:
    file = log.start()
    told: list[BaseException] = []
    log.catch_unhandled(told.append)
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert told == []
    assert not file.exists()
