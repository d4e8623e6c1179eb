"""What the plugin does about the tokenizer's class beside a real vLLM, with stand-ins for what
transformers says of the model.

    python registries.py VERSION KIND

VERSION of vllm-ascend, whose vLLM is taken; KIND of transformers: 4; listless, 5.5, 5.8. Prints
one JSON document.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "desktop" / "engines" / "plugin" / "site")]

from verso_vllm_plugin import NotHere, tokenizer_class  # noqa: E402

from tests.support import ascend_sources  # noqa: E402


def module(name: str, **content: object) -> None:
    made = ModuleType(name)
    made.__path__ = []
    vars(made).update(content)
    sys.modules[name] = made
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, made)


def transformers(kind: str) -> tuple[set[str], dict[str, str]]:
    """A transformers of KIND: its list of wrong classes, its classes by kind of model."""
    wrong = {"deepseek_vl_v2"} | ({"deepseek_ocr2"} if kind == "5.8" else set())
    names = dict.fromkeys(wrong, "TokenizersBackend")
    for name in ("transformers", "transformers.models", "transformers.models.auto"):
        module(name)
    listed = {} if kind in ("4", "listless") else {
        "MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS": wrong}
    module("transformers.models.auto.tokenization_auto", TOKENIZER_MAPPING_NAMES=names, **listed)
    if kind != "4":
        module("transformers.tokenization_utils_tokenizers",
               TokenizersBackend=type("TokenizersBackend", (), {}))
    return wrong, names


def main(version: str, kind: str) -> dict[str, Any]:
    # Besides what is asked for, modules of vLLM are hollow: they need torch.
    ascend_sources.Sources(ascend_sources.roots(version), real=(
        "vllm.tokenizers.registry",)).install()
    module("huggingface_hub")
    if (ascend_sources.roots(version)[1] / "vllm/tokenizers/registry.py").is_file():
        importlib.import_module("vllm.tokenizers.registry")  # a hollow package would make one up
    wrong, names = transformers(kind)
    try:
        said, left = tokenizer_class.apply(), ""
    except NotHere as reason:
        said, left = "", str(reason)
    listed = tokenizer_class._vllm_list()
    return {"said": said, "left": left, "vllm": None if listed is None else
            "deepseek_ocr2" in listed, "transformers": "deepseek_ocr2" in wrong,
            "class": names.get("deepseek_ocr2", "")}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:3])))
