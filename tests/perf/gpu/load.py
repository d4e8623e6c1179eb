"""What the benchmarks share: pages, closed loops of requests, and what the machine does."""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

SIZE = (1190, 1684)
"""Pixels of an A4 page at 144 dpi: 1121 visual tokens."""
PAGES = 24
"""Different pages; they are used again in turn."""
STARTED = time.monotonic()


def say(*words: object) -> None:
    """A line on stderr with the seconds since the start."""
    print(f"[{time.monotonic() - STARTED:7.2f}]", *words, file=sys.stderr, flush=True)


def page_files(folder: Path, count: int = PAGES) -> list[Path]:
    """COUNT pages of lines of words as binary PPM in FOLDER, drawn where they are missing."""
    from PIL import Image, ImageDraw, ImageFont

    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{number:03}.ppm" for number in range(count)]
    for number, file in enumerate(files):
        if file.exists():
            continue
        words = random.Random(number)
        image = Image.new("RGB", SIZE, "white")
        pen, font = ImageDraw.Draw(image), ImageFont.load_default(18)
        for top in range(80, SIZE[1] - 80, 26):
            pen.text((90, top), " ".join(
                "".join(words.choices("abcdefghijklmnoprstuvw", k=words.randint(2, 9)))
                for _ in range(17)), fill="black", font=font)
        image.save(file)
    return files


@dataclass(frozen=True)
class Level:
    """LENGTH output tokens, CONCURRENCY requests at once, COUNT in all."""

    length: int
    concurrency: int
    count: int

    @classmethod
    def parse(cls, text: str) -> list[Level]:
        """``256@64,100*2;1024@100*1.5``: lengths, concurrencies, requests a slot."""
        found = []
        for group in text.split(";"):
            length, _, rest = group.partition("@")
            levels, _, each = rest.partition("*")
            found += [cls(int(length), int(level), max(int(level), round(int(level) * float(each))))
                      for level in levels.split(",")]
        return found

    def __str__(self) -> str:
        return f"{self.length}@{self.concurrency}"


@dataclass
class Request:
    """What one request took; seconds on ``time.perf_counter``."""

    started: float
    first: float = 0.0
    ended: float = 0.0
    prompt: int = 0
    output: int = 0
    deltas: int = 0
    finish: str = ""


class Machine(threading.Thread):
    """Samples how busy the GPU is, and adds up the processor seconds of a tree of processes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._busy: list[int] = []
        self._on = False
        self._before: dict[str, float] = {}
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml, self._device = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)
        except Exception as error:  # noqa: BLE001 - without a GPU the rest is measured all the same
            say("no GPU to watch:", error)
            self._nvml = None
        self.start()

    def run(self) -> None:
        while True:
            if self._on and self._nvml is not None:
                self._busy.append(self._nvml.nvmlDeviceGetUtilizationRates(self._device).gpu)
            time.sleep(0.1)

    def begin(self) -> None:
        """Start a span."""
        self._before, self._busy, self._on = self._processor(), [], True

    def end(self) -> dict[str, Any]:
        """``gpu_busy`` in percent and ``cpu_s`` for each process of the tree, since the start."""
        self._on = False
        after = self._processor()
        spent = {name: round(seconds - self._before.get(name, 0.0), 2)
                 for name, seconds in after.items()}
        return {"gpu_busy": round(statistics.mean(self._busy), 1) if self._busy else None,
                "cpu_s": {name: s for name, s in spent.items() if s > 0.2}}

    @staticmethod
    def _processor() -> dict[str, float]:
        import psutil

        own = psutil.Process()
        found = {}
        for process in [own, *own.children(recursive=True)]:
            try:
                times = process.cpu_times()
                found[f"{process.name()[:20]}:{process.pid}"] = times.user + times.system
            except psutil.Error:
                continue
        return found


async def closed_loop(level: Level, machine: Machine,
                      one: Callable[[int, Request], Awaitable[None]]) -> dict[str, Any]:
    """LEVEL's requests: ONE(number, record) makes one; a new one begins when another ends."""
    numbers = iter(range(level.count))
    records: list[Request] = []

    async def slot() -> None:
        for number in numbers:
            record = Request(time.perf_counter())
            records.append(record)
            await one(number, record)
            record.ended = time.perf_counter()

    machine.begin()
    started = time.perf_counter()
    await asyncio.gather(*(slot() for _ in range(min(level.concurrency, level.count))))
    return {**summary(level, records, time.perf_counter() - started), **machine.end()}


def summary(level: Level, records: list[Request], wall: float) -> dict[str, Any]:
    """Rates and times of RECORDS, which took WALL seconds together."""
    output, prompt = sum(r.output for r in records), sum(r.prompt for r in records)
    firsts = sorted(r.first - r.started for r in records if r.first)
    return {
        "level": str(level), "length": level.length, "concurrency": level.concurrency,
        "pages": len(records), "wall_s": round(wall, 2), "pages_s": round(len(records) / wall, 3),
        "output_tokens_s": round(output / wall, 1),
        "total_tokens_s": round((output + prompt) / wall, 1),
        "output_tokens": output, "short": sum(r.output < level.length for r in records),
        "prompt_tokens": records[0].prompt if records else 0,
        "first_s_median": round(statistics.median(firsts), 3) if firsts else None,
        "deltas": sum(r.deltas for r in records),
        "latency_s_median": round(statistics.median(r.ended - r.started for r in records), 3),
    }


@dataclass
class Report:
    """Results of one program, written after each step so that none is lost to a time limit."""

    path: Path
    values: dict[str, Any] = field(default_factory=dict)

    def put(self, key: str, value: Any) -> None:
        """Keep VALUE and say it."""
        self.values[key] = value
        say(key, json.dumps(value, default=str)[:600])
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.values, indent=1, default=str), encoding="utf-8")


def device() -> dict[str, Any]:
    """Memory of the device in MiB and who holds it; empty where there is none."""
    def ask(*query: str) -> list[str]:
        try:
            out = subprocess.run(["nvidia-smi", *query, "--format=csv,noheader,nounits"],
                                 capture_output=True, text=True, check=False, timeout=30).stdout
        except FileNotFoundError:
            return []
        return [line.strip() for line in out.splitlines() if line.strip()]

    used = ask("--query-gpu=memory.used")
    return {"used_mib": int(used[0]) if used else None,
            "processes": ask("--query-compute-apps=pid,process_name,used_memory")}


def vllm_processes(besides: Iterable[int] = ()) -> list[str]:
    """Processes of vLLM or of a worker of ours that live, besides those with the ids BESIDES."""
    import psutil

    skip = {os.getpid(), *besides}
    found = []
    for process in psutil.process_iter(["pid", "name", "cmdline", "status"]):
        info = process.info
        words = " ".join(info["cmdline"] or [info["name"] or ""])
        if info["pid"] not in skip and info["status"] != psutil.STATUS_ZOMBIE and (
                "desktop.worker" in words or "VLLM" in words or "EngineCore" in words):
            found.append(f"{info['pid']} {words[:80]}")
    return found
