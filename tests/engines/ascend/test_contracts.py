"""What seven real vllm-ascend and their vLLM have of what the repairs for DeepSeek-OCR-2 and the
two ways to run it rely on, read from their sources.

The mixture of experts, whose functions are also run, is in ``moe/test_real.py``.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support import ascend_sources

pytestmark = [pytest.mark.engines, pytest.mark.usefixtures("real_sources")]

UPSTREAM = ("0.18.0", "0.23.0.post1")
"""The vllm-ascend whose vLLM has the model itself."""
V0 = ("0.8.5rc1", "0.9.1", "0.10.0rc1")
"""Those whose vLLM has the engine that the official model code runs on."""


@pytest.fixture(params=ascend_sources.PAIRS)
def version(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def classes(root: Path) -> dict[str, list[ast.ClassDef]]:
    """Every class below ROOT in files that speak of the model's decoder, by name."""
    found: dict[str, list[ast.ClassDef]] = {}
    for path in root.rglob("*.py"):
        text = path.read_text("utf-8")
        if "CustomQwen2Decoder" in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, []).append(node)
    return found


def assigned(node: ast.AST, name: str) -> list[ast.expr | None]:
    """The values that NAME, a variable or attribute, is given anywhere in NODE."""
    values = []
    for part in ast.walk(node):
        targets = part.targets if isinstance(part, ast.Assign) else (
            [part.target] if isinstance(part, ast.AnnAssign) else [])
        if isinstance(part, (ast.Assign, ast.AnnAssign)) and any(
                (isinstance(t, ast.Name) and t.id == name)
                or (isinstance(t, ast.Attribute) and t.attr == name) for t in targets):
            values.append(part.value)
    return values


def fields(path: Path, name: str) -> set[str]:
    """The annotated fields of class NAME in PATH."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return {part.target.id for part in node.body
                    if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)}
    return set()


def test_the_decoder_layer_reads_an_attribute_that_it_does_not_set(version: str) -> None:
    ascend, vllm = ascend_sources.roots(version)
    found = classes(ascend / "vllm_ascend")
    assert ("AscendQwen2DecoderLayer" in found) == (version in UPSTREAM)
    assert (vllm / "vllm/model_executor/models/deepseek_ocr2.py").is_file() == (
        version in UPSTREAM)
    if version in UPSTREAM:
        [layer] = found["AscendQwen2DecoderLayer"]
        # What transformers' own layer sets, if it does, is all that there is.
        assert assigned(layer, "attention_type") == []
        reads = [node for node in ast.walk(found["AscendQwen2Model"][0])
                 if isinstance(node, ast.Attribute) and node.attr == "attention_type"]
        assert reads


def test_it_has_a_mask_of_its_own_wherever_it_has_the_model(version: str) -> None:
    ascend, _ = ascend_sources.roots(version)
    own = any("def _create_npu_optimized_mask(" in path.read_text("utf-8")
              for path in (ascend / "vllm_ascend").rglob("*.py"))
    assert own == (version in UPSTREAM)


def test_the_register_of_wrong_tokenizers_is_in_the_newest_only(version: str) -> None:
    _, vllm = ascend_sources.roots(version)
    registry = vllm / "vllm/tokenizers/registry.py"
    values = assigned(ast.parse(registry.read_text("utf-8")),
                      "_MODEL_TYPES_WITH_INCORRECT_TOKENIZER_CLASS") if registry.is_file() else []
    assert len(values) == (version == "0.23.0.post1")
    for value in values:
        assert isinstance(value, ast.Set)
        assert "deepseek_ocr2" not in ast.literal_eval(value)


def test_the_settings_of_the_old_way_are_there_as_long_as_its_engine_is(version: str) -> None:
    _, vllm = ascend_sources.roots(version)
    settings = fields(vllm / "vllm/engine/arg_utils.py", "EngineArgs")
    assert {"hf_overrides", "trust_remote_code", "enforce_eager", "max_model_len",
            "gpu_memory_utilization", "tensor_parallel_size"} <= settings
    engine = (vllm / "vllm/engine/async_llm_engine.py").read_text("utf-8")
    assert ("class AsyncLLMEngine(" in engine) == (version in V0)
    if version in V0:
        assert {"swap_space", "disable_mm_preprocessor_cache"} <= settings
    if version in UPSTREAM:
        assert {"logits_processors", "mm_processor_cache_gb"} <= settings
        assert not {"swap_space", "disable_mm_preprocessor_cache"} & settings
