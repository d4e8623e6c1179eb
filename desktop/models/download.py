"""Getting a model whole: a :class:`Download` runs on a thread of its own and tells how it goes.

What is fetched comes into ``.NAME.partial`` beside the folder; when all of it is there and right,
that becomes the folder in one step. An interrupted download, by whatever, goes on where it was
when it is started again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Union

from desktop.engines.model.weights import check
from desktop.errors import Problem, VersoError, problem_of
from desktop.i18n import N_
from desktop.models import checksums, disk, manifest, tokens
from desktop.models.errors import (
    AlreadyLoading,
    FolderTaken,
    FolderUnusable,
    ModelDamaged,
    ModelIncomplete,
)
from desktop.models.hubs import HubFile, Listing, file_address, listing
from desktop.models.manifest import Manifest, ManifestFile
from desktop.models.source import Source
from desktop.models.together import together
from desktop.models.transfer import CONNECTIONS, PIECE, Transfer
from desktop.models.web import Pace, Web

log = logging.getLogger(__name__)

STEPS = {
    "asking": N_("Asking for the list of files"),
    "checking": N_("Checking what is already here"),
    "fetching": N_("Downloading"),
    "finishing": N_("Finishing"),
}
TICK_SECONDS = 0.2
"""Between two Progress events."""
SPEED_SECONDS = 5.0
"""Over which the speed is taken."""


@dataclass(frozen=True)
class Progress:
    """How it goes."""

    step: str
    """A key of :data:`STEPS`."""
    bytes_done: int = 0
    bytes: int = 0
    """All files together; 0 while they are not known."""
    files_done: int = 0
    files: int = 0
    speed: float = 0.0
    """Bytes a second over the last five seconds."""
    retry_in: float = 0.0
    """Seconds until the next try, when nothing comes at present."""
    trouble: str = ""
    """Why nothing comes, in words."""

    @property
    def seconds_left(self) -> float:
        """At this speed; -1: unknown."""
        return (self.bytes - self.bytes_done) / self.speed if self.speed and self.bytes else -1.0


@dataclass(frozen=True)
class Finished:
    """The model is in ``folder``, complete. ``already``: it was, nothing was fetched."""

    folder: Path
    bytes: int
    already: bool = False


@dataclass(frozen=True)
class Failed:
    """It cannot go on; what came is kept for the next time."""

    problem: Problem


@dataclass(frozen=True)
class Cancelled:
    """Stopped as asked; what came is kept for the next time."""


Event = Union[Progress, Finished, Failed, Cancelled]
"""The last one is no Progress."""


class Download:
    """One download of SOURCE's model into FOLDER. Its methods may be called from any thread.

    DELIVER is called with every event, on a thread of the download; it must be quick. VERIFY:
    compare the checksums of a model that is already there, and fetch anew what is damaged.
    """

    def __init__(self, source: Source, folder: Path, deliver: Callable[[Event], None], *,
                 verify: bool = False, pace: Pace | None = None, piece: int = PIECE) -> None:
        self.source = source
        self.folder = Path(os.path.abspath(folder.expanduser()))
        self._deliver = deliver
        self._verify = verify
        self._pace = pace or Pace()
        self._piece = piece
        self._thread = threading.Thread(target=self._work, name="download", daemon=True)
        self._lock = threading.Lock()
        self._cancelled = threading.Event()
        self._stop: Callable[[], None] | None = None
        self._meter = _Meter()
        self.outcome: Finished | Failed | Cancelled | None = None
        """How it ended; None while it runs."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def cancel(self) -> None:
        """Stop at once, keeping what came."""
        self._cancelled.set()
        with self._lock:
            if self._stop is not None:
                self._stop()

    def wait(self, seconds: float | None = None) -> bool:
        """Until it has ended, at most SECONDS; whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    # --- inside
    def _work(self) -> None:
        outcome: Finished | Failed | Cancelled
        try:
            outcome = asyncio.run(self._stoppable())
        except asyncio.CancelledError:
            outcome = Cancelled()
        except checksums.Stopped:
            outcome = Cancelled()
        except VersoError as error:
            outcome = Failed(error.problem())
        except Exception as error:
            log.exception("download failed")
            outcome = Failed(problem_of(error))
        if isinstance(outcome, Failed):
            log.warning("%s: %s %s", self.source.host, outcome.problem.code, outcome.problem.line())
        self.outcome = outcome
        self._deliver(outcome)

    async def _stoppable(self) -> Finished:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(self._all())

        def stop() -> None:
            loop.call_soon_threadsafe(task.cancel)

        with self._lock:
            self._stop = stop
            if self._cancelled.is_set():
                task.cancel()
        ticker = asyncio.ensure_future(self._tick())
        try:
            return await task
        finally:
            with self._lock:
                self._stop = None  # the loop ends
            ticker.cancel()

    async def _tick(self) -> None:
        while True:
            self._deliver(self._meter.progress())
            await asyncio.sleep(TICK_SECONDS)

    async def _all(self) -> Finished:
        target = await asyncio.to_thread(_look_at, self.folder)
        another = target.complete and self._is_another(target)
        if target.complete and not another and await asyncio.to_thread(self._is_right, target):
            return Finished(self.folder, target.bytes, already=True)
        await asyncio.to_thread(disk.require_writable, self.folder.parent)
        client = self.source.client()
        async with client:
            web = Web(self.source, client, self._pace, lambda: tokens.stored(self.source),
                      self._meter.waits)
            found = await listing(self.source, web.ask)
            partial = self.folder.with_name(f".{self.folder.name}.partial")
            with _staging(partial, self.folder, target, stays=another):
                return await self._into(partial, found, web)

    def _is_another(self, target: _Target) -> bool:
        """Whether the complete model that is there is of another revision than was asked for."""
        held = target.manifest
        return held is not None and self.source.revision not in ("", held.revision)

    def _is_right(self, target: _Target) -> bool:
        """Whether the complete model that is there is as it was downloaded, if that matters."""
        held = target.manifest
        # A person's own copy: nothing to compare it with.
        if held is not None and self._verify:
            self._meter.check(held)
            try:
                manifest.verify(self.folder, held, self._checked)
            except ModelDamaged as error:
                log.warning("%s", error)
                return False
        return True

    async def _into(self, partial: Path, found: Listing, web: Web) -> Finished:
        self._meter.begin(found)
        here = await asyncio.to_thread(self._here, partial, found)
        slots = asyncio.Semaphore(CONNECTIONS)
        transfers = [
            Transfer(web, file, file_address(self.source, found.revision, file.name), partial,
                     slots, piece=self._piece)
            for file in found.files if file.name not in here]
        self._meter.fetch(transfers)
        disk.require(partial, sum(each.file.size - each.done for each in transfers))

        async def fetch(each: Transfer) -> tuple[str, str]:
            sums = await each.run()
            self._meter.finish_file()
            return each.file.name, sums["sha256"]

        fetched = dict(await together(*(fetch(each) for each in transfers)))
        self._meter.step = "finishing"
        await asyncio.to_thread(self._finish, partial, found, {**here, **fetched})
        return Finished(self.folder, found.bytes)

    def _here(self, partial: Path, found: Listing) -> dict[str, str]:
        """The files that came an earlier time and are right, with their SHA-256."""
        here = {}
        for file in found.files:
            path = partial / file.name
            if not path.is_file():
                continue
            sums = checksums.sums(path, self._checked) if path.stat().st_size == file.size else {}
            if sums and checksums.matches(sums, file.checksum):
                here[file.name] = sums["sha256"]
                self._meter.keep(file)
            else:
                path.unlink()
        return here

    def _checked(self, count: int) -> bool:
        self._meter.checked += count
        return not self._cancelled.is_set()

    def _finish(self, partial: Path, found: Listing, sums: dict[str, str]) -> None:
        try:
            keep = {file.name for file in found.files}
            for path in partial.iterdir():
                if path.name not in keep and path.is_file():
                    path.unlink()  # of an earlier version, or half of one
            result = check(partial)
            if not result.complete:
                raise ModelIncomplete(folder=partial, what=result.words())
            manifest.write(partial, Manifest(
                self.source.model, self.source.hub, self.source.address, found.revision,
                tuple(ManifestFile(file.name, file.size, sums[file.name])
                      for file in found.files)))
            before = self.folder.with_name(f".{self.folder.name}.before")
            shutil.rmtree(before, ignore_errors=True)
            with contextlib.suppress(FileNotFoundError):
                if manifest.read(self.folder) is not None:
                    self.folder.rename(before)  # another revision, in use until now
                else:
                    self.folder.rmdir()  # empty: others were refused
            partial.rename(self.folder)
            _sync(self.folder.parent)
            shutil.rmtree(before, ignore_errors=True)
        except OSError as error:
            raise disk.disk_error(error, self.folder, manifest.NAME, 0) from error


@dataclass(frozen=True)
class _Target:
    """What is at the place the model is to come to."""

    complete: bool
    bytes: int
    manifest: Manifest | None
    """Verso put it there, so Verso may mend it."""


def _look_at(folder: Path) -> _Target:
    """Raises FolderTaken, FolderUnusable."""
    try:
        held = set(os.listdir(folder))
    except FileNotFoundError:
        return _Target(False, 0, None)
    except OSError as error:
        raise FolderUnusable(folder=folder, reason=error.strerror) from error
    ours = manifest.read(folder)
    found = check(folder)
    if held and not found.complete and ours is None:
        raise FolderTaken(folder=folder)
    return _Target(found.complete, found.bytes, ours)


@contextlib.contextmanager
def _staging(partial: Path, folder: Path, target: _Target, *, stays: bool) -> Iterator[None]:
    """The folder PARTIAL, for this process alone. A model of ours at FOLDER that is to be mended
    becomes its content; one that STAYS until another is complete only lends it its files."""
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        if target.manifest is not None and not stays:
            if partial.exists():
                shutil.rmtree(partial)  # what stands is nearer to whole
            folder.rename(partial)
        partial.mkdir(exist_ok=True)
    except OSError as error:
        raise disk.disk_error(error, partial.parent, partial.name, 0) from error
    with _alone(partial):
        if target.manifest is not None and stays:
            for file in target.manifest.files:
                # Where the file system has no links, or one is here, it is fetched, or kept.
                with contextlib.suppress(OSError):
                    os.link(folder / file.name, partial / file.name)
        yield


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Nobody else downloads into FOLDER meanwhile; raises AlreadyLoading."""
    try:
        import fcntl
    except ImportError:  # Windows keeps open files from being replaced by itself
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise AlreadyLoading(folder=folder) from None
    except OSError as error:
        # Some network drives know no locks; a checksum tells of any mischief.
        log.info("%s cannot be locked: %s", folder, error)
    try:
        yield
    finally:
        os.close(handle)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _Meter:
    """Adds up. Written on the download's threads, read by its ticker."""

    def __init__(self) -> None:
        self.step = "asking"
        self.checked = 0
        self._bytes = 0
        self._files = 0
        self._files_done = 0
        self._kept = 0
        self._transfers: list[Transfer] = []
        self._window: deque[tuple[float, int]] = deque()
        self._wait_until = 0.0
        self._waits_at = 0
        self._trouble = ""

    def check(self, held: Manifest) -> None:
        self.step, self.checked = "checking", 0
        self._bytes, self._files = held.bytes, len(held.files)

    def begin(self, found: Listing) -> None:
        self.step, self.checked = "checking", 0
        self._bytes, self._files = found.bytes, len(found.files)

    def keep(self, file: HubFile) -> None:
        self._kept += file.size
        self._files_done += 1

    def fetch(self, transfers: list[Transfer]) -> None:
        self._transfers = transfers
        self.step = "fetching"

    def finish_file(self) -> None:
        self._files_done += 1

    def waits(self, seconds: float, trouble: str) -> None:
        """One connection waits; that is worth a word when nothing comes over the others."""
        self._wait_until = time.monotonic() + seconds
        self._waits_at = self._done()
        self._trouble = trouble

    def progress(self) -> Progress:
        now, done = time.monotonic(), self._done()
        if self.step == "fetching":
            self._window.append((now, done))
            while len(self._window) > 2 and now - self._window[0][0] > SPEED_SECONDS:
                self._window.popleft()
        speed = 0.0
        if len(self._window) > 1:
            (since, before) = self._window[0]
            speed = max(0.0, (done - before) / max(now - since, 0.001))
        waiting = now < self._wait_until and done == self._waits_at
        return Progress(
            self.step, self.checked if self.step == "checking" else done, self._bytes,
            self._files_done, self._files, speed,
            self._wait_until - now if waiting else 0.0, self._trouble if waiting else "")

    def _done(self) -> int:
        return self._kept + sum(each.done for each in self._transfers)
