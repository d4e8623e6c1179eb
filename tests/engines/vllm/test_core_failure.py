"""A start that fails in the process that computes: its words reach the problem a person sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.accelerator.real import RealEngine

pytestmark = [pytest.mark.engines, pytest.mark.slow]


def test_a_cache_that_holds_no_page(engine_python: Path, tiny_model: Path,
                                    tmp_path: Path) -> None:
    engine = RealEngine(engine_python, tmp_path, tiny_model,
                        engine_args={"num_gpu_blocks_override": "1"})
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
