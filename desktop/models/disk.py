"""Room on the disk, and what its refusals mean."""

from __future__ import annotations

import errno
import shutil
import tempfile
from pathlib import Path

from desktop.errors import VersoError
from desktop.models.errors import DiskFull, FileTooLarge, FolderUnusable

MARGIN = 64 * 1024 * 1024
"""Bytes that are to stay free."""


def in_words(size: float) -> str:
    """SIZE bytes as a person reads it: ``6.8 GB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit in ("B", "kB") or size >= 100 \
                else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def require(folder: Path, size: int) -> None:
    """Raise DiskFull unless SIZE bytes fit into FOLDER, which exists."""
    free = free_bytes(folder)
    if free < size + MARGIN:
        raise DiskFull(folder=folder, needed=in_words(size + MARGIN), free=in_words(free))


def require_writable(folder: Path) -> None:
    """Raise FolderUnusable unless something can be made in FOLDER, or, where it does not exist
    yet, in what is to hold it. Tried out: permissions do not tell of file systems that are
    read-only, or of none."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        with tempfile.TemporaryDirectory(prefix=".verso-", dir=there):
            pass
    except OSError as error:
        raise FolderUnusable(folder=folder, reason=error.strerror or type(error).__name__,
                             detail=str(error)) from error


def free_bytes(folder: Path) -> int:
    """What may be written below FOLDER; raises FolderUnusable."""
    try:
        return shutil.disk_usage(folder).free
    except OSError as error:
        raise FolderUnusable(folder=folder, reason=error.strerror) from error


def disk_error(error: OSError, folder: Path, name: str, missing: int) -> VersoError:
    """ERROR, met while MISSING bytes of the file NAME were to come into FOLDER, in our words."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(folder=folder, needed=in_words(missing), free=in_words(free_bytes(folder)),
                        detail=str(error))
    if error.errno == errno.EFBIG:
        return FileTooLarge(folder=folder, name=name, size=in_words(missing), detail=str(error))
    return FolderUnusable(folder=folder, reason=error.strerror or type(error).__name__,
                          detail=str(error))
