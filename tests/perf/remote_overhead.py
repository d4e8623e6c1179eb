"""What the engine ``remote`` costs this machine: processor time a piece of text, and a page.

usage: python -m tests.perf.remote_overhead [--streams 64] [--pieces 1000] [--pace 25] [--worker]

The server is a process of its own that sends as fast as it is read, or --pace pieces a second to
each stream; one token a piece, each with token counts, as vLLM does. --worker measures the whole
worker process, with what it tells the application, in place of the engine alone. Processor time,
not time by the clock: it holds on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from desktop.client.client import EngineClient
from desktop.engines.base import Finish, Text
from desktop.engines.remote import testpage, upload
from desktop.engines.remote.engine import RemoteEngine
from desktop.protocol.messages import EngineReady, PageFinished, SubmitPage


def serve(pipe: Connection, pieces: int, pace: float) -> None:
    """A server that answers every chat with PIECES pieces, PACE a second; 0: at once."""
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
    asked = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = [line for line in head.split("\r\n") if line.startswith("content-length")]
                body = b""
                if length:
                    body = await reader.readexactly(int(length[0].split(":")[1]))
                if head.startswith("post /v1/chat"):
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                 b"Transfer-Encoding: chunked\r\n\r\n")
                    # Not the probe's, whose time is not measured.
                    slow = pace if b'"max_tokens":64' not in body and b"ignore_eos" not in body \
                        else 0
                    asked += 1
                    due = time.monotonic() + 0.37 * asked % 1 / (slow or 1)
                    for data in events:  # Apart, as a model makes them.
                        writer.write(data)
                        await writer.drain()
                        due += 1 / slow if slow else 0
                        await asyncio.sleep(max(0.0, due - time.monotonic()) if slow else 0)
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


def preparing(page: SubmitPage) -> float:
    """Seconds of processor that making a page's image takes."""
    upload.prepare(page)
    begin = time.process_time()
    sent = [upload.prepare(page) for _ in range(5)]
    seconds = (time.process_time() - begin) / 5
    print(f"page image: {sent[0].size / 1e6:.2f} MB, {1000 * seconds:.0f} ms of processor")
    return seconds


async def engine_alone(port: int, streams: int, page: SubmitPage) -> tuple[float, float]:
    """Read as many pages as STREAMS, all at once: seconds of processor, and by the clock."""
    engine = RemoteEngine()
    await engine.start({"servers": f"http://127.0.0.1:{port}/v1"}, lambda *_: None)
    engine.set_concurrency(streams)

    async def one() -> None:
        async for output in engine.read(page):
            assert not isinstance(output, Finish) or output.reason == "complete"
            assert not isinstance(output, Text) or output.text

    begin, wall = time.process_time(), time.monotonic()
    await asyncio.gather(*(one() for _ in range(streams)))
    found = time.process_time() - begin, time.monotonic() - wall
    await engine.close()
    return found


def whole_worker(port: int, streams: int, page: SubmitPage) -> tuple[float, float]:
    """The same of the worker, as the application uses it."""
    ready, left, done = threading.Event(), streams, threading.Event()

    def listen(event: object) -> None:
        nonlocal left
        if isinstance(event, EngineReady):
            ready.set()
        elif isinstance(event, PageFinished):
            assert event.finish == "complete", event
            left -= 1
            if not left:
                done.set()

    client = EngineClient(listen)
    client.start("remote", {"servers": f"http://127.0.0.1:{port}/v1", "concurrency": streams})
    assert ready.wait(60)
    [pid] = [int(name) for name in os.listdir("/proc") if name.isdigit() and _is_worker(name)]
    begin, wall = _spent(pid), time.monotonic()
    for number in range(streams):
        client.submit(SubmitPage(f"p{number}", page.image, page.width, page.height))
    assert done.wait(120)
    found = _spent(pid) - begin, time.monotonic() - wall
    client.close()
    return found


def _is_worker(pid: str) -> bool:
    try:
        words = Path("/proc", pid, "stat").read_text("utf-8").rpartition(")")[2].split()
        return int(words[1]) == os.getpid() and b"desktop.worker" in Path(
            "/proc", pid, "cmdline").read_bytes()
    except OSError:
        return False


def _spent(pid: int) -> float:
    """Seconds of processor of a process and its threads."""
    words = Path("/proc", str(pid), "stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / float(os.sysconf("SC_CLK_TCK"))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--pieces", type=int, default=1000)
    parser.add_argument("--pace", type=float, default=0.0)
    parser.add_argument("--worker", action="store_true")
    args = parser.parse_args()
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=serve, args=(there, args.pieces, args.pace), daemon=True)
    process.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "page.ppm"
            testpage.draw(testpage.LARGE).save(path)
            page = SubmitPage("p", str(path), *testpage.LARGE)
            prepare = preparing(page)
            port = here.recv()
            whole, wall = (whole_worker(port, args.streams, page) if args.worker else
                           asyncio.run(engine_alone(port, args.streams, page)))
    finally:
        process.kill()
        process.join()
    pieces, streaming = args.streams * args.pieces, whole - prepare * args.streams
    print(f"{args.streams} streams × {args.pieces} pieces: {1e6 * streaming / pieces:.0f} µs of "
          f"processor a piece, {pieces / streaming:.0f} pieces/s of one core "
          f"({wall:.1f} s by the clock)")


if __name__ == "__main__":
    main()
