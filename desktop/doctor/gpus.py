"""NVIDIA GPUs as their own tool tells: memory, use, and who uses them."""

from __future__ import annotations

import csv
import io
import re
import shutil
from dataclasses import dataclass, replace

from desktop.client.probing import ask
from desktop.engines.vllm.devices import Device, User
from desktop.errors import Problem, VersoError
from desktop.i18n import N_

SECONDS = 15.0
"""A driver that is in trouble keeps its tool waiting for ever."""
_MIB = 1 << 20
_GPUS = ("index", "uuid", "name", "memory.total", "memory.free", "utilization.gpu",
         "driver_version")
_LISTED = re.compile(r"GPU \d+: .*\(UUID: (GPU-[0-9A-Za-z-]+)\)")
_PART = re.compile(r"\s+(MIG \S+)\s+Device\s+\d+: \(UUID: (MIG-[0-9A-Za-z/-]+)\)")
_PROCESSES = ("gpu_uuid", "pid", "process_name", "used_memory")


class DriverSilent(VersoError):
    """nvidia-smi hangs."""

    code = "doctor.driver_silent"
    message = N_("nvidia-smi gave no answer within {seconds} s.")
    hint = N_("The driver or a GPU is in trouble: look at `dmesg`, and restart the machine.")


class DriverFailed(VersoError):
    """nvidia-smi is there and cannot reach the driver."""

    code = "doctor.driver"
    message = N_("nvidia-smi cannot ask the driver: {reason}")
    hint = N_("Install the driver for this kernel and restart, or start the container with its "
              "GPUs (docker run --gpus all).")


@dataclass(frozen=True)
class Gpu:
    """One GPU. Memory in bytes."""

    device: Device
    busy: int | None
    """Percent of the last second in which it computed; None: not told."""
    driver: str
    parts: tuple[Device, ...] = ()
    """What it is divided into (MIG); their memory is not told."""


@dataclass(frozen=True)
class Gpus:
    """What was found; ``problem``: why nothing could be."""

    found: tuple[Gpu, ...] = ()
    tool: str = ""
    """Path of nvidia-smi; "" where there is none."""
    problem: Problem | None = None
    cuda: str = ""
    """The newest CUDA that the driver knows; empty: not told."""


def look(seconds: float = SECONDS) -> Gpus:
    """Ask nvidia-smi; raises nothing. Blocks for at most four times SECONDS."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return Gpus()
    rows = _query(tool, "gpu", _GPUS, seconds)
    if isinstance(rows, Problem):
        return Gpus(tool=tool, problem=rows)
    users: dict[str, list[User]] = {}
    processes = _query(tool, "compute-apps", _PROCESSES, seconds)
    if not isinstance(processes, Problem):  # some containers may not see them
        for uuid, pid, name, used in processes:
            users.setdefault(uuid, []).append(
                User(_number(pid), name.rpartition("/")[2], _number(used) * _MIB))
    parts = _parts(tool, seconds)
    return Gpus(tuple(
        Gpu(Device(_number(index), uuid, name, _number(total) * _MIB, _number(free) * _MIB,
                   tuple(users.get(uuid, ())), partitioned=uuid in parts),
            int(busy) if busy.isdecimal() else None, driver,
            tuple(replace(part, number=_number(index)) for part in parts.get(uuid, ())))
        for index, uuid, name, total, free, busy, driver in rows), tool,
        cuda=_cuda(tool, seconds) if rows else "")


def _cuda(tool: str, seconds: float) -> str:
    """What its table says above all; no query gives it."""
    try:
        answer = ask([tool], seconds=seconds)
    except OSError:
        return ""
    found = re.search(r"CUDA Version:\s*([\d.]+)", answer.out)
    return found[1] if found is not None else ""


def _parts(tool: str, seconds: float) -> dict[str, list[Device]]:
    """UUID of a GPU that is divided → its parts, in order; they are in none of the tables."""
    try:
        answer = ask([tool, "-L"], seconds=seconds)
    except OSError:
        return {}
    found: dict[str, list[Device]] = {}
    gpu = ""
    for line in answer.out.splitlines():
        if listed := _LISTED.match(line):
            gpu = listed[1]
        elif gpu and (part := _PART.match(line)):
            found.setdefault(gpu, []).append(Device(0, part[2], part[1], 0, 0, part_of=gpu))
    return found


def _query(tool: str, what: str, fields: tuple[str, ...], seconds: float,
           ) -> list[list[str]] | Problem:
    """The rows of one of its tables."""
    command = [tool, f"--query-{what}={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        answer = ask(command, seconds=seconds)
    except OSError as error:
        return DriverFailed(reason=error.strerror or str(error)).problem()
    if answer.timed_out:
        return DriverSilent(seconds=f"{seconds:g}").problem()
    rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(answer.out))]
    rows = [row for row in rows if len(row) == len(fields)]
    if answer.status:
        said = (answer.out.strip() or answer.err.strip() or f"status {answer.status}")
        return DriverFailed(reason=" ".join(said.split())[:300]).problem()
    return rows


def _number(text: str) -> int:
    """0 for what is not told (``[N/A]``)."""
    return int(text) if text.isdecimal() else 0
