"""Devices and processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from desktop.benchmark import devices
from desktop.benchmark.sampling import Reading, Sample, Sampler, summaries
from tests.support.processes import until

NPU_SMI = Path(__file__).resolve().parents[1] / "doctor" / "npu_smi"


def test_the_engines_processes_with_their_children(no_process_left: object) -> None:
    burn = ("import subprocess, sys, time\n"
            "child = subprocess.Popen([sys.executable, '-c', 'while True: pass'])\n"
            "print('there', flush=True)\n"
            "time.sleep(60)")
    process = subprocess.Popen([sys.executable, "-c", burn], stdout=subprocess.PIPE,
                               start_new_session=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        probe = devices.ProcessProbe(lambda: process.pid)
        [first] = probe.read()
        assert first.busy is None
        assert first.memory_used is not None
        assert first.memory_used > 8 << 20
        cores, busy = os.cpu_count() or 1, []
        for _look in range(20):  # Somebody else may have the cores, or our clock, for a while.
            time.sleep(1.0)
            [second] = probe.read()
            assert second.busy is not None
            busy.append(second.busy)
            # The child burns one core, as far as it gets it.
            if 0.1 * 100 / cores < second.busy <= 1.1 * 100 / cores:
                break
        else:
            raise AssertionError(f"not the share of one core: {busy}")
    finally:
        os.killpg(process.pid, 9)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_no_worker_no_reading() -> None:
    assert devices.ProcessProbe(lambda: 0).read() == ()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    [reading] = devices.ProcessProbe(lambda: gone.pid).read()
    assert reading.memory_used == 0


class Nvml:
    """The part of nvidia-ml-py that is used, as its own source has it."""

    NVML_TEMPERATURE_GPU = 0

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        self.down = 0

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle: int) -> str:  # noqa: N802
        return "H"

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(gpu=87, memory=40)

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(total=100, used=60, free=40)

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:  # noqa: N802
        raise self.NVMLError("not supported")

    def nvmlDeviceGetTemperature(self, handle: int, kind: int) -> int:  # noqa: N802
        return 71

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: int) -> int:  # noqa: N802
        return 0x1 | 0x20

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.down += 1


def test_nvml() -> None:
    nvml = Nvml()
    probe = devices.NvmlProbe(nvml)
    assert probe.read() == [Reading("cuda:0", "H", 87.0, 60, 100, 71.0, None, "temperature")]
    probe.close()
    assert nvml.down == 1


def test_nvidia_smis_rows() -> None:
    text = ("0, NVIDIA H200, 97, 131072, 143771, 64, 512.35, 0x0000000000000004\n"
            "1, NVIDIA H200, [N/A], 12, 143771, [N/A], [N/A], 0x0000000000000001\nrubbish\n")
    first, second = devices.parse_smi(text)
    assert first == Reading("cuda:0", "NVIDIA H200", 97.0, 131072 << 20, 143771 << 20, 64.0,
                            512.35, "power")
    assert (second.busy, second.temperature, second.power, second.throttled) == (
        None, None, None, "")


@pytest.mark.parametrize(("file", "first"), [
    ("910b-24.1.txt", None), ("310p-22.0.txt", (None, 47.0)), ("910c-25.2.txt", None),
    ("910a-21.0.txt", None), ("910b-26.0.txt", None), ("950.txt", None)])
def test_npu_smis_tables(file: str, first: tuple[float | None, float] | None) -> None:
    found = devices.parse_npu((NPU_SMI / file).read_text("utf-8"))
    assert found
    for reading in found:
        assert reading.device.startswith("npu:")
        assert reading.memory_total
        assert reading.temperature is not None
        assert 10 < reading.temperature < 120
    if first is not None:
        assert (found[0].power, found[0].temperature) == first
        assert found[1].throttled == "Warning"


def test_a_device_over_a_level() -> None:
    samples = [Sample(float(at), (Reading("cuda:0", "H", busy, used, 100, heat, 300.0, why),))
               for at, busy, used, heat, why in (
                   (0, 50.0, 10, 60.0, ""), (1, 100.0, 30, 80.0, "power"),
                   (2, None, None, None, None))]
    [found] = summaries(samples)
    assert (found.busy_mean, found.busy_most, found.memory_most) == (75.0, 100.0, 30)
    assert (found.temperature_most, found.power_mean) == (80.0, 300.0)
    assert (found.throttled_share, found.throttled) == (0.5, ("power",))


class Probing:
    interval = 0.01
    quick = True

    def __init__(self, hang: threading.Event | None = None) -> None:
        self.closed = threading.Event()
        self.hang = hang

    def read(self) -> Sequence[Reading]:
        if self.hang is not None:
            self.hang.wait(60)
        return (Reading("x", "x"),)

    def close(self) -> None:
        self.closed.set()


def test_a_driver_that_hangs_holds_nobody_up() -> None:
    hang = threading.Event()
    good, bad, heard = Probing(), Probing(hang), []
    sampler = Sampler([good, bad], heard.append)
    sampler.start()
    until(lambda: len(heard) > 2)
    begin = time.monotonic()
    sampler.stop()
    assert time.monotonic() - begin < 30
    assert good.closed.wait(60)
    told = len(heard)
    hang.set()
    assert bad.closed.wait(60)
    assert len(heard) == told


@pytest.mark.parametrize("quick", [True, False])
def test_a_short_level_has_a_look_at_its_end(quick: bool) -> None:
    """Or a level of less than a second would have no share of the processor."""
    heard: list[Sample] = []
    probe = Probing()
    probe.interval, probe.quick = 3600.0, quick
    sampler = Sampler([probe], heard.append)
    sampler.start()
    until(lambda: len(heard) == 1)
    time.sleep(0.4)
    sampler.stop()
    assert probe.closed.wait(60)
    assert len(heard) == (2 if quick else 1)


def test_a_sampler_that_was_never_started_is_closed() -> None:
    probe = Probing()
    Sampler([probe], lambda _sample: None).stop()
    assert probe.closed.is_set()


def test_the_probes_of_this_machine() -> None:
    found = devices.probes(os.getpid)
    try:
        assert isinstance(found[0], devices.ProcessProbe)
        assert found[0].read()[0].name
    finally:
        for probe in found:
            probe.close()
