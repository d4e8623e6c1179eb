"""Which variables each version of the Ascend stack is started with: one table.

Names and values: the CANN recipe (Atlas A2) for vllm-ascend 0.8.5rc1 (its set_env.sh and its run
scripts); vllm-ascend's tutorial "DeepSeek-OCR-2" for 0.16 and later; what vLLM has stopped reading
(VLLM_USE_V1 after 0.11, vllm-ascend pull request 4086; VLLM_ATTENTION_BACKEND after 0.14, vLLM pull
request 32812) is taken out where a shell still has it from an older stack, because vLLM warns of
every variable that it does not know.

Standard library only, Python 3.9.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Switch:
    """One variable. ``value`` None: it must not be set.

    ``since`` and ``before`` bound the version of vllm-ascend (of vLLM where ``of`` is ``vllm``),
    as numbers; () is no bound. ``forced``: also where a person has set another value, because
    the engine does not run with it.
    """

    name: str
    value: Optional[str]
    why: str
    since: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    of: str = "vllm-ascend"
    forced: bool = False


LEGACY = (0, 9)
"""The first vllm-ascend that the recipe is not for."""
CURRENT = (0, 16)
"""The first one that reads pages with vLLM's own model."""

SWITCHES: tuple[Switch, ...] = (
    # Whatever the version.
    Switch("TOKENIZERS_PARALLELISM", "false",
           "tokenizers would start threads in processes that fork"),
    Switch("HCCL_WHITELIST_DISABLE", "1", "devices talk to each other without a list of servers"),
    Switch("ASCEND_GLOBAL_LOG_LEVEL", "3", "CANN logs errors only"),
    Switch("ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE", "0", "no wait after each kernel"),
    Switch("ATB_OPSRUNNER_SETUP_CACHE_ENABLE", "1", "an operator is set up once for equal shapes"),
    # The recipe's stack: vLLM's V0 engine.
    Switch("VLLM_USE_V1", "0", "the official code is written for vLLM's V0 engine",
           before=LEGACY, of="vllm", forced=True),
    Switch("VLLM_ATTENTION_BACKEND", "NPU", "attention by vllm-ascend", before=LEGACY,
           forced=True),
    Switch("VLLM_USE_TRITON_FLASH_ATTN", "0", "there is no Triton kernel for this attention",
           before=LEGACY),
    # Between: pages cannot be read, but nothing left over may stop the versions from starting.
    Switch("VLLM_USE_V1", "1", "vllm-ascend's V0 engine is no longer maintained",
           since=LEGACY, before=(0, 12), forced=True),
    Switch("VLLM_USE_V1", None, "this vLLM has one engine and no such switch", since=(0, 12)),
    Switch("VLLM_ATTENTION_BACKEND", None, "this vllm-ascend chooses its attention itself",
           since=LEGACY),
    Switch("VLLM_USE_TRITON_FLASH_ATTN", None, "not a switch of this vLLM any more",
           since=CURRENT),
    # The tutorial's.
    Switch("VLLM_ASCEND_ENABLE_NZ", "0", "weights stay as they are stored", since=CURRENT),
    Switch("PYTORCH_NPU_ALLOC_CONF", "expandable_segments:True",
           "less of the device's memory is lost between blocks", since=CURRENT),
    Switch("TASK_QUEUE_ENABLE", "1", "operators are sent to the device by a thread of their own",
           since=CURRENT),
)


def choose(ascend: str, vllm: str = "", environ: Mapping[str, str] | None = None,
           ) -> tuple[dict[str, str], tuple[str, ...]]:
    """Variables to set, and those to take out, for these versions beside ENVIRON.

    ASCEND, VLLM: as their packages say, empty where they are not installed (then only what holds
    for every version applies). A version without numbers (``dev``) is newer than all. What
    a person has set stays, unless the engine does not run with it; nothing is taken out that
    ENVIRON does not have.
    """
    given = environ or {}
    versions = {"vllm-ascend": ascend, "vllm": vllm or ascend}
    chosen: dict[str, str] = {}
    removed: list[str] = []
    for switch in SWITCHES:
        if not _applies(switch, versions[switch.of]):
            continue
        if switch.value is None:
            if switch.name in given:
                removed.append(switch.name)
        elif switch.forced or not given.get(switch.name):
            chosen[switch.name] = switch.value
        else:
            chosen[switch.name] = given[switch.name]
    return chosen, tuple(removed)


def _applies(switch: Switch, version: str) -> bool:
    if not switch.since and not switch.before:
        return True
    if not version:
        return False
    numbers = release(version) or (1 << 30,)
    return numbers >= switch.since and (not switch.before or numbers < switch.before)


def release(version: str) -> tuple[int, ...]:
    """The numbers VERSION begins with: ``0.8.5rc1`` is (0, 8, 5); () where it has none."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", version.strip(), re.IGNORECASE)
    return tuple(int(number) for number in found[1].split(".")) if found is not None else ()
