"""A run's document as text: the recipe's table, CSV, Markdown. All of them are made of the JSON
document, so that one that was kept can be shown again."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from desktop.benchmark.document import document
from desktop.benchmark.plan import in_words
from desktop.benchmark.records import counted, failed, uncounted
from desktop.benchmark.reference import ASCEND_A2
from desktop.benchmark.results import Ended
from desktop.i18n import _, ngettext

__all__ = ["csv_text", "document", "markdown", "summary", "table"]

_COLUMNS = (("Concurrent", 10), ("Cold(tok/s)", 12), ("Warm(tok/s)", 12), ("Time(s)", 10),
            ("Total(tok/s)", 12), ("Pages/s", 8))
"""The first four are the recipe's."""


def table(found: Mapping[str, Any]) -> str:
    """What ``--output`` is written with: the form of the recipe's own table, with the total
    tokens and the pages a second besides. A figure that does not exist is a dash. Its second line
    and its columns are read by scripts: they are not translated."""
    plan = found["plan"]
    wide = " | ".join(f"{name:>{width}}" for name, width in _COLUMNS)
    rule = len(wide)
    lines = [_heading(found), f"Warmup: {plan['warmup']}, Test rounds: {plan['rounds']}, "
             f"Pages a round: {_requests(found)}", "=" * rule, wide, "-" * rule]
    for level in found["levels"]:
        cold = level["cold"]
        values = (_label(level), _number(cold and cold["output_tps"]),
                  _number(level["output_tps"]), _number(level["seconds"]),
                  _number(level["total_tps"]), _number(level["pages_per_s"], 3))
        lines.append(" | ".join(f"{value:>{width}}" for value, (_name, width) in zip(
            values, _COLUMNS, strict=True)) + _mark(level))
    return "\n".join([*lines, "=" * rule]) + "\n"


def summary(found: Mapping[str, Any]) -> str:
    """What is worth saying besides the table, a line each; "" where nothing is."""
    lines = [*_comparison(found["comparison"] or ())]
    for level in found["levels"]:
        if level["rounds"]:
            lines += _level(level)
        elif level["cold"] is not None and level["cold"]["pages_per_s"]:  # it was ended early
            lines.append(_("{level}: cold {speed}").format(
                level=in_words(level["strategy"], level["concurrency"]),
                speed=_speed(level["cold"])))
    return "\n".join([*lines, *_growth(found), *(
        _("Note: {text}").format(text=text) for text in found["warnings"])])


def _comparison(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        if row["ratio"] is not None:
            busy = ("" if row["device_busy"] is None else
                    _(", {device} {percent:.0f} % busy").format(
                        device=row["device"], percent=row["device_busy"]))
            yield _("{strategy}: {seconds:.2f} s a page, {ratio:.2f} times as fast as "
                    "{first}{busy}").format(
                strategy=_strategy(row), seconds=row["seconds_a_page"], ratio=row["ratio"],
                first=_strategy(rows[0]), busy=busy)


def _level(level: Mapping[str, Any]) -> Iterator[str]:
    """A level with finished rounds: its speed, and below it what else there is."""
    rounds = len(level["rounds"])
    yield _("{level}: {speed}").format(
        level=in_words(level["strategy"], level["concurrency"]), speed=_speed(level)) + (
        "" if rounds < 2 else " " + _("(mean ± standard deviation of {count} rounds)").format(
            count=rounds))
    times = [f"{title} {_quantiles(level[key])}" for title, key in (
        ("TTFT", "ttft_ms"), ("TPOT", "tpot_ms"), ("ITL", "itl_ms"), (_("page"), "latency_ms"))
        if level[key] is not None]
    if times:
        yield "  " + _("{times} ms (p50/p90/p99)").format(times=", ".join(times))
    if level["steady"] is not None:
        yield "  " + _("in the steady state {speed}").format(speed=_speed(level["steady"]))
    if level["start_seconds"] is not None:
        yield "  " + _("engine ready after {seconds:.1f} s").format(
            seconds=level["start_seconds"])
    if level["cold"] is not None:
        yield "  " + _("cold {speed}").format(speed=_speed(level["cold"]))
    if level["goodput"] is not None:
        yield "  " + _("goodput {pages} pages/s").format(pages=_spread(level, "goodput", 3))
    if wrong := uncounted(level["outcomes"]):
        yield "  " + _("not counted: {outcomes}").format(outcomes=wrong)


def _growth(found: Mapping[str, Any]) -> Iterator[str]:
    """What more pages at once bring."""
    if found["knee"] is None:
        return
    most = max(level["concurrency"] for level in found["levels"]
               if level["strategy"] == "continuous" and level["rounds"])
    if found["knee"] < most:
        yield ngettext(
            "More than {count} page at once brings less than 5 % more.",
            "More than {count} pages at once bring less than 5 % more.",
            found["knee"]).format(count=found["knee"])
    elif found["plan"]["gain"] is None:
        yield _("The throughput still grows at {count} pages at once: --raise finds where that "
                "ends.").format(count=most)
    else:
        yield _("The throughput still grows at {count} pages at once.").format(count=most)


def csv_text(found: Mapping[str, Any]) -> str:
    """A row a round, cold and measured ones of all levels; column names are not translated."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([
        "strategy", "concurrency", "kind", "round", "seconds", "pages", "failed", "looped",
        "prompt_tokens", "output_tokens", "characters", "output_tps", "total_tps", "pages_per_s",
        "chars_per_s", "goodput", *(f"{name}_{quantile}" for name in _TIMES
                                    for quantile in ("p50", "p90", "p99"))])
    for level in found["levels"]:
        cold = [("cold", level["cold"])] if level["cold"] else []
        for kind, one in [*cold, *(("measured", one) for one in level["rounds"])]:
            outcomes = one["outcomes"]
            writer.writerow([
                level["strategy"], level["concurrency"], kind, one["number"], one["seconds"],
                counted(outcomes), failed(outcomes), outcomes.get("loop", 0),
                *(_cell(one[key]) for key in (
                    "prompt_tokens", "output_tokens", "characters", "output_tps", "total_tps",
                    "pages_per_s", "chars_per_s", "goodput")),
                *(_cell(one[name] and one[name][quantile]) for name in _TIMES
                  for quantile in ("p50", "p90", "p99"))])
    return out.getvalue()


_TIMES = ("ttft_ms", "tpot_ms", "itl_ms", "latency_ms")


def markdown(found: Mapping[str, Any]) -> str:
    """For an issue, a wiki, a report."""
    engine, environment, workload = (found[key] for key in ("engine", "environment", "workload"))
    lines = [f"# {_heading(found)}", ""]
    lines += _rows((_("What"), ""), [
        (_("Engine"), ", ".join(filter(None, (engine["name"], engine["model"])))),
        (_("Device"), engine["device"]),
        (_("Versions"), ", ".join(f"{key} {value}" for key, value in engine["versions"].items())),
        (_("Machine"), ", ".join(filter(None, (
            environment.get("processor", ""), environment.get("system", ""))))),
        ("Verso", environment.get("verso", "")),
        (_("Different pages"), str(workload["pages"])), (_("Files"), str(workload["files"])),
        (_("Contents"), f"sha256 {workload['sha256'][:16]}"),
        (_("Rounds"), _("{warmup} to warm up, {rounds} that count").format(**found["plan"])),
        (_("Pages a round"), _requests(found)),
        (_("Begun"), found["started"]), (_("Ended"), found["ended"])])
    lines += ["", *_rows(*_columns(found["levels"]))]
    if any(level["output_tps"] for level in found["levels"]):
        lines += ["", _("For comparison, {title}: {points} output tokens/s.").format(
            title=ASCEND_A2.title, points=", ".join(
                f"{point.concurrency}: {point.output_tps:g}" for point in ASCEND_A2.points))]
    if found["warnings"]:
        lines += ["", *(f"- {text}" for text in found["warnings"])]
    return "\n".join([*lines, "", f"`{found['command']}`", ""])


def _columns(levels: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows; a column of figures that the engine does not have is left out."""
    tokens = any(level["output_tps"] is not None for level in levels)
    times = [(title, key) for title, key in (
        ("TTFT", "ttft_ms"), ("TPOT", "tpot_ms"), ("ITL", "itl_ms"), (_("Page"), "latency_ms"))
        if any(level[key] is not None for level in levels)]
    rates = [(_("Output tok/s"), "output_tps", 2), (_("Total tok/s"), "total_tps", 2),
             (_("Pages/s"), "pages_per_s", 3)]
    if not tokens:
        rates = [rates[-1], (_("Characters/s"), "chars_per_s", 0)]
    cold = (_("Cold tok/s"), "output_tps", 2) if tokens else (
        _("Cold pages/s"), "pages_per_s", 3)
    return (
        [_("At once"), cold[0], *(title for title, _key, _places in rates),
         *(f"{title} p50/p90/p99 ms" for title, _key in times), _("Failed"), _("Loops")],
        [[_label(level), _number(level["cold"] and level["cold"][cold[1]], cold[2]),
          *(_spread(level, key, places) for _title, key, places in rates),
          *(_quantiles(level[key]) for _title, key in times), str(level["failed"]),
          str(level["looped"])] for level in levels])


def _rows(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    head = list(head)
    return [_row(head), "|" + "---|" * len(head), *(_row(row) for row in rows)]


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _heading(found: Mapping[str, Any]) -> str:
    engine = found["engine"]
    what = engine["model"] or engine["name"]
    where = f" ({engine['device']})" if engine["device"] else ""
    return _("Throughput of {what}{where}").format(what=what, where=where)


def _label(level: Mapping[str, Any]) -> str:
    return str(level["concurrency"]) if level["strategy"] == "continuous" else level["strategy"]


def _strategy(row: Mapping[str, Any]) -> str:
    return (f"{row['strategy']} ({row['concurrency']})" if row["strategy"] == "continuous"
            else str(row["strategy"]))


def _mark(level: Mapping[str, Any]) -> str:
    """Behind the row of a level that is not whole."""
    if level["ended"] == Ended.COMPLETE.value:
        return ""
    if level["error"] is not None:
        return f"  {_('failed')}: {level['error']['message']}"
    return "  " + _("{why} after {count} of its rounds").format(
        why={"interrupted": _("interrupted"), "time cap": _("time cap")}[level["ended"]],
        count=len(level["rounds"]))


def _speed(rates: Mapping[str, Any]) -> str:
    """Of a level, of its steady state or of a round."""
    pages = _("{pages} pages/s").format(pages=_spread(rates, "pages_per_s", 3))
    if rates["output_tps"] is None:
        if rates.get("chars_per_s") is None:
            return pages
        return _("{pages}, {characters} characters/s").format(
            pages=pages, characters=_spread(rates, "chars_per_s", 0))
    return _("{tokens} tok/s, {pages}").format(tokens=_spread(rates, "output_tps"), pages=pages)


def _requests(found: Mapping[str, Any]) -> str:
    """Pages a round: as asked for, or how many that are where all levels have as many."""
    numbers = {level["requests"] for level in found["levels"]}
    return str(numbers.pop()) if len(numbers) == 1 else str(found["plan"]["requests"])


def _number(value: float | None, places: int = 2) -> str:
    return "-" if value is None else f"{value:.{places}f}"


def _spread(rates: Mapping[str, Any], key: str, places: int = 2) -> str:
    text = _number(rates[key], places)
    # Runs that were kept earlier lack some deviations.
    deviation = rates.get("sd", {}).get(key)
    return text if deviation is None else f"{text} ± {deviation:.{places}f}"


def _quantiles(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "-"
    return "/".join(f"{found[key]:.4g}" if found[key] < 1000 else f"{found[key]:.0f}"
                    for key in ("p50", "p90", "p99"))


def _cell(value: Any) -> Any:
    return "" if value is None else value
