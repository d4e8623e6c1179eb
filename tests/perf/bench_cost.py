"""What measuring costs: processor time of the application while the scripted engine keeps a pace.

    python tests/perf/bench_cost.py [--concurrency 8] [--rate 50] [--seconds 60] [FILE]

RATE: tokens a second of each page. Counted is the process that measures (client, runner, sampling,
events), not the worker, which is the engine's. Pages are drawn ahead: drawing has processes of
its own, and is real work.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

from desktop.benchmark.events import BenchEvent, RoundFinished, RoundStarted
from desktop.benchmark.plan import Plan, Requests
from desktop.benchmark.run import Benchmark
from desktop.benchmark.workload import gather
from desktop.settings import Values


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    args = parser.parse_args()
    tokens = round(10 * args.rate)
    rounds = max(1, round(args.seconds / 20))
    script = json.dumps({"capacity": args.concurrency, "pages": [
        {"text": "abcd" * tokens, "delta": 4, "rate": args.rate, "prompt_tokens": 1000}]})
    marks: list[tuple[float, float]] = []

    def listen(batch: list[BenchEvent]) -> None:
        if any(isinstance(event, (RoundStarted, RoundFinished)) for event in batch):
            marks.append((time.monotonic(), time.process_time()))

    with tempfile.TemporaryDirectory() as name:
        cache = Path(name)
        benchmark = Benchmark(
            Plan(levels=(args.concurrency,), cold=False, warmup=1, rounds=rounds,
                 requests=Requests(times=2), ahead=True),
            gather([], cache),
            Values({"engine": "scripted", "loop_guard": False}), cache,
            engine_args={"script": script})
        benchmark.subscribe(listen)
        benchmark.start()
        result = benchmark.wait()
    assert result is not None
    (begin, before), (end, after) = marks[0], marks[-1]
    [level] = result.levels
    assert level.output_tps is not None
    found = {"seconds": round(end - begin, 1), "output_tps": round(level.output_tps.mean, 1),
             "asked_tps": args.concurrency * args.rate,
             "percent_of_a_core": round(100 * (after - before) / (end - begin), 2),
             "load": os.getloadavg()[0]}
    print(json.dumps(found))
    if args.file is not None:
        args.file.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
