"""Fetching one file of a model, over several connections where the server gives ranges.

A model is mostly one file of several gigabytes, and one connection seldom fills a line to a
distant server: the file is fetched in pieces, several at a time. A server that ignores ranges
(RFC 9110, 14.2: it may) sends the whole file over one connection instead. Whatever happens on
the way, the checksum of the whole decides.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import httpx

from desktop.i18n import _
from desktop.models import checksums
from desktop.models.disk import disk_error
from desktop.models.errors import BadAnswer, WrongChecksum
from desktop.models.hubs import HubFile
from desktop.models.part import Part
from desktop.models.together import together
from desktop.models.web import Patience, Trouble, Web

_T = TypeVar("_T")

log = logging.getLogger(__name__)

CONNECTIONS = 4
"""Files or pieces of files under way at once."""
PIECE = 256 * 1024 * 1024
"""Bytes asked for at once."""
BATCH_BYTES = 1024 * 1024
BATCH_SECONDS = 0.2
"""What came is written after this much or this long, whichever is sooner."""

SAVE_SECONDS = 1.0
"""How often it is recorded what has come."""


class _Ignored(Exception):
    """The server does not give ranges of this file."""


class _Changed(Exception):
    """What is here is of another version of the file than what the server has now."""


@dataclass
class _Piece:
    """Bytes of the file from ``position`` (which moves) up to ``stop``."""

    position: int
    stop: int


class _Inflow:
    """The body of a response, received while what came before is written."""

    def __init__(self, response: httpx.Response, room: int) -> None:
        """Of the body no more than ROOM bytes are taken."""
        self._response = response
        self._room = room
        self._buffer = bytearray()
        self._worth_it = asyncio.Event()
        self._emptied = asyncio.Event()
        self._task = asyncio.ensure_future(self._receive())

    async def take(self) -> bytes | None:
        """A batch of what came; also a small or empty one, so that nothing lies here during a
        silence. None at the end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BATCH_SECONDS):
                await self._worth_it.wait()
        data = self._all()
        if not data and self._task.done():
            self._task.result()
            return None
        return data

    async def close(self) -> bytes:
        """Receive no more; what was not taken."""
        self._task.cancel()
        await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.exception()  # asked for, or asyncio complains that nobody did
        return self._all()

    def _all(self) -> bytes:
        data = bytes(self._buffer)
        self._buffer.clear()
        self._emptied.set()
        if not self._task.done():
            self._worth_it.clear()
        return data

    async def _receive(self) -> None:
        try:
            async for chunk in self._response.aiter_bytes():
                self._buffer += chunk[:self._room]
                self._room -= len(chunk)
                if self._room < 0:
                    return  # more than was asked for
                if len(self._buffer) >= BATCH_BYTES:
                    self._worth_it.set()
                if len(self._buffer) >= 4 * BATCH_BYTES:  # the disk is slower than the line
                    self._emptied.clear()
                    await self._emptied.wait()
        finally:
            self._worth_it.set()


class Transfer:
    """One file on its way into FOLDER."""

    def __init__(self, web: Web, file: HubFile, address: str, folder: Path,
                 slots: asyncio.Semaphore, *, piece: int = PIECE) -> None:
        self.file = file
        self._web = web
        self._address = address
        self._slots = slots
        self._piece = piece
        self._stopped = False
        self._disk = asyncio.Lock()
        self._folder = folder
        try:
            self._part = Part(folder, file.name, file.size, file.checksum)
        except OSError as error:
            raise disk_error(error, folder, file.name, file.size) from error
        self._changes = 0
        self._ignored = 0

    @property
    def done(self) -> int:
        """Bytes that are here."""
        return self._part.done

    async def run(self) -> dict[str, str]:
        """Fetch it, compare its checksum and give it its name; its sums (see
        :func:`~desktop.models.checksums.sums`). Raises VersoError.

        Cancelled or failed, it keeps what came.
        """
        for last in (False, True):
            saver = asyncio.ensure_future(self._save_often())
            try:
                await self._fill()
            finally:
                saver.cancel()
                await self._save()
            found = await self._sums()
            if checksums.matches(found, self.file.checksum):
                await self._on_disk(self._part.place)
                return found
            log.warning("%s: %s instead of %s%s", self.file.name, found, self.file.checksum,
                        "" if last else "; fetched anew")
            await self._on_disk(self._part.forget)
        raise WrongChecksum(name=self.file.name, host=self._web.source.host)

    # --- inside: the way of the bytes
    async def _fill(self) -> None:
        """Until nothing is missing."""
        ranges = True
        while not self._part.complete:
            try:
                await (self._in_pieces() if ranges else self._whole())
            except _Ignored:
                log.info("%s: %s gives no ranges", self.file.name, self._web.source.host)
                ranges = False
            except _Changed:
                # Servers behind one address may name the same content differently: believed
                # twice, after that the checksum alone decides.
                self._changes += 1
                log.info("%s: has changed; fetched anew", self.file.name)
                await self._on_disk(self._part.forget)

    async def _save_often(self) -> None:
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            await self._save()

    async def _save(self) -> None:
        # Where the disk is full, what was recorded before stays true, and whoever writes says so.
        # Beside the writing, not in turn with it: a slow disk takes its time to be in step.
        with contextlib.suppress(OSError):
            await asyncio.to_thread(self._part.save)

    async def _in_pieces(self) -> None:
        missing = deque(_Piece(*gap) for gap in self._part.gaps(self._piece))
        ranged = asyncio.Event()

        async def work(first: bool) -> None:
            if not first:
                await ranged.wait()  # one connection finds out for all whether ranges are given
            while missing:
                await self._patiently(missing.popleft(), ranged)

        await together(*(work(number == 0) for number in range(min(CONNECTIONS, len(missing)))))

    async def _patiently(self, piece: _Piece, ranged: asyncio.Event) -> None:
        patience = Patience(self._web)
        while piece.position < piece.stop:
            before = piece.position
            try:
                async with self._slots:
                    await self._range(piece, ranged)
            except Trouble as trouble:
                if piece.position > before:
                    patience.gained()
                await patience.after(trouble)

    async def _range(self, piece: _Piece, ranged: asyncio.Event) -> None:
        """Fetch PIECE; raises Trouble, _Ignored, _Changed."""
        headers = {}
        if (piece.position, piece.stop) != (0, self.file.size):
            headers["Range"] = f"bytes={piece.position}-{piece.stop - 1}"
            if self._part.etag:
                headers["If-Range"] = self._part.etag
        async with self._web.stream(self._address, headers) as response:
            if response.status_code == 416:
                if self._changes >= 2:
                    raise BadAnswer(host=self._web.source.host, reason="HTTP 416")
                raise _Changed
            self._version(response)
            if headers and not self._is_range(response, piece.position):
                self._ignored += 1
                if ranged.is_set() and self._ignored < 3:
                    # One of several servers behind the address: the next may be another.
                    raise Trouble(_("the server sent another part of the file"))
                raise _Ignored
            ranged.set()
            await self._receive(response, piece)

    async def _whole(self) -> None:
        """Fetch the file from its beginning to its end over one connection."""
        patience = Patience(self._web)
        farthest = 0
        while not self._part.complete:
            piece = _Piece(0, self.file.size)
            try:
                async with self._slots, self._web.stream(self._address, {}) as response:
                    if response.status_code != 200:
                        raise BadAnswer(host=self._web.source.host,
                                        reason=f"HTTP {response.status_code}")
                    self._version(response)
                    await self._receive(response, piece)
            except Trouble as trouble:
                # Always the same beginning is no gain.
                if piece.position > farthest:
                    farthest = piece.position
                    patience.gained()
                await patience.after(trouble)

    async def _receive(self, response: httpx.Response, piece: _Piece) -> None:
        length = response.headers.get("Content-Length", "")
        if response.status_code == 200 and length.isdigit() and int(length) != self.file.size \
                and "Content-Encoding" not in response.headers:
            raise Trouble(_("{name} has another size than is listed").format(name=self.file.name))
        inflow = _Inflow(response, piece.stop - piece.position)
        try:
            while (data := await inflow.take()) is not None:
                await self._write(piece, data)
        finally:
            await self._write(piece, await inflow.close())
        if piece.position < piece.stop:
            raise Trouble(_("the connection broke off"))

    def _version(self, response: httpx.Response) -> None:
        etag = response.headers.get("ETag", "")
        if not etag or etag.startswith("W/") or self._changes >= 2:
            self._part.etag = "" if self._changes >= 2 else self._part.etag
        elif self._part.etag and self._part.etag != etag:
            raise _Changed
        else:
            self._part.etag = etag

    def _is_range(self, response: httpx.Response, position: int) -> bool:
        """Whether RESPONSE begins with the byte at POSITION of the file that is listed."""
        if response.status_code != 206 \
                or response.headers.get("Content-Encoding", "identity") != "identity":
            return False
        found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)",
                             response.headers.get("Content-Range", "").strip())
        return found is not None and int(found[1]) == position \
            and found[2] in ("*", str(self.file.size))

    # --- inside: the disk
    async def _write(self, piece: _Piece, data: bytes) -> None:
        """Write DATA at PIECE's position, and move that."""
        if data:
            await self._on_disk(lambda: self._part.write(piece.position, data))
            piece.position += len(data)

    async def _sums(self) -> dict[str, str]:
        def add_up() -> dict[str, str]:
            if self._part.size == 0:
                self._part.path.touch()
            return checksums.sums(self._part.path, lambda _bytes: not self._stopped)

        try:
            return await self._on_disk(add_up)
        except asyncio.CancelledError:
            self._stopped = True  # its thread would go on
            raise

    async def _on_disk(self, work: Callable[[], _T]) -> _T:
        """WORK in a thread; raises VersoError in place of OSError."""
        try:
            return await self._threaded(work)
        except OSError as error:
            raise disk_error(error, self._folder, self.file.name, self.file.size - self.done) \
                from error

    async def _threaded(self, work: Callable[[], _T]) -> _T:
        async with self._disk:
            return await asyncio.to_thread(work)
