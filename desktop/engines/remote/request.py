"""What is sent to a server for a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

import msgspec

from desktop.engines.model import fitting, sampling


def body(model: str, prompt: str, image: str, most: int, settings: Mapping[str, Any], *,
         guard: bool = False, extra: Optional[Mapping[str, Any]] = None) -> bytes:
    """The JSON of /chat/completions: greedy, streamed, special tokens kept, tokens counted.

    MOST: output tokens. GUARD: the server has the n-gram processor, so the page may use it.
    EXTRA fields go on top.
    """
    fields: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": [
            # The image first: that is where the model expects it, and where vLLM puts its mark.
            {"type": "image_url", "image_url": {"url": msgspec.Raw(f'"{image}"'.encode("ascii"))}},
            {"type": "text", "text": prompt},
        ]}],
        "temperature": 0,
        "max_tokens": most,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        # The grounding tags are special tokens; servers drop those by default.
        "skip_special_tokens": False,
    }
    stop = sampling.stops(settings)
    if stop:
        fields["stop"] = stop
    ngram = sampling.ngram(settings) if guard else None
    if ngram is not None:
        fields["vllm_xargs"] = ngram.arguments()
    fields.update(extra or {})
    return msgspec.json.encode(fields)


def prompt_tokens(visual: int, settings: Mapping[str, Any], prompt: str) -> int:
    """Tokens of the whole prompt, never too few: a page of VISUAL tokens and PROMPT."""
    if settings.get("prompt") in ("custom", "locate"):
        return visual + fitting.PROMPT_TOKENS + len(prompt.encode())
    return visual + fitting.PROMPT_TOKENS
