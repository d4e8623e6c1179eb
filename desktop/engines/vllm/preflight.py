"""Looked at before loading: is the model whole, and does the device's memory hold it?

vLLM would find the same faults, minutes later and in words that name no way out.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desktop.engines.base import Progress
from desktop.engines.model import weights
from desktop.engines.vllm.devices import Device
from desktop.engines.vllm.failures import (
    GB,
    ModelMissing,
    NotQuantized,
    NotTheModel,
    OutOfMemory,
)
from desktop.i18n import _

ARCHITECTURE = "DeepseekOCR2ForCausalLM"

_WORKING = 3.0 * GB
"""Memory besides weights and KV cache: CUDA context, activations of a step, graphs."""
_SHARE_OF_WEIGHTS = {"none": 1.0, "fp8": 0.6, "bitsandbytes": 0.45}
"""What a quantization that is done while loading leaves of the weights in the files; the vision
part keeps its format. The others (AWQ, GPTQ …) are in the files already."""
_IN_FILES = ("awq", "gptq", "compressed-tensors")
"""Quantizations that are made beforehand."""
Fix = tuple[tuple[str, Any], ...]
"""Settings and values, as :attr:`desktop.errors.Problem.fix` has them."""

Devices = tuple[Device, ...]

RELEASE = 8.0
"""Seconds in which the memory of an engine that was killed comes free."""
_MOST = 0.95
"""No more of a device's memory is advised."""


@dataclass(frozen=True)
class Need:
    """What the model takes of one device, in bytes."""

    weights: int
    cache: int
    """KV cache of one page with the whole context."""

    @property
    def least(self) -> int:
        """With less the engine does not start."""
        return round(self.weights + self.cache + _WORKING)


def model_folder(values: Mapping[str, Any], extra: Mapping[str, Any]) -> weights.Weights:
    """The model that the settings VALUES name; raises ModelMissing, NotTheModel, NotQuantized.

    EXTRA are the arguments passed through: with ``load_format=dummy`` weights need not be there.
    """
    name = str(values["model"])
    if not name or not Path(name).is_dir():
        raise ModelMissing(folder=name or "–", what=_("there is no such folder"))
    found = weights.check(name)
    missing, damaged = list(found.missing), dict(found.damaged)
    if extra.get("load_format") == "dummy":
        missing = [file for file in missing if not _is_weights(file)]
        damaged = {file: why for file, why in damaged.items() if not _is_weights(file)}
    if extra.get("tokenizer"):
        missing = [file for file in missing if not file.startswith("tokenizer")]
    if missing or damaged:
        what = [_("{file} is missing").format(file=file) for file in missing]
        what += [f"{file}: {why}" for file, why in damaged.items()]
        raise ModelMissing(folder=name, what="; ".join(what[:3]), detail="\n".join(what))
    if found.architecture != ARCHITECTURE and not extra.get("hf_overrides"):
        raise NotTheModel(folder=name, architecture=found.architecture or "?")
    wanted = str(values["quantization"])
    if wanted in _IN_FILES and "quantization_config" not in _config(name) \
            and not (extra.get("quantization") or extra.get("hf_overrides")):
        raise NotQuantized(folder=name, format=wanted, fix=(("quantization", "none"),))
    return found


def need(values: Mapping[str, Any], model: weights.Weights) -> Need:
    """What MODEL takes of each device under the settings VALUES."""
    devices = int(values["tensor_parallel"]) * int(values["pipeline_parallel"])
    share = _SHARE_OF_WEIGHTS.get(str(values["quantization"]), 1.0)
    if "quantization_config" in _config(values["model"]):
        share = 1.0  # Small in the files, too.
    if values["dtype"] == "float32":
        share *= 2  # Published in 16 bits.
    token = cache_bytes(values["model"], 4 if values["dtype"] == "float32" else 2)
    return Need(round(model.bytes * share / devices),
                round(int(values["max_model_len"]) * token / devices))


def cache_bytes(folder: str | Path, width: int) -> int:
    """Bytes of KV cache that a token takes, at WIDTH bytes a number; 0: unknown."""
    config = _config(folder)
    try:
        language = config.get("language_config") or config
        heads = int(language["num_attention_heads"])
        head = int(language.get("head_dim") or language["hidden_size"] // heads)
        kept = int(language.get("num_key_value_heads") or heads)
        return 2 * int(language["num_hidden_layers"]) * kept * head * width
    except (AttributeError, ValueError, KeyError, TypeError, ZeroDivisionError):
        return 0


def _config(folder: str | Path) -> dict[str, Any]:
    """The model's configuration; empty where it cannot be read."""
    try:
        found = json.loads(Path(folder, "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def memory(values: Mapping[str, Any], needed: Need, devices: Sequence[Device],
           cores: int = 1) -> None:
    """Whether each of DEVICES, which the engine will use, holds what is NEEDED by each of CORES;
    raises OutOfMemory with the settings that would fit."""
    share = float(values["memory_utilization"])
    for device in devices:
        if not device.total:  # The driver does not tell.
            continue
        wanted = share * device.total
        if device.free < wanted:
            raise _occupied(device, share, needed)
        if cores > 1 and needed.least <= wanted < cores * needed.least:
            raise _too_many(device, share, needed, cores)
        if wanted < needed.least:
            raise _too_small(device, share, needed, values)


def memory_in_time(values: Mapping[str, Any], needed: Need, look: Callable[[], Devices],
                   progress: Progress, cores: int = 1) -> Devices:
    """What LOOK last gave of the devices to be used, once :func:`memory` has nothing against it:
    an engine that has just ended, or was killed, may hold its memory for a moment yet. Blocks
    for at most :data:`RELEASE` seconds; raises OutOfMemory, and what LOOK raises."""
    deadline = time.monotonic() + RELEASE
    while True:
        devices = look()
        try:
            memory(values, needed, devices, cores)
        except OutOfMemory:
            if time.monotonic() >= deadline:
                raise
            progress(_("Waiting for the device's memory"), -1.0)
            time.sleep(0.5)
        else:
            return devices


def host_memory(needed: Need, cache: int, total: int, available: int, cores: int = 1) -> None:
    """Whether the machine's memory holds what is NEEDED and a KV cache of CACHE bytes for each of
    CORES, where the engine computes on the processor: without room the system would kill it, or
    something else. Raises OutOfMemory. TOTAL 0: not known."""
    least = round(needed.weights + cache + _WORKING) * cores
    if not total or least <= available:
        return
    what = _("the engine needs {least:.1f} GB of this machine's memory ({weights:.1f} GB of "
             "weights, {cache:.1f} GB of KV cache), and {available:.1f} of {total:.1f} GB are "
             "free").format(least=least / GB, weights=needed.weights / GB, cache=cache / GB,
                            available=available / GB, total=total / GB)
    raise OutOfMemory(what=what, way_out=_(
        "End other programs, set the variable VLLM_CPU_KVCACHE_SPACE to fewer GiB, or use the "
        "built-in engine or a server elsewhere."))


def _occupied(device: Device, share: float, needed: Need) -> OutOfMemory:
    fits = math.floor((device.free / device.total - 0.01) * 100) / 100
    what = _("the engine may take {share:.0%} of the {total:.1f} GB of device {number} ({name}), "
             "and {free:.1f} GB are free").format(
        share=share, total=device.total / GB, number=device.number, name=device.name,
        free=device.free / GB)
    others = _others(device)
    fix: Fix = ()
    if fits * device.total >= needed.least:
        way_out = _("Set “Memory utilization” to at most {fits:.2f}").format(fits=fits)
        fix = (("memory_utilization", fits),)
    else:
        way_out = _("The model needs {least:.1f} GB").format(least=needed.least / GB)
    way_out += ", " + _("or end what else uses the device: {others}.").format(others=others)
    return OutOfMemory(what=what, way_out=way_out, fix=fix)


def _too_small(device: Device, share: float, needed: Need,
               values: Mapping[str, Any]) -> OutOfMemory:
    what = _("weights ({weights:.1f} GB), working memory ({working:.1f} GB) and the KV cache of "
             "one page ({cache:.1f} GB) are {least:.1f} GB; the engine may take {share:.0%} of "
             "the {total:.1f} GB of device {number} ({name}), {wanted:.1f} GB").format(
        weights=needed.weights / GB, working=_WORKING / GB, cache=needed.cache / GB,
        least=needed.least / GB, share=share, total=device.total / GB, number=device.number,
        name=device.name, wanted=share * device.total / GB)
    way_out, fix = _fitting(device, needed, values)
    return OutOfMemory(what=what, way_out=way_out, fix=fix)


def _too_many(device: Device, share: float, needed: Need, cores: int) -> OutOfMemory:
    wanted = share * device.total
    fits = int(wanted // needed.least)
    what = _("each of {cores} engine cores needs {least:.1f} GB, and together they may take "
             "{share:.0%} of the {total:.1f} GB of device {number} ({name}), {wanted:.1f} GB"
             ).format(cores=cores, least=needed.least / GB, share=share,
                      total=device.total / GB, number=device.number, name=device.name,
                      wanted=wanted / GB)
    way_out = _("Set “Engine cores” to {fits}.").format(fits=fits)
    return OutOfMemory(what=what, way_out=way_out, fix=(("engine_cores", fits),))


def _fitting(device: Device, needed: Need, values: Mapping[str, Any]) -> tuple[str, Fix]:
    """The settings with which it would fit, the gentlest first: in words, and as values."""
    most = min(device.free / device.total - 0.01, _MOST) * device.total
    if needed.least <= most:
        share = _rounded_up(needed.least / device.total)
        return (_("Set “Memory utilization” to {share:.2f}.").format(share=share),
                (("memory_utilization", share),))
    shorter = int((most - needed.weights - _WORKING) / max(1, needed.cache)
                  * int(values["max_model_len"])) // 1024 * 1024
    if shorter >= 2048:
        share = math.floor(most / device.total * 100) / 100
        return (_("Set “Memory utilization” to {share:.2f} and “Context length” to {context}."
                  ).format(share=share, context=shorter),
                (("memory_utilization", share), ("max_model_len", shorter)))
    if values["quantization"] == "none":
        smaller = needed.least - round(needed.weights * (1 - _SHARE_OF_WEIGHTS["fp8"]))
        if smaller <= most:
            share = _rounded_up(smaller / device.total)
            return (_("Set “Quantization” to fp8 (about {least:.1f} GB) and “Memory utilization” "
                      "to {share:.2f}.").format(least=smaller / GB, share=share),
                    (("quantization", "fp8"), ("memory_utilization", share)))
    return (_("Use a device with at least {least:.0f} GB, share the model among several with "
              "“Tensor parallel”, or ask a server elsewhere.").format(
        least=math.ceil(needed.least / _MOST / GB)), ())


def _rounded_up(share: float) -> float:
    return math.ceil(share * 100) / 100


def _others(device: Device) -> str:
    named = [f"{user.name or _('process')} {user.pid} ({user.bytes / GB:.1f} GB)"
             for user in sorted(device.users, key=lambda user: -user.bytes)[:5]]
    tool = "npu-smi" if device.uuid.startswith("NPU-") else "nvidia-smi"
    return ", ".join(named) or _("processes that this system does not show (`{tool}` may)").format(
        tool=tool)


def _is_weights(file: str) -> bool:
    return file.endswith((".safetensors", ".bin", ".safetensors.index.json", ".bin.index.json"))
