"""``verso bench``: what it writes, what it says, how it ends."""

from __future__ import annotations

import csv
import io
import json
import shlex
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from desktop.cli.bench_interrupts import Interrupts
from desktop.jobs.journal import Journal
from desktop.paths import JOURNAL
from tests.cli.conftest import Verso, start

Script = Callable[..., str]
Pdf = Callable[..., Path]
SCRIPTED = ("--engine", "scripted", "--engine-arg")
PAGE = {"text": "ab" * 20, "delta": 2, "rate": 400, "wait": 0.05, "prompt_tokens": 30}
QUICK = ("--warmup", "1", "--rounds", "2")


@pytest.fixture
def bench(verso: Verso, pdf: Pdf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    pages = pdf(3)

    def call(*words: object) -> Any:
        return verso("bench", "--image", pages, *words)
    return call


def test_the_table_and_everything_in_the_document(bench: Any, script: Script, tmp_path: Path,
                                                  verso_home: Path) -> None:
    ran = bench("--concurrent", "1,2", "--requests", "4x", *QUICK, *SCRIPTED,
                script(PAGE, model="m-1", device="d-1", capacity=4), "--json",
                "--goodput", "ttft:5000", "e2el:9000", "--csv", "r.csv", "--markdown", "r.md")
    assert ran.status == 0, ran.err
    found = ran.summary
    assert (found["version"], found["ended"], found["exit_status"]) == (1, "complete", 0)
    assert (found["engine"]["name"], found["engine"]["model"]) == ("scripted", "m-1")
    assert found["workload"]["pages"] == 3
    assert found["environment"]["caches"] == {"prefix": "none", "images": "none"}
    first, second = found["levels"]
    assert [level["concurrency"] for level in found["levels"]] == [1, 2]
    for level in (first, second):
        assert (level["failed"], level["looped"]) == (0, 0)
        assert len(level["rounds"]) == 2
        assert level["cold"]["output_tps"] > 0
        assert level["start_seconds"] > 0
        assert level["steady"]["output_tps"] > 0
        assert level["goodput"] == pytest.approx(level["pages_per_s"])
        for key in ("ttft_ms", "tpot_ms", "itl_ms", "latency_ms"):
            assert {"p50", "p90", "p99"} <= set(level[key])
        assert [one["outcome"] for one in level["rounds"][0]["requests"]] == [
            "complete"] * 4 * level["concurrency"]
    # table, as the recipe writes it, on stderr here and in the file
    text = (tmp_path / "benchmark_results.txt").read_text()
    assert text in ran.err
    head, *rows = [line for line in text.splitlines() if "|" in line]
    columns = [cell.strip() for cell in head.split("|")]
    assert columns[:4] == ["Concurrent", "Cold(tok/s)", "Warm(tok/s)", "Time(s)"]
    for line, level in zip(rows, found["levels"], strict=True):
        cells = [cell.strip() for cell in line.split("|")]
        assert cells[0] == str(level["concurrency"])
        assert float(cells[1]) == pytest.approx(level["cold"]["output_tps"], abs=0.006)
        assert float(cells[2]) == pytest.approx(level["output_tps"], abs=0.006)
        assert float(cells[3]) == pytest.approx(level["seconds"], abs=0.006)
        assert float(cells[4]) == pytest.approx(level["total_tps"], abs=0.006)
    table = list(csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text())))
    assert [row["kind"] for row in table] == ["cold", "measured", "measured"] * 2
    assert table[1]["output_tps"] == str(first["rounds"][0]["output_tps"])
    assert "CANN recipe (Atlas A2)" in (tmp_path / "r.md").read_text()
    journal = Journal(verso_home / "data" / JOURNAL)
    [row] = journal.benchmarks.rows()
    assert (row.engine, row.levels, row.unit) == ("scripted", 2, "tok/s")
    kept = journal.benchmarks.document(row.id)
    assert kept is not None
    assert kept["levels"][0]["output_tps"] == first["output_tps"]
    journal.close()


def test_figures_are_those_of_the_script_in_real_time(bench: Any, script: Script) -> None:
    page = {"text": "ab" * 100, "delta": 2, "rate": 100, "wait": 0.3, "prompt_tokens": 200}
    # The quickest of some tries: other programs may be using the machine.
    def figures() -> dict[str, Any]:
        [level] = bench("--concurrent", "2", "--draw", "ahead", "--no-cold", "--warmup", "0",
                        "--rounds", "1", *SCRIPTED, script(page, capacity=2),
                        "--json").summary["levels"]
        return dict(level)
    whole = 0.3 + 99 / 100
    off: list[float] = []
    for _attempt in range(12):
        level = figures()
        off.append(max(abs(found / known - 1) for found, known in (
            (level["output_tps"], 200 / whole), (level["total_tps"], 600 / whole),
            (level["ttft_ms"]["p50"], 300), (level["tpot_ms"]["p50"], 10),
            (level["itl_ms"]["mean"], 10), (level["latency_ms"]["p50"], 1000 * whole))))
        if off[-1] < 0.05:
            return
    raise AssertionError(f"more than 5 % off each time: {off}")


def test_the_printed_command_line_measures_the_same(bench: Any, verso: Verso,
                                                    script: Script) -> None:
    asked = ("--concurrent", "2", "--requests", "3", "--rounds", "1", "--warmup", "0",
             "--no-cold", "--unique", "--draw", "ahead", "--dpi", "72", "--goodput",
             "tpot:9", "e2el:1234567.8", "--time-cap", "1234567", *SCRIPTED, script(PAGE))
    found = bench(*asked, "--json").summary
    words = shlex.split(found["command"])
    assert words[:2] == ["verso", "bench"]
    again = verso(*words[1:], "--json").summary
    for key in ("plan", "workload"):
        assert again[key] == found[key]
    assert again["engine"]["settings"] == found["engine"]["settings"]
    assert again["command"] == found["command"]


def test_strategies_and_their_ratio(bench: Any, script: Script) -> None:
    seen = []
    for wait in (0.2, 0.5, 1.5, 3.0, 3.0):  # On a busy machine what is beside the wait takes long.
        ran = bench("--strategy", "compare", "--concurrent", "8", "--requests", "8", "--rounds",
                    "1", "--warmup", "0", "--no-cold", "--draw", "ahead", *SCRIPTED,
                    script({**PAGE, "wait": wait}, capacity=8))
        assert ran.status == 0, ran.err
        lines = [line for line in ran.out.splitlines() if "times as fast as sequential" in line]
        assert [line.split(":")[0] for line in lines[:1]] == ["sequential"]
        assert lines[1].startswith("batch:4:")
        assert "% busy" in lines[0]
        ratios = [float(line.split(" a page, ")[1].split(" ")[0]) for line in lines]
        assert ratios[0] == 1
        if 2.5 < ratios[1] < 4.5 < ratios[2] < 9:
            return
        seen.append(ratios)
    raise AssertionError(f"no such ratios each time: {seen}")


def test_pages_that_fail_and_loop_make_status_1(bench: Any, script: Script) -> None:
    ran = bench("--concurrent", "1", "--requests", "3", "--rounds", "1", "--warmup", "0",
                "--no-cold", *SCRIPTED, script(
                    PAGE, {**PAGE, "finish": "loop"},
                    {**PAGE, "faults": [{"kind": "raise", "message": "No page."}]},
                    assign="number"), "--json", "--loop-guard", "off")
    assert ran.status == 1
    [level] = ran.summary["levels"]
    assert (level["failed"], level["looped"]) == (1, 1)
    assert level["rounds"][0]["output_tokens"] == 20
    assert level["rounds"][0]["requests"][2]["error"]["message"] == "No page."
    [line] = ran.complaints
    assert line == "verso: made.pdf #3: No page. Try it again."


def test_pages_that_fail_are_named_but_not_without_end(verso: Verso, pdf: Pdf, script: Script,
                                                       tmp_path: Path) -> None:
    bad = {**PAGE, "faults": [{"kind": "raise", "message": "No page."}]}
    pages = [{**bad, "match": f"b?-m?-{number}"} for number in range(2, 9)]
    ran = verso("bench", "--image", pdf(8), "--output", tmp_path / "t.txt", "--concurrent",
                "1", "--requests", "8", "--rounds", "2", "--warmup", "0", "--no-cold", *SCRIPTED,
                script(*pages, PAGE))
    assert ran.status == 1
    assert len(ran.complaints) == 6
    assert "2 more pages failed" in ran.complaints[-1]


def test_an_engine_that_cannot_start_is_status_3(bench: Any, script: Script,
                                                 tmp_path: Path) -> None:
    ran = bench("--concurrent", "1,2", *SCRIPTED, script(PAGE, load={"faults": [
        {"kind": "raise", "message": "No device.", "hint": "Buy one."}]}))
    assert ran.status == 3
    assert [line for line in ran.complaints if "No device. Buy one." in line] == [
        "verso: No device. Buy one."]  # once, not for each level
    assert ran.out == ""
    assert not (tmp_path / "benchmark_results.txt").exists()


def test_a_level_that_fails_leaves_the_others(bench: Any, script: Script, tmp_path: Path) -> None:
    once = {"kind": "raise", "message": "No memory.", "once": str(tmp_path / "mark")}
    ran = bench("--concurrent", "1,2", *QUICK, *SCRIPTED, script(PAGE, load={"faults": [once]}))
    assert ran.status == 1
    rows = [line for line in ran.out.splitlines() if "|" in line][1:]
    assert "No memory." in rows[0]
    assert float(rows[1].split("|")[2]) > 0


@pytest.mark.parametrize("words", [
    ("--concurrent", "0"), ("--concurrent", ""), ("--concurrent", "eight"), ("--requests", "-3"),
    ("--rounds", "0"),
    ("--strategy", "batch"), ("--goodput", "ttft"), ("--gpu-mem", "7"), ("--concurrency", "3"),
    ("--output", "no/such/folder/x.txt"), ("--output", "/proc/x.txt"), ("--csv", "/"),
    ("--time-cap", "-1"), ("--time-cap", "nan"), ("--dpi", "x"), ("--raise", "--most", "0"),
    ("--raise", "--strategy", "sequential"), ("--engine", "none")])
def test_wrong_calls(bench: Any, words: tuple[str, ...], script: Script) -> None:
    ran = bench(*SCRIPTED, script(PAGE), *words)
    assert ran.status == 2
    assert len(ran.err.splitlines()) == 1


def test_files_that_are_no_pages(verso: Verso, script: Script, samples: Path, tmp_path: Path,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = verso("bench", "--image", samples / "empty.pdf", *SCRIPTED, script(PAGE))
    assert ran.status == 1
    assert str(samples / "empty.pdf") in ran.err
    (tmp_path / "nothing").mkdir()
    ran = verso("bench", "--image", tmp_path / "nothing", *SCRIPTED, script(PAGE))
    assert (ran.status, len(ran.err.splitlines())) == (1, 1)


def test_a_protected_document_is_measured_and_its_password_kept_nowhere(
        verso: Verso, pdf: Pdf, script: Script, tmp_path: Path, verso_home: Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    import pymupdf

    monkeypatch.chdir(tmp_path)
    secret = "Kornblume-17"
    plain = pymupdf.open(pdf(2))
    plain.save(tmp_path / "locked.pdf", encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw=secret)
    words = ("bench", "--image", tmp_path / "locked.pdf", "--concurrent", "1", "--rounds", "1",
             "--warmup", "0", "--no-cold", "--json", *SCRIPTED, script(PAGE))
    refused = verso(*words)
    assert (refused.status, len(refused.complaints)) == (1, 1)
    assert "--password-file" in refused.err
    (tmp_path / "words").write_text(f"other\n{secret}\n")
    ran = verso(*words, "--password-file", tmp_path / "words", "--markdown", "r.md")
    assert ran.status == 0, ran.err
    assert ran.summary["workload"]["pages"] == 2
    assert "--password-file passwords.txt" in ran.summary["command"]
    (tmp_path / "words").write_text("other\n")
    wrong = verso(*words, "--password-file", tmp_path / "words")
    assert wrong.status == 1
    assert "does not open" in wrong.err
    gone = verso(*words, "--password-file", tmp_path / "gone")
    assert gone.status == 2
    assert "cannot be read" in gone.err
    assert secret not in ran.out + ran.err + wrong.err
    files = [path for folder in (tmp_path, verso_home) for path in folder.rglob("*")
             if path.is_file() and path.name != "words"]
    assert tmp_path / "r.md" in files
    assert [path for path in files if secret.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_keeps_finished_rounds(pdf: Pdf, script: Script, tmp_path: Path,
                                            no_process_left: object, number: int) -> None:
    page = {**PAGE, "wait": 0.5}
    before = signal.signal(number, signal.SIG_DFL)  # what is ignored here, it would ignore too
    try:
        running = start("bench", "--image", pdf(1), "--concurrent", "1,2", "--rounds", "50",
                        "--warmup", "0", "--output", tmp_path / "t.txt", "--json",
                        *SCRIPTED, script(page))
    finally:
        signal.signal(number, before)
    assert running.stderr is not None
    for line in running.stderr:
        if "round 2" in line:
            break
    running.send_signal(number)
    for line in running.stderr:  # impatience does not cost what there is
        if "stopping" in line:
            running.send_signal(number)
            running.send_signal(signal.SIGINT)
            break
    out, err = running.communicate(timeout=120)
    assert running.returncode == 130, err
    found = json.loads(out)
    assert found["ended"] == "interrupted"
    [level] = found["levels"]
    assert level["ended"] == "interrupted"
    assert len(level["rounds"]) >= 2
    assert level["output_tps"] > 0
    assert "interrupted" in (tmp_path / "t.txt").read_text()


def test_interrupts_are_only_noted_and_what_is_ignored_stays_so() -> None:
    def named(number: int, _frame: object) -> None:
        seen.append(number)

    seen: list[int] = []
    before = [(number, signal.signal(number, handler)) for number, handler in (
        (signal.SIGINT, named), (signal.SIGTERM, named), (signal.SIGHUP, signal.SIG_IGN))]
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGHUP)
            assert not interrupts.wanted
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGINT):
                signal.raise_signal(number)
                assert interrupts.wanted
        assert seen == []
        signal.raise_signal(signal.SIGINT)
        assert seen == [signal.SIGINT]
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def test_a_result_that_cannot_be_written_is_shown_all_the_same(bench: Any, script: Script) -> None:
    ran = bench("--concurrent", "1", *QUICK, "--output", "/dev/full", *SCRIPTED, script(PAGE),
                "--json")
    assert ran.status == 1
    assert any("/dev/full: No space left" in line for line in ran.complaints)
    assert "Concurrent |" in ran.err
    assert ran.summary["levels"][0]["output_tps"] > 0
    assert ran.summary["exit_status"] == 1


def test_a_history_that_cannot_be_made_costs_nothing(
        bench: Any, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("VERSO_DATA_DIR", str(tmp_path / "file" / "data"))
    ran = bench("--concurrent", "1", *QUICK, *SCRIPTED, script(PAGE), "--json")
    assert ran.status == 0
    assert ran.summary["levels"][0]["output_tps"] > 0
    assert any("not in the window's history" in line for line in ran.complaints), ran.err


def test_a_reader_that_has_gone_costs_no_file(pdf: Pdf, script: Script, tmp_path: Path,
                                              no_process_left: object) -> None:
    running = start("bench", "--image", pdf(1), "--concurrent", "1", *QUICK, "--output",
                    tmp_path / "t.txt", *SCRIPTED, script(PAGE))
    assert running.stdout is not None
    running.stdout.close()
    assert running.stderr is not None
    said = running.stderr.read()
    running.stderr.close()
    assert running.wait(120) in (0, 1)
    assert "Traceback" not in said
    assert "Warm(tok/s)" in (tmp_path / "t.txt").read_text()


def test_who_hears_nothing_gets_the_document(pdf: Pdf, script: Script, tmp_path: Path,
                                             no_process_left: object, verso_home: Path) -> None:
    """A reader of the messages that has gone ends neither the measurement nor its result."""
    running = start("bench", "--image", pdf(1), "--concurrent", "1", *QUICK, "--output",
                    "/dev/full", "--json", *SCRIPTED, script(PAGE))
    assert running.stderr is not None
    running.stderr.close()
    assert running.stdout is not None
    found = json.loads(running.stdout.read())
    running.stdout.close()
    assert running.wait(120) == found["exit_status"] == 1  # /dev/full
    assert len(found["levels"][0]["rounds"]) == 2
    log = (verso_home / "log" / "bench.log").read_text()
    assert "BrokenPipe" not in log


def test_a_time_cap_before_anything_is_measured(bench: Any, script: Script,
                                                tmp_path: Path) -> None:
    ran = bench("--concurrent", "1", "--time-cap", "0.2", *SCRIPTED,
                script(PAGE, load={"seconds": 30}))
    assert ran.status == 1  # the engine did nothing wrong
    assert "the time cap was reached before a round that counts was finished" in ran.out
    assert not (tmp_path / "benchmark_results.txt").exists()


def test_the_built_in_engine_has_pages_and_characters(verso: Verso, pdf: Pdf, tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = verso("bench", "--image", pdf(2), "--concurrent", "2", "--rounds", "1", "--warmup", "0",
                "--no-cold", "--engine", "embedded", "--json")
    assert ran.status == 0, ran.err
    [level] = ran.summary["levels"]
    assert (level["output_tps"], level["total_tps"], level["tpot_ms"]) == (None,) * 3
    assert level["rounds"][0]["output_tokens"] is None
    assert level["pages_per_s"] > 0
    assert level["chars_per_s"] > 0
    assert level["devices"] == [] or level["devices"][0]["device"] == "cpu"
