"""Peak memory of converting a 2,000-page PDF over that of a 20-page one.

    python tests/perf/memory_2000.py [--pages 2000] [--kind mixed|text] [--output FILE]

`verso convert` reads both with the scripted engine, which costs nothing, so that what is seen is
the application and its drawing processes; the worker is measured apart. ``mixed``: 40 lines, 40
rules and a picture on every page; ``text``: pages full of words, set in paragraphs. Memory is
measured twice, as the sum of resident set sizes (``rss``: what processes share counts in each) and
of proportional ones (``pss``: what they share counts once); ``application_mb`` and ``intake_mb``
are medians of each tenth of the run, which show whether something grows. Prints one JSON document;
exit status 1 when either ratio is above the bar.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import pymupdf

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.perf.intake_memory import make  # noqa: E402

BAR = 1.15
TEXT = ("<|ref|>title<|/ref|><|det|>[[100, 50, 900, 90]]<|/det|>\n# A title\n\n"
        + "".join(f"<|ref|>text<|/ref|><|det|>[[100, {100 + 20 * line}, 900, {118 + 20 * line}]]"
                  f"<|/det|>\n{'A line of running text. ' * 8}\n\n" for line in range(30))
        + "<|ref|>image<|/ref|><|det|>[[100, 720, 500, 900]]<|/det|>\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--kind", choices=("mixed", "text"), default="mixed")
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        few = measure(Path(name), 20, args.kind)
        many = measure(Path(name), args.pages, args.kind)
    ratios = {kind: round(many["peak_mb"][kind] / few["peak_mb"][kind], 3)
              for kind in ("rss", "pss")}
    met = all(ratio <= BAR for ratio in ratios.values())
    document = {"version": 1, "what": "peak memory, application and intake", "kind": args.kind,
                "bar": BAR, "ratio": ratios, "met": met, "runs": [few, many],
                "machine": {"cores": os.cpu_count()}}
    text = json.dumps(document, indent=2)
    print(text)
    if args.output:
        args.output.write_text(text + "\n")
    return 0 if met else 1


def measure(folder: Path, pages: int, kind: str) -> dict[str, Any]:
    """Convert a document of so many pages; what it took."""
    source = folder / f"pages-{pages}.pdf"
    (make if kind == "mixed" else make_text)(source, pages)
    script = folder / "script.json"
    script.write_text(json.dumps({"capacity": 2, "pages": [
        {"text": TEXT, "rate": 0, "delta": 400, "regions": True, "confidence": 0.9}]}))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for place in ("cache", "config", "data", "log"):
        environment[f"VERSO_{place.upper()}_DIR"] = str(folder / place)
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "desktop", "convert", str(source),
         "-o", str(folder / f"out-{pages}"),
         "--engine", "scripted", "--engine-arg", f"script={script}"],
        cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    peak = {"rss": 0.0, "pss": 0.0}
    series: list[dict[str, dict[str, float]]] = []
    disk = 0.0
    while process.poll() is None:
        parts = memory(process.pid)
        series.append(parts)
        for metric in peak:
            peak[metric] = max(peak[metric],
                               sum(parts[role][metric] for role in ("application", "intake")))
        disk = max(disk, sum(_size(path) for path in (folder / "cache").rglob("*.ppm")))
        time.sleep(0.1)
    assert process.stderr is not None
    errors = process.stderr.read()
    if process.returncode:
        raise SystemExit(f"verso convert ended with {process.returncode}: {errors[-2000:]}")
    report = json.loads((folder / f"out-{pages}" / f"pages-{pages}"
                         / f"pages-{pages}.json").read_text())
    assert [page["status"] for page in report["pages"]] == ["complete"] * pages
    return {"pages": pages, "peak_mb": {key: round(value, 1) for key, value in peak.items()},
            **{f"{role}_mb": {metric: _tenths([parts[role][metric] for parts in series])
                              for metric in peak} for role in ("application", "intake")},
            "worker_peak_mb": round(max(parts["worker"]["rss"] for parts in series), 1),
            "bitmaps_peak_mb": round(disk / 1e6, 1),
            "seconds": round(time.monotonic() - started, 1)}


def make_text(path: Path, pages: int) -> None:
    """A PDF of PAGES pages full of words, no two of them alike."""
    chance = random.Random(2)
    with pymupdf.open() as document:
        for number in range(1, pages + 1):
            page = document.new_page(width=595, height=842)
            text = "\n\n".join(
                " ".join("".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 10)))
                         for _ in range(120)) for _ in range(6))
            page.insert_textbox((60, 60, 535, 790), f"{number}\n{text}", fontsize=9)
        document.save(path, deflate=True)


def _tenths(values: list[float]) -> list[float]:
    """The median of each tenth."""
    size = max(1, len(values) // 10)
    return [round(statistics.median(values[at:at + size]), 1)
            for at in range(0, size * 10, size) if values[at:at + size]]


def memory(pid: int) -> dict[str, dict[str, float]]:
    """MB of the process and its descendants, by role and metric."""
    parts = {role: {"rss": 0.0, "pss": 0.0} for role in ("application", "intake", "worker")}
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return parts
    for process in family:
        try:
            words = " ".join(process.cmdline())
            size = process.memory_full_info()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        role = ("application" if process.pid == pid else
                "worker" if "desktop.worker" in words else "intake")
        parts[role]["rss"] += size.rss / 1e6
        parts[role]["pss"] += size.pss / 1e6
    return parts


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
