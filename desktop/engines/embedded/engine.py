"""The engine: runs the page reader in threads behind the engine contract."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, ClassVar

from desktop.engines.base import Engine, Finish, Output, Progress
from desktop.errors import VersoError
from desktop.i18n import _
from desktop.protocol.messages import EngineReady, SubmitPage

if TYPE_CHECKING:
    from desktop.engines.embedded.reader import PageReader


class EmbeddedEngine(Engine):
    """Reads pages on the processor. One page takes one core; several go side by side."""

    name: ClassVar[str] = "embedded"
    may_loop: ClassVar[bool] = False

    def __init__(self) -> None:
        self._reader: PageReader | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._closing = threading.Event()

    async def start(self, settings: dict[str, Any], progress: Progress) -> EngineReady:
        """Load the models; raises ``ModelMissing``."""
        pages = int(settings.get("threads") or 0) or _cores()
        progress(_("Loading libraries"), -1.0)
        loop = asyncio.get_running_loop()

        def report(step: str, fraction: float) -> None:
            loop.call_soon_threadsafe(progress, step, fraction)

        self._closing.clear()
        self._reader = await asyncio.to_thread(_load, report)
        self._threads = ThreadPoolExecutor(pages, thread_name_prefix="page")
        return EngineReady(
            engine=self.name, model="PP-OCRv6 small", device="CPU", capacity=pages,
            versions={name: _version(name) for name in ("onnxruntime", "rapidocr")})

    async def read(self, page: SubmitPage) -> AsyncIterator[Output]:
        """Read one page; cancelling takes effect within a few lines of text."""
        if self._reader is None or self._threads is None:
            raise VersoError(detail="read before start")
        reader = self._reader
        loop = asyncio.get_running_loop()
        outputs: asyncio.Queue[Output | BaseException | None] = asyncio.Queue()
        stop = threading.Event()

        def cancelled() -> bool:
            return stop.is_set() or self._closing.is_set()

        def send(item: Output | BaseException | None) -> None:
            if not cancelled():
                loop.call_soon_threadsafe(outputs.put_nowait, item)

        def work() -> None:
            try:
                for output in reader.read(page, cancelled):
                    send(output)
                send(None)
            except Exception as error:  # noqa: BLE001 – handed over and raised on the other side
                send(error)

        future = loop.run_in_executor(self._threads, work)
        try:
            while True:
                item = await outputs.get()
                if item is None:
                    break
                if isinstance(item, BaseException):
                    raise item
                yield item
                if isinstance(item, Finish):
                    break
        finally:
            stop.set()
            future.cancel()

    async def close(self) -> None:
        """Stop the pages in work and drop the models."""
        self._closing.set()
        threads, self._threads = self._threads, None
        if threads is not None:
            await asyncio.to_thread(threads.shutdown, True, cancel_futures=True)
        self._reader = None


def _load(progress: Progress) -> PageReader:
    """Import what is heavy, open the models."""
    from desktop.engines.embedded import models
    from desktop.engines.embedded.reader import PageReader

    return PageReader(models.load(progress))


def _cores() -> int:
    """Cores this process may use."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:
        return os.cpu_count() or 1


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
