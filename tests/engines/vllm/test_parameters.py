"""docs/parameters.md names every parameter of the published recipes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop.engines.registry import ENGINES
from desktop.settings import BY_KEY
from tests.support import recipe_sources
from tests.support.data import ROOT

PAGE = ROOT / "docs" / "parameters.md"

OFFICIAL = """
    BASE_SIZE IMAGE_SIZE CROP_MODE MIN_CROPS MAX_CROPS MAX_CONCURRENCY NUM_WORKERS
    PRINT_NUM_VIS_TOKENS SKIP_REPEAT MODEL_PATH INPUT_PATH OUTPUT_PATH PROMPT TOKENIZER
    model hf_overrides dtype block_size max_model_len enforce_eager trust_remote_code swap_space
    max_num_seqs tensor_parallel_size gpu_memory_utilization disable_mm_preprocessor_cache
    ngram_size window_size whitelist_token_ids temperature max_tokens logits_processors
    skip_special_tokens include_stop_str_in_output ignore_eos max_paddings VLLM_USE_V1
    CUDA_VISIBLE_DEVICES TRITON_PTXAS_PATH"""
CANN = """
    DEVICE ENFORCE_EAGER MAX_MODEL_LEN SWAP_SPACE TENSOR_PARALLEL_SIZE GPU_MEMORY_UTILIZATION
    DISABLE_MM_PREPROCESSOR_CACHE ASCEND_TOOLKIT_HOME ASCEND_HOME_PATH ASCEND_AICPU_PATH
    ASCEND_OPP_PATH LD_LIBRARY_PATH PYTHONPATH PATH ATB_HOME_PATH
    ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE ATB_OPSRUNNER_SETUP_CACHE_ENABLE HCCL_WHITELIST_DISABLE
    ASCEND_GLOBAL_LOG_LEVEL TOKENIZERS_PARALLELISM VLLM_ATTENTION_BACKEND
    VLLM_USE_TRITON_FLASH_ATTN --image --concurrent --max-tokens --gpu-mem --warmup --rounds
    --output"""

_CALLS = ("LLM", "AsyncEngineArgs", "SamplingParams", "NoRepeatNGramLogitsProcessor")


def named() -> set[str]:
    """What stands in the first column of the page's tables."""
    lines = PAGE.read_text("utf-8").splitlines()
    return {name for line in lines if line.startswith("| `")
            for name in re.findall(r"`([^`]+)`", line.split(" | ")[0])}


@pytest.mark.parametrize("name", [*OFFICIAL.split(), *CANN.split()])
def test_every_parameter_is_in_a_table(name: str) -> None:
    assert name in named()


def test_every_setting_that_the_tables_name_exists() -> None:
    """The third column has our settings, by their keys."""
    engines = {entry.name for entry in ENGINES}
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("| `") and "| in Verso |" not in line:
            ours = re.findall(r"`([a-z_]+)`", line.split(" | ")[2])
            assert all(key in BY_KEY or key in engines for key in ours), line


def _parameters(source: str) -> Iterator[str]:
    """Names in a script: keywords of vLLM's calls, variables of the environment, flags."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(
                node.func, "id", "")
            if called in _CALLS:
                yield from (keyword.arg for keyword in node.keywords if keyword.arg)
            elif called == "add_argument" and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) \
                and ast.unparse(node.value) == "os.environ":
            yield str(node.slice.value)


def _constants(source: str) -> Iterator[str]:
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _scripts() -> tuple[Path, Path]:
    official, conversion = recipe_sources.official(), recipe_sources.conversion()
    if official is None or conversion is None:
        pytest.skip("the recipes are not here: packaging/recipe_sources.py fetches them")
    return official, conversion.parent / "npu_patch"


def test_so_is_what_the_recipes_themselves_have() -> None:
    official, patch = _scripts()
    found = set(_constants((official / "config.py").read_text("utf-8")))
    for script in [*official.glob("run_*.py"), patch / "benchmark.py"]:
        found |= set(_parameters(script.read_text("utf-8")))
    found |= set(re.findall(r"^export (\w+)=", (patch / "set_env.sh").read_text("utf-8"), re.M))
    assert len(found) > 50
    assert found <= named(), sorted(found - named())
