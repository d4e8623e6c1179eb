"""Our worker: EngineClient, a real worker process, the engine ``vllm``, pages as PPM files.

    python tests/perf/gpu/worker.py --model DIR --out FILE --levels '256@64,100*2'
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import load

from desktop.client.client import EngineClient, WorkerDied
from desktop.protocol.messages import (
    EngineFailed,
    EngineReady,
    LogLine,
    PageFinished,
    PageText,
    SubmitPage,
)
from desktop.settings import Values


class Pages:
    """The client's events as futures of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, interpreter: str | None) -> None:
        self._loop = loop
        self.ready: asyncio.Future[EngineReady] = loop.create_future()
        self._records: dict[str, load.Request] = {}
        self._ends: dict[str, asyncio.Future[PageFinished]] = {}
        self._numbers = itertools.count()
        self.finishes: dict[str, int] = {}
        self.client = EngineClient(self.arrived, interpreter=interpreter)

    def arrived(self, event: Any) -> None:
        """On the client's reader thread."""
        match event:
            case PageText(page_id, _, tokens):
                record = self._records.get(page_id)
                if record is not None:
                    record.first = record.first or time.perf_counter()
                    record.output += tokens
                    record.deltas += 1
            case PageFinished(page_id):
                self._loop.call_soon_threadsafe(self._end, page_id, event)
            case EngineReady():
                self._loop.call_soon_threadsafe(self.ready.set_result, event)
            case EngineFailed() | WorkerDied():
                load.say(event)
                self._loop.call_soon_threadsafe(self._lost, event)
            case LogLine(level, source, text):
                if level >= 30 or "Verso" in text or "vllm" in source:
                    print(source, text[:240], file=sys.stderr)

    def submit(self, file: Path, record: load.Request, length: int,
               **settings: Any) -> tuple[str, asyncio.Future[PageFinished]]:
        """Hand over a page; its id and its end."""
        page_id = f"page-{next(self._numbers)}"
        self._records[page_id] = record
        end = self._ends[page_id] = self._loop.create_future()
        self.client.submit(SubmitPage(page_id, str(file), *load.SIZE, settings={
            "max_tokens": length, "loop_guard": False, **settings}))
        return page_id, end

    async def one(self, file: Path, record: load.Request, length: int) -> None:
        """Read a page."""
        _, end = self.submit(file, record, length)
        finished = await end
        record.prompt, record.output = finished.prompt_tokens, finished.output_tokens
        record.finish = finished.finish

    def _end(self, page_id: str, event: PageFinished) -> None:
        self.finishes[event.finish] = self.finishes.get(event.finish, 0) + 1
        if event.problem is not None:
            load.say(event.problem)
        self._records.pop(page_id, None)
        end = self._ends.pop(page_id, None)
        if end is not None and not end.done():
            end.set_result(event)

    def _lost(self, event: Any) -> None:
        for end in (self.ready, *self._ends.values()):
            if not end.done():
                end.set_exception(RuntimeError(str(event)[:300]))


async def main(args: argparse.Namespace) -> None:
    """Start, measure, cancel, close."""
    report = load.Report(args.out)
    machine = load.Machine()
    files = load.page_files(args.pages)
    before = load.device()
    pages = Pages(asyncio.get_running_loop(), args.interpreter)
    settings: dict[str, Any] = {
        **Values({"engine": "vllm", "model": str(args.model), "loop_guard": False}).as_dict(),
        **dict(pair.split("=", 1) for pair in args.set),
        "engine_args": dict(pair.split("=", 1) for pair in args.engine_arg)}
    started = time.monotonic()
    pages.client.start("vllm", settings)
    ready = await pages.ready
    report.put("start_s", round(time.monotonic() - started, 1))
    report.put("ready", {"capacity": ready.capacity, "cache_tokens": ready.cache_tokens,
                         "notes": ready.notes, "versions": ready.versions,
                         "device": ready.device})
    spans = []
    for number in range(6):
        record = load.Request(time.perf_counter())
        await pages.one(files[number], record, 256)
        spans.append({"s": round(time.perf_counter() - record.started, 3),
                      "first_text_s": round(record.first - record.started, 3)})
    later = sorted(span["s"] for span in spans[1:])[len(spans[1:]) // 2]
    report.put("first_page", {"pages": spans, "ratio": round(spans[0]["s"] / later, 3)})
    if args.profile:
        Path(args.profile + ".go").touch()
    for level in load.Level.parse(args.levels):
        if time.monotonic() - started > args.budget:
            load.say("no time left for", level)
            break
        async def one(number: int, record: load.Request, level: load.Level = level) -> None:
            await pages.one(files[number % len(files)], record, level.length)
        key = str(level)
        while key in report.values:
            key += " again"
        report.put(key, await load.closed_loop(level, machine, one))
        Path(args.profile + ".go").unlink(missing_ok=True)
    if args.cancel:
        report.put("cancel_50", await cancelled(pages, files))
    report.put("finishes", pages.finishes)
    started = time.monotonic()
    await asyncio.to_thread(pages.client.close, 30.0)
    report.put("close", {"s": round(time.monotonic() - started, 2), "before": before,
                         "device": load.device(), "processes": load.vllm_processes()})


async def cancelled(pages: Pages, files: list[Path]) -> dict[str, Any]:
    """50 pages in flight are cancelled; until the last has ended and another page is read."""
    flying = [pages.submit(files[number % len(files)], load.Request(0.0), 4096)
              for number in range(50)]
    await asyncio.sleep(6)
    started = time.perf_counter()
    for page_id, _ in flying:
        pages.client.cancel(page_id)
    ends = await asyncio.gather(*(end for _, end in flying))
    ended = time.perf_counter() - started
    record = load.Request(time.perf_counter())
    await pages.one(files[0], record, 16)
    return {"ended_s": round(ended, 3), "finishes": sorted({end.finish for end in ends}),
            "next_page_s": round(time.perf_counter() - record.started, 3)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--pages", type=Path, default=Path("/tmp/verso-gpu/pages"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--levels", default="256@64*2")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--engine-arg", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--interpreter", help="the Python that has vLLM; ours if not given")
    parser.add_argument("--budget", type=float, default=300)
    parser.add_argument("--cancel", action="store_true")
    parser.add_argument("--profile", default="")
    asyncio.run(main(parser.parse_args()))
