"""Makes the official vLLM code of DeepSeek-OCR-2 run on an Ascend NPU, in a copy.

The one step that the conversion script of the CANN recipe (Atlas A2) is, for vllm-ascend
0.8.5rc1. ``layout`` knows the official code and what has to change in it, ``edits`` changes Python
at places found in its syntax tree, ``target`` puts the copy in its place whole, ``official``
fetches the code, ``packages`` installs what it needs, ``beside`` is what is put to it.

    prepared = prepare(source, target)   # writes nothing
    kept = prepared.write()
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from desktop.engines.ascend.preparation import beside, layout, target
from desktop.engines.ascend.preparation.edits import Change, Missing
from desktop.engines.ascend.preparation.errors import (
    AlreadyPrepared,
    CannotRead,
    UnknownLayout,
    reason,
)
from desktop.i18n import _

DEFAULT_TARGET = Path("deepseek_ocr2_npu")


class Prepared(NamedTuple):
    """What is to be written."""

    source: Path
    place: Path
    """Where it goes, links followed."""
    changes: tuple[Change, ...]
    """To files of the source, in the order of the steps."""
    added: tuple[str, ...]
    """Names of the files that are put beside them."""
    files: dict[str, bytes]
    """Changed and added."""
    lost: tuple[str, ...]
    """Files of an earlier TARGET that were changed by hand: it is kept under another name."""

    def write(self) -> Path | None:
        """Do it; where an earlier TARGET was kept, None when that was not needed. Raises
        CannotRead, CannotWrite; then everything is as before."""
        return target.write(self.source, self.place, self.files)


def prepare(source: Path, to: Path) -> Prepared:
    """What preparing the official code in SOURCE as the folder TO would do.

    Reads only. Raises UnknownLayout, AlreadyPrepared, Overlapping, NotOurs, CannotRead,
    CannotWrite.
    """
    read = _reader(source)
    why = layout.converted(read)
    if why:
        raise AlreadyPrepared(source=source, why=why)
    planned = layout.plan(read)
    if planned.missing:
        raise UnknownLayout(source=source, missing=planned.missing, known=layout.KNOWN_COMMIT,
                            address=layout.ADDRESS)
    place = target.destination(source, to)
    added = beside.files()
    return Prepared(source, place, planned.changes, tuple(added), {**planned.files, **added},
                    target.touched(place))


def shortcomings(folder: Path) -> list[Missing]:
    """What the prepared FOLDER lacks of what its preparation gave it: files put beside and lines
    put into the scripts. Raises CannotRead."""
    read = _reader(folder)
    absent = [Missing(name, "") for name in beside.files() if read(name) is None]
    return absent + layout.shortcomings(read)


def _reader(folder: Path) -> Callable[[str], bytes | None]:
    def read(name: str) -> bytes | None:
        path = folder / name
        try:
            if path.exists() and not (path.is_file() or path.is_dir()):
                raise CannotRead(source=path, reason=_("it is neither a file nor a folder"))
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise CannotRead(source=path, reason=reason(error), detail=str(error)) from error

    return read
