"""Where readings come from: NVML or nvidia-smi, npu-smi, and the engine's own processes."""

from __future__ import annotations

import csv
import importlib
import io
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from desktop.benchmark.sampling import INTERVAL, Probe, Reading, Sample, Sampler
from desktop.client.probing import ask
from desktop.doctor import ascend_smi

log = logging.getLogger(__name__)

_MIB = 1 << 20
_TOOL_SECONDS = 10.0
_FAMILY_SECONDS = 5.0
"""Between two searches for processes that have come: each looks at all of the machine's."""

_REASONS = {
    0x04: "power", 0x08: "hardware slowdown", 0x20: "temperature", 0x40: "temperature",
    0x80: "power brake",
}
"""Bits of NVML's reasons for a lowered clock that tell of trouble; an idle device or a clock set
by a person is none."""
_SMI = ("index", "name", "utilization.gpu", "memory.used", "memory.total", "temperature.gpu",
        "power.draw", "clocks_throttle_reasons.active")


class ProcessProbe:
    """Processor and memory of the worker and all that it started."""

    interval = INTERVAL
    quick = True

    def __init__(self, pid: Callable[[], int]) -> None:
        """PID: of the worker; 0: none runs."""
        self._pid = pid
        self._family: dict[int, psutil.Process] = {}
        self._searched = float("-inf")
        self._before: tuple[float, dict[int, float]] | None = None
        self._cores = psutil.cpu_count() or 1
        self._total = psutil.virtual_memory().total
        self._name = processor()

    def read(self) -> Sequence[Reading]:
        """One reading, ``cpu``; none while no worker runs."""
        leader = self._pid()
        if not leader:
            return ()
        now = time.monotonic()
        if leader not in self._family or now - self._searched > _FAMILY_SECONDS:
            self._search(leader)
            self._searched = now
        used: dict[int, float] = {}
        resident = 0
        for pid, process in list(self._family.items()):
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    used[pid] = times.user + times.system
                    resident += process.memory_info().rss
            except psutil.Error:
                del self._family[pid]
        before, self._before = self._before, (now, used)
        busy = None
        if before is not None and now > before[0]:
            spent = sum(seconds - before[1][pid] for pid, seconds in used.items()
                        if pid in before[1])
            busy = 100 * spent / (now - before[0]) / self._cores
        return (Reading("cpu", self._name, busy, resident, self._total),)

    def close(self) -> None:
        """Nothing is held."""

    def _search(self, leader: int) -> None:
        try:
            process = self._family.get(leader) or psutil.Process(leader)
            found = [process, *process.children(recursive=True)]
        except psutil.Error:
            self._family.clear()
            return
        self._family = {one.pid: self._family.get(one.pid, one) for one in found}


class NvmlProbe:
    """NVIDIA GPUs through the driver's library (package nvidia-ml-py)."""

    interval = INTERVAL
    quick = True

    def __init__(self, nvml: Any) -> None:
        """NVML: the module ``pynvml``, initialised."""
        self._nvml = nvml
        self._handles = [nvml.nvmlDeviceGetHandleByIndex(index)
                         for index in range(nvml.nvmlDeviceGetCount())]

    def read(self) -> Sequence[Reading]:
        """One reading a GPU."""
        return [self._reading(index, handle) for index, handle in enumerate(self._handles)]

    def close(self) -> None:
        """Release the library."""
        self._told(self._nvml.nvmlShutdown)

    def _reading(self, index: int, handle: Any) -> Reading:
        nvml = self._nvml
        name = self._told(nvml.nvmlDeviceGetName, handle) or "GPU"
        use = self._told(nvml.nvmlDeviceGetUtilizationRates, handle)
        memory = self._told(nvml.nvmlDeviceGetMemoryInfo, handle)
        power = self._told(nvml.nvmlDeviceGetPowerUsage, handle)
        heat = self._told(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU)
        ask_reasons = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons",
                              nvml.nvmlDeviceGetCurrentClocksThrottleReasons)
        reasons = self._told(ask_reasons, handle)
        return Reading(
            f"cuda:{index}", name if isinstance(name, str) else name.decode(),
            None if use is None else float(use.gpu), None if memory is None else int(memory.used),
            None if memory is None else int(memory.total),
            None if heat is None else float(heat), None if power is None else power / 1000,
            None if reasons is None else throttled(int(reasons)))

    def _told(self, question: Callable[..., Any], *values: Any) -> Any:
        """The answer; None where this GPU or driver has none."""
        try:
            return question(*values)
        except self._nvml.NVMLError as error:
            log.debug("NVML: %s", error)
            return None


class SmiProbe:
    """NVIDIA GPUs through nvidia-smi, where Python has no access to NVML."""

    interval = 2 * INTERVAL
    quick = False

    def __init__(self, tool: str) -> None:
        self._tool = tool

    def read(self) -> Sequence[Reading]:
        """One reading a GPU; none where it gives no answer."""
        answer = ask([self._tool, f"--query-gpu={','.join(_SMI)}",
                      "--format=csv,noheader,nounits"], seconds=_TOOL_SECONDS)
        return parse_smi(answer.out) if answer.status == 0 else ()

    def close(self) -> None:
        """Nothing is held."""


class NpuProbe:
    """Ascend NPUs through npu-smi."""

    interval = 2 * INTERVAL
    quick = False

    def __init__(self, tool: str, environment: Mapping[str, str]) -> None:
        self._tool = tool
        self._environment = environment

    def read(self) -> Sequence[Reading]:
        """One reading a chip; none where it gives no answer."""
        answer = ask([self._tool, "info"], seconds=_TOOL_SECONDS, environment=self._environment)
        return parse_npu(answer.out) if answer.status == 0 else ()

    def close(self) -> None:
        """Nothing is held."""


def parse_smi(text: str) -> list[Reading]:
    """nvidia-smi's rows of ``_SMI``."""
    found = []
    for row in csv.reader(io.StringIO(text)):
        cells = [cell.strip() for cell in row]
        if len(cells) != len(_SMI):
            continue
        index, name, busy, used, total, heat, power, reasons = cells
        found.append(Reading(
            f"cuda:{index}", name, _float(busy), _bytes(used), _bytes(total), _float(heat),
            _float(power), throttled(int(reasons, 16)) if reasons.startswith("0x") else None))
    return found


def parse_npu(text: str) -> list[Reading]:
    """The chips of ``npu-smi info``. A chip that is not well counts as throttled: its health is
    the reason."""
    _driver, chips = ascend_smi.parse(text)
    warmth = _npu_warmth(text)
    found = []
    for place, chip in enumerate(chips):
        power, heat = warmth[place] if len(warmth) == len(chips) else (None, None)
        found.append(Reading(
            f"npu:{chip.visible}", chip.name, None if chip.busy is None else float(chip.busy),
            chip.used, chip.total, heat, power, "" if chip.well else chip.health))
    return found


def _npu_warmth(text: str) -> list[tuple[float | None, float | None]]:
    """(watts, degrees) of each chip: the last cell of the first of its two rows."""
    found: list[tuple[float | None, float | None]] = []
    head = True
    for line in text.split("Process id")[0].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.strip().startswith("|") or len(cells) < 3:
            continue
        if head and not re.match(r"\d", cells[0]):
            continue  # a heading
        if head:
            numbers = cells[-1].split()
            found.append((_float(numbers[0]) if numbers else None,
                          _float(numbers[1]) if len(numbers) > 1 else None))
        head = not head
    return found


def throttled(reasons: int) -> str:
    """NVML's bits in words; "": nothing lowers the clock that should not."""
    return ", ".join(dict.fromkeys(word for bit, word in _REASONS.items() if reasons & bit))


def probes(pid: Callable[[], int]) -> list[Probe]:
    """What there is on this machine. Blocks for a moment."""
    found: list[Probe] = [ProcessProbe(pid)]
    nvidia = _nvidia()
    if nvidia is not None:
        found.append(nvidia)
    tool = ascend_smi.find(os.environ)
    if tool:
        found.append(NpuProbe(tool, os.environ))
    return found


def sampler(listener: Callable[[Sample], None], pid: Callable[[], int]) -> Sampler:
    """For :class:`desktop.benchmark.link.Surroundings`."""
    return Sampler(probes(pid), listener)


def processor() -> str:
    """The processor's name; "" where it cannot be found out."""
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith(("model name", "Hardware", "Model")):
                return line.partition(":")[2].strip()
    except OSError:
        return ""
    return ""


def _nvidia() -> Probe | None:
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        nvml = None
    if nvml is not None:
        try:
            nvml.nvmlInit()
            return NvmlProbe(nvml)
        except nvml.NVMLError as error:
            log.debug("NVML: %s", error)
    tool = shutil.which("nvidia-smi")
    return SmiProbe(tool) if tool else None


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None  # "[N/A]", "NA", "-"


def _bytes(mebibytes: str) -> int | None:
    number = _float(mebibytes)
    return None if number is None else int(number) * _MIB
