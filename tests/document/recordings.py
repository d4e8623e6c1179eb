"""Recorded model output for the tests: the project's own few, and all others where present."""

from __future__ import annotations

from pathlib import Path

from tests.support import data

OWN = sorted((data.SAMPLES / "recordings").glob("*.txt"))


def everything() -> list[Path]:
    """All recordings there are, the project's own first."""
    shared = data.recordings_dir()
    names = {path.name for path in OWN}
    more = sorted(shared.glob("*.txt")) if shared else []
    return OWN + [path for path in more if path.name not in names]


def read(path: Path) -> str:
    """A recording as it is, line breaks included."""
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()
