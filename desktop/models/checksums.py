"""Checksums of files, as the hubs and Verso's own list of a model name them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

BLOCK = 4 * 1024 * 1024


class Stopped(Exception):
    """The caller does not want the sum any more."""


def sums(path: Path, advanced: Callable[[int], bool] | None = None) -> dict[str, str]:
    """``sha256`` and ``git`` (SHA-1 of the git blob) of the file at PATH, in hex, in one reading.

    ADVANCED is called with the bytes read since its last call; when it returns False,
    :class:`Stopped` is raised. Raises OSError.
    """
    size = path.stat().st_size
    # git's own name for content, not a protection: https://git-scm.com/book/en/v2/Git-Internals
    git = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    sha = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while block := file.read(BLOCK):
            sha.update(block)
            # Only small files lie in git itself; for the others half of the time is saved.
            if size <= BLOCK * 8:
                git.update(block)
            if advanced is not None and not advanced(len(block)):
                raise Stopped
    return {"sha256": sha.hexdigest(), "git": git.hexdigest() if size <= BLOCK * 8 else ""}


def matches(found: dict[str, str], wanted: str) -> bool:
    """Whether FOUND (of :func:`sums`) has the sum WANTED (``sha256:…``, ``git:…``); an empty one
    is always right."""
    kind, _, value = wanted.partition(":")
    return not wanted or found.get(kind) == value
