"""Digests of source files, computed behind the reading of their pages.

A large file takes a while to be hashed: its first page does not wait for that. Until the digest
is known, size and time of change alone tell whether the file is still the one that was opened.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

from desktop.jobs.journal import Journal
from desktop.jobs.records import DocumentRow

log = logging.getLogger(__name__)

_PIECE = 1 << 20


class Digests:
    """Used on the session's loop only. One file is hashed at a time, in a thread."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._thread = ThreadPoolExecutor(1, "digest")
        self._tasks: dict[int, tuple[asyncio.Task[None], threading.Event]] = {}

    def want(self, row: DocumentRow) -> None:
        """See to it that the digest of an opened document gets into the journal."""
        if row.sha256 or not row.size or row.id in self._tasks:
            return
        stop = threading.Event()
        task = asyncio.create_task(self._find(row, stop), name=f"digest {row.id}")
        self._tasks[row.id] = task, stop

        def done(_: object) -> None:
            if self._tasks.get(row.id, (None,))[0] is task:
                del self._tasks[row.id]

        task.add_done_callback(done)

    async def wait(self, document_id: int) -> None:
        """Until the digest is known, if it is being computed."""
        if document_id in self._tasks:
            await asyncio.wait([self._tasks[document_id][0]])

    def forget(self, document_id: int) -> None:
        """Nobody wants it any more."""
        task, stop = self._tasks.pop(document_id, (None, None))
        if task is not None and stop is not None:
            stop.set()
            task.cancel()

    async def close(self) -> None:
        """What is not known is computed at the next start."""
        for document_id in list(self._tasks):
            self.forget(document_id)
        await asyncio.get_running_loop().run_in_executor(
            None, lambda: self._thread.shutdown(wait=True, cancel_futures=True))

    async def of(self, path: str) -> str:
        """The digest of PATH now; "" where it cannot be read."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, sha256, path)

    async def _find(self, row: DocumentRow, stop: threading.Event) -> None:
        known = (row.size, row.mtime_ns)
        if file_status(row.path) != known:
            return
        digest = await asyncio.get_running_loop().run_in_executor(
            self._thread, sha256, row.path, stop)
        now = self._journal.document(row.id)
        # Changed while it was hashed: then what was hashed is not what the pages came from.
        if digest and now is not None and file_status(row.path) == known == (
                now.size, now.mtime_ns):
            try:
                self._journal.update_document(row.id, sha256=digest)
            except sqlite3.Error as error:
                # Whoever saves a page meets the same and says so; the next start makes up for this.
                log.warning("journal: %s", error)


def file_status(path: str) -> tuple[int, int] | None:
    """Size in bytes and time of change in ns; None where there is no such file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def sha256(path: str, stop: threading.Event | None = None) -> str:
    """Digest of the file in hex; "" where it cannot be read or STOP was set."""
    digest = hashlib.sha256()
    piece = bytearray(_PIECE)
    try:
        with open(path, "rb", buffering=0) as file:
            while count := file.readinto(piece):
                if stop is not None and stop.is_set():
                    return ""
                digest.update(memoryview(piece)[:count])
    except OSError:
        return ""
    return digest.hexdigest()
