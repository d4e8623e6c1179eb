"""What keeps a drawing process small and mortal. Runs in that process.

MuPDF holds the interpreter lock while it draws, so nothing here relies on a Python thread: the
kernel ends the process when its parent dies, when its time is up and when it asks for too much.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import NoReturn

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """End this process when PARENT's thread that started it ends (Linux).

    Elsewhere the end of the request pipe and :func:`time_limit` do the same, later.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # It died before we could ask.
        leave()


def memory_limit(megabytes: int) -> None:
    """Let this process take at most MEGABYTES more than it has mapped now."""
    try:
        import resource
    except ImportError:  # Windows: the time limit alone.
        return
    limit = _mapped() + megabytes * 1024 * 1024
    _soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def time_limit(seconds: float) -> None:
    """Have the kernel end this process in SECONDS (0: never); the application does so first.

    This is for the process whose parent was killed while MuPDF is drawing.
    """
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)


def resident_mb() -> int:
    """Megabytes of memory this process holds now; 0 where it cannot be told."""
    return _statm(1) >> 20


def leave() -> NoReturn:
    """End at once, running nothing."""
    os._exit(0)


def _mapped() -> int:
    return _statm(0) or 512 * 1024 * 1024


def _statm(field: int) -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[field]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
