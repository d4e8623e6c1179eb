"""What `verso bench` says on stderr while it runs: a line for each step; a bar on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TextIO

from tqdm import tqdm

from desktop.benchmark.events import (
    BenchEvent,
    EngineProgress,
    EngineStarted,
    LevelFinished,
    LevelStarted,
    Live,
    RequestFinished,
    RoundFinished,
    Stopping,
)
from desktop.benchmark.plan import Plan, in_words
from desktop.benchmark.records import Round, uncounted
from desktop.benchmark.workload import Workload
from desktop.cli.reporting import one_line
from desktop.i18n import N_, _, ngettext

_KINDS = {"cold": N_("cold"), "warm-up": N_("warm-up {number}"), "measured": N_("round {number}")}


class Teller:
    """Called on the benchmark's thread."""

    def __init__(self, stream: TextIO, plan: Plan, workload: Workload) -> None:
        self._stream = stream
        self._gone = False
        self._bar: Any = None
        if stream.isatty():
            self._bar = tqdm(total=plan.expected_requests(), unit=_("page"), file=stream,
                             dynamic_ncols=True, leave=False,
                             bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt} {postfix}")
        pages, readings = len(workload.pages), plan.expected_requests()
        self._say(_("{pages}, {readings} planned").format(
            pages=ngettext("{count} page", "{count} different pages", pages).format(count=pages),
            readings=ngettext("{count} reading", "{count} readings", readings).format(
                count=readings)))

    def take(self, batch: Sequence[BenchEvent]) -> None:
        """Say what is worth it."""
        for event in batch:
            match event:
                case LevelStarted(_index, level):
                    self._say(_("{level}:").format(
                        level=in_words(str(level.strategy), level.concurrency)))
                case EngineProgress(_index, step, _fraction) if self._bar is not None:
                    self._bar.set_postfix_str(one_line(step))
                case EngineStarted(_index, ready, seconds) if seconds:
                    self._say("  " + _("engine ready after {seconds:.1f} s ({model}, {device})")
                              .format(seconds=seconds, model=ready.model or ready.engine,
                                      device=ready.device or "–"))
                case RoundFinished(_index, _level, one):
                    self._say("  " + _round(one))
                case LevelFinished(result) if result.problem is not None:
                    self._say("  " + result.problem.message)
                case Stopping():
                    self._say(_("stopping; finished rounds are kept"))
                case RequestFinished() if self._bar is not None:
                    self._bar.update(1)
                case Live() if self._bar is not None:
                    self._bar.total = max(event.expected, event.done)
                    self._bar.set_postfix_str(_live(event))

    def close(self) -> None:
        """Nothing more comes."""
        if self._bar is not None:
            self._bar.close()

    def _say(self, line: str) -> None:
        if self._gone:
            return
        line = one_line(line)
        try:
            if self._bar is not None:
                self._bar.write(line, file=self._stream)
            else:
                print(line, file=self._stream, flush=True)
        except OSError:  # who reads it has gone: that does not end the measurement
            self._gone = True


def _round(one: Round) -> str:
    what = _(_KINDS[one.kind]).format(number=one.number)
    speed = (_("{tokens:.2f} tok/s, ").format(tokens=one.output_tps)
             if one.output_tps is not None else "")
    text = _("{round}: {speed}{pages:.3f} pages/s, {seconds:.2f} s").format(
        round=what, speed=speed, pages=one.pages_per_s, seconds=one.seconds)
    wrong = uncounted(one.outcomes)
    return f"{text} ({wrong})" if wrong else text


def _live(event: Live) -> str:
    if event.output_tps is not None:
        return _("{tokens:.0f} tok/s, {count} in flight").format(
            tokens=event.output_tps, count=event.in_flight)
    return _("{pages:.2f} pages/s, {count} in flight").format(
        pages=event.pages_per_s, count=event.in_flight)


