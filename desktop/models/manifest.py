"""The list of a downloaded model's files with their checksums, ``verso-model.json`` in its folder.

It is written last: a folder that has it was fetched whole. ::

    {"version": 1, "model": "deepseek-ai/DeepSeek-OCR-2", "hub": "huggingface",
     "address": "https://huggingface.co", "revision": "aaa02f38…",
     "files": [{"name": "config.json", "size": 2682, "sha256": "…"}]}
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from desktop.engines.model.weights import is_inside
from desktop.models import checksums
from desktop.models.errors import ModelDamaged

NAME = "verso-model.json"


class ManifestFile(msgspec.Struct, frozen=True):
    """One file; ``sha256`` in hex."""

    name: str
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """A model as it was downloaded."""

    model: str
    hub: str
    address: str
    revision: str
    files: tuple[ManifestFile, ...]
    version: int = 1

    @property
    def bytes(self) -> int:
        """All files together."""
        return sum(file.size for file in self.files)


def read(folder: Path) -> Manifest | None:
    """The list in FOLDER; None where there is none that can be understood."""
    try:
        found = msgspec.json.decode((folder / NAME).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError):
        return None
    sound = found.version == 1 and all(is_inside(file.name) for file in found.files)
    return found if sound else None


def write(folder: Path, manifest: Manifest) -> None:
    """Put it into FOLDER, safely on the disk; raises OSError."""
    fresh = folder / f".{NAME}.new"
    with open(fresh, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(folder / NAME)


def verify(folder: Path, manifest: Manifest,
           advanced: Callable[[int], bool] | None = None) -> None:
    """Compare every file of FOLDER with MANIFEST; raises :class:`ModelDamaged`.

    ADVANCED is called with the bytes read since its last call; False from it raises
    :class:`~desktop.models.checksums.Stopped`.
    """
    wrong = []
    for file in manifest.files:
        path = folder / file.name
        try:
            right = path.stat().st_size == file.size and checksums.matches(
                checksums.sums(path, advanced), f"sha256:{file.sha256}")
        except OSError:
            right = False
        if not right:
            wrong.append(file.name)
    if wrong:
        raise ModelDamaged(folder=folder, what=", ".join(wrong))
