"""Loading vLLM 0.8.5 with the official code: everything that blocks, to be run in a thread of its
own that lives as long as the engine."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desktop.engines.ascend import npus, problems
from desktop.engines.ascend.environment import VISIBLE
from desktop.engines.ascend.failures import NoPlatform, unloadable
from desktop.engines.ascend_legacy import arguments, official, stack
from desktop.engines.base import Progress
from desktop.engines.model import prompts, variables
from desktop.engines.vllm import arguments as common
from desktop.engines.vllm import devices, preflight, tokens
from desktop.engines.vllm.failures import NoDevice, StartFailed, memory, root_cause
from desktop.engines.vllm.output import OutputTail
from desktop.errors import VersoError
from desktop.i18n import _

_log = logging.getLogger(__name__)

_PLUGIN = "verso-official"
"""The entry point's name, for VLLM_PLUGINS."""
_ALWAYS = {
    # The official code is written for the V0 engine.
    "VLLM_USE_V1": "0",
}
_PREFERRED = {
    # Seconds that a step may take before the V0 engine gives itself up; by itself 60. The first
    # one on an NPU compiles operators. Verso has a limit of its own for silence (stall_seconds).
    "VLLM_ENGINE_ITERATION_TIMEOUT_S": "600",
}
"""Set unless a person has."""
_SETTINGS = {"gpu_memory_utilization": "memory_utilization", "max_model_len": "max_model_len",
             "tensor_parallel_size": "tensor_parallel", "quantization": "quantization"}
"""vLLM's names of settings by which it is judged what fits."""
_COPY = "official-code"
"""The prepared copy, in the worker's own working folder."""
_PTXAS = "/usr/local/cuda-11.8/bin/ptxas"
"""Triton's own does not know that CUDA; the official scripts set this one."""


@dataclass
class Loaded:
    """A running engine and what is known of it."""

    engine: Any
    """``AsyncLLMEngine``."""
    code: official.Code
    white_list: tuple[int, ...]
    """Ids of the tokens that may repeat in spite of the n-gram."""
    stack: stack.Stack
    values: dict[str, Any]
    """The declared settings."""
    arguments: dict[str, Any]
    """What vLLM was given."""
    notes: list[str]
    devices: tuple[devices.Device, ...]
    """Those it uses, as they were before; empty where nobody tells."""


class Loader:
    """Loads once. The steps are in the order in which they may refuse."""

    def __init__(self, settings: Mapping[str, Any], output: OutputTail,
                 progress: Progress) -> None:
        self._settings = settings
        self._output = output
        self._progress = progress

    def load(self) -> Loaded:
        """Blocks for as long as vLLM takes; raises VersoError."""
        self._progress(_("Looking at the model"), 0.0)
        found = stack.installed()
        stack.check(found)
        extra = common.passed_through(self._settings)
        values = common.declared({**self._settings, **_as_settings(extra)})
        model = preflight.model_folder(values, extra)
        code = official.located(str(values["official_code"]))
        folder = official.made_ready(code, npu=found.npu, to=Path.cwd() / _COPY)
        _log.info("official code: %s%s", code, "" if folder == code else f", prepared: {folder}")
        wanted = official.order(folder, str(values["model"]), _prompt(values), npu=found.npu)
        _prepare_environment(values, found, wanted)
        usable = self._devices(found, values, preflight.need(values, model))
        self._progress(_("Loading vLLM {version}").format(version=found.vllm), -1.0)
        try:
            _check_platform(found)
            loaded = official.load(wanted)
            checked = tokens.check(loaded.tokenizer)
            built = arguments.build(values, npu=found.npu)
            given = {**built.values, **common.of_vllm(extra, found.vllm)[1]}
            _log.info("vLLM %s with %s", found.vllm, variables.discreet(given))
            self._progress(_("Loading the model"), -1.0)
            engine = _start(given)
        except VersoError:
            raise
        except Exception as error:
            raise self._explained(error) from error
        return Loaded(engine, loaded, checked.white_list, found, values, given,
                      [*_experts(loaded), *built.notes,
                       *(error.problem().line()
                         for error in (problems.bearable(os.environ) if found.npu else ()))],
                      usable)

    def _devices(self, found: stack.Stack, values: Mapping[str, Any],
                 needed: preflight.Need) -> tuple[devices.Device, ...]:
        """The devices that will be used, once their memory holds what is NEEDED. Raises
        NoSuchDevice, OnePartOnly, TooFewDevices, OutOfMemory; empty where nobody tells."""
        variable = VISIBLE if found.npu else devices.VISIBLE

        def look() -> tuple[devices.Device, ...]:
            there = shown(found)
            visible = os.environ.get(variable)
            usable = devices.to_use(there, visible, values)
            if visible and there and not found.npu:  # This vLLM reads numbers only.
                os.environ[variable] = devices.spelled(there, visible)
            return usable

        return preflight.memory_in_time(values, needed, look, self._progress)

    def _explained(self, error: Exception) -> VersoError:
        """ERROR of vLLM's as one with a way out. With several devices its processes have said
        more on their standard error than the exception that reaches this one."""
        lines = self._output.settled()
        said = f"{type(error).__name__}: {error}"
        detail = "\n".join([*lines[-80:], said])
        short = memory(telling(said), detail) or memory(telling(root_cause(lines)), detail)
        return short or StartFailed(cause=said.splitlines()[0], detail=detail)


def _as_settings(extra: dict[str, Any]) -> dict[str, Any]:
    """Takes out of EXTRA, the arguments passed through, those on which more depends than what
    vLLM is given, as the settings that they are."""
    return {ours: extra.pop(theirs) for theirs, ours in _SETTINGS.items() if theirs in extra}


def shown(found: stack.Stack) -> tuple[devices.Device, ...]:
    """All devices of the kind that FOUND computes on, and their memory now; empty where nobody
    tells. Blocks for a second."""
    return npus.devices() if found.npu else devices.devices()


def _check_platform(found: stack.Stack) -> None:
    """Raise NoPlatform, NoDevice where vLLM has found nothing to compute on, NoLibrary and
    CannotLoad where it does not come to that on an NPU."""
    try:
        from vllm.platforms import current_platform  # imports vllm-ascend and torch-npu

        device_type = current_platform.device_type
    except Exception as error:
        if found.npu:
            raise unloadable(error, os.environ) from error
        raise
    if not device_type:
        if found.npu:
            raise NoPlatform(vllm=found.vllm, ascend=found.ascend, platform="–")
        raise NoDevice(distribution="vllm", version=found.vllm)


def telling(said: str) -> str:
    """SAID, an exception's words, with torch's two sentences about memory – that it ran out, and
    how much was asked for – as one: only the first sentence of a cause is told."""
    return said.replace("out of memory. Tried", "out of memory: tried")


def _start(given: Mapping[str, Any]) -> Any:
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.engine.async_llm_engine import AsyncLLMEngine

    return AsyncLLMEngine.from_engine_args(AsyncEngineArgs(**given))


def _prompt(values: Mapping[str, Any]) -> str:
    """What ``config.PROMPT`` is set to; each page has its own besides."""
    try:
        return prompts.completion(values)
    except prompts.BadPrompt:
        return prompts.completion({})


def _experts(code: official.Code) -> list[str]:
    """What a person should know of the mixture of experts."""
    if code.experts is None or code.experts.state == "not-needed":
        return []
    return [_("The mixture of experts is computed by vllm-ascend.")]


def _prepare_environment(values: Mapping[str, Any], found: stack.Stack,
                         wanted: Mapping[str, Any]) -> None:
    """Variables that vLLM, and the processes it starts, read while they are imported."""
    # The processes that vLLM starts find the plugin, and through it the code, by PYTHONPATH.
    variables.prepare(Path(__file__).absolute().parent / "site", _PLUGIN, preferred=_PREFERRED,
                      always={**_ALWAYS, official.WANTED: json.dumps(wanted)})
    if values["devices"] and not found.npu:  # An NPU's are in the worker's environment already.
        os.environ[devices.VISIBLE] = str(values["devices"]).replace(" ", "")
    if "+cu118" in found.torch and os.path.exists(_PTXAS):
        os.environ.setdefault("TRITON_PTXAS_PATH", _PTXAS)
