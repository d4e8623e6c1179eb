"""Folders in which something is made whole before it is put in its place."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a Unix: nothing can be told of what an earlier run left
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def beside(place: Path) -> Iterator[Path]:
    """A new folder beside PLACE, on the same file system; it is gone afterwards. Those that
    earlier runs left behind, because they were killed, go too: a run that lives holds a lock on
    its own. Raises OSError where it cannot be made."""
    prefix = f".{place.name}.verso-"
    with contextlib.ExitStack() as held:
        # So that no other run takes the new folder for one that was left, before it is locked.
        with _locked(place.parent) as sure:
            if sure:
                _sweep(place.parent, prefix)
            made = Path(tempfile.mkdtemp(prefix=prefix, dir=place.parent))
            held.enter_context(_locked(made))
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _sweep(folder: Path, prefix: str) -> None:
    for name in os.listdir(folder):
        left = folder / name
        if name.startswith(prefix) and left.is_dir() and not left.is_symlink():
            with _locked(left, wait=False) as ours:
                if ours:
                    shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path, *, wait: bool = True) -> Iterator[bool]:
    """Whether FOLDER is ours alone meanwhile; some file systems know no locks."""
    descriptor = -1
    try:
        if fcntl is not None:
            descriptor = os.open(folder, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        locked = descriptor >= 0
    except OSError:
        locked = False
    try:
        yield locked
    finally:
        if descriptor >= 0:
            os.close(descriptor)
