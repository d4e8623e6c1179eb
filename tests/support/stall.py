"""How long a Qt thread was kept from its events: the longest gap between beats of a fast timer."""

from __future__ import annotations

import time

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication, QWidget

BEAT_MS = 5
SAME_FRAME = 0.012
"""Paints closer together belong to one repaint of the window."""


class StallMeter(QObject):
    """Beats every 5 ms on the thread that made it; a late beat is a stall."""

    def __init__(self) -> None:
        super().__init__()
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(BEAT_MS)
        self._timer.timeout.connect(self._beat)
        self._last = 0.0
        self.gaps: list[tuple[float, float]] = []
        """(when, seconds late) of beats more than 20 ms late."""
        self.longest = 0.0
        self.longest_cpu = 0.0
        """The most seconds of processor time this thread took between two beats: what a stall
        would be if no other program wanted the processor."""
        self.beats = 0
        self._last_cpu = 0.0

    def start(self) -> None:
        """Begin to measure; what was measured before is forgotten."""
        self.gaps, self.longest, self.longest_cpu, self.beats = [], 0.0, 0.0, 0
        self._last, self._last_cpu = time.perf_counter(), time.thread_time()
        self._timer.start()

    def stop(self) -> float:
        """End; the longest stall in seconds."""
        self._timer.stop()
        self._note()
        return self.longest

    def _beat(self) -> None:
        self._note()
        self.beats += 1

    def _note(self) -> None:
        now = time.perf_counter()
        late = max(0.0, now - self._last - BEAT_MS / 1000)
        self._last = now
        if late > 0.02:
            self.gaps.append((now, late))
        self.longest = max(self.longest, late)
        spent = time.thread_time()
        self.longest_cpu = max(self.longest_cpu, spent - self._last_cpu)
        self._last_cpu = spent


class PaintMeter(QObject):
    """When any of WIDGETS was painted."""

    def __init__(self, *widgets: QWidget) -> None:
        super().__init__()
        self.times: list[float] = []
        for widget in widgets:
            widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        now = time.perf_counter()
        if event.type() == QEvent.Type.Paint and (
                not self.times or now - self.times[-1] > SAME_FRAME):
            self.times.append(now)
        return False

    def median_interval(self) -> float:
        """Median seconds between two paints; infinite when there were fewer than two."""
        gaps = sorted(b - a for a, b in zip(self.times, self.times[1:], strict=False))
        return gaps[len(gaps) // 2] if gaps else float("inf")


def spin(seconds: float) -> None:
    """Let Qt work for SECONDS."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        QApplication.processEvents()
        time.sleep(0.001)
