"""The journal's history of measurements."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from desktop.jobs.benchmarks import BenchmarkRow
from desktop.jobs.events import EngineState, PageState
from desktop.jobs.journal import Journal
from desktop.jobs.schema import MIGRATIONS
from tests.jobs.conftest import PATIENCE, SHORT, SLOW, Pdf, Player


def row(started: float, **more: Any) -> BenchmarkRow:
    values: dict[str, Any] = {
        "id": 0, "started": started, "name": "", "engine": "scripted", "model": "m",
        "device": "d", "digest": "0" * 64, "ended": "complete", "levels": 2, "concurrency": 8,
        "speed": 12.5, "unit": "tok/s", **more}
    return BenchmarkRow(**values)


def test_runs_are_kept_the_newest_first(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    first = journal.benchmarks.add({"version": 1, "levels": [1.5, None]}, row(100.0))
    second = journal.benchmarks.add({"version": 1, "name": "zwei \ud800"}, row(200.0, speed=1.0))
    journal.close()
    journal = Journal(tmp_path / "j.sqlite")
    assert [(each.id, each.started) for each in journal.benchmarks.rows()] == [
        (second, 200.0), (first, 100.0)]
    assert journal.benchmarks.rows()[1] == row(100.0, id=first)
    assert journal.benchmarks.document(first) == {"version": 1, "levels": [1.5, None]}
    journal.benchmarks.rename(first, "before")
    assert journal.benchmarks.rows()[1].name == "before"
    journal.benchmarks.remove(first)
    assert journal.benchmarks.document(first) is None
    assert [each.id for each in journal.benchmarks.rows()] == [second]
    journal.close()


def test_a_journal_from_before_gets_the_table(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    db = sqlite3.connect(path, isolation_level=None)
    for number, script in enumerate(MIGRATIONS[:2], 1):
        db.executescript(f"BEGIN;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")
    db.execute("INSERT INTO documents (path, name, state, added) VALUES ('x', 'x', 'open', 0)")
    db.close()
    journal = Journal(path)
    assert journal.trouble is None
    assert len(journal.documents()) == 1
    assert journal.benchmarks.rows() == []
    journal.close()


def test_the_session_keeps_them_while_it_has_the_journal(play: Player) -> None:
    session = play().session
    kept = session.keep_benchmark({"version": 1}, row(1.0)).result(PATIENCE)
    session.rename_benchmark(kept, "one")
    assert [(each.id, each.name) for each in session.benchmarks().result(PATIENCE)] == [
        (kept, "one")]
    assert session.benchmark(kept).result(PATIENCE) == {"version": 1}
    session.remove_benchmark(kept)
    assert session.benchmarks().result(PATIENCE) == []
    assert session.benchmark(kept).result(PATIENCE) is None


def test_an_engine_that_is_lent_leaves_no_process_and_reading_goes_on_after(
        play: Player, pdf: Pdf, no_process_left: Any) -> None:
    p = play({"pages": [{**SLOW, "match": "1-1"}, {**SHORT, "match": "1-2"}]})
    p.add(pdf(2))
    p.session.start()
    p.heard.until_page("1-1", PageState.STREAMING)
    p.session.release_engine().result(PATIENCE)
    assert p.session.engine.state is EngineState.OFF
    assert not [line for line in no_process_left() if "desktop.worker" in line]
    p.heard.until(lambda: (found := p.heard.page("1-1")) is not None
                  and found.state is PageState.WAITING)
    p.session.start()
    p.heard.until_page("1-1", PageState.STREAMING)
    assert p.session.engine.state is EngineState.READY
