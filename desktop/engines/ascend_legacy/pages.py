"""Pages on their way into vLLM: the official processor cuts them into views and writes their
tokens, in threads, off the event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict

from desktop.engines.ascend_legacy.official import Code, speaking
from desktop.engines.model import fitting
from desktop.engines.vllm.images import Turns
from desktop.protocol.messages import SubmitPage

_MOST_THREADS = 16
_PROMPTS = 64
"""Prompts whose functions are kept."""


class Pages:
    """Turns pages into prompts for ``AsyncLLMEngine.generate``. Used in the loop's thread only."""

    def __init__(self, code: Code) -> None:
        count = min(_MOST_THREADS, os.cpu_count() or 1)
        self._processor = code.processor()
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="page")
        self._turns = Turns(count)
        self._tokenize: Dict[str, Callable[..., Any]] = {}

    async def prompt(self, page: SubmitPage, text: str) -> Dict[str, Any]:
        """What ``generate`` takes for PAGE and the prompt TEXT, which names the image once.
        Raises PageUnreadable."""
        tokenize = self._tokenize.get(text)
        if tokenize is None:
            if len(self._tokenize) >= _PROMPTS:
                self._tokenize.clear()
            tokenize = speaking(self._processor.tokenize_with_images, text)
            self._tokenize[text] = tokenize
        async with self._turns.turn(page.priority):
            views = await asyncio.get_running_loop().run_in_executor(
                self._pool, _views, page, tokenize)
        return {"prompt": text, "multi_modal_data": {"image": views}}

    def close(self) -> None:
        """End the threads."""
        # Python 3.9 is the first that can cancel what waits.
        self._pool.shutdown(wait=False, cancel_futures=True)


def _views(page: SubmitPage, tokenize: Callable[..., Any]) -> Any:
    return tokenize(images=[fitting.load(page)], bos=True, eos=True, cropping=True)
