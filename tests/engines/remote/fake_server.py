"""An OpenAI-compatible server of the tests' own: a real one on a real socket, in a thread.

It counts a page's tokens as the model does, writes what it is told, and fails in every way that
servers do. Each chat request takes the next entry of ``plan``; without one it is well.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from desktop.engines.visual_tokens import visual_tokens

PAGE = ("<|ref|>title<|/ref|><|det|>[[80, 60, 900, 110]]<|/det|>\n# Verso: a test page\n\n"
        "<|ref|>text<|/ref|><|det|>[[80, 130, 900, 400]]<|/det|>\nRead by a server.\n")
PROMPT = 11
"""Tokens of the prompt's words."""


@dataclass
class Refuse:
    """An answer that is no 200."""

    status: int
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Cut:
    """The connection is reset after so many pieces of text."""

    after: int = 0


@dataclass
class Stall:
    """Nothing more comes after so many pieces of text; COMMENTS: but for keep-alives."""

    after: int = 0
    comments: bool = False


@dataclass
class Raw:
    """These bytes as the body of a 200."""

    body: bytes
    kind: str = "text/event-stream"


@dataclass
class Say:
    """This text, with this finish reason; ENDING False: the stream just ends."""

    text: str
    finish: str | None = "stop"
    ending: bool = True


Plan = Refuse | Cut | Stall | Raw | Say


class FakeServer:
    """Use it as a context manager; ``url`` is its base address."""

    def __init__(self, *, key: str = "", tls: ssl.SSLContext | None = None) -> None:
        self.key = key
        self.models: list[dict[str, Any]] = [{"id": "DeepSeek-OCR-2", "max_model_len": 8192}]
        self.text = PAGE
        self.plan: list[Plan] = []
        self.always: Plan | None = None
        self.listing: Plan | None = None
        """Answer to a question for models."""
        self.piece = 8
        """Characters of a piece of text, which counts as one token."""
        self.pause = 0.0005
        """Seconds between two pieces."""
        self.hold = False
        """Every stream waits after three pieces as long as this is set."""
        self.linger = False
        """The transfer of an answer does not end with the answer."""
        self.idle: float | None = None
        """Seconds after an answer, when the connection is closed."""
        self.once = False
        """A connection is closed at its second request, as one that had been idle for too long."""
        self.connections = 0
        """That were opened."""
        self.squash = self.swallow = self.whole = False
        self.guard = self.usage = self.bias = self.tokenizer = True
        self.extra_tokens = 0
        self.metrics = ""
        self.chats: list[dict[str, Any]] = []
        """Bodies of chat requests."""
        self.headers: list[dict[str, str]] = []
        """Of every request."""
        self.listed = 0
        """Questions for models."""
        self.broken_off = 0
        """Streams that the other side closed before their end."""
        self.running = self.most_running = 0
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="fake-server", daemon=True)
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        # Bound beside the one that listens: while that is closed the port is given to nobody else.
        self._place = socket.socket()
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._place.bind(("127.0.0.1", 0))
        self.port: int = self._place.getsockname()[1]

    # --- life

    def __enter__(self) -> FakeServer:
        self._thread.start()
        self.call(self._listen)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()
        self._place.close()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/v1"

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    def stop(self) -> None:
        """Refuse connections, cut those there are: as if it had been killed."""
        self.call(self._stop)

    def start_again(self) -> None:
        """Listen at the same port."""
        self.call(self._listen)

    def call(self, function: Callable[[], Any]) -> None:
        asyncio.run_coroutine_threadsafe(function(), self._loop).result(60)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, ssl=self._tls, reuse_address=True)

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for writer in list(self._open):
                writer.transport.abort()
            self._server = None

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(lambda loop, context: None)
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))

    # --- HTTP

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        self.connections += 1
        try:
            while await self._request(reader, writer):
                # What is read here of the next request is lost: the connection ends with it.
                if self.once:
                    await reader.readexactly(1)
                    break
                if self.idle is not None:
                    await asyncio.sleep(self.idle)
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        start = await reader.readexactly(1)
        if start == b"\x16":  # A TLS hello: whoever speaks HTTP only says so.
            return await self._plain(writer, 400, "") and False
        head = (start + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in
                   (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        path = first.split()[1]
        self.headers.append({**headers, "path": path})
        if self.key and path.startswith("/v1") and headers.get("authorization") != (
                f"Bearer {self.key}"):
            return await self._plain(writer, 401, json.dumps({"error": "Unauthorized"}))
        if path == "/v1/models":
            self.listed += 1
            if isinstance(self.listing, Refuse):
                return await self._refuse(writer, self.listing, headers)
            if isinstance(self.listing, Raw):
                return await self._plain(writer, 200, self.listing.body.decode(),
                                         {"Content-Type": self.listing.kind})
            return await self._plain(writer, 200, json.dumps({"data": self.models}))
        if path == "/version":
            return await self._plain(writer, 200, json.dumps({"version": "0.32.0"}))
        if path == "/metrics":
            return await self._plain(writer, 200 if self.metrics else 404, self.metrics)
        if path == "/tokenize" and self.tokenizer:
            return await self._plain(writer, 200, json.dumps({"tokens": [77], "count": 1}))
        if path == "/v1/chat/completions":
            self.chats.append(json.loads(body))
            self.running += 1
            self.most_running = max(self.running, self.most_running)
            try:
                return await self._chat(self.chats[-1], reader, writer, headers)
            finally:
                self.running -= 1
        return await self._plain(writer, 404, json.dumps({"detail": "Not Found"}))

    async def _plain(self, writer: asyncio.StreamWriter, status: int, body: str,
                     headers: dict[str, str] | None = None) -> bool:
        data = body.encode()
        lines = {"Content-Type": "application/json", **(headers or {}),
                 "Content-Length": str(len(data))}
        writer.write(f"HTTP/1.1 {status} X\r\n".encode() + "".join(
            f"{name}: {value}\r\n" for name, value in lines.items()).encode() + b"\r\n" + data)
        await writer.drain()
        return True

    async def _refuse(self, writer: asyncio.StreamWriter, plan: Refuse,
                      headers: dict[str, str]) -> bool:
        body = plan.body.replace("{authorization}", headers.get("authorization", ""))
        return await self._plain(writer, plan.status, body, plan.headers)

    # --- chat

    async def _chat(self, body: dict[str, Any], reader: asyncio.StreamReader,
                    writer: asyncio.StreamWriter, headers: dict[str, str]) -> bool:
        plan = self.plan.pop(0) if self.plan else self.always
        if isinstance(plan, Refuse):
            return await self._refuse(writer, plan, headers)
        if body["model"] not in [model["id"] for model in self.models]:
            return await self._plain(writer, 404, json.dumps({"error": {
                "message": f"The model `{body['model']}` does not exist.", "code": 404}}))
        tokens, context = self._page_tokens(body), self.models[0].get("max_model_len") or 8192
        if tokens + body["max_tokens"] > context:
            return await self._plain(writer, 400, json.dumps({"error": {"code": 400, "message": (
                f"This model's maximum context length is {context} tokens. However, you requested "
                f"{body['max_tokens']} output tokens and your prompt contains {tokens}.")}}))
        pieces, finish, ending = self._pieces(body, plan)
        counts = {"prompt_tokens": tokens, "completion_tokens": 0} if self.usage else None
        if self.whole:
            if counts:
                counts["completion_tokens"] = len(pieces)
            return await self._plain(writer, 200, json.dumps({"usage": counts, "choices": [
                {"message": {"content": "".join(pieces)}, "finish_reason": finish}]}))
        kind = plan.kind if isinstance(plan, Raw) else "text/event-stream"
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n"
                     "Transfer-Encoding: chunked\r\n\r\n".encode())
        if isinstance(plan, Raw):
            for start in range(0, len(plan.body), 65536):
                await self._chunk(writer, plan.body[start:start + 65536])
            return await self._end(writer)
        for number, piece in enumerate(pieces):
            if isinstance(plan, (Cut, Stall)) and number == plan.after:
                break
            while self.hold and number == 3:
                await self._pause(reader, 0.01)
            if counts:
                counts["completion_tokens"] += 1
            await self._event(writer, piece, None, counts)
            await self._pause(reader, self.pause)
        if isinstance(plan, Cut):
            writer.transport.abort()
            return False
        if isinstance(plan, Stall):
            while plan.comments:
                await self._chunk(writer, b": keep-alive\n\n")
                await self._pause(reader, 0.1)
            await self._pause(reader, 3600)
        if ending:
            await self._event(writer, "", finish, counts)
            await self._chunk(writer, b"data: [DONE]\n\n")
            if self.linger:
                await self._pause(reader, 3600)
        return await self._end(writer)

    async def _pause(self, reader: asyncio.StreamReader, seconds: float) -> None:
        """Sleep; raises when the other side closes meanwhile."""
        try:
            await asyncio.wait_for(reader.read(1), seconds)
        except asyncio.TimeoutError:
            return
        except ConnectionError:
            self.broken_off += 1  # closed with something of ours unread
            raise
        self.broken_off += 1
        raise ConnectionError

    async def _event(self, writer: asyncio.StreamWriter, text: str, finish: str | None,
                     counts: dict[str, int] | None) -> None:
        data = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}],
                "usage": counts}
        await self._chunk(writer, f"data: {json.dumps(data)}\n\n".encode())

    async def _chunk(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        try:
            await writer.drain()
        except ConnectionError:
            self.broken_off += 1
            raise

    async def _end(self, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    def _pieces(self, body: dict[str, Any], plan: Plan | None) -> tuple[list[str], str | None,
                                                                        bool]:
        text = plan.text if isinstance(plan, Say) else self.text
        finish, ending = (plan.finish, plan.ending) if isinstance(plan, Say) else ("stop", True)
        if "logit_bias" in body and self.bias:
            assert body["logit_bias"] == {"77" if self.tokenizer else "128816": 100}
            pieces = ["<|ref|>"] * body["max_tokens"]
            if self.guard and "vllm_xargs" in body:
                pieces[2:] = [chr(97 + n) for n in range(len(pieces) - 2)]
            pieces = ["" if self.swallow and p == "<|ref|>" else p for p in pieces]
            return pieces, "length", True
        pieces = [text[n:n + self.piece] for n in range(0, len(text), self.piece)]
        if self.swallow and not body.get("vllm_xargs"):
            for tag in ("<|ref|>", "<|/ref|>", "<|det|>", "<|/det|>"):
                text = text.replace(tag, "")
            pieces = [text[n:n + self.piece] for n in range(0, len(text), self.piece)]
        if len(pieces) > body["max_tokens"]:
            return pieces[:body["max_tokens"]], "length", True
        return pieces, finish, ending

    def _page_tokens(self, body: dict[str, Any]) -> int:
        url = body["messages"][0]["content"][0]["image_url"]["url"]
        with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as image:
            size = image.size
        cost = visual_tokens(*size, crop="off" if self.squash else "auto").tokens
        return cost + PROMPT + self.extra_tokens
