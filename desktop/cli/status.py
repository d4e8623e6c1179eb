"""Exit statuses of the command line."""

from __future__ import annotations

import enum


class Exit(enum.IntEnum):
    """What a command's end means to the script that called it."""

    OK = 0
    SOME_FAILED = 1
    """Some input failed, or some page ended as length, loop, empty or failed; the doctor found
    what keeps the chosen engine from starting."""
    USAGE = 2
    """The call itself is wrong."""
    NO_ENGINE = 3
    """The engine cannot start."""
    INTERRUPTED = 130
    """Ctrl-C; what was finished stays."""
