"""Loading vLLM on an Ascend NPU: what is different from a GPU.

The arguments are those of vllm-ascend's tutorial "DeepSeek-OCR-2", with eager mode and the share of
memory of the CANN recipe (Atlas A2). What a GPU alone has – kernels of Triton and CUDA, graphs of
the vision encoder, several cores on one device – is not asked for.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from desktop.engines.ascend import experts, npus, places, problems, switches
from desktop.engines.ascend.environment import VISIBLE
from desktop.engines.ascend.failures import NoPlatform, unloadable
from desktop.engines.vllm import arguments, devices, versions
from desktop.engines.vllm.loading import Loader
from desktop.i18n import _

BATCHED = 8192
"""Tokens a step by our own choice: what the recipe's engine takes in at once. More pages at once
would need more of the device's memory for the vision encoder, which nobody has measured."""

ADDITIONAL: Mapping[str, Any] = {
    "enable_cpu_binding": True,
    "multistream_overlap_shared_expert": True,
    "ascend_compilation_config": {"fuse_qknorm_rope": False},
}
"""vllm-ascend's own options, as its tutorial sets them (the same since 0.18; 0.16 reads them)."""

_ONLY_GPU: Mapping[str, Any] = {
    "fast_attention": False, "raw_pages": False, "encoder_graphs": False, "engine_cores": 1}


class AscendLoader(Loader):
    """As on a GPU, with the devices that npu-smi shows."""

    device_type = "npu"
    visible = VISIBLE

    def declared(self) -> dict[str, Any]:
        """The declared settings, with the values that hold on an NPU."""
        values = {**super().declared(), **_ONLY_GPU}
        return {**values, "eager": not values["npu_graphs"],
                "batched_tokens": values["batched_tokens"] or BATCHED}

    def prepare_environment(self, values: Mapping[str, Any], needs: versions.Decision) -> None:
        """Also the switches of the installed versions; what they do not know any more is taken
        out. What the loader of libraries reads has been set before this process began."""
        chosen, removed = switches.choose(_version("vllm-ascend"), versions.installed().vllm,
                                          os.environ)
        os.environ.update(chosen)
        for name in removed:
            del os.environ[name]
        super().prepare_environment(values, needs)

    def platform(self, found: versions.Versions) -> tuple[bool, str]:
        """As vLLM says; raises NoPlatform where that is not vllm-ascend's, NoLibrary and
        CannotLoad where it does not come to that."""
        try:
            from vllm.platforms import current_platform  # imports vllm-ascend and torch-npu

            kind = type(current_platform)
        except Exception as error:
            raise unloadable(error, os.environ) from error
        if not kind.__module__.partition(".")[0] == "vllm_ascend":
            raise NoPlatform(
                vllm=found.vllm, ascend=_version("vllm-ascend") or "?",
                platform="–" if current_platform.is_unspecified()
                else str(current_platform.device_type))
        return bool(current_platform.is_cpu()), str(current_platform.device_type)

    def name_devices(self, values: Mapping[str, Any], found: versions.Versions) -> None:
        """NPUs have no names but their numbers; raises NoSuchDevice."""
        named = os.environ.get(VISIBLE)
        if values["devices"] and named and (there := self.look()):
            devices.check(there, named)

    def look(self) -> tuple[devices.Device, ...]:
        """All NPUs, as npu-smi or torch-npu shows them; empty where neither does."""
        return npus.devices()

    def build(self, values: Mapping[str, Any], known: frozenset[str], *,
              cpu: bool) -> arguments.Arguments:
        """The arguments of the engine ``vllm``, and vllm-ascend's own."""
        built = arguments.build(values, known, cpu=cpu)
        notes = [*built.notes, *_warnings()]
        extra: dict[str, Any] = {"additional_config": dict(ADDITIONAL)}
        if arguments.uses_ngram(values) and not shows_tokens(_folder("vllm_ascend")):
            extra["async_scheduling"] = False
            notes.append(_("This vllm-ascend does not show the no-repeat n-gram the page's last "
                           "tokens while steps are scheduled ahead: they are not. With “No-repeat "
                           "n-gram” set to never they are."))
        return arguments.Arguments(
            {**built.values, **{key: value for key, value in extra.items() if key in known}},
            tuple(notes))


def shows_tokens(ascend: Path | None) -> bool:
    """Whether the vllm-ascend in the folder ASCEND gives logits processors the true tokens also
    where vLLM schedules steps ahead (the default since 0.18; vllm-ascend 0.18 does not). Read
    from its source; True where that is laid out in another way."""
    try:
        text = (ascend / _RUNNER).read_text(encoding="utf-8") if ascend is not None else ""
    except OSError:
        return True
    return not text or "logitsprocs_need_output_token_ids" in text


_RUNNER = "worker/model_runner_v1.py"


def _folder(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    places_ = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places_[0]) if places_ else None


def stack_versions() -> dict[str, str]:
    """Versions of what is there for NPUs alone, by the names of the packages; and CANN's."""
    toolkit = places.find(places.Search(dict(os.environ), os.path.expanduser("~"))).toolkit
    found = {name: _version(name) for name in ("vllm-ascend", "torch-npu")}
    found["CANN"] = toolkit.version if toolkit is not None else ""
    return {name: version for name, version in found.items() if version}


def _warnings() -> tuple[str, ...]:
    """What is missing of the stack without which an engine may start all the same."""
    return tuple(error.problem().line()
                 for error in (*experts.missing(), *problems.bearable(os.environ)))


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
