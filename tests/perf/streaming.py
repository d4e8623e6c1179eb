"""What stands between an engine's output and the application; prints one JSON document.

    python tests/perf/streaming.py [--pages 60] [--in-flight 50] [--megabytes 2]

``first_delta``: from the moment the scripted engine yields the first token of a page to the moment
a listener of the session (the window's, the command line's) is told, guard on, pages one after
the other (one clock serves all processes of a machine). Bar: 50 ms (median).

``cancel``: IN-FLIGHT pages stream; from the cancel of all of them to the last page's end, and the
engine reads none; ``halved`` the same while each is being read again after a loop. Bar: 1 s.

``guard``: seconds of processor time that the loop guard takes for a megabyte in pieces of four
characters, as tokens come: prose (recorded where there are recordings), tables of numbers, and a
stream of short pages; and characters a second for the page that costs most.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from desktop.client.client import ClientEvent, EngineClient  # noqa: E402
from desktop.engines.looping import LoopGuard  # noqa: E402
from desktop.jobs.events import RawText, SessionEvent  # noqa: E402
from desktop.jobs.session import Session  # noqa: E402
from desktop.protocol.messages import EngineReady, PageFinished, PageText, SubmitPage  # noqa: E402
from desktop.settings import Values  # noqa: E402
from tests.document.recordings import everything, read  # noqa: E402
from tests.engines.repetitive import documents  # noqa: E402

PATIENCE = 120.0


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds."""
    ordered = sorted(seconds)
    return {"median_ms": round(statistics.median(ordered) * 1e3, 2),
            "p95_ms": round(ordered[int(0.95 * (len(ordered) - 1))] * 1e3, 2),
            "longest_ms": round(ordered[-1] * 1e3, 2), "count": len(ordered)}


def first_deltas(folder: Path, pages: int) -> dict[str, float]:
    """Each page waits a little before its first token, so that nothing else is on the way."""
    import pymupdf

    document = pymupdf.open()
    for number in range(pages):
        document.new_page(width=200, height=280).insert_text((20, 40), f"Page {number + 1}")
    document.save(folder / "made.pdf")
    late: dict[str, float] = {}

    def listen(batch: Sequence[SessionEvent]) -> None:
        now = time.monotonic()
        for event in batch:
            if isinstance(event, RawText) and event.page_id not in late:
                late[event.page_id] = now - float(event.text.split()[0])

    script = {"capacity": 1, "pages": [
        {"text": "x" * 6, "delta": 1, "stamp": True, "rate": 20, "wait": 0.15}]}
    session = Session(folder / "journal.db", folder / "cache",
                      Values({"engine": "scripted", "concurrency": 1}),
                      engine_args={"script": json.dumps(script)})
    session.subscribe(listen)
    try:
        session.add([folder / "made.pdf"]).result(PATIENCE)
        session.start()
        if not session.wait(PATIENCE):
            raise SystemExit("the pages were not read")
    finally:
        session.close()
    return spread(list(late.values()))


def cancelled(in_flight: int, entry: dict[str, Any]) -> dict[str, Any]:
    """Cancel pages that all stream."""
    ready, all_stream, all_ended = threading.Event(), threading.Event(), threading.Event()
    streaming: set[str] = set()
    ended: list[str] = []

    def listen(event: ClientEvent) -> None:
        if isinstance(event, EngineReady):
            ready.set()
        elif isinstance(event, PageText):
            streaming.add(event.page_id)
            if len(streaming) == in_flight:
                all_stream.set()
        elif isinstance(event, PageFinished):
            ended.append(event.finish)
            if len(ended) == in_flight:
                all_ended.set()

    client = EngineClient(listen)
    client.start("scripted", {"script": json.dumps({"capacity": in_flight, "pages": [entry]})})
    try:
        if not ready.wait(PATIENCE):
            raise SystemExit("the worker did not get ready")
        for number in range(in_flight):
            client.submit(SubmitPage(f"1-{number + 1}", "/nowhere", 100, 100,
                                     settings={"loop_guard": True}))
        if not all_stream.wait(PATIENCE):
            raise SystemExit("the pages did not begin")
        time.sleep(1)
        begun = time.monotonic()
        for number in range(in_flight):
            client.cancel(f"1-{number + 1}")
        if not all_ended.wait(PATIENCE):
            raise SystemExit("the pages did not end")
        seconds = time.monotonic() - begun
    finally:
        client.close()
    return {"pages": in_flight, "ms": round(seconds * 1e3, 1),
            "finish": sorted(set(ended))}


def guarded(texts: Sequence[str], megabytes: float) -> dict[str, float]:
    """What the guard costs for pages like TEXTS."""
    total = spent = 0.0
    found = 0
    while total < megabytes * 1e6:
        for text in texts:
            guard = LoopGuard()
            begun = time.process_time()
            for at in range(0, len(text), 4):
                guard.feed(text[at:at + 4])
            spent += time.process_time() - begun
            total += len(text)
            found += guard.loop is not None
    return {"seconds_per_megabyte": round(spent / total * 1e6, 3),
            "characters_per_second": round(total / spent), "false_alarms": found}


def tables() -> list[str]:
    dice = random.Random(1)
    return ["<|ref|>table<|/ref|><|det|>[[50, 60, 950, 940]]<|/det|>\n<table>" + "".join(
        "<tr>" + "".join(f"<td>{dice.random() * 10000:.2f}</td>" for _ in range(6)) + "</tr>"
        for _ in range(60)) + "</table>" for _ in range(10)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--in-flight", type=int, default=50)
    parser.add_argument("--megabytes", type=float, default=2)
    options = parser.parse_args()
    prose = [text for path in everything() if path.name.startswith("sh_")
             for text in [read(path)]]
    streamed = {"text": " ".join(f"word{n * n}" for n in range(5000)), "rate": 100, "delta": 6}
    looping = {"text": "It begins. ", "rate": 400, "delta": 40, "second_try": True, "faults": [
        {"kind": "loop", "at": -1, "span": 11, "reads": [1]},
        {"kind": "hang", "at": 5, "reads": [2]}]}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["VERSO_CACHE_DIR"] = folder
        print(json.dumps({
            "machine": {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)},
            "first_delta": first_deltas(Path(folder), options.pages),
            "cancel": cancelled(options.in_flight, streamed),
            "cancel_in_second_try": cancelled(options.in_flight, looping),
            "guard": {"prose": guarded(prose, options.megabytes),
                      "tables": guarded(tables(), options.megabytes / 4),
                      "repetitive": guarded([text for _, text in documents()],
                                            options.megabytes / 4)}}, indent=2))


if __name__ == "__main__":
    main()
