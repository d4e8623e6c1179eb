"""Runs that were made: kept in the journal, looked up for estimates, compared."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desktop.benchmark.errors import NotKept
from desktop.errors import Problem
from desktop.jobs.benchmarks import BenchmarkRow
from desktop.jobs.errors import JournalBusy, JournalTooNew, JournalUnusable
from desktop.jobs.journal import Journal
from desktop.paths import JOURNAL


def row(document: Mapping[str, Any]) -> BenchmarkRow:
    """DOCUMENT (see :mod:`desktop.benchmark.document`) in short, for the journal."""
    engine = document["engine"]
    by_tokens = any(level["output_tps"] is not None for level in document["levels"])
    key = "output_tps" if by_tokens else "pages_per_s"
    best = max((level for level in document["levels"] if level[key] is not None),
               key=lambda level: float(level[key]), default=None)
    return BenchmarkRow(
        0, _seconds(document["started"]), "", engine["name"], engine["model"], engine["device"],
        document["workload"]["sha256"], document["ended"], len(document["levels"]),
        best["concurrency"] if best else 0, best[key] if best else 0.0,
        "tok/s" if by_tokens else "pages/s")


def keep(document: Mapping[str, Any], folder: Path) -> Problem | None:
    """Keep DOCUMENT in the journal in FOLDER, which nobody may have open; why it was not, if it
    was not. For the command line; a window has its session do it."""
    if not any(level["rounds"] or level["cold"] for level in document["levels"]):
        return None
    try:
        journal = Journal(folder / JOURNAL)
    except (JournalBusy, JournalTooNew, JournalUnusable) as error:
        return NotKept(reason=error.problem().message).problem()
    try:
        journal.benchmarks.add(document, row(document))
    except sqlite3.Error as error:  # the disk is full, say
        return NotKept(reason=error).problem()
    finally:
        journal.close()
    return None


def speeds(document: Mapping[str, Any]) -> dict[int, float]:
    """Pages at once → pages a second, of its continuous levels: for ``Plan.expected_seconds``."""
    return {level["concurrency"]: level["pages_per_s"] for level in document["levels"]
            if level["strategy"] == "continuous" and level["pages_per_s"]}


def start_seconds(document: Mapping[str, Any]) -> float:
    """How long its engine took to start, in the mean; 0: not known."""
    known = [level["start_seconds"] for level in document["levels"]
             if level["start_seconds"] is not None]
    return sum(known) / len(known) if known else 0.0


@dataclass(frozen=True)
class LevelCompared:
    """One level that two runs have. Ratios: the second by the first; None: one has no figure."""

    strategy: str
    concurrency: int
    output_tps: tuple[float | None, float | None]
    pages_per_s: tuple[float | None, float | None]
    latency_p50: tuple[float | None, float | None]
    """Milliseconds."""
    speed: float | None
    """Ratio of the output tokens a second, else of the pages a second."""
    firm: bool
    """Whether the difference is more than twice what the rounds scatter together."""


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side."""

    levels: tuple[LevelCompared, ...]
    same_pages: bool
    differences: tuple[tuple[str, str, str], ...]
    """(what, in the first, in the second): settings, versions, devices."""


def compare(first: Mapping[str, Any], second: Mapping[str, Any]) -> Comparison:
    """Two documents."""
    others = {(level["strategy"], level["concurrency"]): level for level in second["levels"]}
    levels = []
    for one in first["levels"]:
        other = others.get((one["strategy"], one["concurrency"]))
        if other is not None:
            levels.append(_level(one, other))
    return Comparison(tuple(levels), first["workload"]["sha256"] == second["workload"]["sha256"],
                      tuple(_differences(first, second)))


def _level(one: Mapping[str, Any], other: Mapping[str, Any]) -> LevelCompared:
    key = "output_tps" if one["output_tps"] and other["output_tps"] else "pages_per_s"
    before, after = one[key], other[key]
    scatter = ((one["sd"][key] or 0.0) ** 2 + (other["sd"][key] or 0.0) ** 2) ** 0.5
    known = before is not None and after is not None
    return LevelCompared(
        one["strategy"], one["concurrency"], (one["output_tps"], other["output_tps"]),
        (one["pages_per_s"], other["pages_per_s"]),
        tuple(each["latency_ms"] and each["latency_ms"]["p50"] for each in (one, other)),
        after / before if known and before else None,
        known and one["sd"][key] is not None and other["sd"][key] is not None
        and abs(after - before) > 2 * scatter)


def _differences(first: Mapping[str, Any],
                 second: Mapping[str, Any]) -> Iterable[tuple[str, str, str]]:
    for part in (("engine", "name"), ("engine", "model"), ("engine", "device"),
                 ("environment", "verso"), ("environment", "processor")):
        before, after = (str(each[part[0]].get(part[1], "")) for each in (first, second))
        if before != after:
            yield part[1], before, after
    for name in ("settings", "versions", "arguments"):
        before, after = first["engine"][name], second["engine"][name]
        for key in sorted({*before, *after}):
            if before.get(key) != after.get(key) and key != "concurrency":
                yield key, str(before.get(key, "–")), str(after.get(key, "–"))
    for key in ("unique", "drawing"):
        if first["workload"][key] != second["workload"][key]:
            yield key, str(first["workload"][key]), str(second["workload"][key])


def _seconds(text: str) -> float:
    return time.mktime(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))
