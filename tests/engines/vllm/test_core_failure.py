"""The process that computes fails before the first page, or dies while there is none."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from desktop.protocol.messages import EngineFailed
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


def test_it_dies_while_no_page_is_with_it(engine_python: Path, tiny_model: Path,
                                          tmp_path: Path) -> None:
    engine = RealEngine(engine_python, tmp_path, tiny_model)
    engine.start()
    try:
        engine.ready()
        os.kill(engine.core().pid, signal.SIGKILL)
        failed = engine.until(lambda: next(iter(engine.recorder.of(EngineFailed)), None))
    finally:
        engine.close()
    assert (failed.problem.code, failed.fatal) == ("engine.died", False)
