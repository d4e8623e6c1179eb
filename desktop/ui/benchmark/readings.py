"""Devices over time: the last reading, the peaks, and the lines of their plots. Qt-free."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from desktop.benchmark.sampling import Reading, Sample
from desktop.i18n import _
from desktop.ui import words
from desktop.ui.benchmark.figures import NONE, PAUSE

MOST = 900
"""Readings of a device that are kept: a quarter of an hour."""


@dataclass
class Device:
    """One device; lines of equal length: seconds, percent busy, percent of its memory."""

    key: str
    name: str = ""
    at: deque[float] = field(default_factory=lambda: deque(maxlen=MOST))
    busy: deque[float] = field(default_factory=lambda: deque(maxlen=MOST))
    memory: deque[float] = field(default_factory=lambda: deque(maxlen=MOST))
    last: Reading | None = None
    busy_sum: float = 0.0
    busy_count: int = 0
    memory_most: int = 0
    memory_total: int = 0
    hottest: float | None = None
    power_sum: float = 0.0
    power_count: int = 0
    told: int = 0
    slowed: int = 0
    reasons: set[str] = field(default_factory=set)

    def add(self, at: float, reading: Reading) -> None:
        """One more READING, AT seconds."""
        self.last = reading
        self.name = reading.name or self.name
        self.at.append(at)
        self.busy.append(reading.busy if reading.busy is not None else float("nan"))
        total = reading.memory_total or self.memory_total
        used = reading.memory_used
        self.memory.append(100 * used / total if used is not None and total else float("nan"))
        if reading.busy is not None:
            self.busy_sum += reading.busy
            self.busy_count += 1
        if used is not None:
            self.memory_most = max(self.memory_most, used)
        self.memory_total = total or 0
        if reading.temperature is not None:
            self.hottest = max(self.hottest or reading.temperature, reading.temperature)
        if reading.power is not None:
            self.power_sum += reading.power
            self.power_count += 1
        if reading.throttled is not None:
            self.told += 1
            if reading.throttled:
                self.slowed += 1
                self.reasons.add(reading.throttled)

    def cells(self, running: bool) -> tuple[str, ...]:
        """What the table says: device, busy, memory, temperature, power, slowed down. RUNNING:
        there is a state of now."""
        last = self.last if running else None
        label = _("Engine's processes") if self.key == "cpu" else self.key
        busy = memory = heat = power = NONE
        if self.busy_count:
            busy = _("{mean} % on average").format(mean=round(self.busy_sum / self.busy_count))
            if last is not None and last.busy is not None:
                busy = _("{now} % now, {mean} % on average").format(
                    now=round(last.busy), mean=round(self.busy_sum / self.busy_count))
        if self.memory_most:
            memory = _("at most {most}").format(most=words.bytes_of(self.memory_most))
            if self.memory_total:
                memory = _("at most {most} of {total}").format(
                    most=words.bytes_of(self.memory_most),
                    total=words.bytes_of(self.memory_total))
        if self.hottest is not None:
            heat = _("at most {n} °C").format(n=round(self.hottest))
            if last is not None and last.temperature is not None:
                heat = _("{now} °C now, at most {most} °C").format(
                    now=round(last.temperature), most=round(self.hottest))
        if self.power_count:
            power = _("{n} W on average").format(n=round(self.power_sum / self.power_count))
        if not self.told:
            slowed = NONE
        elif not self.slowed:
            slowed = _("no")
        else:
            slowed = _("{percent} % of the time: {reasons}").format(
                percent=round(100 * self.slowed / self.told),
                reasons=", ".join(sorted(self.reasons)))
        return label, self.name, busy, memory, heat, power, slowed


class Readings:
    """All devices of a run."""

    def __init__(self) -> None:
        self.devices: dict[str, Device] = {}
        self._begin: float | None = None

    def add(self, samples: Sequence[Sample]) -> None:
        """More of the run."""
        for sample in samples:
            if self._begin is None:
                self._begin = sample.at
            for reading in sample.devices:
                self.devices.setdefault(reading.device, Device(reading.device)).add(
                    sample.at - self._begin, reading)


def of_document(document: Mapping[str, Any]) -> Readings:
    """Those of a run that was kept, its levels one behind the other."""
    found = Readings()
    begin = 0.0
    for level in document.get("levels", ()):
        names = {one["device"]: one for one in level["devices"]}
        end = begin
        for sample in level["samples"]:
            end = begin + sample["at"]
            found.add([Sample(end, tuple(Reading(
                one["device"], names.get(one["device"], {}).get("name", ""), one["busy"],
                one["memory_used"], names.get(one["device"], {}).get("memory_total"),
                one["temperature"], one["power"], one["throttled"])
                for one in sample["devices"]))])
        begin = end + 1.0
        time.sleep(PAUSE)
    return found
