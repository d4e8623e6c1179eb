"""The machine itself: system, Python, processor, memory, disks, GPUs."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from desktop import paths
from desktop.doctor import gpus
from desktop.engines.vllm.devices import host_memory
from desktop.errors import Problem
from desktop.models import places

DISK_SECONDS = 5.0
"""A network drive whose server is gone keeps its callers waiting."""


@dataclass(frozen=True)
class Disk:
    """A place where Verso writes. Bytes; -1: it did not answer, or cannot be asked."""

    what: str
    """data, models, cache."""
    path: str
    free: int
    total: int
    problem: str = ""
    """Why Verso cannot write there, in words."""


@dataclass(frozen=True)
class Machine:
    """What there is. Bytes."""

    system: str
    python: str
    interpreter: str
    cores: int
    """Those this process may use."""
    memory_total: int
    memory_free: int
    memory_limit: int
    """What the container or service it runs in may take; 0: no limit."""
    disks: tuple[Disk, ...]
    gpus: gpus.Gpus

    def told_of(self, problem: Problem) -> bool:
        """Whether PROBLEM is what is told of a folder of Verso's own: it is every engine's, too."""
        return problem.line() in {disk.problem for disk in self.disks}

    def disks_to_tell(self) -> tuple[Disk, ...]:
        """The disks, but for those of which an earlier one says all: the models lie in the data's
        folder."""
        return tuple(disk for number, disk in enumerate(self.disks) if not disk.problem
                     or disk.problem not in {each.problem for each in self.disks[:number]})


def look() -> Machine:
    """Examine the machine; raises nothing and does not hang."""
    total, free = host_memory()
    return Machine(
        f"{_system()}, {platform.machine()}", platform.python_version(), sys.executable,
        _cores(), total, free, _limit(),
        tuple(_place(what, folder) for what, folder in (
            ("data", paths.data_dir), ("models", places.models_dir),
            ("cache", paths.cache_dir))),
        gpus.look())


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}"


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _limit() -> int:
    """The memory limit of the control group, version 2 or 1."""
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text("ascii").strip()
        except OSError:
            continue
        if text.isdecimal() and int(text) < 1 << 60:  # larger ones stand for none
            return int(text)
    return 0


def _place(what: str, folder: Callable[[], Path]) -> Disk:
    try:
        return _disk(what, folder())
    except paths.OwnFolderUnusable as error:
        return Disk(what, str(error.values["folder"]), -1, -1, error.problem().line())


def _disk(what: str, path: Path) -> Disk:
    """Asked on a thread of its own, which cannot hold anybody up."""
    answer: list[tuple[int, int]] = []

    def measure() -> None:
        there = path
        while not there.exists() and there != there.parent:
            there = there.parent
        try:
            usage = shutil.disk_usage(there)
        except OSError:
            return
        answer.append((usage.free, usage.total))

    thread = threading.Thread(target=measure, name="disk", daemon=True)
    thread.start()
    thread.join(DISK_SECONDS)
    free, total = answer[0] if answer else (-1, -1)
    return Disk(what, str(path), free, total)
