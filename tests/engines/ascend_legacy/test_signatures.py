"""What the tests put in the place of vLLM 0.8.5, vllm-ascend 0.8.5rc1 and the official code has
their names and signatures, and what the engine passes to them they take.

Read from the real sources, where those are here (``packaging/ascend_sources.py`` and
``packaging/recipe_sources.py`` fetch them); nothing of them is imported.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from desktop.engines.ascend_legacy import arguments, engine, loading, official, pages
from desktop.settings import Values
from tests.support import ascend_sources, legacy_vllm, recipe_sources

ENGINE = "vllm/engine/async_llm_engine.py"


@pytest.fixture(autouse=True, scope="module")
def sources() -> tuple[Path, Path]:
    """The folders of vllm-ascend 0.8.5rc1 and its vLLM."""
    found = ascend_sources.roots("0.8.5rc1")
    if not all(folder.is_dir() for folder in found):
        pytest.skip("no sources of vLLM 0.8.5: run packaging/ascend_sources.py")
    return found


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def real(file: str) -> ast.Module:
    ascend, vllm = ascend_sources.roots("0.8.5rc1")
    return parsed((ascend if file.startswith("vllm_ascend") else vllm) / file)


def stand_in(file: str) -> ast.Module:
    folder = legacy_vllm.NPU if file.startswith("vllm_ascend") else legacy_vllm.PATH
    return parsed(folder / file)


def find(tree: ast.AST, path: str) -> Any:
    """What PATH names in TREE: Class, function, Class.method. Of overloads the last."""
    for name in path.split("."):
        found = [node for node in ast.iter_child_nodes(tree) if isinstance(
            node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name]
        assert found, f"no {path}"
        tree = found[-1]
    return tree


def signature(function: Any) -> tuple[list[str], list[str], dict[str, str]]:
    """Names that may be given by place, names that must be named, and what has a default."""
    given = function.args
    places = [each.arg for each in [*given.posonlyargs, *given.args]]
    defaults = dict(zip(reversed(places), map(ast.unparse, reversed(given.defaults)),
                        strict=False))
    named = [each.arg for each in given.kwonlyargs]
    defaults.update({name: ast.unparse(value) for name, value in zip(
        named, given.kw_defaults, strict=True) if value is not None})
    return places, named, defaults


def fields(tree: ast.ClassDef) -> dict[str, str]:
    """Annotated fields → default."""
    return {node.target.id: ast.unparse(node.value) if node.value is not None else ""
            for node in tree.body if isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)}


def decorators(function: Any) -> list[str]:
    return [ast.unparse(each) for each in function.decorator_list]


@pytest.mark.parametrize("name", ["generate", "abort", "check_health", "from_engine_args",
                                  "shutdown_background_loop"])
def test_the_v0_engine_is_called_so(name: str) -> None:
    ours, theirs = (find(tree(ENGINE), f"AsyncLLMEngine.{name}") for tree in (stand_in, real))
    assert signature(ours)[:2] == signature(theirs)[:2]
    assert set(signature(ours)[2]) == set(signature(theirs)[2])
    assert type(ours) is type(theirs), "one is a coroutine"
    assert decorators(ours) == decorators(theirs)


@pytest.mark.parametrize("name", ["is_running", "is_stopped", "errored"])
def test_the_v0_engine_tells_so_how_it_is(name: str) -> None:
    for tree in (stand_in, real):
        assert decorators(find(tree(ENGINE), f"AsyncLLMEngine.{name}")) == ["property"]


def assigned(function: Any) -> set[str]:
    """Attributes of self that FUNCTION sets."""
    return {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"}


def test_what_is_looked_at_inside_is_there() -> None:
    assert {"engine", "_errored_with"} <= assigned(find(real(ENGINE), "AsyncLLMEngine.__init__"))
    core = real("vllm/engine/llm_engine.py")
    assert {"model_config", "cache_config", "model_executor"} <= assigned(
        find(core, "LLMEngine.__init__"))
    config = real("vllm/config.py")
    assert {"max_model_len", "enforce_eager"} <= assigned(find(config, "ModelConfig.__init__"))
    assert {"num_gpu_blocks", "block_size"} <= fields(find(config, "CacheConfig")).keys()
    executor = real("vllm/executor/executor_base.py")
    assert signature(find(executor, "ExecutorBase.shutdown"))[0] == ["self"]
    for file, owner in (("vllm/platforms/interface.py", "Platform"),
                        ("vllm_ascend/platform.py", "NPUPlatform")):
        assert signature(find(real(file), f"{owner}.get_device_name"))[0] == ["cls", "device_id"]


def test_the_loop_dies_as_the_stand_in_does() -> None:
    """Every page is told the exception itself, after the engine has noted it."""
    body = ast.unparse(find(real(ENGINE), "AsyncLLMEngine._error_callback"))
    assert body.index("set_errored(exc)") < body.index("propagate_exception(exc)")
    assert "self._errored_with = exc" in ast.unparse(
        find(real(ENGINE), "AsyncLLMEngine.set_errored"))


def test_requests_reach_the_inner_engine_so() -> None:
    recital = parsed(legacy_vllm.PATH / "verso_recital.py")
    for ours, theirs in (("add_request_async", "_AsyncLLMEngine.add_request_async"),
                         ("step_async", "_AsyncLLMEngine.step_async"),
                         ("check_health_async", "_AsyncLLMEngine.check_health_async")):
        one, other = find(recital, f"Recital.{ours}"), find(real(ENGINE), theirs)
        assert set(signature(one)[0]) == set(signature(other)[0])
        assert signature(one)[1] == signature(other)[1]


def test_engine_arguments() -> None:
    theirs = fields(find(real("vllm/engine/arg_utils.py"), "EngineArgs"))
    theirs.update(fields(find(real("vllm/engine/arg_utils.py"), "AsyncEngineArgs")))
    ours = fields(find(stand_in("vllm/engine/arg_utils.py"), "AsyncEngineArgs"))
    assert ours.keys() <= theirs.keys()
    assert all(ours[name] == theirs[name].replace("'", '"').replace('"', "'")
               or "Config." in theirs[name] for name in ours)
    for npu in (True, False):
        built = arguments.build(Values({"quantization": "awq"}).as_dict(), npu=npu).values
        assert built.keys() <= ours.keys()


def test_sampling_parameters_and_outputs() -> None:
    ours, theirs = (tree("vllm/sampling_params.py") for tree in (stand_in, real))
    assert fields(find(ours, "SamplingParams")).items() <= fields(
        find(theirs, "SamplingParams")).items()
    kinds = [{ast.unparse(node) for node in find(tree, "RequestOutputKind").body
              if isinstance(node, ast.Assign)} for tree in (ours, theirs)]
    assert kinds[0] == kinds[1]
    ours, theirs = (tree("vllm/outputs.py") for tree in (stand_in, real))
    places = [signature(find(tree, "RequestOutput.__init__"))[0] for tree in (ours, theirs)]
    assert places[0] == places[1][:len(places[0])]
    assert not set(places[1][len(places[0]):]) - set(
        signature(find(theirs, "RequestOutput.__init__"))[2]), "more must be given"
    assert fields(find(ours, "CompletionOutput")).keys() <= fields(
        find(theirs, "CompletionOutput")).keys()


def test_models_are_registered_so() -> None:
    file = "vllm/model_executor/models/registry.py"
    for name in ("register_model", "get_supported_archs"):
        assert signature(find(stand_in(file), f"_ModelRegistry.{name}"))[0] == signature(
            find(real(file), f"_ModelRegistry.{name}"))[0]
    plugins = ast.unparse(real("vllm/plugins/__init__.py"))
    assert "vllm.general_plugins" in plugins
    assert signature(find(real("vllm/plugins/__init__.py"), "load_general_plugins"))[0] == []
    assert "load_general_plugins()" in ast.unparse(
        find(real("vllm/worker/worker_base.py"), "WorkerWrapperBase.init_worker"))


def test_logits_processors_are_called_so() -> None:
    body = ast.unparse(find(real("vllm/model_executor/layers/logits_processor.py"),
                            "_apply_logits_processors_single_seq"))
    assert "len(parameters) == 3" in body
    assert "logits_processor(past_tokens_ids, logits_row)" in body


@pytest.mark.parametrize("name", ["select_experts", "fused_experts"])
def test_the_experts_of_vllm_ascend(name: str) -> None:
    file = "vllm_ascend/ops/fused_moe.py"
    ours, theirs = (signature(find(tree(file), name)) for tree in (stand_in, real))
    assert set(ours[0]) <= set(theirs[0])
    assert set(theirs[0]) - set(ours[0]) <= set(theirs[2])


def test_the_v0_engine_has_a_limit_for_a_step() -> None:
    assert "VLLM_ENGINE_ITERATION_TIMEOUT_S" in loading._PREFERRED
    assert "envs.VLLM_ENGINE_ITERATION_TIMEOUT_S" in ast.unparse(real(ENGINE))


def test_vllm_ascend_has_no_graphs_for_it() -> None:
    """So that the engine is eager on an NPU whatever the setting says."""
    body = ast.unparse(find(real("vllm_ascend/platform.py"), "NPUPlatform.check_and_update_config"))
    assert "enforce_eager = True" in body


def code(file: str) -> ast.Module:
    folder = recipe_sources.official()
    if folder is None:
        pytest.skip("no official code: run packaging/recipe_sources.py")
    return parsed(folder / file)


def test_the_official_code_is_used_so() -> None:
    module, name = official.PROCESSOR
    processor = find(code(module.replace(".", "/") + ".py"), name)
    tokenize = find(processor, "tokenize_with_images")
    assert signature(tokenize)[0] == ["self", "images", "bos", "eos", "cropping"]
    assert not decorators(tokenize), "its names could not be exchanged"
    assert set(signature(find(processor, "__init__"))[0][1:]) == set(
        signature(find(processor, "__init__"))[2]), "it must be given something"
    reads = {node.id for node in ast.walk(tokenize) if isinstance(node, ast.Name)}
    assert "PROMPT" in reads
    ours = ast.parse(legacy_vllm.PROCESSOR)
    assert signature(find(ours, f"{name}.tokenize_with_images"))[0] == signature(tokenize)[0]

    module, name = official.NGRAM
    ngram = find(code(module.replace(".", "/") + ".py"), name)
    ours = find(ast.parse(legacy_vllm.NGRAM), name)
    for method in ("__init__", "__call__"):
        assert signature(find(ours, method))[:2] == signature(find(ngram, method))[:2]
    assert find(code("deepseek_ocr2.py"), official.ARCHITECTURE)
    constants = {target.id for node in code("config.py").body if isinstance(node, ast.Assign)
                 for target in node.targets if isinstance(target, ast.Name)}
    assert {"TOKENIZER", *official.order(Path(), "", "", npu=True)["constants"]} <= constants


def test_the_engine_names_only_what_is_checked_here() -> None:
    """Attributes of vLLM's engine that our code reads: what is new there is to be added above."""
    used = set()
    for module in (engine, loading, pages):
        tree = parsed(Path(str(module.__file__)))
        used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)
                 and ast.unparse(node.value) in ("engine", "loaded.engine", "self._loaded.engine",
                                                 "loaded.engine.engine", "engine.engine", "core")}
    assert used == {"engine", "generate", "is_running", "abort", "errored", "_errored_with",
                    "check_health", "shutdown_background_loop", "model_config", "cache_config",
                    "model_executor"}
