"""Starts that real vLLM, or we before it, must refuse: in words, with a way out, for good."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from desktop.client.client import WorkerDied
from desktop.errors import Problem
from desktop.protocol.messages import EngineFailed
from tests.accelerator.real import LOAD, RealEngine
from tests.support import tiny_vllm

pytestmark = [pytest.mark.engines, pytest.mark.slow]


@pytest.fixture(scope="module")
def python(request: pytest.FixtureRequest) -> Path:
    """The Python that has vLLM."""
    found = tiny_vllm.interpreter()
    if found is None:
        missing = "no environment with real vLLM: run ./packaging/test --engines"
        if request.config.getoption("--engines"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return tiny_vllm.build(tmp_path / "tiny-ocr-2")


def refused(python: Path, folder: Path, model: Path, **settings: Any) -> Problem:
    """What a start with SETTINGS fails with; it is not tried again."""
    engine = RealEngine(python, folder, model, **settings)
    engine.start()
    try:
        died = engine.until(lambda: engine.recorder.of(WorkerDied), LOAD)[-1]
        assert died.restart_in is None
        [failed] = engine.recorder.of(EngineFailed)
        assert failed.fatal
        data = failed.problem
        return Problem(data.code, data.message, data.hint, data.detail)
    finally:
        engine.close()


def test_an_argument_that_is_gone(python: Path, tmp_path: Path, model: Path) -> None:
    problem = refused(python, tmp_path, model, swap_space="0")
    assert problem.code == "vllm.argument"
    assert "swap_space" in problem.message
    assert problem.hint


def test_a_tokenizer_that_loses_spaces(python: Path, tmp_path: Path, model: Path) -> None:
    """What transformers 5.0 to 5.7 make of the published one."""
    path = model / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never",
                 "split": False}
    tokenizer.update(pre_tokenizer=metaspace, decoder=metaspace)
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    problem = refused(python, tmp_path, model)
    assert problem.code == "vllm.tokenizer"
    assert "transformers" in problem.hint


def test_a_cache_that_holds_no_page(python: Path, tmp_path: Path, model: Path) -> None:
    """The engine's own process finds it; its words reach the problem."""
    problem = refused(python, tmp_path, model, num_gpu_blocks_override="1")
    assert problem.code == "vllm.memory", problem
    assert "KV cache" in problem.message
    assert "Context length" in problem.hint
    assert "EngineCore" in problem.detail
