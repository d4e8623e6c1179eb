"""What the engine ``remote`` costs this machine: processor time a piece of text, and a page.

usage: python -m tests.perf.remote_overhead [--streams 64] [--pieces 1000]

The server is a process of its own that sends as fast as it is read, one token a piece, each with
token counts, as vLLM does. Processor time, not time by the clock: it holds on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from desktop.engines.base import Finish, Text
from desktop.engines.remote import testpage, upload
from desktop.engines.remote.engine import RemoteEngine
from desktop.protocol.messages import SubmitPage


def serve(pipe: Connection, pieces: int) -> None:
    """A server that answers every chat with PIECES pieces."""
    def event(number: int, finish: str | None) -> bytes:
        data = json.dumps({
            "id": "chatcmpl-0123456789abcdef0123456789abcdef", "object": "chat.completion.chunk",
            "created": 1764000000, "model": "m", "choices": [{
                "index": 0, "delta": {"content": " word"}, "logprobs": None,
                "finish_reason": finish, "token_ids": None}],
            "usage": {"prompt_tokens": 1132, "total_tokens": 1132 + number,
                      "completion_tokens": number}})
        line = f"data: {data}\n\n".encode()
        return f"{len(line):x}\r\n".encode() + line + b"\r\n"

    events = [event(number, None) for number in range(1, pieces)] + [event(pieces, "stop")]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = [line for line in head.split("\r\n") if line.startswith("content-length")]
                if length:
                    await reader.readexactly(int(length[0].split(":")[1]))
                if head.startswith("post /v1/chat"):
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                 b"Transfer-Encoding: chunked\r\n\r\n")
                    for data in events:  # Apart, as a model makes them.
                        writer.write(data)
                        await writer.drain()
                        await asyncio.sleep(0)
                    writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
                else:
                    body = b'{"data": [{"id": "m", "max_model_len": 8192}]}'
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                 b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
        server.close()

    asyncio.run(main())


async def measure(port: int, streams: int, pieces: int, folder: Path) -> None:
    """Read as many pages as STREAMS, all at once."""
    path = folder / "page.ppm"
    testpage.draw(testpage.LARGE).save(path)
    page = SubmitPage("p", str(path), *testpage.LARGE)
    engine = RemoteEngine()
    await engine.start({"servers": f"http://127.0.0.1:{port}/v1"}, lambda *_: None)
    engine.set_concurrency(streams)
    upload.prepare(page)
    begin = time.process_time()
    sent = [upload.prepare(page) for _ in range(5)]
    prepare = (time.process_time() - begin) / 5
    first, tokens = 0.0, 0

    async def one() -> None:
        nonlocal first, tokens
        async for output in engine.read(page):
            if isinstance(output, Text):
                first = first or time.process_time()
                tokens += output.tokens
            assert not isinstance(output, Finish) or output.reason == "complete"

    begin = time.process_time()
    wall = time.monotonic()
    await asyncio.gather(*(one() for _ in range(streams)))
    whole, wall = time.process_time() - begin, time.monotonic() - wall
    await engine.close()
    assert tokens == streams * pieces
    streaming = whole - prepare * streams
    print(f"page image: {sent[0].size / 1e6:.2f} MB, {1000 * prepare:.0f} ms of processor")
    print(f"{streams} streams × {pieces} pieces: {1e6 * streaming / tokens:.0f} µs of processor a "
          f"piece, {tokens / streaming:.0f} pieces/s of one core ({wall:.1f} s by the clock)")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--pieces", type=int, default=1000)
    args = parser.parse_args()
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=serve, args=(there, args.pieces), daemon=True)
    process.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measure(here.recv(), args.streams, args.pieces, Path(folder)))
    finally:
        process.kill()
        process.join()


if __name__ == "__main__":
    main()
