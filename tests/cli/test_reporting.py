"""What is said on stderr."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from desktop.cli import reporting
from desktop.cli.reporting import Bar, Lines, one_line, problem_line, shown_path
from desktop.errors import Problem
from desktop.jobs.events import ProgressView, RunState

VIEW = ProgressView(RunState.RUNNING, 40, 12, 2, 0.0, 30.0, 83.0)
WRONG = Problem("a.b", "It is broken.", "Mend it.", "detail")


def test_a_problem_is_one_line_whatever_the_name(tmp_path: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert problem_line(str(tmp_path / "a.pdf"), 3, WRONG) == (
        "a.pdf, page 3: It is broken. Mend it.")
    assert problem_line("/else/a.pdf", 0, WRONG) == "/else/a.pdf: It is broken. Mend it."
    nasty = problem_line(str(tmp_path / "a\n\x1b[31mb\u2028.pdf"), 0, WRONG)
    assert nasty == "a  [31mb .pdf: It is broken. Mend it."


def test_paths_as_a_person_would_type_them(tmp_path: Path,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown_path(str(tmp_path / "x" / "a.pdf")) == "x/a.pdf"
    assert shown_path(str(tmp_path.parent / "a.pdf")) == str(tmp_path.parent / "a.pdf")


def test_one_line() -> None:
    assert one_line("a\tb\r\nc") == "a b  c"


def test_plain_lines_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(reporting.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    lines = Lines(stream)
    for second in range(25):
        now[0] = second
        lines.progress(VIEW)
    lines.say("done")
    assert stream.getvalue().splitlines() == ["12 of 40 pages, 30.0 pages/min, 1:23 left"] * 2 + [
        "done"]


def test_a_bar_on_a_terminal() -> None:
    stream = io.StringIO()
    bar = Bar(stream)
    bar.progress(VIEW)
    bar.say("a line")
    bar.close()
    text = stream.getvalue()
    assert "12/40" in text
    assert "1:23 left" in text
    assert "a line\n" in text
