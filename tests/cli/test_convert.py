"""``verso convert``: what it writes, what it says, how it ends."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import SHORT, Verso, start
from tests.support import processes

Script = Callable[..., str]
Pdf = Callable[..., Path]
SCRIPTED = ("--engine", "scripted", "--engine-arg")


def attempts(output: Path) -> dict[tuple[str, int], int]:
    """(file name, page) → how often the engine began it."""
    db = sqlite3.connect(output / ".verso" / "journal.db")
    rows = db.execute("SELECT name, number, attempts FROM pages JOIN documents "
                      "ON documents.id = document_id").fetchall()
    db.close()
    return {(name, number): count for name, number, count in rows}


def files(output: Path) -> set[str]:
    """What a person sees in the output folder."""
    return {path.relative_to(output).as_posix() for path in output.rglob("*")
            if path.is_file() and not any(part.startswith(".") for part in
                                          path.relative_to(output).parts)}


def report(output: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / name / f"{name}.json").read_text())
    return found


def test_everything_that_is_asked_for(verso: Verso, script: Script, pdf: Pdf,
                                      tmp_path: Path) -> None:
    out = tmp_path / "out"
    figure = {"text": "<|ref|>image<|/ref|><|det|>[[100, 100, 500, 400]]<|/det|>\n\n"
                      + SHORT["text"], "rate": 0}
    ran = verso("convert", pdf(2), "-o", out, *SCRIPTED, script(figure),
                "--format", "md,json,official", "--dpi", "96")
    assert ran.status == 0, ran.err
    assert ran.out == ""
    assert ran.complaints == []
    assert len(ran.err.splitlines()) == 1  # where it went
    assert files(out) >= {"made/made.md", "made/made.json", "made/made.mmd", "made/made_det.mmd",
                          "made/made_layouts.pdf"}
    assert any(name.startswith("made/images/") for name in files(out))
    text = (out / "made" / "made.md").read_text()
    assert text.count("Hello") == 2
    made = report(out, "made")
    assert made["engine"]["name"] == "scripted"
    assert made["engine"]["settings"]["dpi"] == 96
    assert [page["status"] for page in made["pages"]] == ["complete"] * 2


def test_the_summary_on_stdout(verso: Verso, script: Script, pdf: Pdf, samples: Path,
                               tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = verso("convert", pdf(2), samples / "empty.pdf", "-o", out, "--json", *SCRIPTED,
                script(SHORT, model="model-x"))
    assert ran.status == 1
    made, empty = ran.summary["documents"]
    assert (ran.summary["version"], ran.summary["exit_status"]) == (1, 1)
    assert ran.summary["engine"] == {"name": "scripted", "model": "model-x", "notes": []}
    assert (made["state"], made["finished"], made["problems"]) == ("complete", 2, [])
    assert made["files"] == [str(out / "made" / "made.md"), str(out / "made" / "made.json")]
    assert (empty["state"], empty["files"]) == ("unreadable", [])
    assert [problem["code"] for problem in empty["problems"]] == ["intake.empty_file"]


def test_each_failure_is_one_line(verso: Verso, script: Script, pdf: Pdf, samples: Path,
                                  tmp_path: Path) -> None:
    entries = [{**SHORT, "match": "*-1"}, {**SHORT, "match": "*-2", "finish": "loop"},
               {**SHORT, "match": "*-3", "faults": [{"kind": "raise"}]}]
    out = tmp_path / "out"
    ran = verso("convert", pdf(3), samples / "header_only.pdf", tmp_path / "missing.pdf",
                samples / "encrypted.pdf", "-o", out, *SCRIPTED, script(*entries))
    assert ran.status == 1
    lines = sorted(ran.complaints)
    assert len(lines) == 5
    for start_, part in (("encrypted.pdf", "password"), ("header_only.pdf", "damaged"),
                         ("missing.pdf", "does not exist"), ("made.pdf, page 2", "repeat"),
                         ("made.pdf, page 3", "cannot be read")):
        assert any(start_ in line and part in line for line in lines), (start_, lines)
    statuses = [(page["status"], bool(page["blocks"])) for page in report(out, "made")["pages"]]
    assert statuses[:2] == [("complete", True), ("loop", True)]  # text so far is kept
    assert statuses[2][0] == "failed"


def test_a_folder_is_walked_and_results_in_it_are_no_input(
        verso: Verso, script: Script, pdf: Pdf, tmp_path: Path) -> None:
    pdf(1, "in/a.pdf")
    pdf(1, "in/deep/b.pdf")
    (tmp_path / "in" / "notes.txt").write_text("no document")
    figure = {"text": "<|ref|>image<|/ref|><|det|>[[100, 100, 500, 400]]<|/det|>\n\n"
              + SHORT["text"], "rate": 0}
    for _ in range(2):  # the second time, results lie in the input
        ran = verso("convert", tmp_path / "in", "-o", tmp_path / "in", *SCRIPTED,
                    script(figure), "--json")
        assert ran.status == 0, ran.err
        assert [Path(document["path"]).name for document in ran.summary["documents"]] == [
            "a.pdf", "b.pdf"]
    assert verso("convert", tmp_path / "in", "-o", tmp_path / "in" / "out", *SCRIPTED,
                 script(figure), "--json").summary["exit_status"] == 0


def test_two_inputs_of_one_name_never_overwrite_each_other(
        verso: Verso, script: Script, pdf: Pdf, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first, second = pdf(1, "a/report.pdf"), pdf(2, "b/report.pdf")
    for order in ((first, second), (second, first), (second,)):
        ran = verso("convert", *order, "-o", out, *SCRIPTED, script(), "--json")
        assert ran.status == 0
        for document in ran.summary["documents"]:
            made = json.loads(Path(document["files"][1]).read_text())
            assert made["source"]["path"] == document["path"]
    assert len({name.split("/")[0] for name in files(out)}) == 2


def test_called_again_it_reads_nothing_twice_unless_the_settings_differ(
        verso: Verso, script: Script, pdf: Pdf, tmp_path: Path) -> None:
    out, path = tmp_path / "out", pdf(2)
    call = ("convert", path, "-o", out, *SCRIPTED, script())
    for more, expected in (((), 1), ((), 1), (("--concurrency", "2"), 1), (("--dpi", "96"), 2),
                           (("--dpi", "96", "--format", "official"), 2)):
        assert verso(*call, *more).status == 0
        assert attempts(out) == {("made.pdf", 1): expected, ("made.pdf", 2): expected}
    pdf(3)  # another file under the same name
    assert verso(*call).status == 0
    assert attempts(out) == {("made.pdf", number): 1 for number in (1, 2, 3)}
    assert len(report(out, "made")["pages"]) == 3


def test_what_failed_is_tried_again(verso: Verso, script: Script, pdf: Pdf,
                                    tmp_path: Path) -> None:
    fault = {"kind": "raise", "once": str(tmp_path / "once")}
    call = ("convert", pdf(2), "-o", tmp_path / "out", *SCRIPTED,
            script({**SHORT, "match": "*-1", "faults": [fault]}, SHORT))
    assert verso(*call).status == 1
    assert verso(*call).status == 0
    assert attempts(tmp_path / "out") == {("made.pdf", 1): 2, ("made.pdf", 2): 1}


def test_page_ranges(verso: Verso, script: Script, pdf: Pdf, tmp_path: Path) -> None:
    out, path = tmp_path / "out", pdf(6)
    ran = verso("convert", path, "-o", out, *SCRIPTED, script(), "--pages", "2-3,6")
    assert ran.status == 0
    assert [page["number"] for page in report(out, "made")["pages"]] == [2, 3, 6]
    ran = verso("convert", path, "-o", out, *SCRIPTED, script(), "--pages", "9-")
    assert ran.status == 1
    assert len(ran.complaints) == 1
    assert "9-" in ran.complaints[0]


@pytest.mark.parametrize("words", [
    ("--pages", "3-1"), ("--format", "md,nonsense"), ("--format", ","),
    ("--engine", "nonsense"), ("--engine-arg", "nonsense"), ("--engine-arg", "a=b"),
    ("--password-file", "/no/such/file"), ("--dpi", "7")])
def test_a_wrong_call_is_status_2_and_does_nothing(
        verso: Verso, pdf: Pdf, tmp_path: Path, words: tuple[str, ...]) -> None:
    ran = verso("convert", pdf(1), "-o", tmp_path / "out", *words)
    assert ran.status == 2
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_an_output_folder_that_cannot_be(verso: Verso, pdf: Pdf, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    for out in (tmp_path / "out", tmp_path / "out" / "below"):
        ran = verso("convert", pdf(1), "-o", out)
        assert ran.status == 2
        assert len(ran.err.splitlines()) == 1


def test_an_empty_folder_says_so(verso: Verso, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    ran = verso("convert", tmp_path / "in", "-o", tmp_path / "out", *SCRIPTED[:2])
    assert ran.status == 1
    assert len(ran.complaints) == 1


def test_what_the_engine_has_to_say_of_itself_is_said_once(verso: Verso, script: Script, pdf: Pdf,
                                                            tmp_path: Path) -> None:
    """Also where it dies and says it again at its next start."""
    notes = ["The cache holds about 7 pages at once.", "It was\x1b[2J repaired."]
    once = {"kind": "kill", "at": 10, "once": str(tmp_path / "killed")}
    ran = verso("convert", pdf(2), "-o", tmp_path / "out", "--json", *SCRIPTED,
                script({**SHORT, "faults": [once]}, notes=notes))
    assert ran.status == 0, ran.err
    assert (tmp_path / "killed").exists()
    assert [line for line in ran.err.splitlines() if line.startswith("engine: ")] == [
        "engine: The cache holds about 7 pages at once.", "engine: It was [2J repaired."]
    assert ran.complaints == []
    assert ran.summary["engine"]["notes"] == notes


def test_an_engine_that_does_not_start_is_status_3(verso: Verso, script: Script, pdf: Pdf,
                                                   tmp_path: Path) -> None:
    faults = [{"kind": "raise", "code": "engine.odd", "message": "No memory.",
               "hint": "Buy some."}]
    out = tmp_path / "out"
    ran = verso("convert", pdf(2), "-o", out, *SCRIPTED, script(load={"faults": faults}))
    assert ran.status == 3
    assert ran.complaints == ["verso: No memory. Buy some."]
    assert verso("convert", pdf(2), "-o", out, *SCRIPTED, script()).status == 0


def test_passwords_from_a_file(verso: Verso, script: Script, samples: Path,
                               tmp_path: Path) -> None:
    out, passwords = tmp_path / "out", tmp_path / "passwords"
    call = ("convert", samples / "encrypted.pdf", "-o", out, *SCRIPTED, script())
    assert verso(*call).status == 1
    passwords.write_text("wrong\nalso wrong\n")
    ran = verso(*call, "--password-file", passwords)
    assert ran.status == 1
    assert "password" in ran.complaints[0]
    assert "wrong" not in ran.err.replace("Wrong", "")
    passwords.write_text("wrong\nverso\n")
    assert verso(*call, "--password-file", passwords).status == 0
    assert verso(*call).status == 0  # everything was read already
    for kept in out.rglob("*"):
        if kept.is_file():
            assert b"also wrong" not in kept.read_bytes()


def test_another_call_at_work_in_the_folder(verso: Verso, script: Script, pdf: Pdf,
                                            tmp_path: Path) -> None:
    from desktop.jobs.journal import Journal

    journal = Journal(tmp_path / "out" / ".verso" / "journal.db")
    ran = verso("convert", pdf(1), "-o", tmp_path / "out", *SCRIPTED, script())
    journal.close()
    assert ran.status == 1
    assert "already working" in ran.complaints[0]


HANGS = "The script lets the engine hang here."


def until_finished(output: Path, pages: int, process: Any) -> None:
    """Wait until so many pages are saved (the journal is locked: its log grows by crops), and the
    call has heard of the page at which the engine hangs."""
    deadline = time.monotonic() + 120
    log = Path(os.environ["VERSO_LOG_DIR"], "convert.log")
    while len(done(output)) < pages or not (log.exists() and HANGS in log.read_text()):
        assert time.monotonic() < deadline, (done(output), log.read_text())
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)


def done(output: Path) -> set[int]:
    """Pages whose figures are cut."""
    return {int(path.name.split("-")[0])
            for path in (output / ".verso" / "crops").rglob("*-b*.png")}


FIGURES = {"rate": 0, "text": SHORT["text"]
           + "\n<|ref|>image<|/ref|><|det|>[[100, 100, 500, 400]]<|/det|>\n"}


def sticking(match: str, stuck: Path) -> dict[str, Any]:
    """A page on which the engine hangs the first time; it says so before, in the log."""
    return {**FIGURES, "match": match, "faults": [
        {"kind": "log", "at": 60, "text": HANGS},
        {"kind": "hang", "at": 60, "once": str(stuck)}]}


def test_killed_in_the_middle_it_goes_on_where_it_was(
        verso: Verso, script: Script, pdf: Pdf, tmp_path: Path,
        no_process_left: Callable[[], list[str]]) -> None:
    out, path, stuck = tmp_path / "out", pdf(8), tmp_path / "stuck"
    call = ("convert", path, "-o", out, *SCRIPTED,
            script(sticking("*-5", stuck), FIGURES, capacity=2))
    process = start(*call)
    # All but the one that hangs. The figures of some may be cut and nothing be saved yet: with
    # the one that hangs, no more than four are under way at once.
    until_finished(out, 7, process)
    process.kill()
    process.communicate(timeout=120)
    processes.until(lambda: no_process_left() == [])  # worker and drawing processes die with it
    before = attempts(out)
    db = sqlite3.connect(out / ".verso" / "journal.db")
    finished = {number for (number,) in db.execute(
        "SELECT number FROM pages WHERE state = 'complete'")}
    db.close()
    assert 4 <= len(finished) < 8
    ran = verso(*call)
    assert ran.status == 0, ran.err
    after = attempts(out)
    for number in finished:
        assert after[("made.pdf", number)] == before[("made.pdf", number)] == 1
    assert [page["status"] for page in report(out, "made")["pages"]] == ["complete"] * 8
    assert not list(out.rglob("*.part"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "TERM"])
def test_interrupted_it_keeps_what_is_finished(
        verso: Verso, script: Script, pdf: Pdf, tmp_path: Path, number: int) -> None:
    out, stuck = tmp_path / "out", tmp_path / "stuck"
    call = ("convert", pdf(8), "-o", out, *SCRIPTED,
            script(sticking("*-5", stuck), FIGURES, capacity=2), "--json")
    process = start(*call)
    until_finished(out, 3, process)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    (document,) = json.loads(stdout)["documents"]
    assert document["state"] == "partial"
    assert 3 <= document["finished"] < 8
    pages = report(out, "made")["pages"]
    assert [page["status"] for page in pages] == ["complete"] * document["finished"]
    ran = verso(*call)
    assert ran.status == 0
    assert ran.summary["documents"][0]["finished"] == 8


def test_a_killed_worker_is_no_ones_problem(verso: Verso, script: Script, pdf: Pdf,
                                            tmp_path: Path) -> None:
    out, stuck = tmp_path / "out", tmp_path / "stuck"
    # The third that begins, whichever it is: of two that are drawn at once, the first to be drawn
    # is read first.
    process = start("convert", pdf(4), "-o", out, *SCRIPTED,
                    script(FIGURES, FIGURES, sticking("", stuck), FIGURES, capacity=1))
    until_finished(out, 2, process)
    before = done(out)
    processes.worker_of(process.pid).kill()
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    counts = attempts(out)
    assert len(before) == 2
    assert {counts[("made.pdf", number)] for number in before} == {1}
    assert sorted(counts.values()) == [1, 1, 1, 2]
    assert done(out) == {1, 2, 3, 4}


def test_the_built_in_engine(verso: Verso, sample_pdf: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = verso("convert", sample_pdf, "-o", out, "--pages", "1")
    assert ran.status == 0, ran.err
    made = report(out, "sample")
    assert made["engine"]["name"] == "embedded"
    assert [page["status"] for page in made["pages"]] == ["complete"]
    assert len((out / "sample" / "sample.md").read_text()) > 200


def test_a_disk_that_fills_up_is_one_line_and_the_call_ends(
        verso: Verso, script: Script, pdf: Pdf, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    from desktop.jobs import journal

    def small(path: Path) -> sqlite3.Connection:
        db = whole(path)
        db.execute("PRAGMA max_page_count = 60")
        return db

    whole = journal._open
    monkeypatch.setattr(journal, "_open", small)
    words = " ".join(f"word{number * number}" for number in range(10_000))
    long = {"text": SHORT["text"] + words, "rate": 0, "delta": 5000}
    call = ("convert", pdf(6), "-o", tmp_path / "out", *SCRIPTED, script(long, capacity=1))
    ran = verso(*call)
    assert ran.status == 1
    assert len(ran.complaints) == 1
    assert "could not be saved" in ran.complaints[0]
    monkeypatch.setattr(journal, "_open", whole)
    assert verso(*call).status == 0
