"""The journal: what is saved is there at the next start, whatever happened."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from desktop.errors import Problem
from desktop.jobs import schema
from desktop.jobs.errors import JournalBusy, JournalTooNew, JournalUnusable
from desktop.jobs.events import DocumentState, PageState
from desktop.jobs.journal import Journal
from desktop.jobs.records import Counts, Outcome, PageKey
from desktop.protocol.messages import Region

Open = Callable[[], Journal]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "journal.db"


@pytest.fixture
def reopen(path: Path) -> Iterator[Open]:
    """Open the journal; the one before is closed."""
    journals: list[Journal] = []

    def make() -> Journal:
        for journal in journals:
            journal.close()
        journals.append(Journal(path))
        return journals[-1]

    yield make
    for journal in journals:
        journal.close()


def with_document(journal: Journal, pages: int = 3) -> int:
    row = journal.add_document("/some/where.pdf", "where.pdf")
    journal.update_document(row.id, state=DocumentState.OPEN, pages=pages, sha256="ab")
    journal.select_pages(row.id, range(1, pages + 1))
    return row.id


OUTCOME = Outcome(
    PageState.LENGTH, Problem("page.length", "It is cut.", "Raise it.", "detail"),
    "raw 文 \ud83d text", (Region("table", (1, 2, 3, 4)),), {0: 0.5, 7: 1.0}, (2, 3), 1.5, 0.25,
    10, 20, 8, 1, 1190, 1684, 90, "f" * 16, "scripted", "model-x")


@pytest.mark.parametrize(("kept", "fix"), [
    ('["a.b", "No.", "Try.", ""]', ()),  # as it was before there were such values
    (None, (("memory_utilization", 0.5), ("quantization", "fp8")))])
def test_a_problem_is_kept_with_the_values_that_mend_it(
        reopen: Open, path: Path, kept: str | None,
        fix: tuple[tuple[str, object], ...]) -> None:
    journal = reopen()
    document = with_document(journal)
    problem = Problem("a.b", "No.", "Try.", "", fix)
    journal.update_document(document, problem=problem)
    if kept is not None:
        journal.close()
        database = sqlite3.connect(path)
        with database:
            database.execute("UPDATE documents SET problem = ?", (kept,))
        database.close()
    row = reopen().document(document)
    assert row is not None
    assert row.problem == problem


def test_a_result_is_kept_whole(reopen: Open) -> None:
    journal = reopen()
    document = with_document(journal)
    key = PageKey(document, 2)
    assert journal.save(key, OUTCOME)
    journal.edit(key, 3, "corrected")

    journal = reopen()
    page = journal.page(key)
    assert page is not None
    assert (page.state, page.problem, page.seconds, page.first_text) == (
        PageState.LENGTH, OUTCOME.problem, 1.5, 0.25)
    assert (page.prompt_tokens, page.output_tokens, page.blocks, page.tables) == (10, 20, 8, 1)
    assert (page.width, page.height, page.rotation) == (1190, 1684, 90)
    assert (page.fingerprint, page.engine, page.model) == ("f" * 16, "scripted", "model-x")
    result = journal.result(key)
    assert result.raw == "raw 文 ? text"  # what no UTF-8 can hold is replaced
    assert result.regions == OUTCOME.regions
    assert result.confidences == OUTCOME.confidences
    assert result.crops == OUTCOME.crops
    assert result.edits == {3: "corrected"}
    assert journal.counts(document) == Counts(3, 1, 1)


def test_waiting_pages_come_in_queue_order_and_only_of_open_documents(reopen: Open) -> None:
    journal = reopen()
    first, second, third = (with_document(journal) for _ in range(3))
    journal.save(PageKey(first, 2), OUTCOME)
    journal.update_document(second, state=DocumentState.PASSWORD)
    journal.select_pages(third, [2, 3])
    assert journal.next_waiting((), 10) == [
        (first, 1), (first, 3), (third, 2), (third, 3)]
    assert journal.next_waiting([PageKey(first, 1)], 2) == [(first, 3), (third, 2)]
    assert journal.is_waiting(PageKey(first, 1))
    for key in (PageKey(first, 2), PageKey(second, 1), PageKey(third, 1), PageKey(99, 1)):
        assert not journal.is_waiting(key)


def test_a_range_hides_results_and_does_not_drop_them(reopen: Open) -> None:
    journal = reopen()
    document = with_document(journal)
    journal.save(PageKey(document, 1), OUTCOME)
    journal.select_pages(document, [3])
    assert [page.key.number for page in journal.pages(document)] == [3]
    assert journal.counts(document) == Counts(1, 0, 0)
    journal.select_pages(document, [1, 3])
    assert journal.result(PageKey(document, 1)).raw
    assert journal.counts(document) == Counts(2, 1, 1)


def test_reset_lets_a_page_wait_again_without_a_trace(reopen: Open) -> None:
    journal = reopen()
    key = PageKey(with_document(journal), 1)
    journal.begun(key)
    journal.worker_died(key)
    journal.save(key, OUTCOME)
    journal.edit(key, 0, "mine")
    journal.reset([key])
    page = journal.page(key)
    assert page is not None
    assert (page.state, page.problem, page.deaths, page.rotation, page.blocks) == (
        PageState.WAITING, None, 0, 0, 0)
    assert page.attempts == 1  # how often it was tried is history, not a result
    assert journal.result(key).raw == ""
    assert journal.result(key).edits == {}


def test_removing_a_document_leaves_nothing(reopen: Open, path: Path) -> None:
    journal = reopen()
    document = with_document(journal)
    journal.save(PageKey(document, 1), OUTCOME)
    journal.edit(PageKey(document, 1), 0, "mine")
    journal.remove_document(document)
    journal.close()
    with sqlite3.connect(path) as db:
        for table in ("documents", "pages", "results", "edits"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    db.close()


def test_saving_a_page_that_was_removed_says_so(reopen: Open) -> None:
    assert not reopen().save(PageKey(5, 1), OUTCOME)


def test_which_pages_are_outdated(reopen: Open) -> None:
    journal = reopen()
    document = with_document(journal, 4)
    journal.save(PageKey(document, 1), Outcome(PageState.COMPLETE, fingerprint="new"))
    journal.save(PageKey(document, 2), Outcome(PageState.COMPLETE, fingerprint="old"))
    journal.save(PageKey(document, 3), Outcome(PageState.FAILED, fingerprint="new"))
    assert journal.outdated(document, "new") == [(document, 2), (document, 3)]
    assert journal.suspicious() == [(document, 3)]


@pytest.mark.skipif(os.name == "nt", reason="names that are no Unicode exist on POSIX only")
def test_a_name_that_is_no_unicode_survives(reopen: Open) -> None:
    name = os.fsdecode(b"/tmp/caf\xe9.pdf")
    journal = reopen()
    row = journal.add_document(name, "café")
    journal = reopen()
    assert journal.documents()[0].path == name
    assert [found.id for found in journal.documents_at(name)] == [row.id]


def test_one_process_at_a_time(reopen: Open, path: Path) -> None:
    reopen()
    with pytest.raises(JournalBusy) as caught:
        Journal(path)
    assert caught.value.problem().code == "journal.busy"
    code = ("import sys; from pathlib import Path; from desktop.jobs.journal import Journal\n"
            "from desktop.jobs.errors import JournalBusy\n"
            "try: Journal(Path(sys.argv[1]))\n"
            "except JournalBusy: print('busy')")
    answer = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True,
                            text=True, check=True, timeout=60)
    assert answer.stdout == "busy\n"


def test_the_lock_dies_with_its_holder_and_what_was_saved_stays(path: Path) -> None:
    code = ("import os, sys; from pathlib import Path; from desktop.jobs.journal import Journal\n"
            "journal = Journal(Path(sys.argv[1])); journal.add_document('/a.pdf', 'a.pdf')\n"
            "os.kill(os.getpid(), 9)")
    dead = subprocess.run([sys.executable, "-c", code, str(path)], check=False, timeout=60)
    assert dead.returncode == -9
    journal = Journal(path)
    assert [row.path for row in journal.documents()] == ["/a.pdf"]
    journal.close()


@pytest.mark.parametrize("damage", ["head", "middle", "no database"])
def test_a_damaged_journal_is_set_aside(path: Path, damage: str) -> None:
    journal = Journal(path)
    for _ in range(50):
        with_document(journal, 50)
    journal.close()
    data = bytearray(path.read_bytes())
    if damage == "head":
        data[:100] = os.urandom(100)
    elif damage == "middle":
        data[4096:] = os.urandom(len(data) - 4096)
    else:
        data = bytearray(b"shopping list\n" * 500)
    path.write_bytes(data)

    journal = Journal(path)
    assert journal.documents() == []
    assert journal.trouble is not None
    assert journal.trouble.code == "journal.corrupt"
    kept = [other for other in path.parent.iterdir() if "damaged" in other.name]
    assert [other.read_bytes() for other in kept] == [bytes(data)]
    assert str(kept[0]) in journal.trouble.hint
    journal.add_document("/a.pdf", "a.pdf")
    journal.close()
    again = Journal(path)
    assert again.trouble is None
    assert len(again.documents()) == 1
    again.close()


def test_an_unclean_rest_without_its_log_is_no_damage(path: Path) -> None:
    Journal(path).close()
    path.with_name(path.name + "-wal").write_bytes(b"half a log")
    journal = Journal(path)
    assert journal.trouble is None
    journal.close()


def test_a_newer_journal_is_left_alone(path: Path) -> None:
    Journal(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 999")
    db.close()
    before = path.read_bytes()
    with pytest.raises(JournalTooNew):
        Journal(path)
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(JournalUnusable):
        Journal(tmp_path / "file" / "journal.db")


def test_migrations_run_in_order_and_a_failed_one_leaves_the_version_before(
        path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(path)
    document = with_document(journal)
    journal.close()
    added = "ALTER TABLE documents ADD COLUMN note TEXT NOT NULL DEFAULT 'none';"
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, added))
    monkeypatch.setattr("desktop.jobs.journal.MIGRATIONS", schema.MIGRATIONS)
    Journal(path).close()
    db = sqlite3.connect(path)
    assert db.execute("SELECT id, note FROM documents").fetchall() == [(document, "none")]
    assert db.execute("PRAGMA user_version").fetchone() == (len(schema.MIGRATIONS),)
    db.close()

    broken = "CREATE TABLE half (x); CREATE TABLE half (x);"
    monkeypatch.setattr("desktop.jobs.journal.MIGRATIONS", (*schema.MIGRATIONS, broken))
    with pytest.raises(JournalUnusable):
        Journal(path)
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (len(schema.MIGRATIONS),)
    assert db.execute("SELECT name FROM sqlite_master WHERE name = 'half'").fetchall() == []
    db.close()


def test_a_document_of_thousands_of_pages_is_light(reopen: Open, path: Path) -> None:
    journal = reopen()
    with_document(journal, 20_000)
    journal.close()
    assert path.stat().st_size < 20_000 * 200
