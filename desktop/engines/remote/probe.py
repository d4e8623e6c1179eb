"""What a server is like: asked for its models, then tried with a page.

Nothing is assumed that can be seen: the tokens it counts for a large and a small page tell
whether tiles are cut as the model wants them; a token that is forced (``logit_bias``) tells
whether special tokens are kept, and whether the n-gram processor forbids its repetition.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, List, Optional, Union
from urllib.parse import urlsplit

from desktop.engines.model import prompts
from desktop.engines.remote import addresses, findings, keys, request, testpage
from desktop.engines.remote.answers import Model
from desktop.engines.remote.connection import Connection
from desktop.engines.remote.errors import NoSuchModel, NotOpenAI, Passing
from desktop.engines.remote.findings import Finding, Level
from desktop.engines.visual_tokens import visual_tokens
from desktop.errors import Problem, VersoError
from desktop.i18n import _

Trouble = Union[VersoError, Passing]

SECONDS = 60.0
"""For the whole probe of a server; what was not seen by then is not known."""

_AGAIN = 20.0
"""Seconds after which a server that is looked at again is too busy to be waited for."""

_NATURAL = 64
_FORCED = 8
"""Output tokens of the two kinds of test."""
_TAG = "<|ref|>"
_TAG_ID = 128816
"""Its id in the published tokenizer; asked of the server where that tells."""
_STRIPPED = re.compile(r"\b[a-z_]{3,20}\s?\[\[\d{1,3}, ?\d{1,3}, ?\d{1,3}, ?\d{1,3}\]\]")
_AT_ONCE = 0.003
"""Seconds in which no server makes sixteen tokens."""
_OWN_WORDS = 64
"""Prompt tokens beside the page that are still the prompt's own."""
_FIRST_GENERATION = 903 - 273
_LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass
class Report:
    """What was found out about a server. None: could not be seen."""

    address: str
    name: str
    key: str = ""
    """Where its key is from: environment, keyring; "" without one."""
    error: Optional[Trouble] = None
    """Why it cannot be used at all."""
    model: str = ""
    models: tuple[str, ...] = ()
    context: int = 0
    version: str = ""
    cache_tokens: int = 0
    """What its KV cache holds; 0: not told."""
    page_tokens: int = 0
    small_tokens: int = 0
    streams: Optional[bool] = None
    tags: Optional[bool] = None
    guard: Optional[bool] = None
    text: str = ""
    """Beginning of what it read on the test page."""
    seconds: float = 0.0
    findings: List[Finding] = field(default_factory=list)

    @property
    def problem(self) -> Optional[Problem]:
        """``error`` as data."""
        return problem_of(self.error, self.name) if self.error is not None else None

    @property
    def good(self) -> bool:
        """Whether it reads pages as it should."""
        return self.error is None and not any(
            found.level is Level.FAULT for found in self.findings)

    def notes(self) -> list[str]:
        """A line for everything that is not as it should be."""
        problem = self.problem
        lines = [problem.line()] if problem else []
        return lines + [f"{self.name}: {found.problem.line()}" for found in self.findings]


@dataclass
class _Heard:
    """One answer."""

    text: str = ""
    pieces: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    first: float = 0.0
    last: float = 0.0


async def probe(address: str, model: str = "", seconds: float = SECONDS) -> Report:
    """Look at the server at ADDRESS (as a person writes it); never raises for what is wrong
    there, but BadAddress and BadKey. MODEL "": the first it lists."""
    normal = addresses.normal(address)
    key = await asyncio.to_thread(keys.lookup, normal)
    connection = Connection(normal, key)
    try:
        return await examine(connection, model, seconds)
    finally:
        await connection.close()


async def probe_all(servers: str, model: str = "") -> list[Report]:
    """Look at all that the setting SERVERS names, at the same time.

    Raises NoServers, BadAddress, BadKey.
    """
    return list(await asyncio.gather(
        *(probe(address, model) for address in addresses.parse(servers))))


async def examine(connection: Connection, wanted: str = "", seconds: float = SECONDS) -> Report:
    """Look at the server of CONNECTION; never raises for what is wrong there."""
    began = time.monotonic()
    report = Report(connection.address, connection.name, connection.key.source)
    try:
        listed = await connection.models()
        chosen = choose(listed, wanted, connection.name)
    except (Passing, VersoError) as error:
        report.error = error
        return report
    report.model, report.context = chosen
    report.models = tuple(model.name for model in listed)
    try:
        await asyncio.wait_for(_try(connection, report), seconds)
    except asyncio.TimeoutError:
        report.findings.append(findings.finding("slow", seconds=seconds))
    _judge(report, bare=bool(connection.key) and _bare(connection.address), wanted=wanted)
    report.seconds = time.monotonic() - began
    return report


def choose(listed: Iterable[Model], wanted: str, server: str) -> Model:
    """The model to ask for; raises NoSuchModel, NotOpenAI."""
    models = list(listed)
    if not models:
        raise NotOpenAI(server=server, reason=_("it lists no model"))
    if not wanted:
        return next((model for model in models if "ocr" in model.name.lower()), models[0])
    for model in models:
        if model.name == wanted:
            return model
    raise NoSuchModel(server=server, model=wanted, models=", ".join(m.name for m in models))


async def has_guard(connection: Connection, model: str) -> Optional[bool]:
    """Whether the n-gram processor works at a server that was looked at before; None: it is too
    busy to tell. What fails otherwise counts as no; a page will show whether the server is well.
    """
    forced, once = _forcing(await connection.tokens(_TAG, model))
    try:
        plain, guarded = await asyncio.wait_for(asyncio.gather(
            _ask(connection, model, testpage.SMALL, _FORCED, forced),
            _ask(connection, model, testpage.SMALL, _FORCED, once)), _AGAIN)
    except asyncio.TimeoutError:
        return None
    return isinstance(plain, _Heard) and isinstance(guarded, _Heard) and _held(plain) \
        and guarded.text != plain.text


def problem_of(error: Trouble, server: str) -> Problem:
    """ERROR as data, with the server's name in it."""
    if isinstance(error, VersoError):
        return error.problem()
    from desktop.engines.remote.errors import Unreachable

    return Unreachable(server=server, reason=error.reason).problem()


async def _try(connection: Connection, report: Report) -> None:
    version, metrics, tag = await asyncio.gather(
        connection.version(), connection.metrics(), connection.tokens(_TAG, report.model))
    report.version, report.cache_tokens = version, cache_tokens(metrics)
    forced, once = _forcing(tag)
    page, small, plain, guarded = await asyncio.gather(
        _ask(connection, report.model, testpage.LARGE, _NATURAL),
        _ask(connection, report.model, testpage.SMALL, 1),
        _ask(connection, report.model, testpage.SMALL, _FORCED, forced),
        _ask(connection, report.model, testpage.SMALL, _FORCED, once))
    if not isinstance(page, _Heard):
        if isinstance(page, VersoError):
            report.error = page
        else:
            report.findings.append(findings.finding("test", reason=page.reason))
        return
    report.page_tokens, report.text = page.prompt_tokens, page.text[:200]
    report.small_tokens = small.prompt_tokens if isinstance(small, _Heard) else 0
    if page.output_tokens >= 16 or page.pieces > 1:
        report.streams = _streamed(page)
    if report.streams is False:  # or somebody was too busy to pass the pieces on
        again = await _ask(connection, report.model, testpage.LARGE, _NATURAL)
        report.streams = isinstance(again, _Heard) and _streamed(again)
    if _TAG in page.text:
        report.tags = True
    elif _STRIPPED.search(page.text):
        report.tags = False
    if not isinstance(plain, _Heard):
        return
    if _held(plain):
        report.tags = bool(plain.text) if report.tags is None else report.tags
        if isinstance(guarded, _Heard):
            report.guard = guarded.text != plain.text


def _streamed(page: _Heard) -> bool:
    """Whether the text came while it was written."""
    return page.pieces > 2 and page.last - page.first > _AT_ONCE


def _forcing(tag: tuple[int, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What makes a server write one token again and again, TAG's; and with the n-gram processor
    asked to forbid that."""
    token = tag[0] if len(tag) == 1 else _TAG_ID
    forced = {"logit_bias": {str(token): 100}, "ignore_eos": True}
    return forced, {**forced, "vllm_xargs": {"ngram_size": 2, "window_size": 100}}


def _held(plain: _Heard) -> bool:
    """Whether the forced token was written, be it seen or swallowed."""
    return plain.text.startswith(_TAG * 3) or (
        not plain.text and plain.output_tokens >= _FORCED)


async def _ask(connection: Connection, model: str, size: tuple[int, int], most: int,
               extra: Optional[Mapping[str, Any]] = None) -> Union[_Heard, Trouble]:
    """What the server answers about the test page."""
    heard = _Heard()
    body = request.body(model, prompts.chat({}), testpage.url(size), most, {}, extra=extra)
    try:
        async with aclosing(connection.chat(body, model, SECONDS)) as stream:
            async for chunk in stream:
                heard.prompt_tokens = chunk.prompt_tokens or heard.prompt_tokens
                heard.output_tokens = max(heard.output_tokens, chunk.output_tokens)
                if chunk.text:
                    now = time.monotonic()
                    heard.first = heard.first or now
                    heard.last = now
                    heard.pieces += 1
                    heard.text += chunk.text
    except (Passing, VersoError) as error:
        return error
    return heard


def _judge(report: Report, *, bare: bool, wanted: str) -> None:
    """Put into words what is not as it should be."""
    add = report.findings.append
    if bare:
        add(findings.finding("bare_key"))
    if len(report.models) > 1 and not wanted:
        add(findings.finding("several", models=", ".join(report.models), model=report.model))
    if report.error is not None or not (report.text or report.page_tokens):
        return
    large, small = (visual_tokens(*size).tokens for size in (testpage.LARGE, testpage.SMALL))
    seen, difference = report.page_tokens, report.page_tokens - report.small_tokens
    if not seen:
        add(findings.finding("uncounted"))
    elif not report.small_tokens:
        if not large <= seen <= large + _OWN_WORDS:
            add(findings.finding("tokens", seen=seen, expected=large))
    elif difference == large - small:
        if report.small_tokens > small + _OWN_WORDS:
            add(findings.finding("prompt", seen=report.small_tokens - small))
        elif report.small_tokens < small:
            add(findings.finding("tokens", seen=seen, expected=large))
    elif difference == 0:
        add(findings.finding("squashed", seen=seen, expected=large))
    elif difference == _FIRST_GENERATION:
        add(findings.finding("first_generation", seen=seen, expected=large))
    else:
        add(findings.finding("tokens", seen=seen, expected=large))
    if report.tags is False:
        add(findings.finding("tags"))
    elif _TAG not in report.text:
        add(findings.finding("no_tags"))
    if testpage.WORD.lower() not in report.text.lower():
        add(findings.finding("reading", text=_readable(report.text)))
    if report.guard is False:
        add(findings.finding("guard"))
    elif report.guard is None:
        add(findings.finding("guard_unknown"))
    if report.streams is False:
        add(findings.finding("whole"))
    rest = report.context - large - 16
    if report.context and rest < 4096:
        add(findings.finding("context", context=report.context, rest=max(0, rest)))


def _readable(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line[:60] + ("…" if len(line) > 60 else "")


def _bare(address: str) -> bool:
    parts = urlsplit(address)
    return parts.scheme == "http" and parts.hostname not in _LOCAL


def cache_tokens(metrics: str) -> int:
    """What the KV caches of all engines of a vLLM server hold together, from its metrics."""
    total = 0
    for line in metrics.splitlines():
        if line.startswith("vllm:cache_config_info{"):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            blocks, size = labels.get("num_gpu_blocks", ""), labels.get("block_size", "")
            if blocks.isdecimal() and size.isdecimal():
                total += int(blocks) * int(size)
    return total
