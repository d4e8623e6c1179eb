"""The prepared folder on disk: copied whole beside its place, then put there in one step."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from desktop.engines.ascend.preparation import staging
from desktop.engines.ascend.preparation.errors import (
    CannotRead,
    CannotWrite,
    NotOurs,
    Overlapping,
    reason,
)
from desktop.engines.ascend.preparation.layout import FOREIGN_PATCH_MODULE
from desktop.i18n import _

MANIFEST = "verso_npu.json"
"""In the prepared folder: what was written, to know it again and to see what was changed since."""

_LEFT_OUT = frozenset({"__pycache__", ".git"})
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_BLOCK = 1 << 20


def destination(source: Path, target: Path) -> Path:
    """Where TARGET really is, links followed. Raises Overlapping, NotOurs, CannotWrite."""
    try:
        place, code = target.expanduser().resolve(), source.resolve()
        if place == code or place in code.parents or code in place.parents:
            raise Overlapping(target=target, source=source)
        if place.exists() and not place.is_dir():
            raise NotOurs(target=target)
        if place.is_dir() and any(place.iterdir()) and not (
                (place / MANIFEST).is_file()
                or (place / f"{FOREIGN_PATCH_MODULE}.py").is_file()):
            raise NotOurs(target=target)
    except OSError as error:
        raise CannotWrite(target=target, reason=reason(error), detail=str(error)) from error
    return place


def touched(place: Path) -> tuple[str, ...]:
    """Files of the prepared folder PLACE that were changed, added or removed since, by name; of
    one made by another program nothing is known, and every file counts. Links count, whatever
    they lead to, and so does what cannot be read; Python's own caches do not. Raises nothing."""
    if not place.is_dir():
        return ()
    written: Mapping[str, str] = {}
    with contextlib.suppress(OSError, ValueError):
        read = json.loads((place / MANIFEST).read_text("utf-8"))
        if isinstance(read, dict) and isinstance(read.get("files"), dict):
            written = read["files"]
    there = {name: path for name, path in _entries(place) if name != MANIFEST}
    return tuple(sorted(name for name in {*written, *there} if name not in there
                        or not _is(there[name], written.get(name, ""))))


def write(source: Path, place: Path, files: Mapping[str, bytes]) -> Path | None:
    """Put a copy of SOURCE, with FILES in it instead of its own or besides, at PLACE.

    A folder that was there is replaced; when it was :func:`touched` it is kept, and its new path
    returned. Caches and ``.git`` are not copied; links are followed. Either everything is done or
    PLACE is as before. Raises CannotRead, CannotWrite.
    """
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with staging.beside(place) as folder:
            fresh = folder / place.name
            fresh.mkdir()
            _copy(source, fresh, files)
            for name, data in files.items():
                _put(fresh / name, data, (source / name).is_file() and os.access(
                    source / name, os.X_OK))
            written = {name: _digest(path) for name, path in sorted(_files(fresh))}
            _put(fresh / MANIFEST, (json.dumps({"version": 1, "files": written}, indent=1,
                                               ensure_ascii=False) + "\n").encode(), False)
            return _install(fresh, place)
    except OSError as error:
        raise CannotWrite(target=place, reason=reason(error), detail=str(error)) from error


# --- inside
def _entries(place: Path) -> Iterator[tuple[str, Path]]:
    """Name and path of everything in PLACE but folders, which are entered, and Python's caches; a
    link, a repository of its own and a folder that cannot be read are one entry each."""
    unreadable: list[str] = []
    for at, folders, names in os.walk(place, onerror=lambda error: unreadable.append(
            str(error.filename))):
        single = [name for name in folders if name == ".git" or Path(at, name).is_symlink()]
        folders[:] = [name for name in folders if name not in _LEFT_OUT and name not in single]
        for name in (*names, *single):
            yield Path(at, name).relative_to(place).as_posix(), Path(at, name)
    for folder in unreadable:
        yield Path(folder).relative_to(place).as_posix(), Path(folder)


def _is(path: Path, digest: str) -> bool:
    """Whether PATH is a plain file with this DIGEST."""
    try:
        return stat.S_ISREG(path.lstat().st_mode) and _digest(path) == digest
    except OSError:
        return False


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Name relative to FOLDER, with ``/``, and path of every file in it."""
    def fail(error: OSError) -> None:
        raise error

    for at, folders, names in os.walk(folder, onerror=fail, followlinks=True):
        if len(Path(at).parts) - len(folder.parts) > 64:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), at)
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        for name in sorted(names):
            path = Path(at, name)
            yield path.relative_to(folder).as_posix(), path


def _copy(source: Path, fresh: Path, instead: Mapping[str, bytes]) -> None:
    """Copy the files of SOURCE that are not in INSTEAD. Raises CannotRead for SOURCE's faults and
    OSError for others."""
    try:
        found = list(_files(source))
    except OSError as error:
        raise CannotRead(source=error.filename or source, reason=reason(error),
                         detail=str(error)) from error
    for name, path in found:
        if name in instead:
            continue
        try:
            mode = path.stat().st_mode
            if not stat.S_ISREG(mode):  # reading a pipe would wait for ever
                raise CannotRead(source=path, reason=_("it is neither a file nor a folder"))
            data = path.read_bytes()
        except OSError as error:
            raise CannotRead(source=path, reason=reason(error), detail=str(error)) from error
        _put(fresh / name, data, bool(mode & stat.S_IXUSR))


def _put(path: Path, data: bytes, executable: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "xb") as file:
        file.write(data)
    if executable:
        path.chmod(path.stat().st_mode | 0o111)


def _install(fresh: Path, place: Path) -> Path | None:
    """Make FRESH what is at PLACE; what was there is left for FRESH's folder to be removed with,
    or kept, and then its path returned. Nothing that is to be kept is ever in that folder."""
    if not place.exists():
        os.rename(fresh, place)
        return None
    if not touched(place):
        if not _exchange(fresh, place):
            _replace(fresh, place, fresh.parent / "old")
        return None
    kept = _free(place)
    os.rename(fresh, kept)
    if not _exchange(kept, place):
        os.rename(kept, fresh)
        _replace(fresh, place, kept)
    return kept


def _replace(fresh: Path, place: Path, old: Path) -> None:
    """Put FRESH at PLACE and what was there at OLD, in two steps; undone where the second
    fails."""
    os.rename(place, old)
    try:
        os.rename(fresh, place)
    except OSError:
        os.rename(old, place)
        raise


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders of one file system in one step; False where that is not to be had."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False  # not Linux, or a C library before glibc 2.28
    return bool(rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other),
                       _RENAME_EXCHANGE) == 0)


def _free(place: Path) -> Path:
    """A name beside PLACE that nothing has."""
    number = 1
    while os.path.lexists(path := place.with_name(f"{place.name}.before-{number}")):
        number += 1
    return path


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            found.update(block)
    return found.hexdigest()
