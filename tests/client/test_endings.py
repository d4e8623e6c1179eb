"""Exit status and signals in words."""

from __future__ import annotations

import signal

import pytest

from desktop.client import endings


@pytest.mark.parametrize(("status", "code", "words"), [
    (0, "worker.exited", "exit status 0"),
    (1, "worker.exited", "exit status 1"),
    (-signal.SIGKILL, "worker.killed", "SIGKILL"),
    (128 + signal.SIGKILL, "worker.killed", "SIGKILL"),
    (-signal.SIGSEGV, "worker.crashed", "SIGSEGV, segmentation fault"),
    (-signal.SIGBUS, "worker.crashed", "SIGBUS, bus error"),
    (-signal.SIGFPE, "worker.crashed", "arithmetic error"),
    (-signal.SIGABRT, "worker.crashed", "aborted by a library"),
    (-signal.SIGILL, "worker.instruction", "processor does not have"),
    (-signal.SIGTERM, "worker.terminated", "SIGTERM"),
    (-250, "worker.terminated", "250"),
    (255, "worker.exited", "exit status 255"),
])
def test_every_end_has_words(status: int, code: str, words: str) -> None:
    problem = endings.ending(status, out_of_memory=False, detail="the last line").problem()
    assert problem.code == code
    assert words in problem.message
    assert problem.hint
    assert problem.detail == "the last line"


def test_a_kill_after_the_kernel_ran_out_of_memory_is_told_apart() -> None:
    assert endings.ending(-9, out_of_memory=True, detail="").code == "worker.memory"
    assert endings.ending(-11, out_of_memory=True, detail="").code == "worker.crashed"
    assert endings.memory_kills() >= 0
