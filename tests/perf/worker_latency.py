"""What the way from an engine to a listener costs; prints one JSON document.

    python tests/perf/worker_latency.py [--seconds 10] [--streams 8] [--rate 250] [--pages 200]

Times are taken from the moment the scripted engine yields a delta to the moment the client's
listener is called with it (one clock serves all processes of a machine). ``first``: the first
delta of pages read one after the other. ``load``: STREAMS pages at RATE deltas a second each;
the text of a page is joined on the way, so a delta there waits up to 15 ms for the next message.
``flood``: one page as fast as the engine can. ``start``: from EngineClient.start to EngineReady,
best of five.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import psutil

from desktop.client.client import ClientEvent, EngineClient
from desktop.protocol.messages import EngineReady, Hello, PageFinished, PageText, SubmitPage


class Listener:
    """Takes the time of every delta."""

    def __init__(self) -> None:
        self.late: list[float] = []
        self.first: dict[str, float] = {}
        self.messages = 0
        self.characters = 0
        self.pid = 0
        self.ready = threading.Event()
        self.finished = threading.Semaphore(0)

    def __call__(self, event: ClientEvent) -> None:
        now = time.monotonic()
        if isinstance(event, PageText):
            self.messages += 1
            self.characters += len(event.text)
            if event.text[0].isdigit():
                late = [now - float(stamp) for stamp in event.text.split()]
                self.first.setdefault(event.page_id, late[0])
                self.late += late
        elif isinstance(event, Hello):
            self.pid = event.pid
        elif isinstance(event, EngineReady):
            self.ready.set()
        elif isinstance(event, PageFinished):
            self.finished.release()


def with_worker(script: dict[str, Any],
                measure: Callable[[EngineClient, Listener], dict[str, Any]]) -> dict[str, Any]:
    """What MEASURE finds with a worker that plays SCRIPT."""
    listener = Listener()
    client = EngineClient(listener)
    client.start("scripted", {"script": json.dumps(script)})
    try:
        if not listener.ready.wait(60):
            raise SystemExit("the worker did not get ready")
        return measure(client, listener)
    finally:
        client.close()


def page(name: str) -> SubmitPage:
    return SubmitPage(name, "/nowhere", 1, 1)


def spread(seconds: list[float]) -> dict[str, float]:
    """Milliseconds."""
    ordered = sorted(seconds)
    return {"median_ms": round(statistics.median(ordered) * 1e3, 2),
            "p99_ms": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1e3, 2),
            "longest_ms": round(ordered[-1] * 1e3, 2), "count": len(ordered)}


def busy(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def first_deltas(pages: int) -> dict[str, Any]:
    """Pages one after the other."""
    def measure(client: EngineClient, listener: Listener) -> dict[str, Any]:
        whole = []
        for number in range(pages):
            begun = time.monotonic()
            client.submit(page(f"p{number}"))
            listener.finished.acquire()
            whole.append(time.monotonic() - begun)
        return {"yield_to_listener": spread(list(listener.first.values())),
                "submit_to_finished": spread(whole)}
    return with_worker({"pages": [{"text": "x", "stamp": True, "rate": 0}]}, measure)


def under_load(streams: int, rate: float, seconds: float) -> dict[str, Any]:
    """Several streams at an even pace."""
    def measure(client: EngineClient, listener: Listener) -> dict[str, Any]:
        worker, own = psutil.Process(listener.pid), psutil.Process(os.getpid())
        for number in range(streams):
            client.submit(page(f"p{number}"))
        time.sleep(0.5)
        before = busy(worker), busy(own), listener.messages, len(listener.late), time.monotonic()
        memory = worker.memory_info().rss
        time.sleep(seconds)
        passed = time.monotonic() - before[4]
        return {
            "delta_to_listener": spread(listener.late[before[3]:]),
            "deltas_per_s": round((len(listener.late) - before[3]) / passed),
            "messages_per_s": round((listener.messages - before[2]) / passed),
            "worker_cpu_share": round((busy(worker) - before[0]) / passed, 3),
            "client_cpu_share": round((busy(own) - before[1]) / passed, 3),
            "worker_growth_mib": round((worker.memory_info().rss - memory) / 2**20, 1)}
    return with_worker({"capacity": streams, "pages": [
        {"text": "x", "stamp": True, "repeat": 0, "rate": rate}]}, measure)


def flood(seconds: float) -> dict[str, Any]:
    """One page without any pace."""
    def measure(client: EngineClient, listener: Listener) -> dict[str, Any]:
        worker = psutil.Process(listener.pid)
        memory = worker.memory_info().rss
        client.submit(page("p1"))
        time.sleep(seconds)
        count, characters = listener.messages, listener.characters
        begun = time.monotonic()
        client.cancel("p1")
        listener.finished.acquire()
        return {"messages_per_s": round(count / seconds),
                "deltas_per_s": round(characters / 20 / seconds),
                "cancelled_after_ms": round((time.monotonic() - begun) * 1e3, 1),
                "worker_growth_mib": round((worker.memory_info().rss - memory) / 2**20, 1)}
    return with_worker({"pages": [{"text": "x" * 2000, "delta": 20, "repeat": 0, "rate": 0}]},
                       measure)


def start() -> dict[str, float]:
    """From nothing to a ready engine and back."""
    ready, closed = [], []
    for _ in range(5):
        begun = time.monotonic()
        listener = Listener()
        client = EngineClient(listener)
        client.start("scripted", {})
        listener.ready.wait(60)
        ready.append(time.monotonic() - begun)
        begun = time.monotonic()
        client.close()
        closed.append(time.monotonic() - begun)
    return {"ready_ms": round(min(ready) * 1e3), "close_ms": round(min(closed) * 1e3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--rate", type=float, default=250)
    parser.add_argument("--pages", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["VERSO_CACHE_DIR"] = cache
        print(json.dumps({
            "machine": {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)},
            "start": start(), "first": first_deltas(options.pages),
            "load": under_load(options.streams, options.rate, options.seconds),
            "flood": flood(options.seconds / 5)}, indent=2))


if __name__ == "__main__":
    main()
