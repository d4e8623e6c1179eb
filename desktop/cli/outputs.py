"""Where results go: one folder for each input, the same one every time, never two in one."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from pathlib import Path

FOLDER = ".verso"
"""Inside the output folder: the journal, crops, and which input has which folder."""

MAX_BYTES = 180
"""Of a name in UTF-8: file systems allow 255, and endings and numbers come behind it."""

_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)


class Names:
    """Input path → name of its folder in the output folder; kept there between calls."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._file = output / FOLDER / "names.json"
        self._names: dict[str, str] = {}
        try:
            stored = json.loads(self._file.read_text("ascii"))
            if isinstance(stored, dict):
                self._names = {str(key): str(value) for key, value in stored.items()
                               if str(value) == safe_name(str(value))}
        except (OSError, ValueError):
            # Lost or damaged: the folders are named anew, as at the first call.
            self._names = {}

    def folder(self, source: str) -> Path:
        """The folder for the document read from the file SOURCE (an absolute path)."""
        name = self._names.get(source)
        if name is None:
            taken = {other.casefold() for other in self._names.values()}
            plain = safe_name(Path(source).stem)
            name, count = plain, 1
            while name.casefold() in taken:
                count += 1
                name = f"{plain}-{count}"
            self._names[source] = name
            self._save()
        return self._output / name

    def _save(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps(self._names, indent=1), "ascii")  # lone surrogates are escaped
        os.replace(part, self._file)


def safe_name(text: str) -> str:
    """TEXT as a file name that every system takes: no separators, control characters, leading
    or trailing dots, nor names that Windows keeps for itself."""
    kept = "".join("_" if char in '<>:"/\\|?*' or unicodedata.category(char) in ("Cc", "Cs")
                   else char for char in text)
    kept = kept.encode()[:MAX_BYTES].decode("utf-8", "ignore").strip(" .")
    if not kept or _RESERVED.fullmatch(kept.split(".")[0]):
        kept = f"_{kept}"
    return kept
