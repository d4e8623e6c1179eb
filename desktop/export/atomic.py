"""Files that appear whole: written beside their place, then moved there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PREFIX = ".verso-"
"""What unfinished files are called; one that is left over from a crash may be deleted."""


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file that takes PATH's place, safely on the disk, when the block ends well; when it
    raises, PATH stays as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=PREFIX, suffix=".part", dir=path.parent)
    partial = Path(name)
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _place(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def replacing_path(path: Path) -> Iterator[Path]:
    """Like :func:`replacing`, for libraries that want to write to a path themselves."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=PREFIX, suffix=path.suffix, dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        _place(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> Path:
    """Write TEXT as UTF-8; characters that do not exist (lone surrogates) become ``?``."""
    with replacing(path) as file:
        file.write(encoded(text))
    return path


def encoded(text: str) -> bytes:
    """TEXT as UTF-8, whatever is in it."""
    return text.encode("utf-8", "replace")


def _place(partial: Path, path: Path) -> None:
    # mkstemp makes files only their owner may read; these are a person's documents.
    umask = os.umask(0)
    os.umask(umask)
    partial.chmod(0o666 & ~umask)
    partial.replace(path)
