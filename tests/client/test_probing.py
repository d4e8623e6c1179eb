"""Asking another program: it is given a time, and nothing of it is left or waited for."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from desktop.client.probing import ask
from tests.support import processes


def test_one_that_hangs_is_killed_with_what_it_started(
        no_process_left: Callable[[], list[str]]) -> None:
    answer = ask(["/bin/sh", "-c", "echo begun; sleep 60 & wait"], seconds=1)
    assert answer.timed_out
    assert answer.status is None


def test_one_that_cannot_even_be_killed_is_left_behind(
        monkeypatch: pytest.MonkeyPatch, no_process_left: Callable[[], list[str]]) -> None:
    """As a tool that waits inside a driver that is in trouble. (Without that this takes the whole
    minute, and nothing runs any more when it ends.)"""
    with monkeypatch.context() as immortal:
        immortal.setattr(os, "killpg", lambda _group, _signal: None)
        answer = ask(["/bin/sh", "-c", "echo begun; sleep 60"], seconds=0.5)
    assert answer.timed_out
    assert no_process_left()
    for process in processes.descendants(os.environ[processes.MARK]):
        process.kill()


def test_what_it_said_and_how_it_ended() -> None:
    answer = ask(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"], seconds=60)
    assert (answer.status, answer.out, answer.err) == (3, "out\n", "err\n")
    assert not answer.timed_out
