"""A level's figures in short, as table and charts show them. Qt-free.

They are taken from the JSON document of a run (``desktop.benchmark.document``), so that a run that
was kept looks as it did when it was made.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from desktop.benchmark import metrics
from desktop.benchmark.plan import Level
from desktop.benchmark.records import Distribution, Round, Spread, failed
from desktop.benchmark.warnings import SCATTER
from desktop.i18n import _, ngettext
from desktop.ui import words
from desktop.ui.benchmark.controls import in_window

NONE = "–"
PAUSE = 0.0005
"""Seconds for which a thread that works through a large run lets others have Python: without it
they would get it every 5 ms at best, and the window asks for it a thousand times to draw a
table."""


@dataclass(frozen=True)
class Figure:
    """A mean over rounds with its deviation; None: does not exist."""

    mean: float | None = None
    sd: float | None = None

    @property
    def text(self) -> str:
        """``334 ± 3``."""
        if self.mean is None:
            return NONE
        said = number(self.mean)
        return said if self.sd is None else f"{said} ± {alike(self.sd, self.mean)}"


@dataclass(frozen=True)
class Quantiles:
    """Seconds."""

    p50: float
    p90: float
    p99: float

    @property
    def text(self) -> str:
        """``0.77 / 0.84 / 0.89``."""
        return " / ".join(map(number, (self.p50, self.p90, self.p99)))

    @property
    def milliseconds(self) -> str:
        """The same in thousandths, for short ones."""
        return " / ".join(number(1000 * value) for value in (self.p50, self.p90, self.p99))


@dataclass(frozen=True)
class RoundRow:
    """One round of a level."""

    kind: str
    number: int
    output: float | None
    total: float | None
    pages: float | None
    chars: float | None
    goodput: float | None
    ttft: Quantiles | None
    tpot: Quantiles | None
    itl: Quantiles | None
    latency: Quantiles | None
    failed: int
    looped: int
    seconds: float


@dataclass(frozen=True)
class Row:
    """One level. ENDED: ``""`` while it runs, else as in the document."""

    strategy: str
    concurrency: int
    ended: str = ""
    doing: str = ""
    """What is going on, while it runs."""
    error: str = ""
    cold: float | None = None
    """Output tokens a second of the cold round, else its pages a second."""
    output: Figure = Figure()
    total: Figure = Figure()
    pages: Figure = Figure()
    chars: Figure = Figure()
    goodput: float | None = None
    steady: float | None = None
    """Output tokens, else pages, a second apart from ramp-up and drain."""
    ttft: Quantiles | None = None
    tpot: Quantiles | None = None
    itl: Quantiles | None = None
    latency: Quantiles | None = None
    failed: int = 0
    looped: int = 0
    busy: float | None = None
    slowed: tuple[str, ...] = ()
    start: float | None = None
    """Seconds until its engine was there."""
    rounds: tuple[RoundRow, ...] = ()
    reasons: tuple[tuple[str, int], ...] = ()
    """Why pages of the measured rounds failed, and how many did so, the most frequent first; not
    what ``error`` says already."""

    @property
    def continuous(self) -> bool:
        """Whether it stands in the charts."""
        return self.strategy == "continuous"

    @property
    def label(self) -> str:
        """Pages at once, or the strategy."""
        return str(self.concurrency) if self.continuous else strategy_words(self.strategy)

    @property
    def at_once(self) -> str:
        """The same where it stands alone."""
        return _("{n} at once").format(n=self.concurrency) if self.continuous else self.label

    @property
    def speed(self) -> float | None:
        """What levels are compared by."""
        return self.pages.mean if self.output.mean is None else self.output.mean

    @property
    def scatter(self) -> float:
        """Of the rounds, as a share of the mean."""
        figure = self.pages if self.output.mean is None else self.output
        return figure.sd / figure.mean if figure.sd is not None and figure.mean else 0.0

    @property
    def remark(self) -> str:
        """What to know of it, in a few words; "" where nothing is wrong."""
        if not self.ended:
            return self.doing
        parts: list[str] = []
        measured = sum(one.kind == "measured" for one in self.rounds)
        if self.ended == "failed":
            parts.append(_("failed"))
        elif self.ended != "complete":
            why = _("time cap") if self.ended == "time cap" else _("stopped")
            parts.append(ngettext("{why} after {n} round", "{why} after {n} rounds",
                                  measured).format(why=why, n=measured))
        if self.scatter > SCATTER:
            parts.append(_("rounds scatter by {percent} %").format(
                percent=round(100 * self.scatter)))
        if self.slowed:
            parts.append(_("device slowed down"))
        return words.DOT.join(parts)


def number(value: float) -> str:
    """VALUE with about three digits."""
    size = abs(value)
    places = 0 if not size or size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:,.{places}f}"


def alike(value: float, model: float) -> str:
    """VALUE with as many places as MODEL has."""
    said = number(model)
    places = len(said.partition(".")[2])
    return f"{value:,.{places}f}"


def strategy_words(strategy: str) -> str:
    """A strategy's name as a person reads it."""
    name, _colon, size = strategy.partition(":")
    if name == "sequential":
        return _("one by one")
    if name == "batch":
        return _("in batches of {n}").format(n=size)
    return _("continuously")


def kind_words(one: RoundRow) -> str:
    """Which round it is."""
    if one.kind == "cold":
        return _("cold round")
    return _("round {n}").format(n=one.number)


# --- from a document
def row_of(level: Mapping[str, Any]) -> Row:
    """LEVEL: of a document."""
    cold = level["cold"]
    steady = level["steady"]
    rounds = [round_of(one, "measured") for one in level["rounds"]]
    return Row(
        level["strategy"], level["concurrency"], level["ended"],
        error=_said(level["error"]),
        cold=_either(cold), output=_figure(level, "output_tps"), total=_figure(level, "total_tps"),
        pages=_figure(level, "pages_per_s"), chars=_figure(level, "chars_per_s"),
        goodput=level["goodput"], steady=_either(steady),
        ttft=_quantiles(level["ttft_ms"]), tpot=_quantiles(level["tpot_ms"]),
        itl=_quantiles(level["itl_ms"]), latency=_quantiles(level["latency_ms"]),
        failed=level["failed"], looped=level["looped"], busy=level.get("device_busy"),
        slowed=tuple(reason for one in level["devices"] for reason in one["throttled"]),
        start=level["start_seconds"],
        rounds=(*((round_of(cold, "cold"),) if cold else ()), *rounds),
        reasons=_reasons(level))


def round_of(one: Mapping[str, Any], kind: str) -> RoundRow:
    """ONE: a round of a document."""
    outcomes = one["outcomes"]
    return RoundRow(
        kind, one["number"], one["output_tps"], one["total_tps"], one["pages_per_s"],
        one["chars_per_s"], one["goodput"], _quantiles(one["ttft_ms"]),
        _quantiles(one["tpot_ms"]), _quantiles(one["itl_ms"]), _quantiles(one["latency_ms"]),
        failed(outcomes), outcomes.get("loop", 0), one["seconds"])


def _reasons(level: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    known = level["error"]["message"] if level["error"] else ""
    found = Counter(
        _said(one["error"]) for each in level["rounds"] if failed(each["outcomes"])
        for one in each["requests"] if "error" in one and one["error"]["message"] not in known)
    return tuple(found.most_common())


def _said(error: Mapping[str, str] | None) -> str:
    return in_window(" ".join(filter(None, (error["message"], error["hint"])))) if error else ""


def _either(found: Mapping[str, Any] | None) -> float | None:
    if found is None:
        return None
    value = found["output_tps"] if found["output_tps"] is not None else found["pages_per_s"]
    return None if value is None else float(value)


def _figure(level: Mapping[str, Any], key: str) -> Figure:
    return Figure(level[key], level["sd"][key])


def _quantiles(found: Mapping[str, Any] | None) -> Quantiles | None:
    if found is None:
        return None
    return Quantiles(found["p50"] / 1000, found["p90"] / 1000, found["p99"] / 1000)


# --- while a level runs
def running(level: Level, doing: str, cold: Round | None, rounds: Sequence[Round],
            start: float | None = None) -> Row:
    """A level as far as it is. Quantiles are those of its last round."""
    last = rounds[-1] if rounds else None
    every = [*([cold] if cold else []), *rounds]
    return Row(
        str(level.strategy), level.concurrency, doing=doing,
        cold=None if cold is None else _cold(cold),
        output=_spread(metrics.spread(one.output_tps for one in rounds)),
        total=_spread(metrics.spread(one.total_tps for one in rounds)),
        pages=_spread(metrics.spread(one.pages_per_s for one in rounds)),
        chars=_spread(metrics.spread(one.chars_per_s for one in rounds)),
        goodput=last.goodput if last else None,
        ttft=_distribution(last.ttft if last else None),
        tpot=_distribution(last.tpot if last else None),
        itl=_distribution(last.itl if last else None),
        latency=_distribution(last.latency if last else None),
        failed=sum(one.failed for one in rounds), looped=sum(one.looped for one in rounds),
        start=start, rounds=tuple(_live_round(one) for one in every))


def _cold(one: Round) -> float:
    return one.pages_per_s if one.output_tps is None else one.output_tps


def _live_round(one: Round) -> RoundRow:
    return RoundRow(
        one.kind, one.number, one.output_tps, one.total_tps, one.pages_per_s, one.chars_per_s,
        one.goodput, _distribution(one.ttft), _distribution(one.tpot), _distribution(one.itl),
        _distribution(one.latency), one.failed, one.looped, one.seconds)


def _spread(found: Spread | None) -> Figure:
    return Figure() if found is None else Figure(found.mean, found.sd)


def _distribution(found: Distribution | None) -> Quantiles | None:
    return None if found is None else Quantiles(found.p50, found.p90, found.p99)


# --- a run
@dataclass(frozen=True)
class Shown:
    """A run as the page shows it. DOCUMENT: {} while it goes on."""

    rows: tuple[Row, ...] = ()
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)
    name: str = ""
    """What a person calls it."""

    @property
    def by_tokens(self) -> bool:
        """Whether its engine counts tokens."""
        return any(row.output.mean is not None or any(one.output is not None
                                                      for one in row.rounds) for row in self.rows)

    @property
    def knee(self) -> int | None:
        """The pages at once to use; None: fewer than two levels are whole."""
        return metrics.knee([(row.concurrency, row.speed) for row in self.rows
                             if row.continuous and row.ended and row.speed is not None])

    @property
    def reached(self) -> int | None:
        """The knee, once a level beyond it was measured; None: it was faster with each level, so
        that more pages at once may be faster still."""
        knee = self.knee
        beyond = any(row.continuous and row.ended and row.speed is not None
                     and row.concurrency > knee for row in self.rows) if knee is not None else False
        return knee if beyond else None

    @property
    def best(self) -> float | None:
        """The highest speed of a continuous level."""
        return max((row.speed for row in self.rows
                    if row.continuous and row.ended and row.speed is not None), default=None)

    @property
    def short(self) -> str:
        """Its name, or when it was."""
        return self.name or (when(self.document["started"]) if self.document
                             else _("this run"))

    @property
    def title(self) -> str:
        """``DeepSeek-OCR-2 · NVIDIA H200 · 30 Nov 14:05``."""
        if not self.document:
            return _("this run")
        engine = self.document["engine"]
        return words.DOT.join(filter(None, (
            self.name or engine["model"] or engine["name"], engine["device"],
            when(self.document["started"]))))

    def with_row(self, index: int, row: Row) -> Shown:
        """ROW in its place, also behind the last one."""
        rows = list(self.rows)
        rows[index:index + 1] = [row]
        return replace(self, rows=tuple(rows))


def shown_of(document: Mapping[str, Any], name: str = "") -> Shown:
    """DOCUMENT as it is shown. Takes a moment for large ones: not on the window's thread, which is
    let through between two levels."""
    rows = []
    for level in document["levels"]:
        rows.append(row_of(level))
        time.sleep(PAUSE)
    return Shown(tuple(rows), document, name)


def when(started: str) -> str:
    """A document's time, for people."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.strptime(started[:16], "%Y-%m-%dT%H:%M"))
    except ValueError:
        return started


def footnote(document: Mapping[str, Any]) -> str:
    """Under what the figures were found, in one line."""
    if not document:
        return ""
    engine, plan, workload = document["engine"], document["plan"], document["workload"]
    parts = [engine["model"] or engine["name"], engine["device"]]
    parts += [f"{name} {version}" for name, version in list(engine["versions"].items())[:3]]
    parts.append(ngettext("{n} different page", "{n} different pages",
                          workload["pages"]).format(n=words.count_of(workload["pages"])))
    if workload["unique"]:
        parts.append(_("each copy marked"))
    parts.append(_("warm-up left out"))
    parts.append(ngettext("mean ± standard deviation over {n} round",
                          "mean ± standard deviation over {n} rounds",
                          plan["rounds"]).format(n=plan["rounds"]))
    return words.DOT.join(part for part in parts if part)
