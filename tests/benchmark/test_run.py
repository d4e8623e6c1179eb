"""A measurement as a window uses it: real client, worker, drawing; heard from another thread."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from desktop.benchmark.document import document
from desktop.benchmark.events import (
    BenchEvent,
    EngineProgress,
    LevelFinished,
    RequestFinished,
    RoundFinished,
    RunFinished,
    RunStarted,
    Stopping,
)
from desktop.benchmark.plan import Plan, Requests
from desktop.benchmark.results import Ended
from desktop.benchmark.run import Benchmark
from desktop.benchmark.workload import Workload, gather
from desktop.settings import Values

PAGE = {"text": "ab" * 10, "delta": 2, "rate": 400, "wait": 0.05}
ENDLESS = {"text": "ab" * 10, "faults": [{"kind": "hang", "at": 4}]}
PATIENCE = 240.0
SECRET = "nobodys-business"


class Heard:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.events: list[BenchEvent] = []
        self.threads: set[str] = set()
        self.batches = 0

    def __call__(self, batch: Sequence[BenchEvent]) -> None:
        with self._changed:
            self.events += batch
            self.batches += 1
            self.threads.add(threading.current_thread().name)
            self._changed.notify_all()

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def until(self, condition: Callable[[], object]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE)


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    return gather([], tmp_path_factory.mktemp("cache"))


@pytest.fixture
def make(tmp_path: Path, workload: Workload, no_process_left: object) -> Any:
    def call(plan: Plan, script: dict[str, Any]) -> tuple[Benchmark, Heard]:
        benchmark = Benchmark(plan, workload, Values({"engine": "scripted"}), tmp_path / "cache",
                              engine_args={"script": json.dumps(script), "hf-token": SECRET})
        heard = Heard()
        benchmark.subscribe(heard)
        return benchmark, heard
    return call


def test_a_run_from_beginning_to_end(make: Any, tmp_path: Path) -> None:
    plan = Plan(levels=(2,), warmup=0, rounds=2, requests=Requests(count=6), unique=True)
    benchmark, heard = make(plan, {"capacity": 2, "pages": [PAGE]})

    def broken(batch: object) -> None:
        raise RuntimeError("a listener that fails harms nobody")

    end = benchmark.subscribe(broken)
    end()
    benchmark.start()
    result = benchmark.wait(PATIENCE)
    assert result is not None
    assert result is benchmark.result
    assert isinstance(heard.events[0], RunStarted)
    assert isinstance(heard.events[-1], RunFinished)
    assert heard.events[-1].result is result
    assert heard.threads == {"benchmark"}
    assert len(heard.of(RequestFinished)) == 18
    assert SECRET not in json.dumps(document(result))
    assert "hf-token=…" in result.command
    assert heard.batches < len(heard.events)
    assert (result.ended, len(result.levels[0].rounds)) == (Ended.COMPLETE, 2)
    assert result.ready is not None
    assert result.environment["caches"] == {"prefix": "none", "images": "none"}
    assert result.command.startswith("verso bench --concurrent 2")
    # The pages were drawn, and no bitmap is left.
    assert all(one.drawing > 0 for one in result.levels[0].requests)
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.logs_errors
def test_a_listener_that_fails_harms_nobody(make: Any) -> None:
    benchmark, heard = make(Plan(levels=(1,), cold=False, warmup=0, rounds=1), {"pages": [PAGE]})

    def broken(batch: object) -> None:
        raise RuntimeError("out of the test")

    benchmark.subscribe(broken)
    benchmark.start()
    assert benchmark.wait(PATIENCE) is not None
    assert heard.of(RunFinished)


def test_cancelled_while_the_engine_loads(make: Any) -> None:
    benchmark, heard = make(Plan(levels=(1,)), {"load": {"seconds": 600, "steps": ["Loading"]}})
    benchmark.start()
    heard.until(lambda: heard.of(EngineProgress))
    begin = time.monotonic()
    benchmark.cancel()
    heard.until(lambda: heard.of(Stopping))
    told = time.monotonic() - begin
    result = benchmark.wait(PATIENCE)
    assert result is not None
    assert result.ended is Ended.INTERRUPTED
    assert told < 30  # at once, on a machine that may be busy
    assert [level.ended for level in result.levels] == [Ended.INTERRUPTED]


def test_cancelled_in_the_midst_of_a_page(make: Any, tmp_path: Path) -> None:
    benchmark, heard = make(
        Plan(levels=(1, 2), cold=False, warmup=0, rounds=9),
        {"pages": [{**ENDLESS, "match": "*-m3-*"}, PAGE]})
    benchmark.start()
    heard.until(lambda: len(heard.of(RoundFinished)) == 2)
    benchmark.cancel()
    result = benchmark.wait(PATIENCE)
    assert result is not None
    [level] = result.levels
    assert len(level.rounds) == 2
    assert level.output_tps is not None
    assert [event.result for event in heard.of(LevelFinished)] == [level]
    assert list((tmp_path / "cache").iterdir()) == []


def test_cancelled_before_it_began(make: Any) -> None:
    benchmark, heard = make(Plan(levels=(1,)), {"pages": [PAGE]})
    benchmark.cancel()
    benchmark.start()
    result = benchmark.wait(PATIENCE)
    assert result is not None
    assert (result.ended, result.levels) == (Ended.INTERRUPTED, ())
    assert len(heard.of(RunFinished)) == 1


def test_a_worker_that_is_killed_fails_its_level_only(make: Any) -> None:
    benchmark, _heard = make(
        Plan(levels=(1, 2), cold=False, warmup=0, rounds=2),
        {"pages": [{**PAGE, "match": "b0-m2-*", "faults": [{"kind": "kill", "at": 4}]}, PAGE]})
    benchmark.start()
    result = benchmark.wait(PATIENCE)
    assert result is not None
    first, second = result.levels
    assert (first.ended, len(first.rounds)) == (Ended.FAILED, 1)
    assert first.problem is not None
    assert first.problem.code == "benchmark.engine_died"
    assert (second.ended, len(second.rounds)) == (Ended.COMPLETE, 2)
