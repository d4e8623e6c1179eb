"""The columns of the table: what each says of a level, and of a round. Qt-free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from desktop.i18n import N_
from desktop.ui import words
from desktop.ui.benchmark.figures import NONE, Quantiles, RoundRow, Row, Shown, kind_words, number


@dataclass(frozen=True)
class Column:
    """One column of the table. NEEDS: ``tokens``, ``no tokens``, ``goodput``, ``steady`` or
    ``""``: where it is shown."""

    key: str
    title: str
    tip: str
    needs: str
    of_level: Callable[[Row], str]
    of_round: Callable[[RoundRow], str]
    tables: tuple[str, ...] = ("every", "levels")
    """Where it stands."""


def _plain(value: float | None) -> str:
    return NONE if value is None else number(value)


def _times(found: Quantiles | None) -> str:
    return NONE if found is None else found.text


def _middle(found: Quantiles | None) -> str:
    return NONE if found is None else number(found.p50)


def _short(found: Quantiles | None) -> str:
    return NONE if found is None else found.milliseconds


EVERY, LEVELS, TIMES = "every", "levels", "times"
"""Tables: that of a file, that of the levels, that of their latencies."""
_BOTH = (LEVELS, TIMES)

COLUMNS = (
    Column("level", N_("At once"), N_("Pages that are read at the same time, or how they were "
                                      "handed over"), "", lambda r: r.label, kind_words,
           (EVERY, *_BOTH)),
    Column("cold", N_("Cold"), N_("The first round after the engine was started: tokens/s, else "
                                  "pages/s"), "", lambda r: _plain(r.cold), lambda o: ""),
    Column("output", N_("Output tokens/s"), N_("Mean ± standard deviation over the rounds"),
           "tokens", lambda r: r.output.text, lambda o: _plain(o.output)),
    Column("steady", N_("Steady"), N_("Apart from ramp-up and drain: tokens/s, else pages/s"),
           "steady", lambda r: _plain(r.steady), lambda o: ""),
    Column("total", N_("Total tokens/s"), N_("Those of pages and prompts included"), "tokens",
           lambda r: r.total.text, lambda o: _plain(o.total)),
    Column("pages", N_("Pages/s"), N_("Pages that count, a second"), "",
           lambda r: r.pages.text, lambda o: _plain(o.pages)),
    Column("chars", N_("Characters/s"), N_("Of the text that was read"), "no tokens",
           lambda r: r.chars.text, lambda o: _plain(o.chars)),
    Column("middle", N_("Page, s"), N_("From handing a page over to its end: p50. More of it is "
                                       "under Latency."), "",
           lambda r: _middle(r.latency), lambda o: _middle(o.latency), (LEVELS,)),
    Column("ttft", N_("First output, s"), N_("From handing a page over to its first token, or "
                                             "text (TTFT): p50 / p90 / p99"), "",
           lambda r: _times(r.ttft), lambda o: _times(o.ttft), (EVERY, TIMES)),
    Column("tpot", N_("Next token, ms"), N_("Each token after the first (TPOT): p50 / p90 / p99"),
           "tokens", lambda r: _short(r.tpot), lambda o: _short(o.tpot), (EVERY, TIMES)),
    Column("itl", N_("Gap, ms"), N_("Between two outputs of the engine (ITL): p50 / p90 / p99"),
           "tokens", lambda r: _short(r.itl), lambda o: _short(o.itl), (EVERY, TIMES)),
    Column("latency", N_("Whole page, s"), N_("From handing a page over to its end: "
                                              "p50 / p90 / p99"), "",
           lambda r: _times(r.latency), lambda o: _times(o.latency), (EVERY, TIMES)),
    Column("goodput", N_("Goodput"), N_("Pages a second that kept every limit"), "goodput",
           lambda r: _plain(r.goodput), lambda o: _plain(o.goodput), (EVERY, *_BOTH)),
    Column("failed", N_("Failed"), N_("Pages that could not be read; they count as no "
                                      "throughput"), "",
           lambda r: str(r.failed), lambda o: str(o.failed)),
    Column("looped", N_("Loops"), N_("Pages whose output repeated itself to the end; they count "
                                     "as no throughput"), "",
           lambda r: str(r.looped), lambda o: str(o.looped)),
    Column("busy", N_("Busy"), N_("Share of the time in which the device computed; the "
                                  "processor's where there is no accelerator"), "",
           lambda r: NONE if r.busy is None else f"{r.busy:.0f} %", lambda o: ""),
    Column("remark", N_("Remark"), N_("What to know of this level"), "",
           lambda r: r.remark, lambda o: words.seconds_of(o.seconds), (EVERY, *_BOTH)),
)


def columns_of(shown: Shown, table: str = EVERY) -> tuple[Column, ...]:
    """Those that say something of this run, in TABLE."""
    tokens = shown.by_tokens
    have = {"": True, "tokens": tokens, "no tokens": not tokens,
            "goodput": any(row.goodput is not None for row in shown.rows),
            "steady": any(row.steady is not None for row in shown.rows)}
    return tuple(column for column in COLUMNS if have[column.needs] and table in column.tables)
