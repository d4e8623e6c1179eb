"""Files and folders as named → the files to read, in the order a person would expect."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from desktop.intake.detect import EXTENSIONS, detect
from desktop.intake.errors import IntakeError

OUTPUT_MARK = ".verso-output"
"""A folder that holds a file of this name is a result, never a source."""

_RESULT = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"source"\s*:\s*\{')
_NUMBER = re.compile(r"(\d+)")


def walk(paths: Iterable[Path], *, skip: Collection[Path] = ()) -> Iterator[Path]:
    """The files of PATHS, folders recursively, each file once, lazily.

    A file that is named is always given, whatever it is: opening it says what is wrong. In a
    folder, files come before sub-folders, both in natural order ("page 2" before "page 10");
    hidden ones, the folders SKIP and folders that Verso wrote are left out, and so are files
    that are no documents by content unless their name promises one – those are given, so that
    a broken document is reported and not lost. A folder that cannot be listed is itself given.
    """
    files: set[str] = set()
    closed = {key for key in map(_identity, skip) if key is not None}
    for path in paths:
        if path.is_dir():
            yield from _folder(path, files, closed)
        elif _first_time(path, files):
            yield path


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Sort key under which numbers in names count as numbers."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part.casefold())
            for part in _NUMBER.split(name) if part]


def is_output(folder: Path) -> bool:
    """Whether FOLDER holds a result that Verso wrote (marked, or its report lies in it)."""
    if (folder / OUTPUT_MARK).exists():
        return True
    try:
        with open(folder / f"{folder.name}.json", "rb") as file:
            return _RESULT.match(file.read(400)) is not None
    except OSError:
        return False


def _folder(folder: Path, files: set[str], closed: set[tuple[int, int]]) -> Iterator[Path]:
    # Linked folders are followed; one that was entered before ends the loop.
    key = _identity(folder)
    if key is None or key in closed:
        return
    closed.add(key)
    if is_output(folder):
        return
    try:
        with os.scandir(folder) as entries:
            names = sorted((entry.name for entry in entries if not entry.name.startswith(".")),
                           key=lambda name: (natural_key(name), name))
    except OSError:
        yield folder
        return
    folders: list[Path] = []
    for name in names:
        path = folder / name
        if path.is_dir():
            folders.append(path)
        elif path.is_file() and _wanted(path) and _first_time(path, files):
            yield path
    for path in folders:
        yield from _folder(path, files, closed)


def _wanted(path: Path) -> bool:
    if path.suffix.lower() in EXTENSIONS:
        return True
    try:
        detect(path)
    except IntakeError:
        # No document by content, or not to be looked at, under a name that promises none.
        return False
    return True


def _first_time(path: Path, seen: set[str]) -> bool:
    # By resolved name, not by inode: hard links are files in their own right.
    real = os.path.realpath(path)
    if real in seen:
        return False
    seen.add(real)
    return True


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
