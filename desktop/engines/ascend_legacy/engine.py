"""The engine ``ascend-legacy``: vLLM 0.8.5's AsyncLLMEngine (V0) in the worker's own process."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import tempfile
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Optional

from desktop.engines.ascend_legacy import loading
from desktop.engines.ascend_legacy.arguments import SEQUENCES
from desktop.engines.ascend_legacy.pages import Pages
from desktop.engines.base import Engine, EngineDied, Output, Progress
from desktop.engines.model import fitting, prompts, sampling
from desktop.engines.model.results import PageRefused, Results, refused
from desktop.engines.model.room import FULL_PAGE, Room
from desktop.engines.model.steps import WEIGHTS, Steps
from desktop.engines.vllm import devices, warmup
from desktop.engines.vllm.failures import died
from desktop.engines.vllm.output import OutputTail
from desktop.errors import VersoError
from desktop.i18n import N_, _
from desktop.protocol.messages import EngineReady, SubmitPage

_log = logging.getLogger(__name__)

_WATCH = 1.0
"""Seconds between two looks at whether vLLM lives."""
_STEPS: tuple[tuple[str, str], ...] = (
    *WEIGHTS,
    (r"Captur(?:ing|e) (?:the model for )?CUDA ?[Gg]raphs?", N_("Capturing graphs")),
)
"""Lines of vLLM's that tell how far it is, and the step in words."""


class AscendLegacyEngine(Engine):
    """One AsyncLLMEngine; pages are its requests."""

    name = "ascend-legacy"

    def __init__(self) -> None:
        self._output = OutputTail()
        self._thread: Optional[ThreadPoolExecutor] = None
        self._loaded: Optional[loading.Loaded] = None
        self._pages: Optional[Pages] = None
        self._room = Room()
        self._numbers = itertools.count(1)

    async def start(self, settings: dict[str, Any], progress: Progress) -> EngineReady:
        """Load the official code, vLLM and the model, read a page; raises VersoError."""
        self._output.listener = Steps(progress, _STEPS)
        self._output.begin()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="engine")
        loader = loading.Loader(settings, self._output, progress)
        self._loaded = loaded = await asyncio.get_running_loop().run_in_executor(
            self._thread, loader.load)
        core = loaded.engine.engine
        self._room = Room(int(core.model_config.max_model_len),
                          int(core.cache_config.num_gpu_blocks or 0)
                          * int(core.cache_config.block_size or 0))
        self.budget = self._room.budget
        self._pages = Pages(loaded.code)
        progress(_("Reading a first page"), -1.0)
        await self._warm_up()
        self._output.listener = None
        return await self._report()

    async def read(self, page: SubmitPage) -> AsyncIterator[Output]:
        """Stream the page's text; raises EngineDied, PageTooLong, PageRefused, BadPrompt,
        PageUnreadable."""
        assert self._loaded is not None
        assert self._pages is not None
        prompt = prompts.completion(page.settings)
        share = self._room.share(page)
        request = f"{page.page_id}/{page.attempt}/{next(self._numbers)}"
        results = Results(share.prompt)
        try:
            ready = await self._pages.prompt(page, prompt)
            parameters = self._parameters(page, share.output)
            async with contextlib.AsyncExitStack() as stack:
                stack.push_async_callback(self._abort, request)
                async for result in self._loaded.engine.generate(ready, parameters, request):
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
        if finish.reason == "length" and not finish.output_tokens:
            # So the V0 scheduler says that the page alone is too much for its cache.
            raise PageRefused(reason=_("its {tokens} tokens do not fit into the KV cache").format(
                tokens=finish.prompt_tokens))
        self._room.learn(page, finish)
        yield finish

    def cost(self, page: SubmitPage) -> int:
        """Tokens that the page will fill of the KV cache: its own and those it is expected to
        write."""
        return self._room.cost(page)

    def parts(self, page: SubmitPage) -> tuple[tuple[int, int, int, int], ...]:
        """Slices of a very long page."""
        return fitting.parts(page)

    def second_try(self, page: SubmitPage) -> Optional[SubmitPage]:
        """With the no-repeat n-gram on, or a wider window of it. The V0 engine takes it with any
        request."""
        return sampling.second_try(page)

    async def watch(self) -> Optional[EngineDied]:
        """Asks vLLM each second whether it lives."""
        while self._loaded is not None:
            dead = await self._unhealthy()
            if dead is not None and self._loaded is not None:
                return await self._dead(dead)
            await asyncio.sleep(_WATCH)
        return None

    async def close(self) -> None:
        """End vLLM's loop and its processes, where it has any."""
        if self._pages is not None:
            self._pages.close()
        if self._loaded is not None and self._thread is not None:
            loaded, self._loaded = self._loaded, None
            loaded.engine.shutdown_background_loop()
            await asyncio.get_running_loop().run_in_executor(self._thread, _shut_down,
                                                             loaded.engine)
        if self._thread is not None:
            self._thread.shutdown(wait=False)
        self._output.end()

    # --- inside

    def _parameters(self, page: SubmitPage, most: int) -> Any:
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        assert self._loaded is not None
        ngram = sampling.ngram(page.settings)
        processors = None
        if ngram is not None:
            processors = [self._loaded.code.ngram(
                ngram_size=ngram.size, window_size=ngram.window,
                whitelist_token_ids=set(self._loaded.white_list))]
        return SamplingParams(
            temperature=0.0, max_tokens=most, stop=sampling.stops(page.settings) or None,
            skip_special_tokens=False, spaces_between_special_tokens=False,
            output_kind=RequestOutputKind.DELTA, logits_processors=processors)

    async def _abort(self, request: str) -> None:
        """Take REQUEST off the engine's hands; nothing where it has ended. An iteration that is
        merely dropped would leave that to the garbage collector."""
        if self._loaded is not None and self._loaded.engine.is_running:
            await self._loaded.engine.abort(request)

    async def _warm_up(self) -> None:
        """A page goes through everything that a person's will."""
        # A short context may hold no full page.
        fits = self._room.context >= fitting.PROMPT_TOKENS + FULL_PAGE + 2 * warmup.TOKENS
        size = warmup.SIZE if fits else warmup.SMALL
        with tempfile.TemporaryDirectory(prefix="verso-") as name:
            path = warmup.draw(Path(name), size)
            async for _output in self.read(warmup.page(path, 0, size)):
                pass
        self._room.forget()

    async def _report(self) -> EngineReady:
        assert self._loaded is not None
        loaded = self._loaded
        used, total, free = await asyncio.to_thread(_memory, loaded)
        room = self._room
        notes = room.notes(int(loaded.values["max_tokens"]), SEQUENCES)
        most = int(loaded.arguments.get("max_num_seqs") or SEQUENCES)
        return EngineReady(
            engine=self.name, model=Path(str(loaded.values["model"])).name,
            device=await asyncio.to_thread(_device_name, loaded), capacity=min(room.pages, most),
            memory_used=used, memory_total=total, cache_tokens=room.cache_tokens,
            context=room.context, eager=bool(loaded.engine.engine.model_config.enforce_eager),
            versions=loaded.stack.as_dict(), memory_free=free,
            notes=(*loaded.notes, *notes))

    async def _unhealthy(self) -> Optional[BaseException]:
        """Why vLLM is of no use any more; None while it is."""
        assert self._loaded is not None
        engine = self._loaded.engine
        if engine.errored:
            error: BaseException = engine._errored_with
            return error
        try:
            await engine.check_health()
        except Exception as error:  # noqa: BLE001 - whatever it says of itself
            return error
        return None

    async def _failure(self, error: Exception) -> VersoError:
        """ERROR of vLLM's while a page was read."""
        # Every page in flight is told why the loop ended, before and after it has.
        dead = await self._unhealthy() if self._loaded is not None else error
        if dead is not None:
            return await self._dead(dead)
        _log.warning("vLLM did not read a page", exc_info=error)
        return refused(error)

    async def _broken_off(self, results: Results) -> VersoError:
        """The stream ended in a way that says nothing about the page."""
        dead = await self._unhealthy()
        if dead is not None:
            return await self._dead(dead)
        return results.broken_off()

    async def _dead(self, error: BaseException) -> EngineDied:
        said = loading.telling(f"{type(error).__name__}: {error}")
        lines = await asyncio.to_thread(self._output.settled)
        return died([said.splitlines()[0], *lines[-200:]], "\n".join([*lines[-80:], said]))


def _shut_down(engine: Any) -> None:
    """End vLLM's processes; those of a single device are this one."""
    try:
        engine.engine.model_executor.shutdown()
    except Exception:  # noqa: BLE001 - the worker ends, and its group is killed
        _log.exception("vLLM did not shut down in order")


def _memory(loaded: loading.Loaded) -> tuple[int, int, int]:
    """Bytes used by the engine, in all, and free, of the devices; zeros where nobody tells."""
    if loaded.devices:
        return devices.memory(loaded.devices, loading.shown(loaded.stack))
    if not loaded.stack.npu:
        return 0, 0, 0
    import torch

    npu: Any = getattr(torch, "npu", None)
    try:
        free, total = npu.mem_get_info()
        return int(npu.memory_reserved()), int(total), int(free)
    except (AttributeError, RuntimeError) as error:
        _log.info("torch-npu does not tell of the NPU's memory: %s", error)
        return 0, 0, 0


def _device_name(loaded: loading.Loaded) -> str:
    if loaded.devices:
        return devices.titled(loaded.devices[0].name, len(loaded.devices))
    from vllm.platforms import current_platform

    return devices.titled(str(current_platform.get_device_name(0)),
                          int(loaded.values["tensor_parallel"]))
