"""The official vLLM code of DeepSeek-OCR-2 as it is known, and the changes that make it run on an
NPU with vllm-ascend 0.8.5rc1.

They have the same effect as the conversion script of the CANN recipe (hicann/cann-recipes-infer,
integration/vllm/deepseek-ocr-2): the same files, the same settings. Where that looks for fixed
text and leaves alone what it does not find, every place here is found in the syntax tree, and one
that is not found is reported.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from desktop.engines.ascend.preparation.edits import Change, Missing, Source

ADDRESS = "https://github.com/deepseek-ai/DeepSeek-OCR-2.git"
KNOWN_COMMIT = "2f3699e"
"""Of the official code; the one that the changes were made for and tried with."""
INNER = PurePosixPath("DeepSeek-OCR2-master/DeepSeek-OCR2-vllm")
"""The folder of the code inside a checkout."""

IMAGE = "run_dpsk_ocr2_image.py"
PDF = "run_dpsk_ocr2_pdf.py"
BATCH = "run_dpsk_ocr2_eval_batch.py"
SCRIPTS = (IMAGE, PDF, BATCH)
CONFIG = "config.py"
SAM = "deepencoderv2/sam_vary_sdpa.py"

ENVIRONMENT_MODULE = "verso_npu_environment"
PATCH_MODULE = "verso_npu_patch"
FOREIGN_PATCH_MODULE = "deepseek_ocr2_npu"
"""That of the recipe's own conversion."""

TITLE = "# For an Ascend NPU, added by Verso."
NPU_CONFIG: Mapping[str, Any] = {
    "DEVICE": "npu",
    "ENFORCE_EAGER": True,
    "MAX_MODEL_LEN": 8192,
    "SWAP_SPACE": 0,
    "TENSOR_PARALLEL_SIZE": 1,
    "GPU_MEMORY_UTILIZATION": 0.85,
    "DISABLE_MM_PREPROCESSOR_CACHE": True,
}
"""Appended to config.py, with the recipe's values."""

ENGINE_SETTINGS: Mapping[str, Any] = {"enforce_eager": True, "gpu_memory_utilization": 0.85}
"""Of the engine in all three scripts; the keywords must be there."""
IMAGE_SETTINGS: Mapping[str, Any] = {"swap_space": 0, "disable_mm_preprocessor_cache": True}
"""Of the engine in the image script besides; added where they are not there."""

_ENGINES = frozenset({"LLM", "AsyncEngineArgs", "EngineArgs"})
_LOADED_LATER = frozenset({"vllm", "deepseek_ocr2", "process", "config"})
"""Must not be imported before the patch, which replaces a function that the model's code takes."""
_CONFIG_NAMES = ("MODEL_PATH", "INPUT_PATH", "OUTPUT_PATH", "PROMPT", "CROP_MODE")
_CLASSES = {
    "deepseek_ocr2.py": "DeepseekOCR2ForCausalLM",
    "process/image_process.py": "DeepseekOCR2Processor",
    "process/ngram_norepeat.py": "NoRepeatNGramLogitsProcessor",
}
"""What scripts, benchmark and engine take from files that stay as they are."""


class Plan(NamedTuple):
    """What becomes of the official code."""

    files: dict[str, bytes]
    """The changed files, by their name relative to the source."""
    changes: tuple[Change, ...]
    missing: tuple[Missing, ...]
    """What was not found; then nothing must be written."""


def plan(read: Callable[[str], bytes | None]) -> Plan:
    """The changes to the code whose file NAME ``read(NAME)`` gives (None: there is none)."""
    missing: list[Missing] = []
    sources: list[Source] = []

    def opened(name: str) -> Source | None:
        data = read(name)
        if data is None:
            missing.append(Missing(name, ""))
            return None
        source = Source(name, data)
        sources.append(source)
        return source

    for name, class_name in _CLASSES.items():
        source = opened(name)
        if source is not None and source.tree is not None:
            _expect_class(source, class_name)
    for name, change in _CHANGES.items():
        source = opened(name)
        if source is not None and source.tree is not None:
            change(source)
    missing += [lack for source in sources for lack in source.missing]
    changed = [source for source in sources if source.changes()]
    if not missing:
        # A change that would leave something else than Python is a fault of ours, found here.
        for source in changed:
            missing += Source(source.name, source.data()).missing
    return Plan({source.name: source.data() for source in changed},
                tuple(change for source in changed for change in source.changes()),
                tuple(missing))


def converted(read: Callable[[str], bytes | None]) -> str:
    """The line that shows that the code has been through a conversion; "" when it has not."""
    for name in SCRIPTS:
        data = read(name)
        for node in Source(name, data).statements() if data is not None else ():
            for module in (PATCH_MODULE, FOREIGN_PATCH_MODULE, ENVIRONMENT_MODULE):
                if module in _imported(node):
                    return f"{name}:{node.lineno}: import {module}"
    return ""


def settings(name: str, data: bytes) -> dict[str, Any]:
    """What a prepared file sets: the constants of config.py that are meant for the NPU, or the
    engine's keyword arguments in a script. Raises nothing: what is not found is left out."""
    source = Source(name, data)
    if name == CONFIG:
        found = source.assigned()
        return {key: value.value for key in NPU_CONFIG
                if isinstance(value := found.get(key), ast.Constant)}
    engine = _engine(source)
    return {} if engine is None else {
        word.arg: word.value.value if isinstance(word.value, ast.Constant)
        else ast.unparse(word.value) for word in engine.keywords if word.arg}


def shortcomings(read: Callable[[str], bytes | None]) -> list[Missing]:
    """What a prepared folder lacks: files, lines and settings that the preparation gave it and
    that somebody or something has taken away since. Values that are a user's to choose are not
    looked at: only that they are set."""
    found: list[Missing] = []
    for name in (SAM, CONFIG, *SCRIPTS):
        data = read(name)
        if data is None:
            found.append(Missing(name, ""))
            continue
        source = Source(name, data)
        found += source.missing
        if name == SAM:
            found += [Missing(name, f"# {ast.unparse(node)}") for node in source.statements()
                      if "flash_attn" in _imported(node)]
        elif name == CONFIG:
            found += [Missing(name, key) for key in NPU_CONFIG if key not in source.assigned()]
        else:
            modules = [module for node in source.statements() for module in _imported(node)]
            found += [Missing(name, f"import {module}")
                      for module in (ENVIRONMENT_MODULE, PATCH_MODULE) if module not in modules]
            found += [Missing(name, key) for key in _wanted(name)
                      if key not in settings(name, data)]
    return found


# --- the changes
def _sam(source: Source) -> None:
    imports = [node for node in source.statements() if "flash_attn" in _imported(node)]
    if not imports:
        source.lack("from flash_attn import …")
    for node in imports:
        assert isinstance(node, (ast.Import, ast.ImportFrom))
        source.comment_out(node)
        for alias in node.names:
            name = (alias.asname or alias.name).split(".")[0]
            for line in source.uses(name):
                source.lack(f"code that does without {name} (line {line})")


def _config(source: Source) -> None:
    found = source.assigned()
    for name in _CONFIG_NAMES:
        if name not in found:
            source.lack(f"{name} = …")
    for name in NPU_CONFIG:
        if name in found:
            source.lack(f"a file that leaves {name} to be set")
    source.append(["", TITLE, *(f"{name} = {value!r}" for name, value in NPU_CONFIG.items())])


def _script(source: Source) -> None:
    body = source.statements()
    # Before anything is imported: the loader of libraries reads its path when Python starts, so
    # that the module may have to start it again.
    first = next((node for node in body if not _docstring(node) and not (
        isinstance(node, ast.ImportFrom) and node.module == "__future__")), None)
    source.add_after(first.lineno - 1 if first is not None else 0, [
        f"import {ENVIRONMENT_MODULE}", f"{ENVIRONMENT_MODULE}.ensure()"])
    torch = next((number for number, node in enumerate(body)
                  if isinstance(node, ast.Import) and node.col_offset == 0
                  and [(alias.name, alias.asname) for alias in node.names] == [("torch", None)]
                  and node.end_lineno == node.lineno), None)
    if torch is None:
        source.lack("import torch")
    elif early := [node for node in body[:torch] if _LOADED_LATER & set(_imported(node))]:
        source.lack(f"import torch before line {early[0].lineno}: {ast.unparse(early[0])}")
    else:
        source.add_after(body[torch].lineno, [
            "import os", 'os.environ["VLLM_USE_V1"] = "0"', f"import {PATCH_MODULE}"])
    engine = _engine(source)
    if engine is None:
        source.lack("LLM(model=…) or AsyncEngineArgs(model=…), once")
        return
    given = {word.arg: word.value for word in engine.keywords if word.arg}
    for name, value in ENGINE_SETTINGS.items():
        if not _constant(given.get(name)):
            source.lack(f"{name}={'False' if value is True else '0.9'}, (a constant)")
    if source.missing:
        return
    for name, value in _wanted(source.name).items():
        if name in given and not _constant(given[name]):
            source.lack(f"{name}={value!r} (a constant)")
        elif name in given:
            source.replace(given[name], repr(value))
    absent = [f"{name}={value!r}" for name, value in _wanted(source.name).items()
              if name not in given]
    last = given["gpu_memory_utilization"]
    if absent and source.rest(last).strip().split("#")[0].strip() == ",":
        space = source.indentation(last.lineno)
        source.add_after(last.lineno, [f"{space}{text}," for text in absent])
    elif absent:
        utilization = repr(ENGINE_SETTINGS["gpu_memory_utilization"])
        source.replace(last, ", ".join([utilization, *absent]))


_CHANGES: dict[str, Callable[[Source], None]] = {
    SAM: _sam, CONFIG: _config, **dict.fromkeys(SCRIPTS, _script)}


# --- inside
def _wanted(name: str) -> dict[str, Any]:
    return {**ENGINE_SETTINGS, **(IMAGE_SETTINGS if name == IMAGE else {})}


def _engine(source: Source) -> ast.Call | None:
    """The one call that makes the engine."""
    calls = [call for call in source.calls(_ENGINES)
             if any(word.arg == "model" for word in call.keywords)]
    return calls[0] if len(calls) == 1 else None


def _constant(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.lineno == node.end_lineno


def _imported(node: ast.stmt) -> list[str]:
    """Names of the top-level modules that NODE imports."""
    if isinstance(node, ast.Import):
        return [alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level and node.module:
        return [node.module.split(".")[0]]
    return []


def _docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(
        node.value.value, str)


def _expect_class(source: Source, name: str) -> None:
    if not any(isinstance(node, ast.ClassDef) and node.name == name
               for node in source.statements()):
        source.lack(f"class {name}")
