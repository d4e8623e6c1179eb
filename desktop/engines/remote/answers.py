"""What a server's answers mean: chunks of a stream, and refusals as errors."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, List, NamedTuple, Optional
from urllib.parse import urlsplit

import msgspec

from desktop.engines.remote.errors import (
    Broken,
    Busy,
    ContextTooSmall,
    ImageTooLarge,
    KeyRefused,
    KeyWanted,
    NoSuchModel,
    NotOpenAI,
    PageRefused,
)
from desktop.engines.remote.keys import Key
from desktop.engines.remote.sse import Junk
from desktop.i18n import _

_CONTEXT = re.compile(r"maximum context length (?:is|of) (\d+)|max_model_len\D{0,20}(\d+)", re.I)
_SHOWN = 300
"""Characters of a server's own words that are shown."""


class Chunk(NamedTuple):
    """A piece of an answer. Token counts are those so far, 0 where the server does not count."""

    text: str = ""
    finish: Optional[str] = None
    prompt_tokens: int = 0
    output_tokens: int = 0


class Model(NamedTuple):
    """A model that a server lists; CONTEXT 0 where it does not say."""

    name: str
    context: int


class Asked(NamedTuple):
    """What a request was about, for the words of an error."""

    server: str
    address: str
    model: str = ""
    size: int = 0
    """Bytes of its body."""
    models: tuple[str, ...] = ()
    """What the server lists."""


class _Usage(msgspec.Struct):
    prompt_tokens: Optional[int] = None
    completion_tokens: Optional[int] = None


class _Words(msgspec.Struct):
    content: Optional[str] = None


class _Choice(msgspec.Struct):
    delta: Optional[_Words] = None
    message: Optional[_Words] = None
    finish_reason: Optional[str] = None


class _Answer(msgspec.Struct):
    choices: List[_Choice] = []
    usage: Optional[_Usage] = None
    error: Any = None


class _Card(msgspec.Struct):
    id: str
    max_model_len: Optional[int] = None


class _Cards(msgspec.Struct):
    data: List[_Card]


_answers = msgspec.json.Decoder(_Answer)
_cards = msgspec.json.Decoder(_Cards)


def chunk(data: bytes, asked: Asked, key: Key) -> Chunk:
    """An event's data, or a whole answer that was not streamed.

    Raises :class:`Junk`, and what :func:`refusal` raises for an error inside the stream.
    """
    try:
        answer = _answers.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Junk("not the JSON of an answer") from None
    if answer.error is not None:
        code = answer.error.get("code") if isinstance(answer.error, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 500
        raise refusal(status, {}, data, asked, key)
    usage = answer.usage or _Usage()
    counts = max(0, usage.prompt_tokens or 0), max(0, usage.completion_tokens or 0)
    if not answer.choices:
        return Chunk("", None, *counts)
    choice = answer.choices[0]
    words = choice.delta or choice.message
    return Chunk((words and words.content) or "", choice.finish_reason, *counts)


def models(data: bytes, server: str) -> tuple[Model, ...]:
    """The model list; raises :class:`NotOpenAI`."""
    try:
        cards = _cards.decode(data).data
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NotOpenAI(server=server, reason=_("its model list cannot be read")) from None
    return tuple(Model(card.id, max(0, card.max_model_len or 0)) for card in cards)


def refusal(status: int, headers: Mapping[str, str], body: bytes, asked: Asked,
            key: Key) -> Exception:
    """The error that an answer with STATUS stands for: a VersoError where waiting does not help,
    else a :class:`Passing`. Nothing in it holds the key."""
    said = _message(body, key)
    detail = f"{asked.server}: HTTP {status}: {said}"
    if status in (401, 403):
        return (KeyRefused if key else KeyWanted)(
            server=asked.server, address=asked.address, detail=detail)
    if 300 <= status < 400:
        target = urlsplit(headers.get("location", "")).hostname or _("another address")
        return NotOpenAI(server=asked.server, detail=detail,
                         reason=_("it redirects to {target}").format(target=key.redact(target)))
    if status == 404 and asked.model and "model" in said.lower():
        return NoSuchModel(server=asked.server, model=asked.model, detail=detail,
                           models=", ".join(asked.models) or "?")
    if status in (404, 405):
        return NotOpenAI(server=asked.server, detail=detail,
                         reason=_("it does not know the path (HTTP {status})").format(
                             status=status))
    if status == 413:
        return ImageTooLarge(size=asked.size / 1e6, whose=asked.server, detail=detail)
    if status == 429:
        return Busy(_("{server} has too much to do ({said})").format(
            server=asked.server, said=said or f"HTTP {status}"), retry_after(headers))
    if status in (408, 409, 425) or status >= 500:
        return Broken(_("{server} failed with HTTP {status}: {said}").format(
            server=asked.server, status=status, said=said), retry_after(headers))
    found = _CONTEXT.search(said)
    if found:
        return ContextTooSmall(server=asked.server, detail=detail,
                               context=int(found.group(1) or found.group(2)))
    return PageRefused(server=asked.server, reason=said or f"HTTP {status}", detail=detail)


def retry_after(headers: Mapping[str, str]) -> float:
    """Seconds that the header Retry-After asks for, as a number or a date; 0 without one."""
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _message(body: bytes, key: Key) -> str:
    """A server's own words on one line, without the key."""
    text = body.decode("utf-8", "replace")
    try:
        said = msgspec.json.decode(body)
        for name in ("error", "message", "detail"):
            if isinstance(said, dict) and name in said:
                said = said[name]
        if isinstance(said, str):
            text = said
    except (msgspec.DecodeError, UnicodeDecodeError):
        if "<html" in text.lower() or "<!doctype" in text.lower():
            title = re.search(r"<title>(.*?)</title>", text, re.I | re.S)
            text = title.group(1) if title else _("a web page")
    text = " ".join("".join(c if c.isprintable() else " " for c in key.redact(text)).split())
    return text if len(text) <= _SHOWN else key.redact(text[:_SHOWN]) + "…"
