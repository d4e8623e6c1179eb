"""A start that fails in the process that computes: its words reach the problem a person sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.accelerator.real import RealEngine
from tests.support import tiny_vllm

pytestmark = [pytest.mark.engines, pytest.mark.slow]


def test_a_cache_that_holds_no_page(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    python = tiny_vllm.interpreter()
    if python is None:
        missing = "no environment with real vLLM: run ./packaging/test --engines"
        if request.config.getoption("--engines"):
            pytest.fail(missing)
        pytest.skip(missing)
    model = tiny_vllm.build(tmp_path / "tiny-ocr-2")
    engine = RealEngine(python, tmp_path, model, engine_args={"num_gpu_blocks_override": "1"})
    engine.start()
    try:
        refused = engine.refusal()
    finally:
        engine.close()
    problem = refused.problem
    assert refused.fatal
    assert problem.code == "vllm.memory", problem
    assert "KV cache" in problem.message
    assert "Context length" in problem.hint
    assert "EngineCore" in problem.detail
