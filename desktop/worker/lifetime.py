"""The worker never outlives the application, and nothing the engine started outlives the worker.

The worker leads a process group of its own. That it is alone is noticed three ways: the kernel
sends SIGTERM (Linux), the connection ends, the parent's process id changes. Whichever comes
first, the engine gets a moment to release what it holds; then the whole group is killed.

Runs on Python 3.10 with the standard library alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

GRACE = 2.0
"""Seconds for an orderly end before the group is killed."""

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel for SIGTERM when the parent (the thread that started us) ends; Linux only."""
    if not sys.platform.startswith("linux"):
        return
    # Where it is refused (a sandbox) the two other ways remain.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)


def watch_parent(orphaned: Callable[[], None], every: float = 1.0) -> None:
    """Call ORPHANED, from a thread, once the parent is another process than now."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(every)
        orphaned()

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def end_within(seconds: float = GRACE) -> None:
    """Kill the process group, this process with it, unless it has ended SECONDS from now."""

    def wait() -> None:
        time.sleep(seconds)
        kill_group()

    threading.Thread(target=wait, name="end", daemon=True).start()


def kill_group() -> None:
    """SIGKILL to every process of the group, this one included."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
