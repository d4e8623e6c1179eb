"""Under what a run was made: versions, devices, caches. What makes two runs comparable, or not."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from typing import Any

import psutil

import desktop
from desktop.benchmark.devices import processor
from desktop.settings import Values
from desktop.settings.declare import TRUTH

CACHES = ("prefix", "images")
"""``prefix``: equal beginnings of prompts are not computed again; ``images``: nor are equal
images prepared again."""


def describe(interpreter: str = "") -> dict[str, Any]:
    """The machine and Verso. Blocks for a moment at most."""
    return {
        "verso": desktop.__version__, "python": platform.python_version(),
        "engine_interpreter": interpreter, "system": _system(), "machine": platform.machine(),
        "processor": processor(), "cores": psutil.cpu_count() or 1,
        "memory_total": psutil.virtual_memory().total,
        "load_before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def caches(values: Values, engine_args: Mapping[str, str]) -> dict[str, str]:
    """Cache → ``on``, ``off``, ``unknown`` (a server decides), ``none`` (the engine has none)."""
    engine = values["engine"]
    if engine in ("vllm", "ascend"):
        arguments = {key.replace("-", "_"): value for key, value in engine_args.items()}
        prefix = TRUTH.get(arguments.get("enable_prefix_caching", "").lower(),
                           bool(values["prefix_caching"]))
        try:
            images = float(arguments.get("mm_processor_cache_gb", "0")) > 0
        except ValueError:
            images = True
        return {"prefix": "on" if prefix else "off", "images": "on" if images else "off"}
    if engine == "ascend-legacy":
        return {"prefix": "off", "images": "off"}
    if engine == "remote":
        return {"prefix": "unknown", "images": "unknown"}
    return {"prefix": "none", "images": "none"}


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}"
