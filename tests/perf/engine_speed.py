"""Pages per second of the built-in engine against Tesseract 5 on the same page images.

Both use all cores: the engine reads pages side by side in threads, Tesseract in processes of one
thread each. Best of N rounds, the two in turns, so that other load hits both. A page that the
engine does not finish counts as if it had taken as long as all others together. JSON on stdout.

    python tests/perf/engine_speed.py [--kind digital|scanned] [--rounds 5] [--pages N]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from engine_pages import Page, drawn, finished, read, reader

CORES = len(os.sched_getaffinity(0))
_ENGLISH = "eng"


def tesseract(page: Page) -> float:
    """CPU-seconds that Tesseract takes for PAGE."""
    languages = "chi_sim+eng" if "chinese" in page.name or page.name.startswith("mu_") else _ENGLISH
    process = subprocess.Popen(["tesseract", page.image, "-", "-l", languages],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={**os.environ, "OMP_THREAD_LIMIT": "1"})
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime if process.returncode == 0 else float("inf")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=("digital", "scanned"), default="digital")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pages", type=int, default=0)
    parser.add_argument("--detail", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pages = drawn(Path(folder), lambda page: page["kind"] == options.kind)
        pages = pages[:options.pages or None]
        engine = reader()
        read(engine, pages[0])
        ours: list[dict[str, Any]] = []
        theirs: list[dict[str, Any]] = []
        for _ in range(options.rounds):
            ours.append(_engine_round(engine, pages))
            theirs.append(_tesseract_round(pages))
    ours_best, theirs_best = (min(r["wall_s"] for r in rounds) for rounds in (ours, theirs))
    result = {
        "kind": options.kind, "cores": CORES, "pages": len(pages), "rounds": options.rounds,
        "failed": ours[0]["failed"],
        "engine": {"wall_s": round(ours_best, 2),
                   "pages_per_s": round(len(pages) / ours_best, 3),
                   "cpu_s_per_page": round(min(r["cpu_s"] for r in ours) / len(pages), 3)},
        "tesseract": {"wall_s": round(theirs_best, 2),
                      "pages_per_s": round(len(pages) / theirs_best, 3),
                      "cpu_s_per_page": round(min(r["cpu_s"] for r in theirs) / len(pages), 3)},
        "ratio": round(theirs_best / ours_best, 3),
        "ratio_cpu": round(min(r["cpu_s"] for r in theirs) / min(r["cpu_s"] for r in ours), 3),
    }
    if options.detail:
        result["detail"] = [{"page": page.name, "engine_s": round(a, 2), "tesseract_cpu_s":
                             round(b, 2)} for page, a, b in
                            zip(pages, ours[0]["each"], theirs[0]["each"], strict=True)]
    json.dump(result, sys.stdout, indent=1)
    print()


def _engine_round(engine: Any, pages: list[Page]) -> dict[str, Any]:
    def one(page: Page) -> tuple[float, bool]:
        start = time.thread_time()
        ok = finished(read(engine, page)) in ("complete", "blank", "empty")
        return time.thread_time() - start, ok

    start, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(CORES) as threads:
        done = list(threads.map(one, pages))
    wall, used = time.perf_counter() - start, time.process_time() - cpu
    failed = sum(not ok for _, ok in done)
    return {"wall_s": wall * (1 + failed), "cpu_s": used * (1 + failed), "failed": failed,
            "each": [seconds for seconds, _ in done]}


def _tesseract_round(pages: list[Page]) -> dict[str, Any]:
    start = time.perf_counter()
    with ThreadPoolExecutor(CORES) as threads:
        done = list(threads.map(tesseract, pages))
    return {"wall_s": time.perf_counter() - start, "cpu_s": sum(done), "each": done}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
