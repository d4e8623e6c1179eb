"""Pages made ready for the engine, some ahead of it: drawn as in a conversion."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from desktop.benchmark import unique
from desktop.benchmark.errors import NotMarked
from desktop.benchmark.workload import Page
from desktop.errors import VersoError
from desktop.intake.awaiting import drawn
from desktop.intake.model import RenderedPage
from desktop.intake.rasterizer import Rasterizer
from desktop.jobs.requests import replace_request, request_for
from desktop.jobs.scheduler import PREFETCH
from desktop.settings import Values, setting


@dataclass(frozen=True)
class Ready:
    """A page that can be handed over, or why it cannot. SECONDS it took to draw."""

    page: Page
    rendered: RenderedPage | None
    seconds: float = 0.0
    problem: VersoError | None = None

    def discard(self) -> None:
        """Its files are not needed any more."""
        if self.rendered is not None:
            self.rendered.delete()


class Source(Protocol):
    """Makes one page ready."""

    async def prepare(self, pages: Sequence[Page]) -> None:
        """What can be done before a level, for all its pages."""
        ...

    async def page(self, page: Page, serial: int) -> Ready:
        """PAGE, of the SERIALth request of the run (from 1)."""
        ...


class Drawn:
    """Draws pages by the processes that draw them in a conversion."""

    def __init__(self, rasterizer: Rasterizer, helper: Executor, values: Values, *,
                 ahead: bool, marked: bool, passwords: Mapping[str, str] | None = None) -> None:
        """AHEAD: each page is drawn once, before its level. MARKED: each is made unique.
        PASSWORDS of the files that have one."""
        self._rasterizer = rasterizer
        self._helper = helper
        self._values = values
        self._ahead = ahead
        self._marked = marked
        self._passwords = passwords or {}
        self._kept: dict[Page, Ready] = {}

    async def prepare(self, pages: Sequence[Page]) -> None:
        """Draw PAGES now, where that was asked for."""
        if self._ahead:
            missing = [page for page in dict.fromkeys(pages) if page not in self._kept]
            for page, ready in zip(missing, await asyncio.gather(
                    *(self._draw(page) for page in missing)), strict=True):
                self._kept[page] = ready

    async def page(self, page: Page, serial: int) -> Ready:
        """Raises nothing: what went wrong is in the answer."""
        kept = self._kept.get(page)
        if kept is None:
            ready = await self._draw(page)
        elif kept.rendered is None:
            return kept
        else:
            ready = _with_files(kept, await asyncio.get_running_loop().run_in_executor(
                self._helper, _another, kept.rendered, self._marked))
        if self._marked and ready.rendered is not None:
            try:
                await asyncio.get_running_loop().run_in_executor(
                    self._helper, unique.mark, Path(ready.rendered.image), serial)
            except (ValueError, OSError) as error:
                ready.discard()
                return Ready(page, None, ready.seconds, NotMarked(
                    reason=getattr(error, "strerror", None) or error))
        return ready

    def close(self) -> None:
        """Delete what was kept."""
        for ready in self._kept.values():
            ready.discard()
        self._kept.clear()

    async def _draw(self, page: Page) -> Ready:
        text_layer = setting("text_layer")
        words = (text_layer.applies_to(self._values["engine"])
                 and self._values["text_layer"] != "never")
        request = replace_request(request_for(self._values, page.path, page.number), words=words,
                                  password=self._passwords.get(page.path))
        begin = time.monotonic()
        try:
            rendered = await drawn(self._rasterizer.render(request))
        except VersoError as error:
            return Ready(page, None, time.monotonic() - begin, error)
        return Ready(page, rendered, time.monotonic() - begin)


def _with_files(ready: Ready, rendered: RenderedPage) -> Ready:
    """READY with other files; drawing it again has cost nothing."""
    return Ready(ready.page, rendered, 0.0)


def _another(rendered: RenderedPage, copied: bool) -> RenderedPage:
    """The same files under names of their own: COPIED where they will be changed, else linked
    where the file system can."""
    names = {}
    for field, name in (("image", rendered.image), ("words", rendered.words)):
        if not name:
            continue
        path = Path(name)
        target = path.with_name(f"copy-{os.urandom(8).hex()}{path.suffix}")
        if copied and field == "image":
            shutil.copyfile(path, target)
        else:
            try:
                os.link(path, target)
            except OSError:
                shutil.copyfile(path, target)
        names[field] = str(target)
    return msgspec.structs.replace(rendered, **names)


class Feed:
    """The pages of one round in order, as many of them under way as a conversion would have."""

    def __init__(self, source: Source, pages: Sequence[Page], first_serial: int,
                 width: int) -> None:
        """WIDTH: pages at once."""
        self._source = source
        self._waiting = deque(enumerate(pages, first_serial))
        self._width = width
        self._with_engine = 0
        self._tasks: deque[asyncio.Task[Ready]] = deque()
        self._fill()

    async def fill(self) -> None:
        """Wait until as many are ready as begin together."""
        first = list(self._tasks)[:self._width]
        if first:
            await asyncio.wait(first)

    async def next(self) -> Ready:
        """The next one, which is the engine's now; raises IndexError after the last."""
        ready = await asyncio.shield(self._tasks[0])
        self._tasks.popleft()
        self._with_engine += 1
        self._fill()
        return ready

    def done(self) -> None:
        """The engine is done with one: there is room for another."""
        self._with_engine -= 1
        self._fill()

    async def close(self) -> None:
        """What nobody will ask for any more is deleted."""
        self._waiting.clear()
        for task in self._tasks:
            task.cancel()
        for ready in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(ready, Ready):
                ready.discard()
        self._tasks.clear()

    def _fill(self) -> None:
        window = self._width + PREFETCH
        while self._waiting and len(self._tasks) + self._with_engine < window:
            serial, page = self._waiting.popleft()
            self._tasks.append(asyncio.create_task(self._source.page(page, serial)))
