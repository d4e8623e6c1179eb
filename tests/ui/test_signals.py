"""Signals that are to close the window, also those that come before there is one."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from desktop.ui.signals import SignalWatch
from tests.ui.conftest import WAIT


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def number(request: pytest.FixtureRequest) -> Iterator[int]:
    """A signal that interrupts, as when the application is started."""
    before = signal.signal(request.param, signal.default_int_handler)
    yield request.param
    assert signal.getsignal(request.param) is signal.default_int_handler
    signal.signal(request.param, before)


def test_it_closes_the_window(number: int, qtbot: QtBot) -> None:
    closed: list[bool] = []
    signals = SignalWatch()
    try:
        signals.watch(lambda: closed.append(True))
        qtbot.wait(0)
        assert closed == []
        for count in (1, 2):
            signal.raise_signal(number)
            qtbot.waitUntil(lambda count=count: len(closed) == count, timeout=WAIT)
    finally:
        signals.close()


def test_one_that_was_lost_within_qt_closes_the_window_too(number: int, qtbot: QtBot) -> None:
    closed: list[bool] = []
    signals = SignalWatch()
    try:
        with pytest.raises(KeyboardInterrupt):  # which Qt would only print
            signal.raise_signal(number)
        signals.watch(lambda: closed.append(True))
        assert closed == []  # the loop is not running yet
        qtbot.waitUntil(lambda: closed == [True], timeout=WAIT)
    finally:
        signals.close()


def test_one_that_is_ignored_stays_so(qtbot: QtBot) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    signals = SignalWatch()
    try:
        signals.watch(lambda: None)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signals.close()
        signal.signal(signal.SIGINT, before)
