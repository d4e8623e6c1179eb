"""What a file is, by its first bytes; its name is never asked.

Runs in the application, too (walking folders): standard library only, reads a few kilobytes.
"""

from __future__ import annotations

import os
import re
import stat
import zipfile
from pathlib import Path
from typing import BinaryIO, NamedTuple

from desktop.i18n import N_
from desktop.intake.errors import EmptyFile, FileMissing, NotADocument, NotAllowed, Unreadable
from desktop.intake.model import Kind

_HEAD = 4096
"""Bytes that are looked at."""

EXTENSIONS = frozenset({
    ".pdf", ".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".tif", ".tiff", ".webp", ".bmp", ".dib",
    ".gif", ".jp2", ".j2k", ".jpx", ".jpf", ".jpc", ".heic", ".heif", ".hif", ".avif", ".pbm",
    ".pgm", ".ppm", ".pnm", ".psd", ".xps", ".oxps", ".epub", ".cbz", ".svg", ".fb2", ".mobi",
})
"""Names that promise a document: such a file in a folder is never passed over in silence."""


class Detected(NamedTuple):
    """KIND and the format's name as MuPDF knows it ("pdf", "epub", "svg"; "image")."""

    kind: Kind
    format: str


_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "png"),
    (0, b"\xff\xd8\xff", "jpeg"),
    (0, b"GIF87a", "gif"),
    (0, b"GIF89a", "gif"),
    (0, b"II*\0", "tiff"),
    (0, b"MM\0*", "tiff"),
    (0, b"II+\0", "tiff"),
    (0, b"MM\0+", "tiff"),
    (0, b"\0\0\0\x0cjP  \r\n\x87\n", "jp2"),
    (0, b"\xff\x4f\xff\x51", "jp2"),
    (0, b"8BPS\0\x01", "psd"),
    (8, b"WEBP", "webp"),
)
_HEIF_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1",
                          b"mif2", b"avif", b"avis"})
_PNM = re.compile(rb"P[1-6][\s#]")
_SVG = re.compile(rb"<(?:\w+:)?svg[\s>]")
_MARKUP = re.compile(rb"\s*<(?:\?xml|!DOCTYPE|!--|svg|\w+:svg|FictionBook)")
_PICTURE_NAME = re.compile(r"\.(jpe?g|png|gif|bmp|webp|tiff?|jp2|jxr)$", re.IGNORECASE)

_FOREIGN: tuple[tuple[bytes, str], ...] = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", N_("an old Office document")),
    (b"Rar!", N_("an archive")),
    (b"7z\xbc\xaf\x27\x1c", N_("an archive")),
    (b"\x1f\x8b", N_("an archive")),
    (b"AT&TFORM", N_("a DjVu document")),
    (b"%!PS", N_("a PostScript document")),
    (b"{\\rtf", N_("an RTF document")),
    (b"\x7fELF", N_("a program")),
    (b"MZ", N_("a program")),
)


def detect(path: Path) -> Detected:
    """What PATH holds.

    Raises FileMissing, NotAllowed, EmptyFile, NotADocument; Unreadable for what is no plain
    file (a folder that cannot be listed, a pipe, a device).
    """
    with opened(path) as file:
        head = file.read(_HEAD)
        if not head:
            raise EmptyFile
        found = _by_magic(head)
        if found is None and head.startswith(b"PK\x03\x04"):
            found = _zip(path)
    if found is None:
        raise NotADocument(found=_foreign(head))
    return found


def opened(path: Path) -> BinaryIO:
    """PATH as a binary file; raises as :func:`detect` and never waits on a pipe."""
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            raise Unreadable(detail=f"not a plain file: {path}")
        return open(path, "rb")
    except FileNotFoundError as error:
        raise FileMissing(detail=str(path)) from error
    except PermissionError as error:
        raise NotAllowed(detail=str(path)) from error
    except OSError as error:
        raise Unreadable(detail=f"{path}: {error.strerror}") from error


def _by_magic(head: bytes) -> Detected | None:
    for offset, magic, _name in _MAGIC:
        if head.startswith(magic, offset):
            return Detected(Kind.IMAGE, "image")
    if head[4:8] == b"ftyp" and (head[8:12] in _HEIF_BRANDS or _brands(head) & _HEIF_BRANDS):
        return Detected(Kind.IMAGE, "image")
    if head[:2] == b"BM" and len(head) >= 26 and head[6:10] == b"\0\0\0\0":
        return Detected(Kind.IMAGE, "image")
    # The header may stand behind junk, as every PDF reader allows.
    if b"%PDF-" in head[:1024]:
        return Detected(Kind.PDF, "pdf")
    if _PNM.match(head):
        return Detected(Kind.IMAGE, "image")
    if head[60:68] == b"BOOKMOBI":
        return Detected(Kind.DOCUMENT, "mobi")
    text = head.lstrip(b"\xef\xbb\xbf")
    if _MARKUP.match(text):
        if _SVG.search(text):
            return Detected(Kind.DOCUMENT, "svg")
        if b"<FictionBook" in text:
            return Detected(Kind.DOCUMENT, "fb2")
    return None


def _brands(head: bytes) -> frozenset[bytes]:
    length = min(int.from_bytes(head[:4], "big"), 256)
    return frozenset(head[at:at + 4] for at in range(16, length, 4))


def _zip(path: Path) -> Detected | None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise Unreadable(detail=f"{path}: {error}") from error
    lower = {name.lower() for name in names}
    if "meta-inf/container.xml" in lower:
        return Detected(Kind.DOCUMENT, "epub")
    if any(name.endswith((".fdseq", "fixeddocseq.fdseq")) for name in lower):
        return Detected(Kind.DOCUMENT, "xps")
    if "[content_types].xml" in lower:
        raise NotADocument(found=N_("an Office document"))
    if "mimetype" in lower:
        raise NotADocument(found=N_("an OpenDocument file"))
    files = [name for name in names if not name.endswith("/") and "__MACOSX" not in name]
    pictures = [name for name in files if _PICTURE_NAME.search(name)]
    if pictures and len(pictures) * 2 > len(files):
        return Detected(Kind.DOCUMENT, "cbz")
    raise NotADocument(found=N_("an archive"))


def _foreign(head: bytes) -> str:
    for magic, words in _FOREIGN:
        if head.startswith(magic):
            return words
    if head[257:262] == b"ustar":
        return N_("an archive")
    if _MARKUP.match(head) or re.match(rb"\s*<(?:!doctype )?html", head, re.IGNORECASE):
        return N_("a web page or XML")
    control = sum(1 for byte in head if byte < 32 and byte not in b"\t\n\r\f")
    return N_("plain text") if control == 0 else N_("unknown content")
