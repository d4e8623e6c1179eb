"""Which NVIDIA GPUs there are and what their memory holds, without touching them.

Asked of the driver (NVML): no CUDA context is made, which would itself take half a gigabyte in
a process that does not compute. Other makers' devices are not looked at; vLLM knows them.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desktop.engines.vllm.failures import NoSuchDevice, TooFewDevices

_log = logging.getLogger(__name__)

VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class User:
    """A process that holds memory of a device."""

    pid: int
    name: str
    bytes: int


@dataclass(frozen=True)
class Device:
    """One GPU. Memory in bytes."""

    number: int
    """As the driver counts."""
    uuid: str
    name: str
    total: int
    free: int
    users: tuple[User, ...] = ()


def devices() -> tuple[Device, ...]:
    """All that the driver shows; empty where there is no driver or no way to ask it."""
    with _library() as nvml:
        if nvml is None:
            return ()
        return tuple(_device(nvml, number) for number in range(nvml.nvmlDeviceGetCount()))


def chosen(found: Sequence[Device], visible: str | None) -> tuple[Device, ...]:
    """Those of FOUND that ``CUDA_VISIBLE_DEVICES`` = VISIBLE (None: not set) leaves, in its
    order. As CUDA does, what stands behind a name that is not there does not count."""
    if visible is None:
        return tuple(found)
    left = []
    for name in (part.strip() for part in visible.split(",")):
        match = [device for device in found
                 if name == str(device.number) or (name and device.uuid.startswith(name))]
        if not match:
            break
        left.append(match[0])
    return tuple(left)


def to_use(found: Sequence[Device], visible: str | None,
           values: Mapping[str, Any]) -> tuple[Device, ...]:
    """Those of FOUND, what the driver shows, that an engine with the settings VALUES uses, in
    order. VISIBLE is what ``CUDA_VISIBLE_DEVICES`` is then (None: not set). Empty where the driver
    shows none; raises NoSuchDevice, TooFewDevices."""
    if not found:
        return ()
    usable = chosen(found, visible)
    if values["devices"]:
        names = [name.strip() for name in str(visible).split(",") if name.strip()]
        if len(usable) < len(names):
            raise NoSuchDevice(number=names[len(usable)], count=len(found))
    needed = (int(values["tensor_parallel"]) * int(values["pipeline_parallel"])
              * int(values["data_parallel"]))
    if needed > len(usable):
        raise TooFewDevices(needed=needed, count=len(usable))
    return usable[:needed]


@contextmanager
def _library() -> Iterator[Any]:
    """NVML, initialised; None where it cannot be had. vLLM brings its Python binding along."""
    nvml = None
    for name in ("pynvml", "vllm.third_party.pynvml"):
        try:
            nvml = importlib.import_module(name)
            nvml.nvmlInit()
            break
        except ImportError:
            nvml = None
        except Exception as error:  # noqa: BLE001 - NVMLError of a module that may not be there
            _log.info("the NVIDIA driver cannot be asked: %s", error)
            nvml = None
            break
    try:
        yield nvml
    finally:
        if nvml is not None:
            nvml.nvmlShutdown()


def _device(nvml: Any, number: int) -> Device:
    handle = nvml.nvmlDeviceGetHandleByIndex(number)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    try:
        running = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except nvml.NVMLError:  # Not allowed in this container.
        running = []
    users = tuple(User(entry.pid, _name_of(entry.pid), int(entry.usedGpuMemory or 0))
                  for entry in running)
    return Device(number, _text(nvml.nvmlDeviceGetUUID(handle)),
                  _text(nvml.nvmlDeviceGetName(handle)), int(memory.total), int(memory.free),
                  users)


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _name_of(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "comm").read_text(encoding="utf-8").strip()
    except OSError:  # Of another container, or ended since.
        return ""


# --- the machine's own memory, for a vLLM that computes on the processor


def host_memory() -> tuple[int, int]:
    """Bytes of memory in all and available; (0, 0) where the system does not say."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return 0, 0
    values = {}
    for line in text.splitlines():
        name, _colon, value = line.partition(":")
        values[name] = int(value.split()[0]) * 1024
    return values.get("MemTotal", 0), values.get("MemAvailable", 0)


def resident() -> int:
    """Bytes that this process and its descendants hold; 0 where the system does not say."""
    parents: dict[int, int] = {}
    sizes: dict[int, int] = {}
    page = os.sysconf("SC_PAGE_SIZE")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            parents[int(folder.name)] = int(fields[1])
            sizes[int(folder.name)] = int(fields[21]) * page
        except (OSError, IndexError, ValueError):
            continue  # It has ended since.
    me = os.getpid()
    return sum(size for pid, size in sizes.items() if _descends(pid, me, parents))


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid and pid != ancestor:
        pid = parents.get(pid, 0)
    return pid == ancestor
