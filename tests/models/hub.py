"""A model hub on this machine: speaks the APIs of Hugging Face and ModelScope, and misbehaves as
told. Large files lie on a second server (another port), as a hub's CDN."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support import processes

COMMIT = "aaa02f3811945a91062062994c5c4a3f4c0af2b0"
MODEL = "deepseek-ai/DeepSeek-OCR-2"


def weights(size: int = 3_000_000, seed: int = 1) -> bytes:
    """A safetensors file with one tensor of SIZE bytes."""
    data = hashlib.shake_256(bytes([seed])).digest(size)
    header = json.dumps({"model.embed": {
        "dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(header)) + header + data


def model_files(size: int = 3_000_000, seed: int = 1) -> dict[str, bytes]:
    """A small model as it lies on a hub, with what an engine needs and what it does not."""
    shard = "model-00001-of-000001.safetensors"
    return {
        "config.json": json.dumps({"architectures": ["DeepseekOCR2ForCausalLM"],
                                   "model_type": "deepseek_vl_v2"}).encode(),
        "model.safetensors.index.json": json.dumps({
            "metadata": {"total_size": size}, "weight_map": {"model.embed": shard}}).encode(),
        shard: weights(size, seed),
        "tokenizer.json": b'{"version": "1.0", "model": {"vocab": {}}}',
        "tokenizer_config.json": b'{"tokenizer_class": "PreTrainedTokenizerFast"}',
        "processor_config.json": b'{"processor_class": "DeepseekOCRProcessor"}',
        "special_tokens_map.json": b"{}",
        "modeling_deepseekocr2.py": b"# code\n",
        "LICENSE": b"MIT\n",
        "empty.txt": b"",
        "README.md": b"# not needed\n" * 100,
        ".gitattributes": b"*.safetensors filter=lfs\n",
        "assets/figure.png": b"not needed",
    }


SHARD = "model-00001-of-000001.safetensors"
LARGE = 1_000_000
"""Files from this size on lie in LFS, on the CDN."""


@dataclass
class Request:
    """What was asked of a server."""

    server: str
    path: str
    headers: dict[str, str]

    @property
    def range(self) -> str:
        """Its Range header."""
        return self.headers.get("range", "")


@dataclass
class Hub:
    """What the servers hold, how they misbehave, and what they were asked."""

    files: dict[str, bytes] = field(default_factory=model_files)
    address: str = ""
    cdn: str = ""
    token: str = ""
    """Without it 401."""
    ranges: bool = True
    etag: str = "one"
    """Of the CDN's files; empty: it sends none."""
    cut_after: int = 0
    """Bytes of a large file's body after which the connection is cut; 0: never."""
    cuts: int = -1
    """How many times; -1: always."""
    wrong: int = 0
    """How many answers with a large file hold a wrong byte; -1: all."""
    busy: list[tuple[int, dict[str, str | Callable[[], str]]]] = field(default_factory=list)
    """Answers that come first, once each: status and headers (a function: as it says then)."""
    cdn_busy: list[tuple[int, dict[str, str | Callable[[], str]]]] = field(default_factory=list)
    bytes_per_second: float = 0.0
    hold: threading.Event | None = None
    """A large file's body stops half way until this is set."""
    listed: list[dict[str, Any]] | None = None
    """In place of the true list (in the form of the hub that is asked)."""
    page: int = 100
    """Files of a page of Hugging Face's list."""
    requests: list[Request] = field(default_factory=list)
    sent: int = 0
    """Bytes of large files' bodies."""
    active: int = 0
    most_active: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, server: str, part: str = "") -> list[Request]:
        """Requests to SERVER (hub, cdn) whose path holds PART."""
        return [each for each in self.requests if each.server == server and part in each.path]

    def sent_in_all(self) -> int:
        """``sent``, once every answer has come to its end: who receives the last byte of one may
        go on before it is counted here."""
        processes.until(lambda: self.active == 0)
        return self.sent


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub
    role: str

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        hub = self.hub
        with hub.lock:
            hub.requests.append(Request(
                self.role, self.path, {k.lower(): v for k, v in self.headers.items()}))
            queue = hub.busy if self.role == "hub" else hub.cdn_busy
            trouble = queue.pop(0) if queue else None
        proxied = urlsplit(self.path)
        if proxied.netloc:  # asked as a proxy: answers for every host
            self.path = proxied._replace(scheme="", netloc="").geturl()
        if trouble is not None:
            self._answer(trouble[0], b"busy", {
                name: value() if callable(value) else value
                for name, value in trouble[1].items()})
        elif self.role == "cdn" or self.path.startswith("/signed/"):
            self._large(unquote(urlsplit(self.path).path.rpartition("/")[2]))
        elif hub.token and self.headers.get("Authorization") != f"Bearer {hub.token}":
            self._answer(401, b'{"error": "Invalid username or password."}', {})
        else:
            self._api()

    def _api(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        if url.path == f"/api/models/{MODEL}/revision/main":
            self._json({"sha": COMMIT})
        elif url.path == f"/api/models/{MODEL}/tree/{COMMIT}":
            self._tree(int(query.get("cursor", 0)))
        elif url.path.startswith(f"/{MODEL}/resolve/{COMMIT}/"):
            self._file(unquote(url.path.rpartition(f"/{COMMIT}/")[2]))
        elif url.path == f"/api/v1/models/{MODEL}/repo/files" and query["Revision"] == "master":
            self._scope_files()
        elif url.path == f"/api/v1/models/{MODEL}/repo" and query["Revision"] == "master":
            self._file(query["FilePath"])
        else:
            self._answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})

    def _tree(self, start: int) -> None:
        entries = self.hub.listed
        if entries is None:
            entries = [{"type": "directory", "path": "assets", "oid": "0" * 40, "size": 0}]
            for name, content in self.hub.files.items():
                entry: dict[str, Any] = {"type": "file", "path": name, "size": len(content)}
                blob = b"blob %d\0" % len(content) + content
                entry["oid"] = hashlib.sha1(blob, usedforsecurity=False).hexdigest()
                if len(content) >= LARGE:
                    entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(),
                                    "size": len(content), "pointerSize": 135}
                    entry["xetHash"] = "0" * 64
                entries.append(entry)
        more = {}
        if start + self.hub.page < len(entries):
            # As a mirror that passes on the hub's own addresses.
            more["Link"] = (f'<https://huggingface.co/api/models/{MODEL}/tree/{COMMIT}'
                            f'?cursor={start + self.hub.page}>; rel="next"')
        self._json(entries[start:start + self.hub.page], more)

    def _scope_files(self) -> None:
        entries = self.hub.listed
        if entries is None:
            entries = [{"Name": "assets", "Path": "assets", "Type": "tree", "Size": 0,
                        "Sha256": ""}]
            entries += [{"Name": name.rpartition("/")[2], "Path": name, "Type": "blob",
                         "Size": len(content), "IsLFS": len(content) >= LARGE,
                         "Sha256": hashlib.sha256(content).hexdigest().upper()}
                        for name, content in self.hub.files.items()]
        self._json({"Code": 200, "Message": "", "Success": True,
                    "Data": {"Files": entries, "IsVisual": False}})

    def _file(self, name: str) -> None:
        content = self.hub.files.get(name)
        if content is None:
            self._answer(404, b"", {"X-Error-Code": "EntryNotFound"})
        elif len(content) >= LARGE:
            self._answer(302, b"", {"Location": f"{self.hub.cdn}/signed/{name}?signature=secret",
                                    "X-Linked-Size": str(len(content))})
        else:
            self._answer(200, content, {"ETag": '"small"', "Content-Type": "text/plain"})

    def _large(self, name: str) -> None:
        hub, content = self.hub, self.hub.files[name]
        etag = f'"{hub.etag}"' if hub.etag else ""
        first, last, status = 0, len(content) - 1, 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        condition = self.headers.get("If-Range")
        if asked and hub.ranges and (condition is None or condition == etag):
            first = int(asked[1])
            last = min(last, int(asked[2] or last))
            status = 206
            if first > last:
                self._answer(416, b"", {"Content-Range": f"bytes */{len(content)}"})
                return
        body = content[first:last + 1]
        with hub.lock:
            if hub.wrong and len(body) > 100:
                hub.wrong -= 1
                body = body[:50] + bytes([body[50] ^ 1]) + body[51:]
            cut = hub.cut_after if hub.cut_after and hub.cuts and hub.cut_after < len(body) else 0
            if cut:
                hub.cuts -= 1
            hub.active += 1
            hub.most_active = max(hub.most_active, hub.active)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if hub.ranges:
            self.send_header("Accept-Ranges", "bytes")
        if etag:
            self.send_header("ETag", etag)
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.end_headers()
        try:
            self._send(body, cut)
        except OSError:
            self.close_connection = True  # the client has gone
        finally:
            with hub.lock:
                hub.active -= 1
        if cut:
            # A reset, not an orderly end.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                       struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()

    def _send(self, body: bytes, cut: int) -> None:
        hub = self.hub
        block = 16 * 1024
        end = cut or len(body)
        for start in range(0, end, block):
            if hub.hold is not None and start >= len(body) // 2:
                hub.hold.wait(60)
            piece = body[start:min(end, start + block)]
            self.wfile.write(piece)
            with hub.lock:
                hub.sent += len(piece)
            if hub.bytes_per_second:
                time.sleep(len(piece) / hub.bytes_per_second)

    def _json(self, document: object, headers: dict[str, str] | None = None) -> None:
        self._answer(200, json.dumps(document).encode(), {
            "Content-Type": "application/json", **(headers or {})})

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that the test cut."""


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """HUB's two servers, until the block ends."""
    servers = []
    for role in ("hub", "cdn"):
        handler = type("Handler", (_Handler,), {"hub": hub, "role": role})
        server = _Server(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        servers.append(server)
    hub.address, hub.cdn = (f"http://127.0.0.1:{each.server_address[1]}" for each in servers)
    try:
        yield hub
    finally:
        if hub.hold is not None:
            hub.hold.set()
        for server in servers:
            server.shutdown()
            server.server_close()
