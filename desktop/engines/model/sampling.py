"""How the model is asked to write: limits, stop strings, the no-repeat n-gram.

Always greedy (temperature 0) and with special tokens kept: the grounding tags are special tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from desktop.protocol.messages import SubmitPage

PROCESSOR = "vllm.model_executor.models.deepseek_ocr:NGramPerReqLogitsProcessor"
"""vLLM's no-repeat n-gram logits processor. It must be declared when the engine is started; a
request's arguments then switch it on."""

WHITE_LIST = ("<td>", "</td>")
"""Tokens that may repeat all the same."""
WHITE_LIST_IDS = (128821, 128822)
"""Their ids in the published tokenizer."""

RETRY_WINDOW = 1024
"""Tokens back that are searched when a looped page is read again. A repeated sequence is only
found where the window holds it twice, and the published windows are shorter than one row of many
tables."""

SECOND_TRY = "second_try"
"""Key among a page's values: it is read again after its output looped."""

_PRESETS = {"image": (20, 90), "pdf": (20, 50), "batch": (40, 90)}
_SLACK = 4
"""Tokens of the context that are left over: special tokens a server may add."""


class Ngram(NamedTuple):
    """No sequence of SIZE tokens may occur twice in the last WINDOW tokens."""

    size: int
    window: int

    def arguments(self, white_list: tuple[int, ...] = WHITE_LIST_IDS) -> dict[str, Any]:
        """As vLLM takes them for a request (``extra_args``, over HTTP ``vllm_xargs``)."""
        return {"ngram_size": self.size, "window_size": self.window,
                "whitelist_token_ids": list(white_list)}


class Limit(NamedTuple):
    """Most output tokens of a page; ``lowered``: fewer than were asked for."""

    tokens: int
    lowered: bool


def ngram(settings: Mapping[str, Any]) -> Ngram | None:
    """What holds for a page with these values; None: it is off for this page."""
    mode = str(settings.get("ngram", "retry"))
    again = bool(settings.get(SECOND_TRY))
    if mode == "off" or (mode == "retry" and not again):
        return None
    preset = str(settings.get("ngram_preset", "auto"))
    if preset == "custom":
        return Ngram(int(settings.get("ngram_size", 20)), int(settings.get("ngram_window", 90)))
    if preset not in _PRESETS:
        preset = "pdf" if settings.get("source") == "pdf" else "image"
    size, window = _PRESETS[preset]
    return Ngram(size, RETRY_WINDOW if again else window)


def second_try(page: SubmitPage) -> SubmitPage | None:
    """PAGE as it is read again after its output looped; None where nothing would be different."""
    if page.settings.get(SECOND_TRY):
        return None
    changed = {**page.settings, SECOND_TRY: True}
    if ngram(changed) == ngram(page.settings):
        return None
    return msgspec.structs.replace(page, settings=changed)


def limit(settings: Mapping[str, Any], context: int, prompt_tokens: int) -> Limit:
    """The setting ``max_tokens``, lowered to what CONTEXT leaves beside PROMPT_TOKENS (the
    page's included); 0 tokens where the prompt alone fills the context. CONTEXT 0: unknown."""
    wanted = int(settings.get("max_tokens", 8192))
    if not context:
        return Limit(wanted, False)
    room = max(0, context - prompt_tokens - _SLACK)
    return Limit(min(wanted, room), room < wanted)


def stops(settings: Mapping[str, Any]) -> list[str]:
    """The stop strings; empty parts mean nothing."""
    return [part for part in str(settings.get("stop") or "").split("|") if part]
