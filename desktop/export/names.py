"""Names of exported folders: safe on every file system, and never one for two documents."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from pathlib import Path
from typing import Any

from desktop.export.atomic import write_text

MARKER = ".verso-source.json"
"""In each folder: which document it belongs to, so that the next run finds it again."""

_MOST_BYTES = 200
"""File systems take 255; suffixes such as "_layouts.pdf" and a number must still fit."""
_MOST_UNITS = 200
_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(\..*)?",
                       re.IGNORECASE)
_JOINER = "\u200d"


def safe_name(text: str) -> str:
    """TEXT as a file name without suffix that every common system takes, as near as can be."""
    name = unicodedata.normalize("NFC", text)
    name = _FORBIDDEN.sub("_", name).strip().rstrip(". ")
    if name.startswith("."):
        name = "_" + name[1:]
    name = _shortened(name).rstrip(". ")
    if _RESERVED.fullmatch(name):
        name = "_" + name
    return name or "document"


def document_folder(out: Path, source: str) -> Path:
    """The folder below OUT for the document at SOURCE (an absolute path, or another name that
    stays the same from run to run), made if it is not there.

    A document gets the folder it had before; another one of the same name gets a number. Two
    processes that ask at the same time get different folders.
    """
    stem = safe_name(_stem(source))
    out.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        folder = out / (stem if number == 1 else f"{stem} ({number})")
        if _claimed(folder, source):
            return folder
        number += 1


def _claimed(folder: Path, source: str) -> bool:
    try:
        folder.mkdir()
    except FileExistsError:
        return _owner(folder) == source
    write_text(folder / MARKER, json.dumps({"source": source}) + "\n")
    return True


def _owner(folder: Path) -> str | None:
    """The document FOLDER belongs to; None for folders of somebody else."""
    for name, keys in ((MARKER, ("source",)), (f"{folder.name}.json", ("source", "path"))):
        try:
            value: Any = json.loads((folder / name).read_bytes())
            for key in keys:
                value = value[key]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
        if isinstance(value, str):
            return value
    return None


def _stem(source: str) -> str:
    name = os.path.basename(source.rstrip("/\\")) or source
    stem, suffix = os.path.splitext(name)
    # "Minutes of 3. May" has no suffix.
    return stem if stem and len(suffix) <= 6 and " " not in suffix else name


def _shortened(name: str) -> str:
    if len(name.encode("utf-8")) <= _MOST_BYTES:
        return name
    name = name.encode("utf-8")[:_MOST_BYTES].decode("utf-8", "ignore")
    # Not in the middle of an emoji or before an accent's own character.
    while name and (name[-1] == _JOINER or unicodedata.category(name[-1]) in {"Mn", "Me", "Sk"}):
        name = name[:-1].rstrip(_JOINER)
    return name
