"""Child processes in tests: run Python without Qt, and see that nothing is left running."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from tests.support.data import ROOT

MARK = "VERSO_TEST_MARK"
"""Environment variable every test sets to a value of its own: it finds its descendants by it,
also those whose parent has died."""

NO_QT = Path(__file__).with_name("noqt")
"""Folder of stand-ins that raise ImportError; first on PYTHONPATH it keeps Qt out."""


PATIENCE = float(os.environ.get("VERSO_TEST_PATIENCE", "10"))
"""Seconds a process may take to end by itself, where there is a core for each that wants one."""


def patience(seconds: float = PATIENCE) -> float:
    """SECONDS, and more where more processes than there are cores want to run."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def without_qt(env: dict[str, str] | None = None) -> dict[str, str]:
    """A copy of ENV (default: this process's) in which importing Qt fails, in children too."""
    env = dict(os.environ if env is None else env)
    paths = [str(NO_QT), str(ROOT), env.get("PYTHONPATH", "")]
    env["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return env


def run_without_qt(code: str, *args: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run CODE with ARGS in a new interpreter that cannot import Qt; output is captured."""
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        env=without_qt(), cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False,
    )


def descendants(mark: str) -> list[psutil.Process]:
    """Living processes started, however indirectly, by the test with this MARK."""
    found = []
    for process in psutil.process_iter():
        try:
            if (process.pid != os.getpid()
                    and process.status() != psutil.STATUS_ZOMBIE
                    and process.environ().get(MARK) == mark
                    # Python's own helper: lives as long as the test run.
                    and "resource_tracker" not in " ".join(process.cmdline())):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def looks(seconds: float) -> Iterator[None]:
    """Look at once, and again and again for SECONDS. A time in which the machine gave nobody a turn
    counts little: a look and the pause after it count for a fifth of a second at most."""
    left, last = seconds, time.monotonic()
    yield
    while left > 0:
        time.sleep(0.05)
        now = time.monotonic()
        left, last = left - min(now - last, 0.2), now
        yield


def left_running(mark: str, seconds: float | None = None) -> list[str]:
    """Command lines of descendants that still live after SECONDS (None: :func:`patience`; empty:
    none)."""
    left: list[psutil.Process] = []
    for _ in looks(patience() if seconds is None else seconds):
        if not (left := descendants(mark)):
            break
    return [f"{process.pid}: {_command_line(process)}" for process in left]


def worker_of(pid: int) -> psutil.Process:
    """The engine's process below PID."""
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # It has ended since.
            if "desktop.worker" in child.cmdline():
                return child
    raise AssertionError("no engine runs")


def until(condition: Callable[[], object], seconds: float = 120) -> None:
    """Wait until CONDITION holds; fails after SECONDS."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """No other process that asks for the same is inside: FOLDER, which outlives the tests and is
    every checkout's, is made once."""
    import fcntl  # Linux has it, and there alone such folders are made.

    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(f"{folder.name}.lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline()) or process.name()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return "?"
