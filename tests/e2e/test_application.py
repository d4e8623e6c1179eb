"""The real application on a display: files dropped, results read back, everything killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from desktop.jobs.journal import Journal
from tests.e2e.application import Application, finished
from tests.support import processes
from tests.support.data import ROOT


@pytest.fixture
def start(no_process_left: object) -> Iterator[Callable[..., Application]]:
    """``start(FILE…)``: the application, with a window."""
    started: list[Application] = []

    def run(*files: Path) -> Application:
        started.append(Application(*files))
        return started[-1]

    yield run
    for application in started:
        if application.process.poll() is None:
            application.process.kill()
            application.process.wait()


@pytest.fixture
def scripted(verso_home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``scripted(pages=[…])``: the application uses the scripted engine with this script."""
    def use(**script: object) -> None:
        config = verso_home / "config"
        config.mkdir(parents=True, exist_ok=True)
        (config / "settings.json").write_text(
            json.dumps({"version": 1, "settings": {"engine": "scripted"}}))
        monkeypatch.setenv("VERSO_SCRIPT", json.dumps(script))
    return use


def test_dropped_documents_end_as_files(start: Callable[..., Application], sample_pdf: Path,
                                        samples: Path, tmp_path: Path) -> None:
    """The main job with the built-in engine: drop, read, see, export."""
    application = start()
    application.wait(lambda state: True)
    assert application.ask("drop", str(sample_pdf), str(samples / "header_only.pdf")) is True
    state = application.wait(lambda s: len(s["documents"]) == 2 and finished(s))
    assert state["documents"][0]["pages"] == ["complete"] * 3
    assert state["documents"][1]["state"] == "unreadable"
    assert state["problems"] == 1
    application.wait(lambda s: any("Rain" in block for block in s["blocks"]) or bool(s["blocks"]))
    out = tmp_path / "out"
    application.ask("export", str(out))
    application.wait(lambda s: "exported" in s["toast"] or "cannot" in s["toast"])
    assert application.end() == 0
    report = json.loads((out / "sample" / "sample.json").read_text())
    assert [page["status"] for page in report["pages"]] == ["complete"] * 3
    assert "A Year of Rain in Three Valleys" in (out / "sample" / "sample.md").read_text()


def test_a_killed_application_leaves_no_process_and_loses_nothing(
        start: Callable[..., Application], scripted: Callable[..., None], samples: Path,
        verso_home: Path, no_process_left: Callable[[], list[str]]) -> None:
    scripted(capacity=1, pages=[
        {"match": "*-8", "faults": [{"kind": "hang", "at": 60, "attempts": [1]}]}, {"rate": 0}])
    application = start(samples / "twenty_pages.pdf")
    application.wait(lambda s: s["documents"] and s["documents"][0]["pages"].count("complete") >= 2
                     and "streaming" in s["documents"][0]["pages"])
    os.kill(application.process.pid, signal.SIGKILL)
    application.process.wait(60)
    processes.until(lambda: not no_process_left())
    with contextlib.closing(Journal(verso_home / "data" / "journal.sqlite")) as journal:
        done = [row for document in journal.documents() for row in journal.pages(document.id)
                if row.state.final]
    assert len(done) >= 2
    again = start()
    state = again.wait(lambda s: bool(s["documents"]) and bool(s["documents"][0]["pages"]))
    assert state["documents"][0]["pages"].count("complete") >= 2
    assert again.end() == 0


def test_a_killed_worker_is_started_again_and_the_page_done_again(
        start: Callable[..., Application], scripted: Callable[..., None],
        sample_pdf: Path) -> None:
    scripted(capacity=1, pages=[
        {"match": "*-1", "faults": [{"kind": "hang", "at": 60, "attempts": [1]}]}, {"rate": 0}])
    application = start(sample_pdf)
    application.wait(lambda s: s["documents"] and "streaming" in s["documents"][0]["pages"])
    first = processes.worker_of(application.process.pid)
    first.kill()
    application.wait(lambda s: s["engine"] == "restarting" or "started again" in s["toast"]
                     or finished(s))
    state = application.wait(finished)
    assert state["documents"][0]["pages"] == ["complete"] * 3
    assert processes.worker_of(application.process.pid).pid != first.pid
    assert application.end() == 0


def test_a_second_start_hands_its_files_to_the_window(
        start: Callable[..., Application], scripted: Callable[..., None], samples: Path) -> None:
    scripted()
    application = start()
    application.wait(lambda state: True)
    second = subprocess.run(
        [sys.executable, "-m", "desktop", str(samples / "scan.png")], cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=240, check=False,
        capture_output=True, text=True)
    assert second.returncode == 0, second.stderr
    state = application.wait(lambda s: len(s["documents"]) == 1 and finished(s))
    assert state["documents"][0]["name"] == "scan.png"
    assert application.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(start: Callable[..., Application],
                                   scripted: Callable[..., None], samples: Path,
                                   number: signal.Signals) -> None:
    scripted(capacity=1, pages=[{"rate": 20}])
    application = start(samples / "twenty_pages.pdf")
    application.wait(lambda s: s["documents"] and "streaming" in s["documents"][0]["pages"])
    application.process.send_signal(number)
    assert application.process.wait(120) == 0
