"""Talking to a hub: credentials, patience, and what its refusals mean.

A connection that breaks, a server that is busy (429 with its ``Retry-After``) or in trouble
(5xx) is asked again with growing pauses; a refusal is an error at once. Addresses of files are
signed where a hub sends one elsewhere for them, so neither they nor tokens are logged.
"""

from __future__ import annotations

import asyncio
import email.utils
import logging
import random
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from desktop.errors import VersoError
from desktop.i18n import _
from desktop.models.errors import (
    AccessDenied,
    BadAnswer,
    BadProxy,
    CertificateRefused,
    ConnectionLost,
    NoSuchModel,
)
from desktop.models.hubs import token_headers
from desktop.models.source import Source

log = logging.getLogger(__name__)

_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 525, 529})
_ANSWER_LIMIT = 32 * 1024 * 1024
"""Most bytes of a list of files."""


@dataclass(frozen=True)
class Pace:
    """How long to be patient. Seconds."""

    first: float = 1.0
    """Pause after the first failure; it doubles with each that follows."""
    longest: float = 30.0
    tries: int = 7
    """Failures in a row, without anything gained between them, that are one too many."""
    asked: float = 600.0
    """Longest pause a server may ask for."""


class Trouble(Exception):
    """Something that may be better next time. ``after``: seconds the server asks to wait."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after = after


class Patience:
    """Failures in a row of one piece of work."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self._failures = 0

    def gained(self) -> None:
        """Something came: begin to count anew."""
        self._failures = 0

    async def after(self, trouble: Trouble) -> None:
        """Wait after TROUBLE; raises :class:`ConnectionLost` when it was one too many."""
        pace = self._web.pace
        self._failures += 1
        if self._failures >= pace.tries or trouble.after > pace.asked:
            raise ConnectionLost(host=self._web.source.host, reason=trouble.reason)
        # Scattered, so that several connections do not come back at one moment.
        pause = min(pace.longest, pace.first * 2 ** (self._failures - 1)) * random.uniform(0.8, 1.2)
        pause = max(pause, trouble.after)
        log.info("%s: %s; again in %.1f s", self._web.source.host, trouble.reason, pause)
        self._web.waiting(pause, trouble.reason)
        await asyncio.sleep(pause)


class Web:
    """One way to one hub, for one download. ``token_of`` asks the keyring; it may block, and is
    called at most once, in a thread, when the hub refuses without a token."""

    def __init__(self, source: Source, client: httpx.AsyncClient, pace: Pace,
                 token_of: Callable[[], str], waiting: Callable[[float, str], None]) -> None:
        self.source = source
        self.pace = pace
        self.waiting = waiting
        self._client = client
        self._token_of: Callable[[], str] | None = token_of
        self._token = source.token if source.may_carry_token() else ""
        self._asking = asyncio.Lock()

    async def ask(self, address: str) -> httpx.Response:
        """GET an answer of the API, whole; raises VersoError."""
        patience = Patience(self)
        while True:
            try:
                async with self.stream(address, {}) as response:
                    if response.status_code != 200:
                        raise BadAnswer(host=self.source.host,
                                        reason=f"HTTP {response.status_code}")
                    body = bytearray()
                    async for chunk in response.aiter_bytes():
                        body += chunk
                        if len(body) > _ANSWER_LIMIT:
                            raise BadAnswer(host=self.source.host,
                                            reason=_("its answer has no end"))
                    return httpx.Response(200, headers=_plain(response.headers),
                                          content=bytes(body), request=response.request)
            except Trouble as trouble:
                await patience.after(trouble)

    @asynccontextmanager
    async def stream(self, address: str, headers: dict[str, str]) -> AsyncIterator[httpx.Response]:
        """The answer to a GET, with its body still to come: 200, 206 or 416. Raises Trouble (also
        in the course of the block) and VersoError."""
        try:
            for _attempt in range(2):
                token = self._token
                request = self._client.build_request(
                    "GET", address, headers={**headers, **_credentials(self.source, token)})
                response = await self._client.send(request, stream=True)
                try:
                    if await self._another_token(response, token):
                        continue
                    self._judge(response)
                    yield response
                finally:
                    await response.aclose()
                return
        except httpx.TransportError as error:
            raise self._trouble(error) from error
        except (httpx.TooManyRedirects, httpx.DecodingError, httpx.InvalidURL) as error:
            raise BadAnswer(host=self.source.host, reason=type(error).__name__) from error

    # --- inside
    async def _another_token(self, response: httpx.Response, used: str) -> bool:
        """Whether a token that was not USED may open what RESPONSE refuses."""
        if response.status_code not in (401, 403) or not self._is_hub(response):
            return False
        async with self._asking:
            if self._token_of is not None and not used and self.source.may_carry_token():
                ask, self._token_of = self._token_of, None
                self._token = await asyncio.to_thread(ask)
        return self._token != used

    def _is_hub(self, response: httpx.Response) -> bool:
        """Whether the hub itself speaks, not a server it sent us to."""
        own = httpx.URL(self.source.address)
        return (response.url.scheme, response.url.host, response.url.port) \
            == (own.scheme, own.host, own.port)

    def _judge(self, response: httpx.Response) -> None:
        status = response.status_code
        if status in (200, 206, 416):
            return
        if status in _BUSY:
            raise Trouble(f"HTTP {status}", _retry_after(response))
        if not self._is_hub(response):
            # The address that the hub signed for us has expired: it signs another.
            raise Trouble(f"HTTP {status}")
        if status == 407:
            raise BadProxy(reason="HTTP 407")
        # Hugging Face answers 401 for what does not exist, and says so in a header.
        missing = response.headers.get("X-Error-Code") in (
            "RepoNotFound", "RevisionNotFound", "EntryNotFound")
        if status == 404 or (missing and self._token):
            raise NoSuchModel(host=self.source.host, model=self.source.model,
                              revision=self.source.wanted_revision)
        if status in (401, 403):
            raise AccessDenied(host=self.source.host, model=self.source.model, status=status,
                               variable=self.source.facts.token_variables[0])
        raise BadAnswer(host=self.source.host, reason=f"HTTP {status}")

    def _trouble(self, error: httpx.TransportError) -> Trouble | VersoError:
        if isinstance(error, httpx.UnsupportedProtocol):
            return BadAnswer(host=self.source.host, reason=_("it leads to no web address"))
        if isinstance(error, httpx.ProxyError) and str(error).startswith("407"):
            return BadProxy(reason="HTTP 407")
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                return CertificateRefused(host=self.source.host, reason=cause.verify_message)
            cause = cause.__cause__ or cause.__context__
        return Trouble(_words(error))


def _credentials(source: Source, token: str) -> dict[str, str]:
    return token_headers(source, token) if token else {}


def _plain(headers: httpx.Headers) -> list[tuple[str, str]]:
    """HEADERS without what was true of the body on its way only."""
    return [(name, value) for name, value in headers.multi_items()
            if name.lower() not in ("content-encoding", "content-length", "transfer-encoding")]


def _retry_after(response: httpx.Response) -> float:
    """Seconds the server asks to wait: a number, or a date (RFC 9110, 10.2.3); 0: it does not."""
    value = response.headers.get("Retry-After", "").strip()
    try:
        return max(0.0, float(value)) if value[:1].isdigit() and value.isdigit() else max(
            0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _words(error: httpx.TransportError) -> str:
    """ERROR in words; its own may be empty or hold an address."""
    if isinstance(error, httpx.ConnectTimeout):
        return _("no connection in time")
    if isinstance(error, httpx.TimeoutException):
        return _("nothing came in time")
    if isinstance(error, httpx.ProxyError):
        return _("the proxy refuses")
    if isinstance(error, httpx.ConnectError):
        return _("no connection")
    return _("the connection broke off")
