"""Settings and ``--engine-arg`` pairs as the arguments of vLLM's engine.

What a version does not have is left out and told; what a person passes through is read with the
types of the version that is installed. "Crop off" is not among them: it is done by shrinking the
page (:mod:`desktop.engines.model.fitting`).
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from desktop.engines.model import sampling
from desktop.engines.vllm.failures import BadArgument, RefusedArgument, UnknownArgument
from desktop.i18n import N_, _
from desktop.settings import BY_KEY
from desktop.settings.declare import TRUTH

SEQUENCES = 100
"""Pages that vLLM works on at once by our own choice (max_num_seqs)."""

BATCHED = 16384
"""Tokens a step by our own choice, on a GPU: more than ten pages are taken in together."""
BATCHED_CPU = 4096
"""On a processor: memory for a step is set aside at the start, and a step lasts longer anyway."""

_CROP = N_("it changes how vLLM cuts a page, but not how it counts the page's tokens, and the "
           "disagreement kills the engine")
_CROP_OUT = N_("Use the setting “Crop mode”: off sends the page as one small view, safely.")
_REFUSED: dict[str, tuple[str, str]] = {
    "mm_processor_kwargs": (_CROP, _CROP_OUT),
    "crop_mode": (_CROP, _CROP_OUT),
    "model": (
        N_("the model is examined before vLLM is asked"),
        N_("Use the setting “Model” (--model FOLDER).")),
    "skip_tokenizer_init": (
        N_("without a tokenizer the engine writes numbers instead of text"),
        N_("Leave it out.")),
    "language_model_only": (
        N_("without its vision part the model cannot see a page"), N_("Leave it out.")),
    "runner": (N_("only a generating model reads pages"), N_("Leave it out.")),
}
_GONE: dict[str, str] = {
    "swap_space": N_("vLLM recomputes a page that it had to put aside; leave it out."),
    "disable_mm_preprocessor_cache": N_("It is called mm_processor_cache_gb now, and Verso sets "
                                        "it to 0; leave it out."),
    "max_paddings": N_("The V1 engine does not pad prompts; leave it out."),
    "use_v2_block_manager": N_("There is only one block manager now; leave it out."),
    "disable_log_requests": N_("Requests are not logged unless enable_log_requests is true."),
    "device": N_("vLLM takes the device it was built for; use “Devices” to choose among several."),
}
_AS_SETTINGS = {
    "gpu_memory_utilization": "memory_utilization", "max_num_seqs": "concurrency",
    "max_num_batched_tokens": "batched_tokens", "enforce_eager": "eager",
    "tensor_parallel_size": "tensor_parallel", "data_parallel_size": "data_parallel",
    "pipeline_parallel_size": "pipeline_parallel", "enable_prefix_caching": "prefix_caching",
    "enable_chunked_prefill": "chunked_prefill",
}
"""vLLM's names of what we have a setting for; passing them through is allowed and wins."""


@dataclass(frozen=True)
class Arguments:
    """``values`` for vLLM's engine; ``notes`` on what could not be done, in sentences."""

    values: dict[str, Any]
    notes: tuple[str, ...] = ()


def passed_through(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The ``--engine-arg`` pairs among what the engine was started with (``engine_args``), by
    vLLM's names. Raises RefusedArgument."""
    extra = {key.replace("-", "_"): value
             for key, value in (settings.get("engine_args") or {}).items()}
    for key in extra:
        if key in _REFUSED:
            reason, way_out = _REFUSED[key]
            raise RefusedArgument(key=key, reason=_(reason), way_out=_(way_out))
    return extra


def declared(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The declared settings among SETTINGS; defaults where they are missing. Raises
    InvalidSetting."""
    return {key: setting.parse(settings[key]) if key in settings else setting.default
            for key, setting in BY_KEY.items()}


def uses_ngram(values: Mapping[str, Any]) -> bool:
    """Whether the n-gram processor is declared when the engine starts."""
    return values["ngram"] != "off" and not values["speculative"]


def build(values: Mapping[str, Any], known: Collection[str], *, cpu: bool) -> Arguments:
    """vLLM's arguments for the declared settings VALUES. KNOWN are the names that the installed
    version has; CPU: it was built for processors."""
    notes: list[str] = []
    batched = values["batched_tokens"] or (BATCHED_CPU if cpu else BATCHED)
    if not values["chunked_prefill"]:
        batched = max(batched, values["max_model_len"])
    wanted: dict[str, Any] = {
        "model": values["model"],
        "dtype": values["dtype"],
        "max_model_len": values["max_model_len"],
        "max_num_seqs": max(values["concurrency"], SEQUENCES),
        "max_num_batched_tokens": batched,
        "enable_chunked_prefill": values["chunked_prefill"],
        "enable_prefix_caching": values["prefix_caching"],
        "enforce_eager": values["eager"],
        "tensor_parallel_size": values["tensor_parallel"],
        "data_parallel_size": values["data_parallel"],
        "pipeline_parallel_size": values["pipeline_parallel"],
        "limit_mm_per_prompt": {"image": 1},
        "scheduling_policy": "priority",
        "disable_log_stats": True,
    }
    if not cpu:
        # On a processor it would be a share of the machine's memory, which others need too.
        wanted["gpu_memory_utilization"] = values["memory_utilization"]
    if values["quantization"] != "none":
        wanted["quantization"] = values["quantization"]
    if values["block_size"]:
        wanted["block_size"] = values["block_size"]
    if values["speculative"]:
        wanted["speculative_config"] = {
            "method": "ngram", "num_speculative_tokens": values["speculative"],
            "prompt_lookup_max": 4, "prompt_lookup_min": 2}
        if values["ngram"] != "off":
            notes.append(_("The no-repeat n-gram is off: vLLM does not have it together with "
                           "speculative tokens."))
    parallel = ("tensor_parallel", "pipeline_parallel", "data_parallel")
    if cpu and any(values[key] > 1 for key in parallel):
        notes.append(_("The engine's processes share one processor: several of them are slower "
                       "than one, and start slowly. Set Tensor, Pipeline and Data parallel to 1."))
    if uses_ngram(values):
        wanted["logits_processors"] = [sampling.PROCESSOR]
    left_out = [key for key in wanted if key not in known]
    if "scheduling_policy" in left_out:
        notes.append(_("This vLLM has no priorities: the page looked at waits its turn."))
    told = [key for key in left_out if key not in {"scheduling_policy", "disable_log_stats"}]
    if told:
        notes.append(_("This vLLM does not have: {names}.").format(names=", ".join(told)))
    return Arguments({key: value for key, value in wanted.items() if key in known}, tuple(notes))


def merged(values: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """VALUES with what was passed through on top; logits processors are added to ours."""
    found = {**values, **extra}
    if "logits_processors" in extra:
        added = extra["logits_processors"]
        names = [added] if isinstance(added, str) else list(added)
        found["logits_processors"] = list(dict.fromkeys(
            [*values.get("logits_processors", []), *names]))
    return found


def of_vllm(extra: Mapping[str, Any], version: str) -> tuple[frozenset[str], dict[str, Any]]:
    """The names of the installed vLLM's engine arguments, and EXTRA with their types; imports it.
    Raises UnknownArgument, BadArgument."""
    from vllm.engine.arg_utils import AsyncEngineArgs

    known = frozenset(field.name for field in dataclasses.fields(AsyncEngineArgs))
    if not extra:
        return known, {}
    try:
        from vllm.utils.argparse_utils import FlexibleArgumentParser
    except ImportError:  # vLLM 0.11 and earlier.
        from vllm.utils import FlexibleArgumentParser
    parser: argparse.ArgumentParser = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser())
    return known, typed(extra, parser, known, version)


def typed(extra: Mapping[str, Any], parser: argparse.ArgumentParser, known: Collection[str],
          version: str) -> dict[str, Any]:
    """The pairs EXTRA with the types that PARSER, vLLM's own of its arguments, gives them.

    Raises UnknownArgument, BadArgument.
    """
    actions = {action.dest: action for action in parser._actions}
    found = {}
    for key, value in extra.items():
        if key not in known and key not in actions:
            raise UnknownArgument(version=version, key=key, way_out=_way_out(key, known))
        if key not in known:  # Of vLLM's command line, not of its engine.
            raise UnknownArgument(version=version, key=key, way_out=_(
                "It belongs to vLLM's server; leave it out."))
        found[key] = value if not isinstance(value, str) else _typed(key, value, actions.get(key))
    return found


def _way_out(key: str, known: Collection[str]) -> str:
    if key in _GONE:
        return _(_GONE[key])
    for vllm, ours in _AS_SETTINGS.items():
        if key == ours:
            return _("Its name there is {name}.").format(name=vllm)
    near = difflib.get_close_matches(key, list(known), 1, 0.7)
    if near:
        return _("Did you mean “{name}”?").format(name=near[0])
    return _("`vllm serve --help` lists those it has; those of the server itself are none of the "
             "engine's.")


def _typed(key: str, value: str, action: argparse.Action | None) -> Any:
    if action is None:
        return _plain(value)
    if action.nargs == 0:
        truth = TRUTH.get(value.lower())
        if truth is None:
            raise BadArgument(key=key, value=value, reason=_("true or false is wanted"))
        return truth
    many = action.nargs in ("*", "+")
    parts = _parts(value) if many else [value]
    converted = [_converted(key, part, action) for part in parts]
    return converted if many else converted[0]


def _converted(key: str, value: Any, action: argparse.Action) -> Any:
    if value == "None" or (value == "null" and action.default is None):
        return None
    convert = action.type if callable(action.type) else str
    try:
        found = convert(value) if isinstance(value, str) else value
    except (ValueError, TypeError, argparse.ArgumentTypeError) as error:
        raise BadArgument(key=key, value=value, reason=_reason(error)) from error
    if action.choices is not None and found not in action.choices:
        raise BadArgument(key=key, value=value, reason=_("it is one of {choices}").format(
            choices=", ".join(str(choice) for choice in action.choices)))
    return found


def _parts(value: str) -> list[Any]:
    """A list: as JSON, or separated by commas."""
    if value.lstrip().startswith("["):
        try:
            found = json.loads(value)
        except ValueError:
            found = None
        if isinstance(found, list):
            return found
    return [part.strip() for part in value.split(",") if part.strip()]


def _plain(value: str) -> Any:
    """VALUE as JSON where it is, else as the text it is."""
    try:
        return json.loads({"True": "true", "False": "false", "None": "null"}.get(value, value))
    except ValueError:
        return value


def _reason(error: BaseException) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else (
        type(error).__name__)
