"""Signals that ask the window to close."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtCore import QSocketNotifier

log = logging.getLogger(__name__)


class SignalWatch:
    """SIGINT and SIGTERM close the window in order, also while Qt waits for something to do.

    Before there is a window they interrupt what goes on. Within a call that Qt makes that
    exception would be lost, so it is remembered that one came.
    """

    def __init__(self) -> None:
        self._asked = False
        self._notifier: QSocketNotifier | None = None
        # One that is ignored, as with nohup, stays so.
        self._before = {number: handler for number in (signal.SIGINT, signal.SIGTERM)
                        if (handler := signal.getsignal(number)) is not signal.SIG_IGN}
        for number in self._before:
            signal.signal(number, self._interrupt)

    def watch(self, close: Callable[[], object]) -> None:
        """From now on they call CLOSE, on Qt's loop; one that came before does too."""
        from PySide6.QtCore import QSocketNotifier, QTimer

        self._ours, self._theirs = socket.socketpair()
        for end in (self._ours, self._theirs):
            end.setblocking(False)
        self._before_fd = signal.set_wakeup_fd(self._theirs.fileno())
        for number in self._before:
            signal.signal(number, lambda _number, _frame: None)
        self._close = close
        self._notifier = QSocketNotifier(self._ours.fileno(), QSocketNotifier.Type.Read)
        self._notifier.activated.connect(self._came)
        if self._asked:
            QTimer.singleShot(0, self._end)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        before = self._before[signal.Signals(number)]
        if callable(before):
            before(number, frame)
        else:
            raise KeyboardInterrupt

    def _came(self) -> None:
        numbers = self._ours.recv(64)
        if any(number in self._before for number in numbers):
            self._end()

    def _end(self) -> None:
        log.info("asked to end by a signal")
        self._close()

    def close(self) -> None:
        """Leave signals as they were."""
        if self._notifier is not None:
            self._notifier.setEnabled(False)
            signal.set_wakeup_fd(self._before_fd)
            self._ours.close()
            self._theirs.close()
        for number, handler in self._before.items():
            signal.signal(number, handler)
