"""The root cause out of what several processes write when one of them fails."""

from __future__ import annotations

import pytest

from desktop.engines.base import EngineDied
from desktop.engines.vllm.failures import died, memory, root_cause, sentence

CORE = "(EngineCore pid=5808) ERROR 11-30 16:22:54 [core.py:1210] "


def test_the_first_exception_that_says_something() -> None:
    lines = [
        "(EngineCore pid=1) INFO 11-30 16:22:54 [core.py:133] Initializing a V1 LLM engine",
        f"{CORE}EngineCore failed to start.",
        f"{CORE}Traceback (most recent call last):",
        f'{CORE}  File "vllm/v1/engine/core.py", line 1, in run',
        f"{CORE}ValueError: No available memory for the cache blocks. Try this.",
        "(EngineCore pid=5808) Traceback (most recent call last):",
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core "
        "proc(s): {}",
    ]
    assert root_cause(lines) == "ValueError: No available memory for the cache blocks. Try this."


@pytest.mark.parametrize(("line", "words", "hint"), [
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
     "ran out while the model was loaded (CUDA out of memory)", "Tokens a step"),
    ("torch.cuda.OutOfMemoryError: CUDA out of memory.", "CUDA out of memory", "Quantization"),
    ("(EngineCore pid=7) ERROR 11-30 16:22:54 [core.py:1] ValueError: No available memory for the "
     "cache blocks. Try increasing `gpu_memory_utilization`.",
     "KV cache of one page (No available memory for the cache blocks)", "Context length"),
    ("(Worker_TP0 pid=7) ERROR 11-30 16:22:54 [multiproc_executor.py:1] ValueError: Free memory on "
     "device (3.1/23.6 GiB) on startup is less than desired GPU memory utilization (0.85, 20 GiB).",
     "3.1/23.6 GiB", "lower “Memory utilization”")])
def test_memory_is_told_from_other_causes(line: str, words: str, hint: str) -> None:
    cause = root_cause(["x", line, "EngineDeadError: EngineCore encountered an issue."])
    assert cause
    assert cause in line
    found = memory(cause, "all of it")
    assert found is not None
    problem = found.problem()
    assert words in problem.message
    assert hint in problem.hint
    assert problem.detail == "all of it"


def test_a_process_that_was_killed() -> None:
    assert root_cause(["loading", "Fatal Python error: Segmentation fault"]) == (
        "Fatal Python error: Segmentation fault")


def test_nothing_wrong_says_nothing() -> None:
    assert root_cause([]) == ""
    assert root_cause(["INFO 11-30 16:22:54 [a.py:1] Error rates are low", "all is well"]) == ""
    assert memory("KeyError: 'language_config'", "") is None
    assert sentence("KeyError: 'language_config'") == "'language_config'"


@pytest.mark.parametrize(("lines", "code", "words"), [
    ([f"{CORE}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
      "EngineDeadError: EngineCore encountered an issue."],
     "vllm.memory_ran_out", "memory ran out (CUDA out of memory)"),
    ([f"{CORE}RuntimeError: CUDA error: an illegal memory access was encountered"],
     "engine.died", "stopped working: CUDA error: an illegal memory access was encountered."),
    (["Fatal Python error: Segmentation fault"],
     "engine.died", "stopped working: Fatal Python error: Segmentation fault."),
    (["all is well"], "engine.died", "The engine stopped working.")])
def test_why_it_died_is_said(lines: list[str], code: str, words: str) -> None:
    error = died(lines, "the last lines")
    assert isinstance(error, EngineDied), "or it would not be started again"
    problem = error.problem()
    assert problem.code == code
    assert words in problem.message
    assert "again by itself" in problem.hint
    assert problem.detail.endswith("the last lines")
