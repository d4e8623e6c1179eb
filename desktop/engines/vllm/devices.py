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

from desktop.engines.vllm.failures import NoSuchDevice, OnePartOnly, TooFewDevices
from desktop.i18n import _

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
    """A GPU, or a part of one (MIG). Memory in bytes; 0 where the driver does not tell."""

    number: int
    """As the driver counts; a part has that of its GPU."""
    uuid: str
    name: str
    total: int
    free: int
    users: tuple[User, ...] = ()
    partitioned: bool = False
    """Whether it is in MIG mode: then only its parts can be used."""
    part_of: str = ""
    """UUID of the GPU that it is a part of."""


def devices() -> tuple[Device, ...]:
    """All that the driver shows, parts behind their GPU; empty where there is no driver or no way
    to ask it."""
    with _library() as nvml:
        if nvml is None:
            return ()
        return tuple(device for number in range(nvml.nvmlDeviceGetCount())
                     for device in _gpu(nvml, number))


def chosen(found: Sequence[Device], visible: str | None) -> tuple[Device, ...]:
    """Those of FOUND that ``CUDA_VISIBLE_DEVICES`` = VISIBLE (None: not set) leaves, in its
    order. As CUDA does: what stands behind a name that is not there does not count, a device
    named twice leaves none, and a process sees one MIG device and nothing beside it."""
    if visible is None:
        named = [device for device in found if not device.part_of]
    else:
        named = []
        for name in visible.split(","):
            match = _called(found, name.strip())
            if len(match) != 1:
                break
            named += match
        if len(set(named)) < len(named):
            return ()
    left = []
    for device in named:
        if device.partitioned:  # CUDA takes the first of its parts.
            left += [part for part in found if part.part_of == device.uuid][:1]
        else:
            left.append(device)
    return tuple([device for device in left if device.part_of][:1] or left)


def check(found: Sequence[Device], names: str) -> None:
    """Whether NAMES, separated by commas, are devices of FOUND; raises NoSuchDevice."""
    named: list[Device] = []
    shown = ", ".join(device.uuid if device.part_of else f"{device.number} ({device.name})"
                      for device in found) or _("none")
    for name in (part.strip() for part in names.split(",") if part.strip()):
        match = _called(found, name)
        if len(match) > 1:
            raise NoSuchDevice(found=shown, reason=_(
                "Several devices have names that begin with {name}.").format(name=name))
        if not match:
            raise NoSuchDevice(found=shown, reason=_(
                "There is no device {name}.").format(name=name))
        if match[0] in named:
            raise NoSuchDevice(found=shown, reason=_(
                "The device {name} is named twice.").format(name=name))
        named += match


def spelled(found: Sequence[Device], visible: str) -> str:
    """VISIBLE with GPUs by their numbers, which every vLLM reads, and with the whole names of MIG
    devices, which have no number; what is not known stays as it is."""
    names = []
    for name in (part.strip() for part in visible.split(",")):
        match = _called(found, name)
        if len(match) == 1:
            name = match[0].uuid if match[0].part_of else str(match[0].number)
        names.append(name)
    return ",".join(names)


def to_use(found: Sequence[Device], visible: str | None,
           values: Mapping[str, Any]) -> tuple[Device, ...]:
    """Those of FOUND, what the driver shows, that an engine with the settings VALUES uses, in
    order. VISIBLE is what ``CUDA_VISIBLE_DEVICES`` is then (None: not set). Empty where the driver
    shows none; raises NoSuchDevice, OnePartOnly, TooFewDevices."""
    if not found:
        return ()
    if values["devices"]:
        check(found, str(visible))
    usable = chosen(found, visible)
    count = needed(values)
    if count > len(usable):
        if usable and usable[0].part_of:
            raise OnePartOnly(name=usable[0].name, needed=count)
        raise TooFewDevices(needed=count, count=len(usable))
    return usable[:count]


def memory(before: Sequence[Device], now: Sequence[Device]) -> tuple[int, int, int]:
    """Bytes of the devices BEFORE an engine was started that it has taken since, of all they have,
    and free, as they are among those there are NOW."""
    then = {device.uuid: device for device in before}
    same = [device for device in now if device.uuid in then]
    return (sum(max(0, then[device.uuid].free - device.free) for device in same),
            sum(device.total for device in same), sum(device.free for device in same))


def titled(name: str, count: int) -> str:
    """COUNT devices of the NAME, for a person."""
    return f"{count} × {name}" if count > 1 else name


def needed(values: Mapping[str, Any]) -> int:
    """Devices that an engine with the settings VALUES takes."""
    return (int(values["tensor_parallel"]) * int(values["pipeline_parallel"])
            * int(values["data_parallel"]))


def _called(found: Sequence[Device], name: str) -> list[Device]:
    """Those of FOUND that NAME may mean: a GPU's number, or the beginning of a UUID."""
    if name.isdecimal():
        return [device for device in found
                if not device.part_of and device.number == int(name)]
    exact = [device for device in found if device.uuid == name]
    return exact or [device for device in found if name and device.uuid.startswith(name)]


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


def _gpu(nvml: Any, number: int) -> Iterator[Device]:
    """GPU NUMBER, and behind it its parts."""
    handle = nvml.nvmlDeviceGetHandleByIndex(number)
    try:
        mode = nvml.nvmlDeviceGetMigMode(handle)[0]
    except nvml.NVMLError:  # It has no such mode.
        mode = nvml.NVML_DEVICE_MIG_DISABLE
    gpu = _device(nvml, handle, number, partitioned=mode == nvml.NVML_DEVICE_MIG_ENABLE)
    yield gpu
    if gpu.partitioned:
        for place in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
            try:
                part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)
            except nvml.NVMLError:  # Nobody made one at this place, or it is not for us.
                continue
            yield _device(nvml, part, number, part_of=gpu.uuid)


def _device(nvml: Any, handle: Any, number: int, *, partitioned: bool = False,
            part_of: str = "") -> Device:
    try:
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        total, free = int(memory.total), int(memory.free)
    except nvml.NVMLError:  # Of a GPU of which this container has one part only.
        total = free = 0
    try:
        running = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except nvml.NVMLError:  # Not allowed in this container.
        running = []
    users = tuple(User(entry.pid, _name_of(entry.pid), int(entry.usedGpuMemory or 0))
                  for entry in running)
    return Device(number, _text(nvml.nvmlDeviceGetUUID(handle)),
                  _text(nvml.nvmlDeviceGetName(handle)), total, free, users, partitioned, part_of)


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
