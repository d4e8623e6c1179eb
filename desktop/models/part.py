"""A file that is not all here yet: ``NAME.part`` beside ``NAME.part.json``, which says what of it
is. Both survive a kill; what is recorded is on the disk, so they survive a power cut too."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path

SYNC_BYTES = 1_000_000
"""A smaller file is not waited for to be on the disk: should a power cut empty it, that is seen
without reading it, and it is soon fetched again."""


class Part:
    """The file NAME of SIZE bytes with CHECKSUM, to come into FOLDER.

    Bytes may come in any order. What was recorded for another size or checksum is thrown away.
    Its methods raise OSError. One thread at a time may call them, another :meth:`save`.
    """

    def __init__(self, folder: Path, name: str, size: int, checksum: str) -> None:
        self.final = folder / name
        self.path = folder / f"{name}.part"
        self._record = folder / f"{name}.part.json"
        self.size = size
        self.checksum = checksum
        self.etag = ""
        """What the server called this version of the file; empty: unknown."""
        self._done: list[tuple[int, int]] = []
        self._saving = threading.Lock()
        self._saved: list[tuple[int, int]] = []
        self._read()

    @property
    def done(self) -> int:
        """Bytes that are here."""
        return sum(stop - start for start, stop in self._done)

    @property
    def complete(self) -> bool:
        """Whether every byte is here (not: whether it is right)."""
        return self.done == self.size

    def gaps(self, longest: int) -> list[tuple[int, int]]:
        """What is missing, as (first byte, byte after the last), none longer than LONGEST."""
        found = []
        position = 0
        for start, stop in [*self._done, (self.size, self.size)]:
            while position < start:
                end = min(start, position + longest)
                found.append((position, end))
                position = end
            position = max(position, stop)
        return found

    def write(self, offset: int, data: bytes | bytearray) -> None:
        """Put DATA at OFFSET."""
        with open(self.path, "r+b" if self.path.exists() else "xb", buffering=0) as file:
            file.seek(offset)
            view = memoryview(data)
            while view:  # a raw file may take less than it is given
                view = view[file.write(view):]
        self._add(offset, offset + len(data))

    def save(self) -> None:
        """Record what is here, unless that is recorded."""
        with self._saving:
            done = self._done  # replaced when more comes, never changed
            if done == self._saved:
                return
            with open(self.path, "rb") as file:
                os.fsync(file.fileno())
            record = {"version": 1, "size": self.size, "checksum": self.checksum,
                      "etag": self.etag, "done": done}
            fresh = self._record.with_suffix(".new")
            fresh.write_text(json.dumps(record), encoding="ascii")
            fresh.replace(self._record)
            self._saved = done

    def forget(self) -> None:
        """Begin anew."""
        with self._saving:
            self._record.unlink(missing_ok=True)
            self.path.unlink(missing_ok=True)
            self._done, self._saved, self.etag = [], [], ""

    def place(self) -> None:
        """It is complete and right: give it its name."""
        if self.size == 0:
            self.path.touch()
        if self.size >= SYNC_BYTES:
            with open(self.path, "rb") as file:
                os.fsync(file.fileno())
        self.path.replace(self.final)
        self._record.unlink(missing_ok=True)

    # --- inside
    def _read(self) -> None:
        done: list[tuple[int, int]] = []
        # Whatever is wrong with a record, the file can be fetched anew.
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            record = json.loads(self._record.read_text(encoding="ascii"))
            here = self.path.stat().st_size
            if (record["size"], record["checksum"]) == (self.size, self.checksum):
                done = [(int(start), int(stop)) for start, stop in record["done"]
                        if 0 <= start < stop <= min(self.size, here)]
                self.etag = str(record["etag"])
        if not done:
            self.forget()
        for start, stop in done:
            self._add(start, stop)
        self._saved = self._done

    def _add(self, start: int, stop: int) -> None:
        if start >= stop:
            return
        # A new list: another thread may be reading the present one.
        first, *others = sorted([*self._done, (start, stop)])
        joined = [first]
        for begin, end in others:
            if begin <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(joined[-1][1], end))
            else:
                joined.append((begin, end))
        self._done = joined
