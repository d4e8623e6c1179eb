"""Peak memory of converting a 2,000-page PDF over that of a 20-page one.

    python tests/perf/memory_2000.py [--pages 2000] [--output FILE]

`verso convert` reads both with the scripted engine, which costs nothing, so that what is seen is
the application and its drawing processes; the worker is measured apart. Memory is the sum of
resident set sizes, sampled ten times a second. Prints one JSON document; exit status 1 when the
ratio is above the bar.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.perf.intake_memory import make  # noqa: E402

BAR = 1.15
TEXT = ("<|ref|>title<|/ref|><|det|>[[100, 50, 900, 90]]<|/det|>\n# A title\n\n"
        + "".join(f"<|ref|>text<|/ref|><|det|>[[100, {100 + 20 * line}, 900, {118 + 20 * line}]]"
                  f"<|/det|>\n{'A line of running text. ' * 8}\n\n" for line in range(30))
        + "<|ref|>image<|/ref|><|det|>[[100, 720, 500, 900]]<|/det|>\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few = measure(folder, 20)
        many = measure(folder, args.pages)
    ratio = round(many["peak_mb"] / few["peak_mb"], 3)
    document = {"version": 1, "what": "peak memory, application and intake", "bar": BAR,
                "ratio": ratio, "met": ratio <= BAR, "runs": [few, many],
                "machine": {"cores": os.cpu_count()}}
    text = json.dumps(document, indent=2)
    print(text)
    if args.output:
        args.output.write_text(text + "\n")
    return 0 if ratio <= BAR else 1


def measure(folder: Path, pages: int) -> dict[str, object]:
    """Convert a document of so many pages; what it took."""
    source = folder / f"pages-{pages}.pdf"
    make(source, pages)
    script = folder / "script.json"
    script.write_text(json.dumps({"capacity": 2, "pages": [
        {"text": TEXT, "rate": 0, "delta": 400, "regions": True, "confidence": 0.9}]}))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for kind in ("cache", "config", "data", "log"):
        environment[f"VERSO_{kind.upper()}_DIR"] = str(folder / kind)
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "desktop", "convert", str(source),
         "-o", str(folder / f"out-{pages}"),
         "--engine", "scripted", "--engine-arg", f"script={script}"],
        cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    peak = application = worker = disk = 0.0
    while process.poll() is None:
        parts = memory(process.pid)
        peak = max(peak, parts["application"] + parts["intake"])
        application = max(application, parts["application"])
        worker = max(worker, parts["worker"])
        disk = max(disk, sum(_size(path) for path in (folder / "cache").rglob("*.ppm")))
        time.sleep(0.1)
    assert process.stderr is not None
    errors = process.stderr.read()
    if process.returncode:
        raise SystemExit(f"verso convert ended with {process.returncode}: {errors[-2000:]}")
    report = json.loads((folder / f"out-{pages}" / f"pages-{pages}"
                         / f"pages-{pages}.json").read_text())
    assert [page["status"] for page in report["pages"]] == ["complete"] * pages
    return {"pages": pages, "peak_mb": round(peak, 1),
            "application_peak_mb": round(application, 1), "worker_peak_mb": round(worker, 1),
            "bitmaps_peak_mb": round(disk / 1e6, 1),
            "seconds": round(time.monotonic() - started, 1)}


def memory(pid: int) -> dict[str, float]:
    """MB of the process and its descendants, by role."""
    parts = {"application": 0.0, "intake": 0.0, "worker": 0.0}
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return parts
    for process in family:
        try:
            words = " ".join(process.cmdline())
            size = process.memory_info().rss / 1e6
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        role = ("application" if process.pid == pid else
                "worker" if "desktop.worker" in words else "intake")
        parts[role] += size
    return parts


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
