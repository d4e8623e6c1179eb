"""How many engine cores share a device, and which page goes to which."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import pytest

from desktop.engines.vllm import preflight
from desktop.engines.vllm.cores import Cores, how_many
from desktop.engines.vllm.devices import Device
from desktop.engines.vllm.failures import OutOfMemory
from desktop.engines.vllm.preflight import Need
from desktop.settings import Values

GB = 10**9
MODEL = Need(round(6.8 * GB), round(0.5 * GB))
"""DeepSeek-OCR-2 in 16 bits; a context of 8192 tokens."""


def gpu(total: float, number: int = 0) -> Device:
    return Device(number, f"GPU-{number}", "Test 1000", round(total * GB), round(total * GB))


def count(total: float = 140, devices: int = 1, **changed: Any) -> int:
    return how_many(Values(changed).as_dict(), MODEL, [gpu(total, n) for n in range(devices)])


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)


@pytest.mark.usefixtures("processor")
def test_two_where_one_gpu_has_room() -> None:
    assert count(140) == 2
    assert count(80) == 2
    assert count(80, memory_utilization=0.95) == 1, "no room for the vision encoder's graphs"
    assert count(80, memory_utilization=0.4) == 1
    assert count(24) == 1


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("changed", [
    {"tensor_parallel": 2}, {"data_parallel": 2}, {"pipeline_parallel": 2}, {"eager": True},
    {"concurrency": 4}])
def test_one_where_the_device_does_not_wait_for_it(changed: dict[str, Any]) -> None:
    assert count(**changed) == 1
    assert count(concurrency=16) == 2


@pytest.mark.usefixtures("processor")
def test_one_where_nothing_is_known_of_the_device() -> None:
    assert count(devices=0) == 1
    assert count(devices=2) == 1


def test_one_where_the_processor_has_few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert count() == 1


@pytest.mark.usefixtures("processor")
def test_what_a_person_chose_goes_before() -> None:
    assert count(24, engine_cores=3) == 3
    assert count(140, engine_cores=1) == 1
    assert count(140, engine_cores=2, tensor_parallel=2) == 1


def test_more_than_the_memory_holds_are_refused_with_how_many_would_fit() -> None:
    with pytest.raises(OutOfMemory) as caught:
        preflight.memory(Values({}).as_dict(), MODEL, [gpu(40)], 4)
    problem = caught.value.problem()
    assert "4 engine cores" in problem.message
    assert problem.fix == (("engine_cores", 3),)
    preflight.memory(Values({}).as_dict(), MODEL, [gpu(40)], 3)


class Engine:
    """As much of AsyncLLM as is used: it writes as many outputs as the prompt says."""

    def __init__(self) -> None:
        self.errored = False
        self.requests: list[str] = []
        self.ended: list[str] = []
        self.vllm_config = SimpleNamespace(
            cache_config=SimpleNamespace(num_gpu_blocks=100, block_size=16))
        self.patience: float | None = None

    async def generate(self, prompt: int, parameters: Any, request: str,
                       priority: int = 0) -> AsyncIterator[int]:
        self.requests.append(request)
        try:
            for number in range(prompt):
                await asyncio.sleep(0)
                yield number
        finally:
            self.ended.append(request)

    def shutdown(self, timeout: float | None = None) -> None:
        self.patience = timeout
        raise RuntimeError("it was dead already")


async def _all(cores: Cores, prompt: int, request: str, cost: int, core: int | None = None) -> None:
    async with aclosing(cores.generate(prompt, None, request, cost, core, priority=1)) as stream:
        async for _output in stream:
            pass


def test_a_page_goes_to_the_core_with_least_to_do() -> None:
    first, second = Engine(), Engine()
    cores = Cores([first, second])

    async def run() -> None:
        await asyncio.gather(_all(cores, 9, "large", 3000), _all(cores, 9, "small", 500),
                             _all(cores, 9, "next", 500), _all(cores, 9, "chosen", 500, 0))
        await _all(cores, 1, "later", 1)

    asyncio.run(run())
    assert first.requests == ["large", "chosen", "later"]
    assert second.requests == ["small", "next"]


def test_a_page_that_is_given_up_is_ended_there_and_counts_no_more() -> None:
    first, second = Engine(), Engine()
    cores = Cores([first, second])

    async def run() -> None:
        async with aclosing(cores.generate(1000, None, "given up", 3000)) as stream:
            async for _output in stream:
                break
        await _all(cores, 1, "next", 1)

    asyncio.run(run())
    assert first.ended == ["given up", "next"]
    assert not second.requests


@pytest.mark.logs_errors
def test_what_they_have_together(caplog: pytest.LogCaptureFixture) -> None:
    first, second = Engine(), Engine()
    cores = Cores([first, second])
    assert len(cores) == 2
    assert cores.cache_tokens == 2 * 1600
    assert not cores.errored
    second.errored = True
    assert cores.errored
    cores.shut_down()
    assert first.patience == second.patience == 2.0, "the second too, though the first failed"
    assert caplog.text.count("did not shut down in order") == 2
