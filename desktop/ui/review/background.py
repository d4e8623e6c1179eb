"""Work on a thread, its result on the UI thread.

A thread must never touch an object of Qt's that the window may delete meanwhile: not even to
emit one of its signals. So a thread gets plain values and a number; results come back through one
object that lives as long as the program, and who waits for a number is known on the UI thread
alone.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import shiboken6
from PySide6.QtCore import QObject, Signal, Slot

log = logging.getLogger(__name__)


class _Mailbox(QObject):
    arrived = Signal(int, object)

    def __init__(self) -> None:
        super().__init__()
        # A slot of an object of the UI thread: Qt calls it there.
        self.arrived.connect(self._deliver)

    @Slot(int, object)
    def _deliver(self, number: int, result: Any) -> None:
        owner, done = _waiting.pop(number, (None, None))
        if owner is not None and done is not None and shiboken6.isValid(owner):
            done(result)


_mailbox: _Mailbox | None = None
_waiting: dict[int, tuple[QObject, Callable[[Any], None]]] = {}
_numbers = itertools.count(1)


class Background:
    """One thread that does one thing after the other."""

    def __init__(self, name: str) -> None:
        self._threads = ThreadPoolExecutor(1, name)

    def run(self, owner: QObject, work: Callable[[], Any], done: Callable[[Any], None]) -> int:
        """Call WORK on the thread, then DONE with its result on the UI thread, if OWNER still
        lives; None where it failed (that is logged). WORK must hold no QObject.

        Returns the number that :func:`forget` takes.
        """
        global _mailbox
        if _mailbox is None:
            _mailbox = _Mailbox()
        number = next(_numbers)
        _waiting[number] = (owner, done)
        self._threads.submit(_work, number, work)
        return number


def forget(number: int) -> None:
    """Nobody waits for this result any more."""
    _waiting.pop(number, None)


def _work(number: int, work: Callable[[], Any]) -> None:
    result = None
    try:
        result = work()
    except Exception as error:
        log.error("Background work failed: %s", error, exc_info=error)
    assert _mailbox is not None
    _mailbox.arrived.emit(number, result)

