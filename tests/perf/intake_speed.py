"""What drawing a page costs. Prints JSON.

Every page of FILE (default: the sample document) is drawn at 144 dpi with words: CPU-ms a page
of each step in this process (best of five passes; a first one warms caches), and pages a second
of a whole rasterizer from the first request to the last answer, start of its processes aside.

    python -m tests.perf.intake_speed [FILE …]
"""

from __future__ import annotations

import functools
import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from desktop.intake import blank, drawing, paged, textlayer, wire, words
from desktop.intake.bitmap import Bitmap
from desktop.intake.model import RenderRequest
from desktop.intake.rasterizer import Rasterizer

ROOT = Path(__file__).resolve().parents[2]
PASSES = 5
MOST = 60
"""Pages of a file that are drawn at most."""
STEPS: dict[str, tuple[Any, str]] = {
    "words": (textlayer, "_words"),
    "rules": (textlayer, "_rules"),
    "text_layer": (paged, "text_layer"),
    "blank": (blank, "is_blank"),
    "write": (Bitmap, "write"),
    "save_words": (words, "save"),
}


def timed(spent: dict[str, float]) -> None:
    """Have every step add its CPU-seconds to SPENT."""
    for name, (owner, attribute) in STEPS.items():
        setattr(owner, attribute, _timed(getattr(owner, attribute), name, spent))


def _timed(step: Callable[..., Any], name: str, spent: dict[str, float]) -> Callable[..., Any]:
    @functools.wraps(step)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        begun = time.process_time()
        try:
            return step(*args, **kwargs)
        finally:
            spent[name] = spent.get(name, 0.0) + time.process_time() - begun
    return wrapper


def steps(path: Path, spent: dict[str, float]) -> dict[str, float]:
    """CPU-ms a page of each step, and in all."""
    best: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        image, text = f"{folder}/page.ppm".encode(), f"{folder}/page.words".encode()
        easel = drawing.Drawing(2048)
        pages = min(easel.open(wire.OpenFile(str(path).encode(), None, 60)).pages, MOST)
        for round_number in range(PASSES + 1):
            spent.clear()
            begun = time.process_time()
            for number in range(1, pages + 1):
                easel.draw(wire.DrawPage(str(path).encode(), None, number, 144, 24_000_000, 0, 0,
                                         image, text, 60))
            total = time.process_time() - begun
            if round_number and total < best.get("all", 1e9):
                best = {"all": total, **spent}
        easel.forget()
    return {"pages": pages, **{name: round(value / pages * 1000, 2)
                               for name, value in best.items()}}


def throughput(path: Path, processes: int) -> float:
    """Pages a second of a rasterizer."""
    with tempfile.TemporaryDirectory() as folder:
        rasterizer = Rasterizer(Path(folder), processes=processes)
        pages = min(rasterizer.open(path).result().pages, MOST)
        best = 0.0
        for _pass in range(PASSES):
            begun = time.perf_counter()
            futures = [rasterizer.render(RenderRequest(str(path), number, words=True))
                       for number in range(1, pages + 1)]
            drawn = [future.result() for future in futures]
            best = max(best, pages / (time.perf_counter() - begun))
            for page in drawn:
                page.delete()
        rasterizer.close()
    return round(best, 1)


def start_seconds() -> float:
    """From nothing to the first answer: process started, sample opened."""
    best = 1e9
    for _pass in range(PASSES):
        with tempfile.TemporaryDirectory() as folder:
            begun = time.perf_counter()
            rasterizer = Rasterizer(Path(folder), processes=1)
            rasterizer.open(SAMPLE).result()
            best = min(best, time.perf_counter() - begun)
            rasterizer.close()
    return round(best, 2)


SAMPLE = ROOT / "resources" / "samples" / "sample.pdf"


def main(arguments: list[str]) -> None:
    """Measure and print."""
    files = [Path(name).resolve() for name in arguments] or [SAMPLE]
    rates = {path.name: {f"pages_per_s_{count}_processes": throughput(path, count)
                         for count in (1, 2)} for path in files}
    spent: dict[str, float] = {}
    timed(spent)
    # As in a drawing process.
    gc.disable()
    print(json.dumps({
        "start_s": start_seconds(),
        "files": {path.name: {"cpu_ms_a_page": steps(path, spent), **rates[path.name]}
                  for path in files},
    }, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
