"""Loading vLLM: everything that blocks, to be run in a thread of its own.

The thread must live as long as the engine: what vLLM starts may be tied to it.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from desktop.engines import plugin
from desktop.engines.base import EngineDied, Progress
from desktop.engines.model import variables
from desktop.engines.model.steps import WEIGHTS
from desktop.engines.vllm import arguments, cores, devices, images, preflight, tokens, versions
from desktop.engines.vllm.cores import Cores
from desktop.engines.vllm.failures import (
    TORCHVISION,
    NoDevice,
    PartNotTaken,
    StartFailed,
    WrongTorchvision,
    memory,
    root_cause,
)
from desktop.engines.vllm.output import OutputTail
from desktop.errors import VersoError
from desktop.i18n import N_, _

_log = logging.getLogger(__name__)

_PLUGIN = "verso"
"""The entry point's name, for VLLM_PLUGINS."""
_KILLED = re.compile(r"Failed core proc\(s\): \{[^}]*-(?:9|15)\b")
_CACHE_CPU = 4
"""GiB of KV cache where the engine computes on the processor."""


Look = Callable[[], tuple[devices.Device, ...]]


@dataclass
class Loaded:
    """A running engine and what is known of it."""

    cores: Cores
    tokens: tokens.Tokens
    versions: versions.Versions
    values: dict[str, Any]
    """The declared settings."""
    arguments: dict[str, Any]
    """What vLLM was given."""
    notes: list[str]
    cpu: bool
    devices: tuple[devices.Device, ...]
    """Those it may use, as they were before."""
    look: Look
    """Tells of all devices, as they are now."""


class Loader:
    """Loads once. The steps are in the order in which they may refuse. What another maker's
    devices need otherwise is for a subclass."""

    device_type = "cuda"
    """vLLM's word for the devices that are looked at before anything is loaded."""
    visible = devices.VISIBLE
    """The variable that names those to be used."""

    def __init__(self, settings: Mapping[str, Any], output: OutputTail,
                 progress: Progress) -> None:
        self._settings = settings
        self._output = output
        self._progress = progress

    def load(self) -> Loaded:
        """Blocks for as long as vLLM takes; raises VersoError, ImportError."""
        try:
            return self._load()
        except (VersoError, ImportError):
            raise
        except Exception as error:  # Importing it may fail in many ways, too.
            raise self._explained(error) from error

    def _load(self) -> Loaded:
        self._progress(_("Looking at the model"), 0.0)
        extra = arguments.passed_through(self._settings)
        values = self.declared()
        found = versions.installed()
        needs = versions.decide(found, _conditions(values, extra))
        model = preflight.model_folder(values, extra)
        self.prepare_environment(values, needs)
        self._progress(_("Loading vLLM {version}").format(version=found.vllm), -1.0)
        cpu, device_type = self.platform(found)
        looked = device_type == self.device_type
        if looked:
            self.name_devices(values, found)
        known, typed = arguments.of_vllm(extra, found.vllm)
        usable = self._usable(values, typed) if looked else ()
        merged = _with(values, typed)
        needed = preflight.need(merged, model)
        count = (1 if "kv_cache_memory_bytes" in typed
                 else cores.how_many(merged, needed, usable))
        if cpu:
            preflight.host_memory(needed, _limit_cache(count), *devices.host_memory(), count)
        if usable and "kv_cache_memory_bytes" not in typed:
            usable = self._room(merged, typed, needed, count)
        built = self.build(values, known, cpu=cpu)
        given = arguments.merged(
            {**built.values, **images.arguments(values, known)}, typed)
        if count > 1 and "gpu_memory_utilization" in given:
            given["gpu_memory_utilization"] = round(
                float(given["gpu_memory_utilization"]) / count, 4)
        _log.info("vLLM %s with %s", found.vllm, variables.discreet(given))
        notes = [*needs.notes, *built.notes]
        engines, checked = self._start(given, count, notes, chosen=bool(values["engine_cores"]))
        return Loaded(Cores(engines), checked, found, values, given, notes, cpu, usable,
                      self.look)

    # --- what depends on the devices

    def declared(self) -> dict[str, Any]:
        """The declared settings in force; raises InvalidSetting."""
        return arguments.declared(self._settings)

    def prepare_environment(self, values: Mapping[str, Any], needs: versions.Decision) -> None:
        """Set variables, before vLLM is imported."""
        _prepare_environment(values, needs, self.visible)

    def platform(self, found: versions.Versions) -> tuple[bool, str]:
        """Whether vLLM computes on the processor, and its word for the kind of device; raises
        VersoError."""
        return _platform(found)

    def name_devices(self, values: Mapping[str, Any], found: versions.Versions) -> None:
        """Have the chosen devices named as vLLM understands it; raises VersoError."""
        _name_devices(values, found.vllm)

    def look(self) -> tuple[devices.Device, ...]:
        """All devices, as they are now; empty where nobody tells."""
        return devices.devices()

    def build(self, values: Mapping[str, Any], known: frozenset[str], *,
              cpu: bool) -> arguments.Arguments:
        """vLLM's arguments; KNOWN are those it has."""
        return arguments.build(values, known, cpu=cpu)

    # --- inside

    def _usable(self, values: Mapping[str, Any],
                typed: Mapping[str, Any]) -> tuple[devices.Device, ...]:
        """The devices that will be used, in order; raises NoSuchDevice, OnePartOnly,
        TooFewDevices. Empty where nobody tells."""
        return devices.to_use(self.look(), os.environ.get(self.visible), _with(values, typed))

    def _room(self, values: Mapping[str, Any], typed: Mapping[str, Any],
              needed: preflight.Need, count: int) -> tuple[devices.Device, ...]:
        """The devices, once their memory holds COUNT times the model; raises OutOfMemory."""
        return preflight.memory_in_time(values, needed, lambda: self._usable(values, typed),
                                        self._progress, count)

    def _start(self, given: dict[str, Any], count: int, notes: list[str], *,
               chosen: bool) -> tuple[list[Any], tokens.Tokens]:
        """COUNT engines, and the tokenizer that they use; that one is tested first: loading the
        weights takes minutes."""
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.tokenizers import cached_tokenizer_from_config

        try:
            wanted = AsyncEngineArgs(**given)
            checked = tokens.check(cached_tokenizer_from_config(wanted.create_model_config()))
            self._progress(_("Loading the model"), -1.0)
            return self._engines(given, count, notes, chosen=chosen), checked
        except VersoError:
            raise
        except Exception as error:
            raise self._explained(error) from error

    def _engines(self, given: Mapping[str, Any], count: int, notes: list[str], *,
                 chosen: bool) -> list[Any]:
        """COUNT engines, one after the other: each measures the memory that is left. Where that
        number was not CHOSEN by a person fewer will do, and NOTES tell it."""
        engines: list[Any] = []
        try:
            engines.append(_engine(given))
            for number in range(2, count + 1):
                self._progress(_("Starting engine core {number} of {count}").format(
                    number=number, count=count), -1.0)
                engines.append(_engine(given))
        except Exception as error:
            if chosen or not engines:
                Cores(engines).shut_down()
                raise
            why = self._explained(error)
            _log.warning("vLLM goes on with fewer engine cores: %s", why, exc_info=error)
            notes.append(_("Engine core {number} could not be started; the device may wait for "
                           "the other, and part of its memory is not used. {why}").format(
                number=len(engines) + 1, why=why))
        return engines

    def _explained(self, error: Exception) -> VersoError:
        """ERROR of vLLM's as one with a way out. The engine's processes have said more on their
        standard error than the exception that reaches this one."""
        lines = self._output.settled()
        cause = root_cause(lines) or f"{type(error).__name__}: {_first_line(error)}"
        detail = "\n".join([*lines[-80:], f"{type(error).__name__}: {error}"])
        if _KILLED.search(str(error)):  # By somebody else; another try may help.
            return EngineDied(detail=detail)
        if TORCHVISION.search(cause) or TORCHVISION.search(str(error)):
            return WrongTorchvision(torch=versions.version_of("torch"), detail=detail,
                                    torchvision=versions.version_of("torchvision"))
        short = memory(cause, detail) or memory(str(error), detail)
        return short or StartFailed(cause=cause.rstrip("."), detail=detail)


def _conditions(values: Mapping[str, Any], extra: Mapping[str, Any]) -> frozenset[str]:
    ngram = arguments.uses_ngram(values) or "logits_processors" in extra
    return frozenset({"ngram"} if ngram else ())


def _prepare_environment(values: Mapping[str, Any], needs: versions.Decision,
                         visible: str = devices.VISIBLE) -> None:
    """Variables that vLLM, and the processes it starts, read while they are imported. VISIBLE: the
    one that names the devices."""
    variables.prepare(plugin.folder(), _PLUGIN, preferred=needs.environment,
                      always=plugin.environment(values))
    if values["devices"]:
        os.environ[visible] = str(values["devices"]).replace(" ", "")


def _platform(found: versions.Versions) -> tuple[bool, str]:
    """Whether vLLM computes on the processor, and its name for the kind of device; raises
    NoDevice."""
    from vllm.platforms import current_platform

    if current_platform.is_unspecified():
        raise NoDevice(distribution=found.distribution, version=found.vllm)
    return bool(current_platform.is_cpu()), str(current_platform.device_type)


def _name_devices(values: Mapping[str, Any], version: str) -> None:
    """Have the chosen devices named so that vLLM VERSION, before it looks at one, understands it;
    raises NoSuchDevice, PartNotTaken."""
    visible = os.environ.get(devices.VISIBLE)
    if not visible:
        return
    found = devices.devices()
    if values["devices"] and found:
        devices.check(found, visible)
    visible = os.environ[devices.VISIBLE] = devices.spelled(found, visible)
    first = visible.partition(",")[0]
    if first.startswith("MIG-"):
        from vllm.platforms import current_platform

        try:  # Some versions take every name for a number, or a part's place for a GPU's.
            current_platform.get_device_name(0)
        except Exception as error:
            raise PartNotTaken(version=version, name=first,
                               detail=f"{type(error).__name__}: {error}") from error


def _engine(given: Mapping[str, Any]) -> Any:
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    return AsyncLLM.from_engine_args(AsyncEngineArgs(**given))


def _limit_cache(count: int) -> int:
    """Bytes of KV cache of each of COUNT engines that compute on the processor. By itself vLLM
    takes nearly all of the machine's memory."""
    _total, available = devices.host_memory()
    gib = min(_CACHE_CPU, max(1, available // 4 >> 30)) if available else 1
    gib = max(1, gib // count)
    chosen = os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", str(gib))
    return (int(chosen) if chosen.isdigit() else gib) << 30


def _with(values: Mapping[str, Any], typed: Mapping[str, Any]) -> dict[str, Any]:
    """VALUES as the arguments passed through change them, as far as memory depends on them."""
    found = dict(values)
    for theirs, ours in (("gpu_memory_utilization", "memory_utilization"),
                         ("tensor_parallel_size", "tensor_parallel"),
                         ("pipeline_parallel_size", "pipeline_parallel"),
                         ("data_parallel_size", "data_parallel"),
                         ("quantization", "quantization"), ("dtype", "dtype"),
                         ("max_model_len", "max_model_len")):
        if typed.get(theirs) is not None:
            found[ours] = typed[theirs]
    if int(found["max_model_len"]) < 1:  # vLLM's "auto": as much as fits.
        found["max_model_len"] = values["max_model_len"]
    return found


def _first_line(error: BaseException) -> str:
    """What ERROR says, in one line."""
    details = getattr(error, "errors", None)  # pydantic's first line only counts them.
    if type(error).__name__ == "ValidationError" and callable(details):
        found = details()
        if found:
            return str(found[0].get("msg", ""))
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


STEPS: tuple[tuple[str, str], ...] = (
    (r"Initializing a V\d LLM engine|DP group leader: ", N_("Starting the engine's processes")),
    *WEIGHTS,
    (r"Dynamo bytecode transform|Compiling a graph|torch\.compile takes", N_("Compiling")),
    (r"(?:Capturing|Capture) CUDA graphs?[^:]*:\s+(\d+)%", N_("Capturing graphs")),
)
"""Lines of vLLM's that tell how far it is: a pattern, with the percentage where there is one, and
the step in words."""
