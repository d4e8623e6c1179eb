"""A place in a scripted page at which the engine waits until the test lets it go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Gate:
    """Closed until :meth:`open`, however long that takes: what stands behind it in a page has not
    happened before, and nothing hangs on the speed of either side."""

    def __init__(self, path: Path) -> None:
        """PATH: a file that is not there yet."""
        self._path = path

    def at(self, place: int, **more: Any) -> dict[str, Any]:
        """The fault that holds a page up behind PLACE characters of its text."""
        return {"kind": "gate", "at": place, "until": str(self._path), **more}

    def open(self) -> None:
        """Let every page pass, now and later."""
        self._path.touch()
