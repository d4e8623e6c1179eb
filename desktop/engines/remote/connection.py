"""The HTTP side of one server. Every error is typed, and none carries the key."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import socket
import ssl
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Optional

import httpx
import msgspec

from desktop.engines.remote import answers
from desktop.engines.remote.addresses import place
from desktop.engines.remote.answers import Asked, Chunk, Model
from desktop.engines.remote.errors import Away, Broken, Certificate, NotOpenAI, Silent
from desktop.engines.remote.keys import Key
from desktop.engines.remote.sse import EventStream, Junk
from desktop.i18n import _

log = logging.getLogger(__name__)

CONNECT_SECONDS = 10.0
_ERROR_BYTES = 64 << 10
_ANSWER_BYTES = 16 << 20
_PARTING_SECONDS = 1.0
"""For the end of the transfer after the end of the answer."""

# httpcore asks for this module several times a request, and where it is not installed Python goes
# through every folder each time: 1 of the 7.5 ms of processor that sending a page takes.
if importlib.util.find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]

# They say every request at INFO, and headers at DEBUG.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)


def trust() -> ssl.SSLContext:
    """Certificates are always verified: against the system's authorities and those of certifi, or
    against the file or folder that SSL_CERT_FILE or SSL_CERT_DIR name, in their place."""
    context = ssl.create_default_context()
    if not os.environ.get("SSL_CERT_FILE") and not os.environ.get("SSL_CERT_DIR"):
        import certifi

        context.load_verify_locations(certifi.where())
    return context


class Connection:
    """Requests to one server; used in one event loop."""

    def __init__(self, address: str, key: Key, context: Optional[ssl.SSLContext] = None) -> None:
        """ADDRESS: as :func:`addresses.normal` gives it. Opens nothing yet."""
        self.address = address
        self.name = place(address)
        self.key = key
        self.listed: tuple[Model, ...] = ()
        """The models, once they were asked for."""
        self._client = httpx.AsyncClient(
            headers={**key.headers(), "Accept-Encoding": "identity", "User-Agent": "verso"},
            verify=context or trust(), follow_redirects=False,
            # vLLM closes an idle connection after 5 s; one that is used in that very moment breaks.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=None,
                                keepalive_expiry=4.0),
            timeout=httpx.Timeout(CONNECT_SECONDS))
        self._parting: set[asyncio.Task[None]] = set()
        """Ends of transfers that are still awaited."""

    async def close(self) -> None:
        """Close what is open."""
        for task in self._parting:
            task.cancel()
        await asyncio.gather(*self._parting, return_exceptions=True)
        await self._client.aclose()

    async def models(self, seconds: float = CONNECT_SECONDS) -> tuple[Model, ...]:
        """What it lists; raises VersoError, Passing."""
        self.listed = answers.models(await self._get(self.address + "/models", seconds), self.name)
        return self.listed

    async def version(self, seconds: float = CONNECT_SECONDS) -> str:
        """vLLM's version; "" where the server does not say."""
        try:
            said = msgspec.json.decode(await self._get(self._root() + "/version", seconds))
            return str(said["version"])[:40]
        except Exception:  # noqa: BLE001 - nice to know, nothing more
            return ""

    async def metrics(self, seconds: float = CONNECT_SECONDS) -> str:
        """Its Prometheus metrics; "" where it shows none."""
        try:
            return (await self._get(self._root() + "/metrics", seconds)).decode("utf-8", "replace")
        except Exception:  # noqa: BLE001 - nice to know, nothing more
            return ""

    async def tokens(self, text: str, model: str,
                     seconds: float = CONNECT_SECONDS) -> tuple[int, ...]:
        """TEXT's token ids, special tokens as such; empty where the server does not tell."""
        body = msgspec.json.encode(
            {"model": model, "prompt": text, "add_special_tokens": False})
        try:
            said = msgspec.json.decode(
                await self._whole("POST", self._root() + "/tokenize", seconds, body))
            return tuple(int(token) for token in said["tokens"])
        except Exception:  # noqa: BLE001 - nice to know, nothing more
            return ()

    async def chat(self, body: bytes, model: str, silence: float) -> AsyncGenerator[Chunk, None]:
        """The answer to BODY (JSON of /chat/completions) as it comes.

        SILENCE: seconds without anything after which it counts as broken. A server's comments
        ("keep-alive") count as a sign of life until the first text only: afterwards it has no
        reason to wait. Raises VersoError, Passing; closing the iterator closes the connection,
        by which vLLM notices that nobody wants the answer any more.
        """
        asked = Asked(self.name, self.address, model, len(body),
                      tuple(model.name for model in self.listed))
        timeout = httpx.Timeout(silence, connect=min(CONNECT_SECONDS, silence), pool=None)
        request = self._client.build_request(
            "POST", self.address + "/chat/completions", content=body, timeout=timeout,
            headers={"Content-Type": "application/json", "Accept": "text/event-stream"})
        with _translated(self, silence) as heard:
            response = await self._send(request)
            pieces, ended = response.aiter_raw(), False
            try:
                if response.status_code != 200:
                    raise answers.refusal(response.status_code, response.headers,
                                          await _some(pieces, _ERROR_BYTES), asked, self.key)
                kind = response.headers.get("content-type", "")
                if "text/event-stream" in kind:
                    async with aclosing(self._stream(pieces, asked, silence)) as stream:
                        async for chunk in stream:
                            heard.text = heard.text or bool(chunk.text)
                            yield chunk
                    ended = True
                elif "json" in kind:
                    yield answers.chunk(await _all(pieces), asked, self.key)
                else:
                    raise NotOpenAI(server=self.name, reason=_("it answers with “{kind}”").format(
                        kind=self.key.redact(kind[:60])))
            finally:
                if ended:
                    self._part(response, pieces)
                else:
                    await _close(response)

    async def _send(self, request: httpx.Request) -> httpx.Response:
        """The beginning of the answer to REQUEST. A connection that was kept may be closed by the
        other side in the very moment it is used again; that is no failure of a server."""
        opened = False

        async def follow(step: str, _values: Any) -> None:
            nonlocal opened
            opened = opened or step.endswith("connect_tcp.started")

        request.extensions["trace"] = follow
        while True:  # Each time there is one kept connection less.
            try:
                return await self._client.send(request, stream=True)
            except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
                if opened:
                    raise
            log.debug("%s had closed a connection that was kept", self.name)

    def _part(self, response: httpx.Response, pieces: AsyncIterator[bytes]) -> None:
        """RESPONSE's answer is whole, its transfer perhaps not: only a connection that is at the
        end of it can be used for the next page. The page does not wait for that."""
        async def rest() -> None:
            async for _piece in pieces:
                pass

        async def part() -> None:
            try:
                await asyncio.wait_for(rest(), _PARTING_SECONDS)
            except (httpx.HTTPError, httpx.StreamError, OSError, asyncio.TimeoutError):
                # OSError: what TLS says of an end without its own.
                log.debug("%s keeps the connection of an answer that has ended", self.name)
            finally:
                await _close(response)

        task = asyncio.get_running_loop().create_task(part())
        self._parting.add(task)
        task.add_done_callback(self._parting.discard)

    async def _stream(self, pieces: AsyncIterator[bytes], asked: Asked,
                      silence: float) -> AsyncGenerator[Chunk, None]:
        """Chunks out of PIECES, to the end of the answer."""
        events, heard, begun, nothing = EventStream(), time.monotonic(), False, 0
        async for piece in pieces:
            found = events.feed(piece)
            if found:
                heard, nothing = time.monotonic(), 0
            elif begun and time.monotonic() - heard > silence:
                raise httpx.ReadTimeout("comments only")
            else:
                nothing += len(piece)
                if nothing > _ANSWER_BYTES:
                    raise Junk("no event in 16 MB")
            for data in found:
                if data == b"[DONE]":
                    return
                chunk = answers.chunk(data, asked, self.key)
                begun = begun or bool(chunk.text)
                yield chunk

    def _root(self) -> str:
        """Where vLLM's own paths begin."""
        return self.address.removesuffix("/v1")

    async def _get(self, url: str, seconds: float) -> bytes:
        return await self._whole("GET", url, seconds, None)

    async def _whole(self, method: str, url: str, seconds: float, body: Optional[bytes]) -> bytes:
        request = self._client.build_request(
            method, url, content=body, timeout=httpx.Timeout(seconds),
            headers={"Content-Type": "application/json"} if body else None)
        with _translated(self, seconds):
            response = await self._send(request)
            pieces = response.aiter_raw()
            try:
                if response.status_code != 200:
                    raise answers.refusal(
                        response.status_code, response.headers,
                        await _some(pieces, _ERROR_BYTES),
                        Asked(self.name, self.address), self.key)
                return await _all(pieces)
            finally:
                await _close(response)


async def _some(pieces: AsyncIterator[bytes], most: int) -> bytes:
    """The body's beginning; what breaks off is as good as what ends."""
    data = bytearray()
    try:
        async for piece in pieces:
            data += piece
            if len(data) >= most:
                break
    except httpx.HTTPError:
        return bytes(data[:most])
    return bytes(data[:most])


async def _all(pieces: AsyncIterator[bytes]) -> bytes:
    """The whole body; raises :class:`Junk` for one without measure."""
    data = bytearray()
    async for piece in pieces:
        data += piece
        if len(data) > _ANSWER_BYTES:
            raise Junk("an answer without end")
    return bytes(data)


async def _close(response: httpx.Response) -> None:
    # Also when this task is being cancelled: the server must notice.
    await asyncio.shield(response.aclose())


class _translated:  # noqa: N801 - used as a word after "with"
    """Turns what httpx raises into our errors; a message of its own never holds a header."""

    def __init__(self, connection: Connection, silence: float) -> None:
        self._name = connection.name
        self._redact: Callable[[str], str] = connection.key.redact
        self._silence = silence
        self.text = False
        """Whether the page has begun."""

    def __enter__(self) -> _translated:
        return self

    def __exit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        translated = self._of(error)
        if translated is not None:
            # "from None": the original's text is the server's, and so is its traceback's.
            raise translated from None

    def _of(self, error: Optional[BaseException]) -> Optional[Exception]:
        words: Mapping[str, str] = {"server": self._name}
        if isinstance(error, Junk):
            return Broken(_("{server} sends junk").format(**words))
        if isinstance(error, httpx.ConnectTimeout):
            return Away(_("no connection within {seconds:.0f} s").format(seconds=CONNECT_SECONDS))
        if isinstance(error, (httpx.ConnectError, httpx.ProxyError)):
            return self._connect(error)
        if isinstance(error, httpx.TimeoutException):
            kind = Broken if self.text else Silent
            return kind(_("{server} sent nothing for {seconds:.0f} s").format(
                seconds=self._silence, **words))
        if isinstance(error, (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError)):
            return Broken(_("{server} broke off the connection ({kind})").format(
                kind=type(error).__name__, **words))
        return None

    def _connect(self, error: BaseException) -> Exception:
        cause: Optional[BaseException] = error
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                return Certificate(server=self._name, reason=cause.verify_message)
            if isinstance(cause, ssl.SSLError):
                return Certificate(server=self._name, reason=_("it does not speak TLS as it should"
                                                               " ({reason})").format(
                    reason=cause.reason))
            if isinstance(cause, socket.gaierror):
                return Away(_("its name is not known"))
            cause = cause.__cause__ or cause.__context__
        text = str(error)
        if "CERTIFICATE" in text:
            return Certificate(server=self._name, reason=self._redact(text))
        return Away(_("no connection ({reason})").format(reason=self._redact(text)[:200]))
