"""``verso convert`` on a GPU, its worker killed and then itself: what is left of them, processes
and device memory.

    python tests/perf/gpu/killed.py --model DIR --out FILE --pdf FILE
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import load
import psutil
from documents import gone, make_pdf, tree


def until(holds: Callable[[], Any], seconds: float) -> Any:
    """What HOLDS says once it is true; raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := holds():
            return found
        time.sleep(0.1)
    raise TimeoutError


def workers(pid: int) -> list[int]:
    """Worker processes that PID started."""
    found = []
    for process in psutil.Process(pid).children(recursive=True):
        try:
            if "desktop.worker" in " ".join(process.cmdline()):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def freed(before: int, seconds: float = 15.0) -> dict[str, Any]:
    """Until the device holds no more than BEFORE MiB."""
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        used = load.device()["used_mib"]
        if used is None or used <= before:
            return {"s": round(time.monotonic() - started, 2), "used_mib": used}
        time.sleep(0.1)
    return {"s": None, "used_mib": load.device()["used_mib"]}


def main(args: argparse.Namespace) -> None:
    """Start it; kill its worker while pages are read and wait until they are again; kill it."""
    report = load.Report(args.out)
    before = load.device()["used_mib"] or 0
    log = Path(tempfile.mkdtemp(prefix="verso-killed-")) / "log.txt"
    out = log.parent / "out"
    words = [sys.executable, "-m", "desktop", "convert", str(args.pdf), "-o", str(out),
             "--engine", "vllm", "--model", str(args.model), "--loop-guard", "off",
             "--max-tokens", "512", "--text-layer", "never",
             *(f"--engine-arg={pair}" for pair in args.engine_arg), *args.option]

    def finished() -> int:
        """Pages that it said were done."""
        return int(max(re.findall(r"(\d+) of \d+ pages", log.read_text()), key=int, default=0))

    with log.open("wb") as file, subprocess.Popen(words, stdout=file, stderr=file) as process:
        try:
            began = time.monotonic()
            until(lambda: finished() >= args.least, 240)
            report.put("reading_after_s", round(time.monotonic() - began, 1))
            report.put("device_reading", load.device())
            if not args.application_only:
                first = workers(process.pid)
                family = [pid for worker in first for pid in tree(worker)]
                os.kill(first[0], signal.SIGKILL)
                report.put("worker_killed", {"processes": len(family), **gone(family, 15)})
                done = finished()
                again = until(lambda: [pid for pid in workers(process.pid) if pid not in first], 60)
                until(lambda: finished() >= done + args.least, 240)
                report.put("reading_again", {"worker": again, "device": load.device()})
            family = tree(process.pid)
            process.kill()
            report.put("application_killed", {"processes": len(family), **gone(family[1:], 15)})
            report.put("device_memory_free_again", freed(before))
            report.put("left", load.vllm_processes())
        finally:
            process.kill()
            print(log.read_text()[-3000:], file=sys.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pdf", type=Path, required=True, help="made where it is missing")
    parser.add_argument("--pages", type=int, default=1500)
    parser.add_argument("--least", type=int, default=8, help="pages that say it is reading")
    parser.add_argument("--application-only", action="store_true")
    parser.add_argument("--engine-arg", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--option", action="append", default=[], help="of verso convert")
    options = parser.parse_args()
    if not options.pdf.exists():
        make_pdf(options.pdf, options.pages)
    main(options)
