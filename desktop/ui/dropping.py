"""What a drop or the clipboard holds, as files on disk."""

from __future__ import annotations

import time
from pathlib import Path

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QImage

from desktop import paths


def local_files(mime: QMimeData) -> list[Path]:
    """Files and folders MIME names; text counts where each line is the path of one."""
    if mime.hasUrls():
        return [Path(url.toLocalFile()) for url in mime.urls() if url.isLocalFile()]
    if mime.hasText():
        lines = [line.strip() for line in mime.text().splitlines() if line.strip()]
        found = [Path(line.removeprefix("file://")).expanduser() for line in lines]
        if found and all(path.is_absolute() and path.exists() for path in found):
            return found
    return []


def acceptable(mime: QMimeData) -> bool:
    """Whether there is anything in MIME that can be read."""
    return mime.hasImage() or bool(local_files(mime))


def image_of(mime: QMimeData) -> QImage | None:
    """The picture MIME holds, if it holds one and no files."""
    if local_files(mime) or not mime.hasImage():
        return None
    image = QImage(mime.imageData())
    return None if image.isNull() else image


def keep_pasted(image: QImage) -> Path:
    """Write IMAGE as a PNG among the program's data; takes a while for a large one."""
    folder = paths.data_dir() / "pasted"
    folder.mkdir(exist_ok=True)
    stamp = time.strftime("%Y-%m-%d %H.%M.%S")
    path = folder / f"{stamp}.png"
    number = 2
    while path.exists():
        path = folder / f"{stamp} ({number}).png"
        number += 1
    if not image.save(str(path)):
        raise OSError(f"cannot write {path}")
    return path
