"""Where test documents are: the project's own small ones, and a larger corpus where present.

The corpus (hundreds of real documents, too large and too mixed in licences to ship) is looked
for in the folder that ``VERSO_CORPUS`` names, else in ``shared`` beside the checkout. That folder
holds ``corpus/dev`` and ``recordings/dev``, each with a ``manifest.tsv``.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""

SAMPLES = ROOT / "tests" / "samples"
"""Small documents of the project's own making (see ``make_samples.py`` there)."""


def shared() -> Path:
    """The folder that holds the corpus; it need not exist."""
    return Path(os.environ.get("VERSO_CORPUS") or ROOT.parent / "shared")


def corpus_dir() -> Path | None:
    """The corpus of real documents (``files/``, ``gt/``, ``manifest.tsv``), or None."""
    return _with_manifest(shared() / "corpus" / "dev")


def recordings_dir() -> Path | None:
    """Recorded model outputs (``manifest.tsv``), or None."""
    return _with_manifest(shared() / "recordings" / "dev")


def manifest(folder: Path) -> list[dict[str, str]]:
    """The rows of FOLDER's ``manifest.tsv``, by column name."""
    with open(folder / "manifest.tsv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def _with_manifest(folder: Path) -> Path | None:
    return folder if (folder / "manifest.tsv").is_file() else None
