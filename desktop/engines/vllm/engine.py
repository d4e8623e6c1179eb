"""The engine ``vllm``: DeepSeek-OCR-2 on vLLM's AsyncLLM, owned by the worker process."""

from __future__ import annotations

import asyncio
import itertools
import logging
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from typing import Any

from desktop.engines.base import Engine, EngineDied, Output, Progress
from desktop.engines.model import fitting, prompts, sampling
from desktop.engines.model.results import Results, refused
from desktop.engines.model.room import FULL_PAGE, Room
from desktop.engines.model.steps import Steps
from desktop.engines.vllm import arguments, devices, loading, tokens, warmup
from desktop.engines.vllm.failures import died
from desktop.engines.vllm.images import ImageFeed
from desktop.engines.vllm.output import OutputTail
from desktop.errors import VersoError
from desktop.i18n import _
from desktop.protocol.messages import EngineReady, SubmitPage

_log = logging.getLogger(__name__)

_WATCH = 1.0
"""Seconds between two looks at whether vLLM's processes live."""


class VllmEngine(Engine):
    """One AsyncLLM, or several that share a device; pages are their requests."""

    name = "vllm"
    loader: type[loading.Loader] = loading.Loader

    def __init__(self) -> None:
        self._output = OutputTail()
        self._thread: ThreadPoolExecutor | None = None
        self._loaded: loading.Loaded | None = None
        self._feed: ImageFeed | None = None
        self._tokens: tokens.Tokens | None = None
        self._room = Room()
        self._numbers = itertools.count(1)

    async def start(self, settings: dict[str, Any], progress: Progress) -> EngineReady:
        """Load vLLM and the model, test the tokenizer, read a page; raises VersoError."""
        self._output.listener = Steps(progress, loading.STEPS)
        self._output.begin()
        # One thread for as long as the engine lives: what vLLM starts may be tied to it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="engine")
        loop = asyncio.get_running_loop()
        loader = self.loader(settings, self._output, progress)
        self._loaded = loaded = await loop.run_in_executor(self._thread, loader.load)
        engine = loaded.cores.first
        self._tokens = loaded.tokens
        self._room = Room(int(engine.model_config.max_model_len), loaded.cores.cache_tokens)
        self.budget = self._room.budget
        self._feed = ImageFeed(engine, loaded.values)
        progress(_("Reading a first page"), -1.0)
        await self._warm_up()
        self._output.listener = None
        return await self._report()

    async def read(self, page: SubmitPage) -> AsyncIterator[Output]:
        """Stream the page's text; raises EngineDied, PageTooLong, PageRefused, BadPrompt."""
        async with aclosing(self._read(page)) as outputs:
            async for output in outputs:
                yield output

    async def _read(self, page: SubmitPage,
                    core: int | None = None) -> AsyncGenerator[Output, None]:
        """As :meth:`read`, by the engine core CORE."""
        assert self._loaded is not None
        assert self._feed is not None
        assert self._tokens is not None
        prompt = self._tokens.prompt(prompts.completion(page.settings))
        share = self._room.share(page, len(prompt) - 1)
        request = f"{page.page_id}/{page.attempt}/{next(self._numbers)}"
        parameters = self._parameters(page, share.output)
        results = Results(share.prompt)
        try:
            ready = await self._feed.prompt(page, prompt)
            async with aclosing(self._generate(ready, parameters, request, page,
                                               core)) as stream:
                async for result in stream:
                    for text in results.take(result):
                        yield text
        except VersoError:
            raise
        except Exception as error:
            raise await self._failure(error) from error
        for text in results.rest():
            yield text
        finish = results.finish(share.output)
        if finish is None:
            raise await self._broken_off(results)
        self._room.learn(page, finish)
        yield finish

    def cost(self, page: SubmitPage) -> int:
        """Tokens that the page will fill of the KV cache: its own and those it is expected to
        write."""
        return self._room.cost(page)

    def parts(self, page: SubmitPage) -> tuple[tuple[int, int, int, int], ...]:
        """Slices of a very long page."""
        return fitting.parts(page)

    def second_try(self, page: SubmitPage) -> SubmitPage | None:
        """With the no-repeat n-gram on, or a wider window of it."""
        if self._loaded is None or not arguments.uses_ngram(self._loaded.values):
            return None
        return sampling.second_try(page)

    async def watch(self) -> EngineDied | None:
        """vLLM notices by itself when one of its processes has ended; it is asked each second."""
        while self._loaded is not None:
            if self._loaded.cores.errored:
                return await self._dead(None)
            await asyncio.sleep(_WATCH)
        return None

    async def close(self) -> None:
        """End vLLM's processes; blocks nobody else. They are gone when this returns."""
        if self._feed is not None:
            self._feed.close()
        if self._loaded is not None and self._thread is not None:
            loaded, self._loaded = self._loaded, None
            await asyncio.get_running_loop().run_in_executor(self._thread,
                                                             loaded.cores.shut_down)
        if self._thread is not None:
            self._thread.shutdown(wait=False)
        self._output.end()

    # --- inside

    def _generate(self, prompt: Any, parameters: Any, request: str, page: SubmitPage,
                  core: int | None) -> AsyncGenerator[Any, None]:
        assert self._loaded is not None
        keywords = {}
        if self._loaded.arguments.get("scheduling_policy") == "priority":
            keywords["priority"] = page.priority
        return self._loaded.cores.generate(prompt, parameters, request, self.cost(page), core,
                                           **keywords)

    def _parameters(self, page: SubmitPage, most: int) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        assert self._loaded is not None
        assert self._tokens is not None
        ngram = (sampling.ngram(page.settings)
                 if arguments.uses_ngram(self._loaded.values) else None)
        return SamplingParams(
            temperature=0.0, max_tokens=most, stop=sampling.stops(page.settings) or None,
            skip_special_tokens=False, spaces_between_special_tokens=False,
            output_kind=RequestOutputKind.DELTA,
            extra_args=ngram.arguments(self._tokens.white_list) if ngram else None)

    async def _warm_up(self) -> None:
        """Pages go through everything that a person's will: full ones through each of the image
        workers, and a small one."""
        assert self._loaded is not None
        assert self._feed is not None
        assert self._tokens is not None
        prompt = self._tokens.prompt(prompts.completion({}))
        # A short context may hold no full page.
        fits = self._room.context >= len(prompt) + FULL_PAGE + 2 * warmup.TOKENS
        full = warmup.SIZE if fits else warmup.SMALL
        with tempfile.TemporaryDirectory(prefix="verso-") as name:
            paths = {size: warmup.draw(Path(name), size) for size in {full, warmup.SMALL}}
            await self._feed.warm(lambda number: warmup.page(paths[full], number, full), prompt)
            count = 2 if self._loaded.cpu else warmup.AT_ONCE
            pages = [warmup.page(paths[size], number, size)
                     for number, size in enumerate((*[full] * count, warmup.SMALL))]
            await asyncio.gather(*(self._read_through(page, core) for page in pages
                                   for core in range(len(self._loaded.cores))))
        self._room.forget()

    async def _read_through(self, page: SubmitPage, core: int) -> None:
        async for _output in self._read(page, core):
            pass

    async def _report(self) -> EngineReady:
        assert self._loaded is not None
        loaded = self._loaded
        used, total, free = await asyncio.to_thread(_memory, loaded)
        room = self._room
        notes = room.notes(int(loaded.values["max_tokens"]), arguments.SEQUENCES)
        capacity = min(room.pages,
                       int(loaded.arguments.get("max_num_seqs") or arguments.SEQUENCES))
        config = loaded.cores.first.model_config
        return EngineReady(
            engine=self.name, model=Path(str(loaded.values["model"])).name,
            device=_device_name(loaded), capacity=max(1, capacity), memory_used=used,
            memory_total=total, cache_tokens=room.cache_tokens, context=room.context,
            eager=bool(config.enforce_eager), versions=loaded.versions.as_dict(),
            memory_free=free, notes=(*loaded.notes, *notes))

    async def _failure(self, error: Exception) -> VersoError:
        """ERROR of vLLM's while a page was read."""
        assert self._loaded is not None
        if type(error).__name__ == "EngineDeadError" or self._loaded.cores.errored:
            return await self._dead(error)
        _log.warning("vLLM did not read a page", exc_info=error)
        return refused(error)

    async def _broken_off(self, results: Results) -> VersoError:
        """The stream ended in a way that says nothing about the page."""
        assert self._loaded is not None
        if self._loaded.cores.errored:
            return await self._dead(None)
        return results.broken_off()

    async def _dead(self, error: Exception | None) -> EngineDied:
        lines = await asyncio.to_thread(self._output.settled)
        # Not what was written long ago, about a page of which vLLM complained and lived on.
        return died(lines[-200:], "\n".join([
            *lines[-80:], *([f"{type(error).__name__}: {error}"] if error else [])]))


def _memory(loaded: loading.Loaded) -> tuple[int, int, int]:
    """Bytes used by the engine, in all, and free: of the devices, or of the machine."""
    if loaded.cpu:
        total, free = devices.host_memory()
        return devices.resident(), total, free
    return devices.memory(loaded.devices, loaded.look())


def _device_name(loaded: loading.Loaded) -> str:
    if loaded.devices:
        return devices.titled(loaded.devices[0].name, len(loaded.devices))
    if loaded.cpu:
        return _("Processor")
    from vllm.platforms import current_platform

    return str(current_platform.get_device_name())
