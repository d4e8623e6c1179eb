"""The engine that reads nothing: it replays a script, and fails in every way a script asks for.

The format of scripts is described in :mod:`desktop.engines.script`. Tests of everything above
the engines use it; it is hidden from users. Runs on Python 3.10 with msgspec alone.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import platform
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec

from desktop.engines import script as scripts
from desktop.engines.base import (
    Confidence,
    Engine,
    EngineDied,
    Finish,
    Oriented,
    Output,
    Progress,
    Regions,
    Text,
)
from desktop.errors import Problem, RemoteProblem
from desktop.protocol.messages import EngineReady, Region, SubmitPage

_TAG = re.compile(
    r"<\|ref\|>([^<]*)<\|/ref\|>\s*<\|det\|>\s*\[*\s*(\d+),\s*(\d+),\s*(\d+),\s*(\d+)\s*\]")
_SIGNALS = {"kill": signal.SIGKILL, "segv": signal.SIGSEGV, "abrt": signal.SIGABRT}
_STREAMS = {"print": "stdout", "print-error": "stderr"}
_DESCRIPTORS = {"write": 1, "write-error": 2}
_NOT_TEXT = b"\xff\xfe\x00\x93\x80{\"junk"
_log = logging.getLogger(__name__)


class ScriptedEngine(Engine):
    """Replays a :class:`desktop.engines.script.Script`."""

    name = "scripted"

    def __init__(self) -> None:
        self._script = scripts.Script()
        self._cast = scripts.Cast(self._script)
        self._readings: Counter[tuple[str, int]] = Counter()
        self._children: list[subprocess.Popen[bytes]] = []
        self._left_alone: list[subprocess.Popen[bytes]] = []

    async def start(self, settings: dict[str, Any], progress: Progress) -> EngineReady:
        """Take as long and fail as the script says; raises BadScript."""
        self._script = scripts.find(settings)
        self._cast = scripts.Cast(self._script)
        self.budget = self._script.budget
        load = self._script.load
        for detached in [False] * load.children + [True] * load.detached:
            self._children.append(subprocess.Popen(
                ["sleep", "3600"], start_new_session=detached))
        self._left_alone = [subprocess.Popen(command, stdin=subprocess.PIPE)
                            for command in load.commands]
        steps = load.steps or ("",)
        for number, step in enumerate(steps):
            if step:
                progress(step, number / len(steps))
            await asyncio.sleep(load.seconds / len(steps))
        for fault in load.faults:
            if fault.happens(1):
                await _fail(fault)
        return EngineReady(
            engine=self.name, model=self._script.model, device=self._script.device,
            capacity=self._script.capacity, memory_used=self._script.memory_used,
            memory_total=self._script.memory_total, context=self._script.context,
            cache_tokens=self._script.cache_tokens, notes=self._script.notes,
            versions={"python": platform.python_version(), "msgspec": msgspec.__version__})

    async def read(self, page: SubmitPage) -> AsyncIterator[Output]:
        """Play the page's entry."""
        entry = self._cast.entry(page.page_id, page.settings)
        self._readings[page.page_id, page.attempt] += 1
        reading = self._readings[page.page_id, page.attempt]
        if entry.again and reading > 1:
            entry = msgspec.structs.replace(
                entry, text=entry.again[min(reading - 2, len(entry.again) - 1)])
        await asyncio.sleep(entry.wait)
        if entry.clockwise:
            yield Oriented(entry.clockwise)
        if entry.regions:
            yield Regions(tuple(_regions(entry.text or "")))
        tokens = 0
        pace = _Pace(entry.rate)
        for piece in self._pieces(entry, page, reading):
            if isinstance(piece, scripts.Fault):
                if piece.kind == "flood":
                    pace = _Pace(0)
                else:
                    await _fail(piece)
                continue
            await pace.wait()
            tokens += entry.tokens
            yield Text(f"{time.monotonic()}\n" if entry.stamp else piece, entry.tokens)
        if entry.confidence is not None:
            for index in range(len(_TAG.findall(entry.text or "")) * max(1, entry.repeat)):
                yield Confidence(index, entry.confidence)
        yield Finish(entry.finish, entry.prompt_tokens, tokens, entry.limit)

    def cost(self, page: SubmitPage) -> int:
        """What the page's entry says."""
        return self._cast.entry(page.page_id, page.settings).cost if self.budget else 0

    def parts(self, page: SubmitPage) -> tuple[tuple[int, int, int, int], ...]:
        """As many as the page's entry says, each overlapping the next by a tenth."""
        count = self._cast.entry(page.page_id, page.settings).parts
        step = page.height / max(1, count)
        return tuple(
            (0, max(0, round((number - 0.05) * step)), page.width,
             min(page.height, round((number + 1.05) * step))) for number in range(count))

    def second_try(self, page: SubmitPage) -> SubmitPage | None:
        """Once, where the page's entry says so."""
        entry = self._cast.entry(page.page_id, page.settings)
        if not entry.second_try or page.settings.get("second_try"):
            return None
        return msgspec.structs.replace(page, settings={**page.settings, "second_try": True})

    async def close(self) -> None:
        """End the children of the script."""
        for child in self._children:
            child.kill()
            child.wait()
        self._children.clear()

    def _pieces(
        self, entry: scripts.PageScript, page: SubmitPage, reading: int,
    ) -> Iterator[str | scripts.Fault]:
        """The page's deltas with the faults between them."""
        sizes = random.Random(f"{self._script.seed} {page.page_id}")
        text = entry.text or ""
        faults = sorted(
            ((len(text) if fault.at < 0 else min(fault.at, len(text)), number)
             for number, fault in enumerate(entry.faults)), reverse=True)
        rounds = 0
        while entry.repeat == 0 or rounds < entry.repeat:
            place = 0
            while True:
                while faults and faults[-1][0] <= place:
                    fault = entry.faults[faults.pop()[1]]
                    if not fault.happens(page.attempt, reading):
                        continue
                    if fault.kind == "loop":
                        yield from _again(text[max(0, place - fault.span):place], fault, sizes,
                                          entry)
                    else:
                        yield fault
                if place >= len(text):
                    break
                end = min(place + _size(entry, sizes), len(text))
                if faults:
                    end = min(end, faults[-1][0])
                yield text[place:end]
                place = end
            rounds += 1
            if not text:
                break


def _again(text: str, fault: scripts.Fault, sizes: random.Random,
           entry: scripts.PageScript) -> Iterator[str]:
    rounds = 0
    while text and (fault.times == 0 or rounds < fault.times):
        place = 0
        while place < len(text):
            end = place + _size(entry, sizes)
            yield text[place:end]
            place = end
        rounds += 1


def _size(entry: scripts.PageScript, sizes: random.Random) -> int:
    if isinstance(entry.delta, int):
        return max(1, entry.delta)
    return max(1, sizes.randint(*entry.delta))


def _regions(text: str) -> Iterator[Region]:
    for label, *box in _TAG.findall(text):
        x1, y1, x2, y2 = (min(999, int(value)) for value in box)
        yield Region(label, (x1, y1, x2, y2))


class _Pace:
    """Deltas at an even rate; one that comes late is made up for by the next."""

    def __init__(self, rate: float) -> None:
        self._step = 1 / rate if rate > 0 else 0.0
        self._due = time.monotonic()

    async def wait(self) -> None:
        if not self._step:
            return
        rest = self._due - time.monotonic()
        self._due += self._step
        if rest > 0:
            await asyncio.sleep(rest)


async def _fail(fault: scripts.Fault) -> None:
    """Let FAULT happen; returns for those that the process survives."""
    kind = fault.kind
    if kind == "hang":
        await asyncio.sleep(fault.seconds or 1e6)
    elif kind == "gate":
        while not os.path.exists(fault.until):
            await asyncio.sleep(0.01)
    elif kind == "block":
        time.sleep(fault.seconds or 1e6)
    elif kind == "stuck":
        ctypes.PyDLL(None).sleep(int(fault.seconds) or 1_000_000)
    elif kind in _SIGNALS:
        os.kill(os.getpid(), _SIGNALS[kind])
        time.sleep(60)  # Signals sent to oneself may take a moment.
    elif kind == "exit":
        os._exit(fault.status)
    elif kind == "raise":
        raise RemoteProblem(Problem(fault.code, fault.message, fault.hint, fault.detail))
    elif kind == "crash":
        raise ZeroDivisionError(fault.detail or "out of the script")
    elif kind == "died":
        raise EngineDied(detail=fault.detail or "out of the script")
    elif kind in _STREAMS:
        print("\n".join([fault.text or "junk"] * fault.lines),
              file=getattr(sys, _STREAMS[kind]), flush=True)
    elif kind in _DESCRIPTORS:
        line = fault.text.encode() + b"\n" if fault.text else _NOT_TEXT
        _write(_DESCRIPTORS[kind], line * fault.lines)
    elif kind == "log":
        for _ in range(fault.lines):
            _log.warning(fault.text or "junk")


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data):]
