"""Which NPUs there are and what their memory holds, from where the engine runs.

npu-smi is asked: it makes no context on a device. Where it is not there or says nothing – in a
container that was started without it – a Python of its own asks torch-npu; what that takes of the
devices is free again when it ends.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping

from desktop.engines.ascend import smi
from desktop.engines.ascend.environment import VISIBLE
from desktop.engines.vllm.devices import Device, User

_log = logging.getLogger(__name__)

_TORCH_SECONDS = 60.0
_MARK = "VERSO-NPUS "
_SCRIPT = f"""
import json
import torch
import torch_npu
found = []
for number in range(torch.npu.device_count()):
    free, total = torch.npu.mem_get_info(number)
    found.append([number, torch.npu.get_device_name(number), total, free])
print("\\n{_MARK}" + json.dumps(found))
"""


def devices(environ: Mapping[str, str] | None = None) -> tuple[Device, ...]:
    """All there are, by the numbers that ``ASCEND_RT_VISIBLE_DEVICES`` takes; empty where nobody
    tells. Blocks for a second, for some with torch-npu. ENVIRON None: ours."""
    variables = dict(os.environ if environ is None else environ)
    # It takes part in what is asked, not in who may ask.
    variables.pop(VISIBLE, None)
    return by_smi(variables) or by_torch(variables)


def by_smi(environ: Mapping[str, str]) -> tuple[Device, ...]:
    """As npu-smi shows them; empty where it shows nothing."""
    tool = smi.find(environ)
    if not tool:
        return ()
    _driver, found = smi.parse(_said([tool, "info"], environ, smi.SECONDS))
    if not found:
        return ()
    chips = smi.parse_mapping(_said([tool, "info", "-m"], environ, smi.SECONDS))
    numbered = []
    for npu in found:
        known = chips.get((npu.card, npu.chip))
        number = known[0] if known is not None else npu.visible
        numbered.append(Device(
            number, f"NPU-{npu.card}-{npu.chip}", _name(npu.name), npu.total, npu.free,
            tuple(User(holder.pid, holder.name, holder.bytes) for holder in npu.holders)))
    return tuple(sorted(numbered, key=lambda device: device.number))


def by_torch(environ: Mapping[str, str]) -> tuple[Device, ...]:
    """As torch-npu shows them; empty where it shows nothing."""
    said = _said([sys.executable, "-c", _SCRIPT], environ, _TORCH_SECONDS)
    for line in said.splitlines():
        if line.startswith(_MARK):
            return tuple(Device(int(number), f"NPU-{number}", _name(str(name)), int(total),
                                int(free))
                         for number, name, total, free in json.loads(line[len(_MARK):]))
    return ()


def _name(name: str) -> str:
    """A chip's name, that of its maker before it."""
    return name if name.lower().startswith("ascend") else f"Ascend {name}"


def _said(command: list[str], environ: Mapping[str, str], seconds: float) -> str:
    """What COMMAND prints; empty where it fails, or says nothing within SECONDS."""
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace",
                                   env=dict(environ), start_new_session=True)
    except OSError as error:
        _log.info("%s does not tell of NPUs: %s", command[0], error)
        return ""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        _log.info("%s does not tell of NPUs: %s", command[0], error)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # Also what it started.
        # What waits inside a driver that is in trouble does not even die.
        threading.Thread(target=process.wait, name="npu-tool", daemon=True).start()
        return ""
    if process.returncode:
        _log.info("%s does not tell of NPUs (status %d): %s", command[0], process.returncode,
                  " ".join((err or out).split())[-300:])
        return ""
    return out
