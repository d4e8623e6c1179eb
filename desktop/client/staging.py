"""A folder that brings our package, and nothing else of ours, to the worker's interpreter.

The worker may run under another Python than the application. Our site-packages on its path would
put packages built for this Python before its own; so what goes on its path is a folder that
holds one link, to the package ``desktop``.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import desktop
from desktop import paths


@dataclass(frozen=True)
class Stage:
    """``path`` goes on the interpreter's path; ``work`` is where the worker runs: engines drop
    files into the working folder that do not belong among a person's own."""

    path: Path
    work: Path


def stage() -> Stage:
    """Make the folders where they are missing. Safe while other processes do the same."""
    package = Path(desktop.__file__).resolve().parent
    name = hashlib.sha256(os.fsencode(package)).hexdigest()[:16]
    base = paths.cache_dir() / "worker" / name
    folders = Stage(base / "path", base / "work")
    for folder in (folders.path, folders.work):
        folder.mkdir(parents=True, exist_ok=True)
    link = folders.path / "desktop"
    if not link.is_symlink() or link.readlink() != package:
        fresh = folders.path / f".desktop-{os.getpid()}-{os.urandom(4).hex()}"
        fresh.symlink_to(package, target_is_directory=True)
        fresh.replace(link)
    return folders


def environment(interpreter: str, staged: Path,
                extra: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """The variables under which the Python INTERPRETER runs for us, EXTRA on top of our own; what
    is None there is left out.

    One that is not ours gets what activating its environment would give it: its programs come
    first, so that compilers and tools that belong to it are found. STAGED is the folder in front
    of its module path.
    """
    wanted: dict[str, str | None] = {**os.environ, **(extra or {})}
    variables = {name: value for name, value in wanted.items() if value is not None}
    folder = os.path.dirname(interpreter)
    if interpreter != sys.executable:
        variables.pop("PYTHONHOME", None)  # another Python's standard library
        if folder:
            variables["PATH"] = os.pathsep.join(
                part for part in (folder, variables.get("PATH", "")) if part)
    searched = [str(staged), variables.get("PYTHONPATH", "")]
    variables["PYTHONPATH"] = os.pathsep.join(part for part in searched if part)
    variables["PYTHONUNBUFFERED"] = "1"
    return variables
