"""``verso convert`` with real vLLM, killed in every phase: nothing of it may be left after 10 s."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pymupdf
import pytest

from tests.accelerator import real
from tests.support import processes, tiny_vllm
from tests.support.data import ROOT

PAGES = 600
"""More than are read while a test looks."""


class Convert:
    """A call of ``verso convert``, its family and what it said."""

    def __init__(self, folder: Path, python: Path, model: Path) -> None:
        script = real.Script(folder)
        script.write("A page.")
        self._log = folder / "stderr.txt"
        pdf = folder / "pages.pdf"
        if not pdf.exists():
            with pymupdf.open() as document:
                for number in range(PAGES):
                    document.new_page(width=200, height=280).insert_text((20, 40), f"{number}")
                document.save(pdf)
        words = [sys.executable, "-m", "desktop", "convert", str(pdf), "-o", str(folder / "out"),
                 "--engine", "vllm", "--engine-interpreter", str(python), "--model", str(model),
                 "--dtype", "float32", "--eager", "on", "--max-model-len", str(real.CONTEXT),
                 "--ready-seconds", str(int(2 * real.LOAD))]
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(
                words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=log,
                env=processes.without_qt({**os.environ, **tiny_vllm.environment(script.file)}))

    def worker(self, *, not_of: int = 0) -> psutil.Process:
        """Its worker, awaited; another than that with the process id NOT_OF."""
        found: psutil.Process = self._until(lambda: next((
            process for process in self._children() if process.pid != not_of
            and "desktop.worker" in process.cmdline()), None), 120)
        return found

    def core(self, worker: psutil.Process) -> psutil.Process:
        """The process of WORKER's that computes, awaited: it is there before the model is."""
        found: psutil.Process = self._until(lambda: next((
            process for process in worker.children(recursive=True)
            if "EngineCore" in real.words(process)), None), real.LOAD)
        return found

    def reading(self) -> None:
        """Wait until it says that more pages are done than it has said."""
        before = self._finished()
        self._until(lambda: self._finished() > before, real.LOAD + real.READ)

    def family(self) -> dict[int, float]:
        """All that live of it, for :func:`real.gone`."""
        leaders = {process.pid for process in self._children()}
        sessions = set()
        for pid in leaders:
            with contextlib.suppress(ProcessLookupError):  # It has ended since.
                sessions.add(os.getsid(pid))
        return real.snapshot([psutil.Process(self.process.pid), *real.of_sessions(
            (leaders | sessions) - {os.getsid(0)}, "none")])

    def said(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def kill(self) -> float:
        """SIGKILL to it alone; the seconds until nothing of it lived."""
        family = self.family()
        self.process.kill()
        self.process.wait(120)
        return real.gone(family)

    def _children(self) -> list[psutil.Process]:
        found: list[psutil.Process] = psutil.Process(self.process.pid).children(recursive=True)
        return found

    def _finished(self) -> int:
        return max(map(int, re.findall(r"(\d+) of \d+ pages", self.said())), default=0)

    def _until(self, found: Callable[[], Any], seconds: float) -> Any:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.said()
            try:
                if answer := found():
                    return answer
            except psutil.NoSuchProcess:
                continue
            time.sleep(0.05)
        raise AssertionError(f"waited in vain\n{self.said()}")


Start = Callable[[], Convert]


@pytest.fixture
def convert(tmp_path: Path, engine_python: Path, tiny_model: Path) -> Iterator[Start]:
    """``convert()`` starts one, in the same folder each time."""
    made: list[Convert] = []

    def start() -> Convert:
        made.append(Convert(tmp_path, engine_python, tiny_model))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            one.kill()


def test_killed_while_it_loads_vllm(convert: Start) -> None:
    """The worker is still importing: no process of vLLM's own is there yet."""
    run = convert()
    worker = run.worker()
    time.sleep(2)
    family = run.family()
    assert {run.process.pid, worker.pid} < set(family)  # and the guard
    passed = run.kill()
    real.figures.append(f"convert killed while vLLM was imported: its {len(family)} processes "
                        f"gone after {passed:.1f} s")


def test_its_worker_killed_then_itself_while_it_loads_and_while_it_reads(
        convert: Start) -> None:
    run = convert()
    worker = run.worker()
    core = run.core(worker)
    run.reading()
    engine = real.snapshot([worker, core, *worker.children(recursive=True)])
    os.kill(worker.pid, signal.SIGKILL)
    passed = real.gone(engine)
    real.figures.append(f"convert's worker killed: its {len(engine)} processes gone after "
                        f"{passed:.1f} s")
    # It starts another by itself, and is killed while that one loads the model.
    other = run.worker(not_of=worker.pid)
    core = run.core(other)
    family = run.family()
    assert {run.process.pid, other.pid, core.pid} < set(family)
    passed = run.kill()
    real.figures.append(f"convert killed while the model was loaded: its {len(family)} processes "
                        f"gone after {passed:.1f} s")
    run = convert()  # goes on where that one was
    core = run.core(run.worker())
    run.reading()
    family = run.family()
    assert core.pid in family
    passed = run.kill()
    real.figures.append(f"convert killed while pages were read: its {len(family)} processes gone "
                        f"after {passed:.1f} s")
