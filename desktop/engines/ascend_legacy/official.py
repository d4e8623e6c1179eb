"""The model's official code, brought into this process as the engine needs it.

It is written as scripts: its modules have names such as ``config``, are found through
``sys.path``, and copy their settings from ``config`` while they are imported. So ``config`` is
made first, with our values in the place of its own; the file stays as it is.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import shutil
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desktop.engines.ascend import preparation
from desktop.engines.ascend.moe import patch
from desktop.engines.ascend.preparation import layout, official
from desktop.engines.ascend_legacy.failures import (
    CodeFailed,
    ExpertsCannotRun,
    NotOfficialCode,
    OfficialCodeMissing,
    PackageMissing,
)
from desktop.i18n import _

ARCHITECTURE = "DeepseekOCR2ForCausalLM"
PROCESSOR = "process.image_process", "DeepseekOCR2Processor"
NGRAM = "process.ngram_norepeat", "NoRepeatNGramLogitsProcessor"
MODEL = "deepseek_ocr2", ARCHITECTURE

WANTED = "VERSO_OFFICIAL_CODE"
"""Variable through which further processes of vLLM learn what to load: :func:`order` as JSON."""

USUAL = (preparation.DEFAULT_TARGET, official.CHECKOUT)
"""Where the code is looked for in a home folder: what `verso prepare-npu` makes and fetches where
it is run there."""

_FILES = (layout.CONFIG, "deepseek_ocr2.py", "process/image_process.py",
          "process/ngram_norepeat.py")


@dataclass(frozen=True)
class Code:
    """What the engine takes of the official code."""

    tokenizer: Any
    """The one that its processor uses."""
    processor: type[Any]
    ngram: type[Any]
    """Its no-repeat n-gram logits processor, of vLLM's V0 interface."""
    experts: patch.Outcome | None
    """What was done about the mixture of experts; None where nothing had to be looked at."""


def located(asked: str, home: Path | None = None) -> Path:
    """The folder of the code: the one ASKED for, or a checkout that holds it; "" looks for
    :data:`USUAL` in HOME (default: the person's). Raises OfficialCodeMissing, NotOfficialCode."""
    places = ([Path(asked).expanduser()] if asked else
              [(home or Path.home()) / name for name in USUAL])
    for place in places:
        found = official.located(place) if place.is_dir() else None
        if found is None:
            continue
        lacking = [name for name in _FILES if not (found / name).is_file()]
        if not lacking:
            return found.resolve()
        if asked:
            raise NotOfficialCode(folder=found, missing=", ".join(lacking))
    raise OfficialCodeMissing(looked=", ".join(map(str, places)))


def made_ready(folder: Path, *, npu: bool, to: Path) -> Path:
    """The folder to run of the official code in FOLDER: for an NPU a prepared copy at TO, unless
    it is one already; for a GPU itself. Raises what :mod:`~desktop.engines.ascend.preparation`
    raises."""
    def read(name: str) -> bytes | None:
        path = folder / name
        return path.read_bytes() if path.is_file() else None

    if not npu or layout.converted(read):
        return folder
    prepared = preparation.prepare(folder, to)
    if prepared.lost:
        shutil.rmtree(to)  # Ours, and nobody's to be kept. Else another worker may be using it.
    prepared.write()
    return to


def order(folder: Path, model: str, prompt: str, *, npu: bool) -> dict[str, Any]:
    """What :func:`load` is to do, as JSON can carry it.

    CROP_MODE stays on whatever the setting is: "crop off" is done by shrinking the page, of which
    the official code then makes one view.
    """
    return {"folder": str(folder), "npu": npu,
            "constants": {"MODEL_PATH": model, "PROMPT": prompt, "CROP_MODE": True}}


def load(wanted: Mapping[str, Any]) -> Code:
    """Import the official code as WANTED (:func:`order`) and tell vLLM of the model. A second
    time it does nothing but give the same. Raises PackageMissing, CodeFailed, ExpertsCannotRun.

    The mixture of experts is looked at first: the model's code takes vLLM's function while it is
    imported.
    """
    folder = Path(wanted["folder"])
    experts = patch.apply() if wanted["npu"] else None
    if experts is not None and not experts.fine:
        raise ExpertsCannotRun(reason=experts.reason)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        config = _config(folder, wanted["constants"])
        processor, ngram, model = (getattr(importlib.import_module(module), name)
                                   for module, name in (PROCESSOR, NGRAM, MODEL))
        registry = importlib.import_module("vllm.model_executor.models.registry").ModelRegistry
        if ARCHITECTURE not in registry.get_supported_archs():
            registry.register_model(ARCHITECTURE, model)
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    except Exception as error:
        raise CodeFailed(folder=folder, cause=f"{type(error).__name__}: {error}") from error
    return Code(config.TOKENIZER, processor, ngram, experts)


def load_wanted() -> None:
    """:func:`load` what the process that started this one wants, if it wants anything. Called by
    the plugin, in each process of vLLM."""
    said = os.environ.get(WANTED)
    if said:
        load(json.loads(said))


def speaking(method: Callable[..., Any], prompt: str) -> Callable[..., Any]:
    """METHOD of the official processor, with PROMPT for the global of that name that it reads.

    Pages are prepared in several threads and need not ask for the same. The method's code is the
    official one; only the names it sees are other ones. Raises CodeFailed where it reads no such
    global.
    """
    function: Any = getattr(method, "__func__", method)
    if "PROMPT" not in function.__code__.co_names:
        raise CodeFailed(folder=function.__code__.co_filename,
                         cause=_("its processor takes the prompt in another way"))
    changed = types.FunctionType(
        function.__code__, {**function.__globals__, "PROMPT": prompt}, function.__name__,
        function.__defaults__, function.__closure__)
    changed.__kwdefaults__ = function.__kwdefaults__
    owner = getattr(method, "__self__", None)
    return changed if owner is None else types.MethodType(changed, owner)


# --- inside


def _config(folder: Path, constants: Mapping[str, Any]) -> types.ModuleType:
    """The module ``config`` with CONSTANTS for what it sets; what imports it later gets this."""
    path = folder / layout.CONFIG
    there = sys.modules.get("config")
    if there is not None:
        if getattr(there, "__file__", "") == str(path):
            return there
        raise ImportError(f"another module has the name config: {there!r}")
    tree = ast.parse(path.read_bytes(), str(path))
    lacking = set(constants)
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in constants:
                node.value = ast.copy_location(ast.Constant(constants[target.id]), node.value)
                lacking.discard(target.id)
    if lacking:
        raise ImportError(f"{path} does not set {', '.join(sorted(lacking))}")
    module = types.ModuleType("config")
    module.__file__ = str(path)
    sys.modules["config"] = module
    try:
        exec(compile(tree, str(path), "exec"), module.__dict__)
    except BaseException:
        del sys.modules["config"]
        raise
    return module


def _missing(error: ModuleNotFoundError) -> PackageMissing:
    package = (error.name or "?").partition(".")[0]
    if package == "flash_attn":
        way_out = _("Name as “Official code” a folder made by `verso prepare-npu`: what it makes "
                    "does without this package; or install it (pip install flash-attn).")
    else:
        way_out = _("Install it there: {command}").format(
            command=f"{sys.executable} -m pip install {_DISTRIBUTIONS.get(package, package)}")
    return PackageMissing(package=package, python=sys.executable, way_out=way_out,
                          detail=str(error))


_DISTRIBUTIONS = {"PIL": "pillow", "cv2": "opencv-python-headless"}

