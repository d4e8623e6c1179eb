"""Pages on their way into vLLM: pixels are read and prepared off the event loop.

There are three ways, the fastest that the installed version and our plugin offer is taken:

raw
    The page's own bytes cross to the engine core, where the plugin cuts them into views on the
    device. The prompt's tokens, with their placeholders, are made once for all pages that have
    the same number of visual tokens.
rendered
    vLLM's renderer makes the views, in as many threads as the processor has cores.
handed over
    vLLM is given the image; it prepares pages one after the other.

Runs on Python 3.10 with Pillow and vLLM.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import heapq
import itertools
import os
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, List, Optional, Tuple

from desktop.engines.model import fitting
from desktop.protocol.messages import SubmitPage

_MOST_THREADS = 16
_INTERVAL = 8
"""Tokens from one delta to the next after the first: a delta for each token of a hundred pages
keeps the loop from feeding the engine, and nobody can read as fast."""
_TEMPLATES = 64
"""Prompts that are kept: kinds of grids times prompts in use."""


def threads(settings: Mapping[str, Any]) -> int:
    """How many threads prepare pages: the setting, or one for each core."""
    return int(settings.get("image_workers") or 0) or min(_MOST_THREADS, os.cpu_count() or 1)


def arguments(settings: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """vLLM's arguments that feeding it needs; KNOWN are those that this version has.

    Pages differ: a cache of prepared ones would only hold memory, and it forbids more than one
    thread. With raw pages few are rendered by vLLM, and each thread costs it a tokenizer.
    """
    wanted = {
        "mm_processor_cache_gb": 0,
        "renderer_num_workers": 1 if _plugin() is not None else threads(settings),
        "stream_interval": _INTERVAL,
    }
    return {key: value for key, value in wanted.items() if key in known}


class ImageFeed:
    """Turns pages into prompts for ``AsyncLLM.generate``. Used in the loop's thread only.

    As many pages as there are threads are prepared at once, those with the lowest priority
    number first; a page whose task is cancelled while it waits costs nothing. What is prepared
    is held by whoever asked, so that memory is bounded by the pages that are read at once.
    """

    def __init__(self, engine: Any, settings: Mapping[str, Any]) -> None:
        """ENGINE is the AsyncLLM, SETTINGS those it was started with."""
        self._engine = engine
        self._renderer: Any = getattr(engine, "renderer", None)
        if not hasattr(self._renderer, "render_cmpl_async"):
            self._renderer = None
        count = threads(settings)
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="page")
        self._turns = Turns(count)
        self._plugin: Any = _plugin() if self._renderer is not None else None
        self._content_ids = bool(settings.get("prefix_caching"))
        self._templates: OrderedDict[Tuple[Tuple[int, ...], int], asyncio.Task[Any]] = (
            OrderedDict())
        if self._plugin is not None and not self._as_trained():
            self._plugin = None

    @property
    def way(self) -> str:
        """How pages are prepared: raw, rendered, handed over."""
        if self._plugin is not None:
            return "raw"
        return "handed over" if self._renderer is None else "rendered"

    async def prompt(self, page: SubmitPage, tokens: Sequence[int]) -> Any:
        """What ``generate`` takes for PAGE and a prompt's TOKENS, one of which stands for the
        image; raises :class:`fitting.PageUnreadable`."""
        loop = asyncio.get_running_loop()
        async with self._turns.turn(page.priority):
            if self._plugin is not None:
                pixels, key = await loop.run_in_executor(self._pool, self._pixels, page)
            else:
                image = await loop.run_in_executor(self._pool, fitting.load, page)
                return await self._rendered(image, tokens)
        template = await self._template(tuple(tokens), pixels.shape[1], pixels.shape[0])
        return self._filled(template, pixels, key)

    async def warm(self, pages: Callable[[int], SubmitPage], tokens: Sequence[int]) -> None:
        """Prepare a page of PAGES (number → page) in each worker, so that no later page pays for
        what happens once."""
        count = 1 if self._plugin is not None else self._turns.count
        await asyncio.gather(*(self.prompt(pages(number), tokens) for number in range(count)))

    def close(self) -> None:
        """End the threads; prompts that wait fail with CancelledError."""
        for task in self._templates.values():
            task.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    # --- vLLM's own way
    async def _rendered(self, image: Any, tokens: Sequence[int]) -> Any:
        prompt = {"prompt_token_ids": list(tokens), "multi_modal_data": {"image": image}}
        if self._renderer is None:
            return prompt
        return (await self._renderer.render_cmpl_async([prompt]))[0]

    # --- raw pages
    def _as_trained(self) -> bool:
        """Whether the model's processor normalises pixels as the plugin does."""
        try:
            processor = self._renderer.get_mm_processor().info.get_hf_processor()
        except Exception:  # noqa: BLE001 - of another shape: vLLM's own way is taken
            return False
        plugin = self._plugin
        return (bool(getattr(processor, "normalize", False))
                and tuple(getattr(processor, "image_mean", ())) == (plugin.MEAN,) * 3
                and tuple(getattr(processor, "image_std", ())) == (plugin.STD,) * 3
                and getattr(processor, "image_size", 0) == plugin.TILE
                and getattr(processor, "base_size", 0) == plugin.VIEW)

    def _pixels(self, page: SubmitPage) -> Tuple[Any, str]:
        """The page (height, width, 3) as a tensor, and what vLLM knows it by."""
        import torch

        size = fitting.sent(page.width, page.height, page.settings)
        data = _ppm(page.image, page.width, page.height) \
            if (size.width, size.height) == (page.width, page.height) else None
        if data is None:
            data = bytearray(fitting.load(page).tobytes())
        key = hashlib.blake2b(data, digest_size=16).hexdigest() if self._content_ids \
            else uuid.uuid4().hex
        tensor = torch.frombuffer(data, dtype=torch.uint8)
        return tensor.view(size.height, size.width, 3), key

    async def _template(self, tokens: Tuple[int, ...], width: int, height: int) -> Any:
        """vLLM's own input for a page with as many visual tokens, made once."""
        across, down = self._plugin.grid(width, height)
        key = (tokens, across * down)
        task = self._templates.get(key)
        if task is None:
            from PIL import Image

            task = asyncio.ensure_future(
                self._rendered(Image.new("RGB", (width, height), "white"), tokens))
            self._templates[key] = task
            while len(self._templates) > _TEMPLATES:
                self._templates.popitem(last=False)
        else:
            self._templates.move_to_end(key)
        try:
            # Others may wait for it too: a page that is cancelled does not take it along.
            return await asyncio.shield(task)
        except Exception:
            self._templates.pop(key, None)
            raise

    def _filled(self, template: Any, pixels: Any, key: str) -> Any:
        """The input of TEMPLATE's kind for PIXELS; TEMPLATE is left as it is."""
        items = template["mm_kwargs"]["image"]
        element = dataclasses.replace(items[0]["pixel_values"], data=pixels)
        if hasattr(element, "key"):
            element = dataclasses.replace(element, key=self._plugin.KEY)
        filled = dict(template)
        filled["prompt_token_ids"] = list(template["prompt_token_ids"])
        filled["mm_kwargs"] = type(template["mm_kwargs"])(
            {"image": [type(items[0])({self._plugin.KEY: element})]})
        filled["mm_hashes"] = {"image": [key]}
        filled.pop("arrival_time", None)
        return filled


class Turns:
    """COUNT at once, the lowest number first, those with equal numbers in order."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = count
        self._order = itertools.count()
        self._waiting: List[Tuple[int, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def turn(self, priority: int) -> AsyncIterator[None]:
        """Wait for a turn; it ends with the block."""
        if self._free:
            self._free -= 1
        else:
            mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (priority, next(self._order), mine))
            try:
                await mine
            except asyncio.CancelledError:
                if mine.done() and not mine.cancelled():
                    self._pass_on()  # It was given a turn and cancelled in the same moment.
                raise
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting:
            future = heapq.heappop(self._waiting)[2]
            if not future.done():
                future.set_result(None)
                return
        self._free += 1


def _plugin() -> Optional[Any]:
    """The plugin's module of raw pages where they are in force in this process."""
    try:
        import verso_vllm_plugin
    except ImportError:
        return None
    verso_vllm_plugin.register()
    if not verso_vllm_plugin.in_force("raw pages"):
        return None
    from verso_vllm_plugin import pages

    return pages


def _ppm(path: str, width: int, height: int) -> Optional[bytearray]:
    """The pixels of a binary PPM as we write them; None for anything else."""
    size = width * height * 3
    head = b"P6\n%d %d\n255\n" % (width, height)
    try:
        with open(path, "rb") as file:
            if file.read(len(head)) != head:
                return None
            data = bytearray(size)
            if file.readinto(data) != size or file.read(1):
                return None
    except OSError as error:
        raise fitting.PageUnreadable(detail=f"{path}: {error}") from error
    return data
