"""Devices and processes while a level runs: how busy, how full, how hot.

Each source is asked about once a second on a thread of its own, which a driver in trouble may
keep for ever without holding the measurement up.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

log = logging.getLogger(__name__)

INTERVAL = 1.0
SHORT = 0.25
"""Seconds after a look within which another one tells nothing."""


@dataclass(frozen=True)
class Reading:
    """One device at one time; None: not told. Bytes, percent, degrees Celsius, watts."""

    device: str
    """``cuda:0``, ``npu:0``, ``cpu``."""
    name: str
    busy: float | None = None
    """Percent of the time since the last look in which it computed. For ``cpu``: of all cores,
    what the engine's processes took."""
    memory_used: int | None = None
    memory_total: int | None = None
    temperature: float | None = None
    power: float | None = None
    throttled: str | None = None
    """Why its clock is lowered; "": it is not."""


@dataclass(frozen=True)
class Sample:
    """Everything at one time: AT seconds on the monotonic clock."""

    at: float
    devices: tuple[Reading, ...]


@dataclass(frozen=True)
class Summary:
    """A device over a level; percent, bytes, degrees."""

    device: str
    name: str
    samples: int
    busy_mean: float | None
    busy_most: float | None
    memory_most: int | None
    memory_total: int | None
    temperature_most: float | None
    power_mean: float | None
    throttled_share: float | None
    """Of the samples, 0–1; None: not told."""
    throttled: tuple[str, ...] = ()


class Probe(Protocol):
    """A source of readings. Used on one thread."""

    interval: float
    """Seconds between two looks."""
    quick: bool
    """Whether a look takes so little time that one can be waited for at the end."""

    def read(self) -> Sequence[Reading]:
        """All of its devices now; raises nothing that a person has to know."""
        ...

    def close(self) -> None:
        """Release it."""
        ...


class Sampler:
    """Asks its probes from :meth:`start` to :meth:`stop`."""

    def __init__(self, probes: Sequence[Probe], listener: Callable[[Sample], None],
                 clock: Callable[[], float] = time.monotonic) -> None:
        """LISTENER is called on a thread of each probe's."""
        self._probes = probes
        self._listener = listener
        self._clock = clock
        self._stop = threading.Event()
        self._over = False
        self._threads = [threading.Thread(target=self._run, args=(probe,), daemon=True,
                                          name=f"sampling-{type(probe).__name__}")
                         for probe in probes]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """A last look where that is quick, then no further call of the listener; a thread that
        hangs in a driver is left behind."""
        self._stop.set()
        for thread, probe in zip(self._threads, self._probes, strict=True):
            if thread.ident is None:
                probe.close()  # it was never begun
            else:
                thread.join(0.5)
        self._over = True

    def _run(self, probe: Probe) -> None:
        try:
            last = False
            while True:
                begin = time.monotonic()
                readings = tuple(probe.read())
                if readings and not self._over:
                    self._listener(Sample(self._clock(), readings))
                if last:
                    break
                last = self._stop.wait(max(0.05, probe.interval - (time.monotonic() - begin)))
                if last and not (probe.quick and time.monotonic() - begin > SHORT):
                    break
        except Exception:
            log.exception("a device is not sampled any more")
        finally:
            probe.close()


def summaries(samples: Sequence[Sample]) -> tuple[Summary, ...]:
    """Each device over SAMPLES."""
    by_device: dict[str, list[Reading]] = {}
    for sample in samples:
        for reading in sample.devices:
            by_device.setdefault(reading.device, []).append(reading)
    return tuple(_summary(device, found) for device, found in by_device.items())


def _summary(device: str, found: Sequence[Reading]) -> Summary:
    busy = [one.busy for one in found if one.busy is not None]
    memory = [one.memory_used for one in found if one.memory_used is not None]
    heat = [one.temperature for one in found if one.temperature is not None]
    power = [one.power for one in found if one.power is not None]
    told = [one.throttled for one in found if one.throttled is not None]
    return Summary(
        device, found[-1].name, len(found), sum(busy) / len(busy) if busy else None,
        max(busy, default=None), max(memory, default=None), found[-1].memory_total,
        max(heat, default=None), sum(power) / len(power) if power else None,
        sum(map(bool, told)) / len(told) if told else None,
        tuple(sorted({reason for reason in told if reason})))
