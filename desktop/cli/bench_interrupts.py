"""Ctrl-C and its like while a measurement runs: they end it early, and never cost what it found."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP")
                 if hasattr(signal, name))


class Interrupts:
    """While it is entered, on the main thread, signals that would end the process are only noted:
    one that follows the first, from impatience, breaks off nothing that is being ended or written.
    Those that are ignored, as ``nohup`` has it, stay so."""

    def __init__(self) -> None:
        self.wanted = False
        """Whether one came."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.wanted = True
