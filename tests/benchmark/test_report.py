"""Warnings, and a run as a document, a table, CSV, Markdown, history."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from desktop.benchmark import environment, history, report
from desktop.benchmark.document import document
from desktop.benchmark.plan import COMPARED, Plan, Requests
from desktop.benchmark.results import Result
from desktop.benchmark.sampling import Reading, Sample, summaries
from desktop.benchmark.warnings import warnings
from desktop.benchmark.workload import Workload
from desktop.errors import Problem
from desktop.jobs.benchmarks import Benchmarks
from desktop.jobs.journal import Journal
from desktop.paths import JOURNAL
from desktop.settings import Values
from tests.benchmark.test_runner import page
from tests.benchmark.virtual import Ran, measure, workload

NO_CACHES = {"prefix": "none", "images": "none"}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    def call(plan: Plan, *pages: dict[str, Any], **options: Any) -> Ran:
        script = {"capacity": 64, "assign": "number", "model": "m-1", "device": "a|b",
                  "pages": pages or (page(),), **options.pop("script", {})}
        return measure(plan, script=script, monkeypatch=monkeypatch, **options)
    return call


def result(plan: Plan, ran: Ran, pages: int = 1, found: tuple[str, ...] = ()) -> Result:
    values = Values({"engine": "scripted"})
    return Result(plan, workload(pages), "scripted", values.discreet(), values.changed(), {},
                  1.7e9, 12.0, ran.ended, tuple(ran.levels), environment.describe(), found,
                  "verso bench")


QUICK = Plan(levels=(1, 4), warmup=0, rounds=2, requests=Requests(times=4))


def test_the_document_is_plain_json_and_has_the_figures(bench: Any) -> None:
    found = document(result(QUICK, bench(QUICK)))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    second = found["levels"][1]
    assert second["output_tps"] == pytest.approx(4 * 50 / 0.89, abs=1e-3)
    assert second["total_tps"] == pytest.approx(4 * 350 / 0.89, abs=1e-3)
    assert second["ttft_ms"]["p90"] == pytest.approx(400)
    assert second["tpot_ms"]["p99"] == pytest.approx(10)
    assert second["latency_ms"]["p50"] == pytest.approx(890)
    assert second["sd"]["output_tps"] == pytest.approx(0, abs=1e-3)
    assert second["rounds"][0]["requests"][4]["submitted"] == pytest.approx(0.89, abs=1e-3)
    assert found["knee"] == 4
    assert found["comparison"] is None


def test_the_recipes_table(bench: Any) -> None:
    lines = report.table(document(result(QUICK, bench(QUICK)))).splitlines()
    assert lines[3].split(" | ")[:4] == [
        "Concurrent", " Cold(tok/s)", " Warm(tok/s)", "   Time(s)"]
    one = f"{50 / 0.89:.2f}"
    assert [cell.strip() for cell in lines[5].split("|")] == [
        "1", one, one, f"{4 * 0.89:.2f}", f"{350 / 0.89:.2f}", f"{1 / 0.89:.3f}"]
    assert set(lines[2]) == set(lines[-1]) == {"="}


def test_pages_a_round_are_those_that_were_read(bench: Any) -> None:
    plan = Plan(levels=(8,), strategies=COMPARED, cold=False, warmup=0, rounds=1)
    second = report.table(document(result(plan, bench(plan)))).splitlines()[1]
    assert second == "Warmup: 0, Test rounds: 1, Pages a round: 8"
    assert report.table(document(result(QUICK, bench(QUICK)))).splitlines()[1].endswith(": 4x")


def test_every_level_in_words_with_its_deviation(bench: Any) -> None:
    said = report.summary(document(result(QUICK, bench(QUICK)))).splitlines()
    rate = f"{4 * 50 / 0.89:.2f} ± 0.00 tok/s, {4 / 0.89:.3f} ± 0.000 pages/s"
    at = said.index(f"4 pages at once: {rate} (mean ± standard deviation of 2 rounds)")
    assert said[at + 1] == ("  TTFT 400/400/400, TPOT 10/10/10, ITL 10/10/10, page 890/890/890 ms "
                            "(p50/p90/p99)")
    assert said[at + 2] == f"  in the steady state {rate}"


def test_what_grows_is_told_from_levels_that_have_figures(bench: Any, tmp_path: Path) -> None:
    plan = Plan(levels=(1, 2, 4), warmup=0, rounds=1)
    ran = bench(plan, script={"pages": [
        page(match="b2-*", faults=[{"kind": "raise"}]), page()]})
    assert "still grows at 2 pages at once: --raise" in report.summary(
        document(result(plan, ran)))
    raised = Plan(levels=(1,), cold=False, warmup=0, rounds=1, gain=5.0, most=2)
    said = report.summary(document(result(raised, bench(raised))))
    assert "still grows at 2 pages at once." in said  # it was raised as far as that was allowed


def test_a_cold_round_is_said_though_none_that_counts_was_finished(bench: Any) -> None:
    plan = Plan(levels=(1,), warmup=0, rounds=3, time_cap=1.2)
    said = report.summary(document(result(plan, bench(plan))))
    assert f"1 page at once: cold {50 / 0.89:.2f} tok/s, {1 / 0.89:.3f} pages/s" in said


def test_csv_has_a_row_for_each_round(bench: Any) -> None:
    rows = list(csv.DictReader(io.StringIO(report.csv_text(document(
        result(QUICK, bench(QUICK)))))))
    assert [(row["concurrency"], row["kind"], row["round"]) for row in rows] == [
        (width, kind, number) for width in ("1", "4")
        for kind, number in (("cold", "1"), ("measured", "1"), ("measured", "2"))]
    assert float(rows[1]["ttft_ms_p50"]) == pytest.approx(400)


def test_markdown_is_a_table_whatever_a_name_holds(bench: Any) -> None:
    text = report.markdown(document(result(QUICK, bench(QUICK), found=("Mind this.",))))
    widths = [line.replace("\\|", "").count("|") for line in text.splitlines()
              if (line.startswith("| ") and "p50" in line) or line.startswith("| 4 ")]
    assert len(set(widths)) == 1
    assert "a\\|b" in text
    assert "- Mind this." in text


def test_strategies_in_words(bench: Any) -> None:
    plan = Plan(levels=(8,), strategies=COMPARED, cold=False, warmup=0, rounds=1)
    found = document(result(plan, bench(plan)))
    assert [row["ratio"] for row in found["comparison"]] == pytest.approx([1, 4, 8], abs=1e-3)
    said = report.summary(found)
    assert "batch:4: 0.22 s a page, 4.00 times as fast as sequential" in said


def test_the_busy_share_of_strategies(bench: Any) -> None:
    def shared(engine: str) -> list[tuple[float | None, str | None]]:
        devices = summaries([Sample(0.0, (Reading("cpu", "C", 90.0), Reading("cuda:0", "H", 40.0),
                                          Reading("cuda:1", "H", 60.0)))])
        ran = replace(result(plan, measured), levels=tuple(
            replace(level, devices=devices, ready=structs.replace(level.ready, engine=engine))
            for level in measured.levels))
        found = [[(row["device_busy"], row["device"]) for row in rows]
                 for rows in (document(ran)["comparison"], document(ran)["levels"])]
        assert found[0] == found[1]
        return found[0]
    plan = Plan(levels=(2,), strategies=COMPARED[::2], cold=False, warmup=0, rounds=1)
    measured = bench(plan)
    assert shared("vllm") == [(60.0, "cuda:1")] * 2
    assert shared("remote") == [(None, None)] * 2  # those of this machine are not the server's


def test_an_engine_without_tokens_shows_dashes(bench: Any) -> None:
    plan = Plan(levels=(1,), warmup=0, rounds=1)
    script = {**page(), "tokens": 0, "prompt_tokens": 0}
    found = document(result(plan, bench(plan, script)))
    row = report.table(found).splitlines()[5]
    assert [cell.strip() for cell in row.split("|")][1:3] == ["-", "-"]
    assert history.row(found).unit == "pages/s"
    assert ("1 page at once: 1.124 pages/s, 112 characters/s\n  TTFT 400/400/400, page 890/890/890 "
            "ms (p50/p90/p99)\n  engine ready after 0.0 s\n"
            "  cold 1.124 pages/s, 112 characters/s") in report.summary(found)
    head, _rule, values = report.markdown(found).splitlines()[-5:-2]
    assert [cell.strip() for cell in head.strip("|").split("|")] == [
        "At once", "Cold pages/s", "Pages/s", "Characters/s", "TTFT p50/p90/p99 ms",
        "Page p50/p90/p99 ms", "Failed", "Loops"]
    assert values == "| 1 | 1.124 | 1.124 | 112 | 400/400/400 | 890/890/890 | 0 | 0 |"


# --- warnings

def warned(plan: Plan, ran: Ran, pages: int = 1, caches: dict[str, str] | None = None,
           found: Workload | None = None) -> str:
    return "\n".join(warnings("scripted", plan, found or workload(pages), ran.levels,
                              caches or NO_CACHES))


def test_nothing_to_warn_of(bench: Any) -> None:
    assert warned(QUICK, bench(QUICK)) == ""


def test_rounds_that_scatter(bench: Any) -> None:
    plan = Plan(levels=(1,), cold=False, warmup=0, rounds=3)
    ran = bench(plan, script={"pages": [
        {**page(50, wait), "match": f"b0-m{number}-*"}
        for number, wait in enumerate((0.4, 0.9, 0.5), 1)]})
    assert "rounds scatter by" in warned(plan, ran)
    steady = bench(plan, script={"pages": [
        {**page(50, wait), "match": f"b0-m{number}-*"}
        for number, wait in enumerate((0.4, 0.45, 0.42), 1)]})
    assert "scatter" not in warned(plan, steady)


def test_greedy_outputs_that_differ_between_levels(bench: Any) -> None:
    plan = Plan(levels=(1, 2), cold=False, warmup=0, rounds=1, requests=Requests(count=4))
    other = {**page(), "text": "cd" * 50}
    ran = bench(plan, script={"pages": [{**other, "match": "b1-m1-2"}, page()]}, pages=2)
    assert "1 of 2 pages gave different text" in warned(plan, ran, 2)
    marked = Plan(levels=(1, 2), cold=False, warmup=0, rounds=1, requests=Requests(count=4),
                  unique=True)
    assert "different text" not in warned(marked, ran, 2)


def test_caches_that_know_the_pages(bench: Any) -> None:
    ran = bench(QUICK)
    assert "(prefix)" in warned(QUICK, ran, caches={"prefix": "on", "images": "off"})
    assert "not known" in warned(QUICK, ran, caches={"prefix": "unknown", "images": "unknown"})
    marked = Plan(levels=(1,), warmup=0, rounds=1, unique=True)
    assert warned(marked, bench(marked), caches={"prefix": "on", "images": "on"}) == ""


def test_a_server_is_never_cold(bench: Any) -> None:
    ran = bench(QUICK)
    said = "\n".join(warnings("remote", QUICK, workload(), ran.levels, NO_CACHES))
    assert "is not started anew" in said
    without = Plan(levels=(1,), cold=False, warmup=0, rounds=1)
    assert "anew" not in "\n".join(
        warnings("remote", without, workload(), bench(without).levels, NO_CACHES))


def test_more_pages_than_the_engine_works_on(bench: Any) -> None:
    assert "works on 2 pages at once" in warned(QUICK, bench(QUICK, script={"capacity": 2}))
    assert "works on" not in warned(QUICK, bench(QUICK, script={"capacity": 4}))


def test_drawing_that_is_too_slow(bench: Any) -> None:
    plan = Plan(levels=(1,), cold=False, warmup=0, rounds=1, requests=Requests(count=20))
    ran = bench(plan, page(1, 1.0), drawing=4.5)
    said = warned(plan, ran)
    assert "could have begun another page" in said
    assert "--draw ahead" in said
    said = warned(replace(plan, ahead=True), ran)
    assert "could have begun another page" in said
    assert "--draw" not in said


def test_pages_that_were_cut_and_levels_that_were_not_finished(bench: Any) -> None:
    plan = Plan(levels=(1, 2), cold=False, warmup=0, rounds=3, time_cap=2.0)
    ran = bench(plan, page(50, 0.4, finish="length"))
    said = warned(plan, ran, found=Workload((), workload().pages, 1, "", (
        ("/bad.pdf", Problem("x", "It is broken.", "Mend it.")),)))
    assert "2 pages were cut" in said
    assert "the time cap was reached; 2 finished rounds are kept" in said
    assert "/bad.pdf is left out: It is broken." in said
    early = Plan(levels=(1,), cold=False, warmup=0, rounds=3, time_cap=0.5)
    assert "the time cap was reached before a round" in warned(early, bench(early))


@pytest.mark.parametrize(("values", "arguments", "state"), [
    ({"engine": "vllm"}, {}, ("off", "off")),
    ({"engine": "vllm", "prefix_caching": True}, {}, ("on", "off")),
    ({"engine": "vllm"}, {"enable-prefix-caching": "true", "mm_processor_cache_gb": "4"},
     ("on", "on")),
    ({"engine": "vllm", "prefix_caching": True}, {"enable_prefix_caching": "false"},
     ("off", "off")),
    ({"engine": "remote"}, {}, ("unknown", "unknown")),
    ({"engine": "embedded"}, {}, ("none", "none"))])
def test_the_state_of_the_caches(values: dict[str, object], arguments: dict[str, str],
                                 state: tuple[str, str]) -> None:
    found = environment.caches(Values(values), arguments)
    assert (found["prefix"], found["images"]) == state


# --- history

def test_a_run_is_kept_unless_a_window_has_the_journal(bench: Any, tmp_path: Path) -> None:
    found = document(result(QUICK, bench(QUICK)))
    assert history.keep(found, tmp_path) is None
    journal = Journal(tmp_path / JOURNAL)
    try:
        [row] = journal.benchmarks.rows()
        assert (row.concurrency, row.model, row.unit) == (4, "m-1", "tok/s")
        assert row.speed == pytest.approx(4 * 50 / 0.89, abs=1e-3)
        assert row.started == pytest.approx(1.7e9)
        assert journal.benchmarks.document(row.id) == found
        note = history.keep(found, tmp_path)
        assert note is not None
        assert note.code == "benchmark.not_kept"
    finally:
        journal.close()


def test_a_full_disk_is_a_note(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_words: object) -> int:
        raise sqlite3.OperationalError("database or disk is full")
    monkeypatch.setattr(Benchmarks, "add", full)
    note = history.keep(document(result(QUICK, bench(QUICK))), tmp_path)
    assert note is not None
    assert "disk is full" in note.line()


def test_two_runs_side_by_side(bench: Any) -> None:
    first = document(result(QUICK, bench(QUICK)))
    second = document(result(QUICK, bench(QUICK, page(50, 0.4, 200))))
    second["engine"]["settings"] = {**second["engine"]["settings"], "dpi": 200}
    found = history.compare(first, second)
    assert [(level.strategy, level.concurrency) for level in found.levels] == [
        ("continuous", 1), ("continuous", 4)]
    assert found.levels[1].speed == pytest.approx(0.89 / (0.4 + 49 / 200), rel=1e-3)
    assert found.levels[1].firm
    assert found.same_pages
    assert ("dpi", "144", "200") in found.differences
    assert not history.compare(first, first).levels[0].firm


def test_speeds_serve_for_the_next_estimate(bench: Any) -> None:
    found = document(result(QUICK, bench(QUICK, script={"load": {"seconds": 3}})))
    seconds = QUICK.expected_seconds(history.speeds(found), history.start_seconds(found))
    assert seconds == pytest.approx(2 * 3 + 2 * 3 * 4 * 0.89, rel=1e-3)


def test_tokens_that_nobody_counts_are_not_made_up(bench: Any) -> None:
    ran = bench(QUICK, page(prompt_tokens=0))
    found = document(result(QUICK, ran))
    for level in found["levels"]:
        assert level["output_tps"] > 0
        assert level["total_tps"] is level["sd"]["total_tps"] is None
        assert level["rounds"][0]["prompt_tokens"] is None
    assert found["levels"][0]["steady"]["total_tps"] is None
    assert found["levels"][0]["steady"]["output_tps"] > 0
    cells = [cell.strip() for cell in report.table(found).splitlines()[5].split("|")]
    assert cells[2] != "-"
    assert cells[4] == "-"
    assert "counted as they arrive" in warned(QUICK, ran)
    assert "counted as they arrive" not in warned(QUICK, bench(QUICK))
