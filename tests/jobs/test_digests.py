"""Digests of source files: behind the reading, and never of another file than was read."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from desktop.jobs.digests import Digests, file_status, sha256
from desktop.jobs.events import DocumentState
from desktop.jobs.journal import Journal
from desktop.jobs.records import DocumentRow
from tests.jobs.conftest import PATIENCE, SHORT, Play


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = Journal(tmp_path / "other.db")
    yield opened
    opened.close()


def _row(journal: Journal, path: Path) -> DocumentRow:
    size, mtime_ns = file_status(str(path)) or (0, 0)
    row = journal.add_document(str(path), path.name)
    return journal.update_document(row.id, state=DocumentState.OPEN, pages=1, size=size,
                                   mtime_ns=mtime_ns)


def _after(journal: Journal, row: DocumentRow, then: Callable[[Digests], None]) -> str:
    """The digest in the journal after it was wanted and THEN happened."""
    async def run() -> None:
        digests = Digests(journal)
        digests.want(row)
        digests.want(row)  # once is enough
        await asyncio.sleep(0)
        then(digests)
        await digests.wait(row.id)
        await digests.close()

    asyncio.run(run())
    now = journal.document(row.id)
    assert now is not None
    return now.sha256


def test_the_digest_of_the_file_gets_into_the_journal(journal: Journal, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(3_000_001))
    assert _after(journal, _row(journal, path), lambda _: None) == hashlib.sha256(
        path.read_bytes()).hexdigest()


def test_that_of_a_file_that_changed_does_not(journal: Journal, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    row = _row(journal, path)
    path.write_bytes(b"something else")
    assert _after(journal, row, lambda _: None) == ""
    path.unlink()
    assert _after(journal, row, lambda _: None) == ""


def test_a_full_disk_does_no_harm(journal: Journal, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    row = _row(journal, path)
    journal._db.execute("PRAGMA query_only = ON")  # writing fails as on a full disk
    assert _after(journal, row, lambda _: None) == ""
    journal._db.execute("PRAGMA query_only = OFF")
    assert _after(journal, row, lambda _: None) == sha256(str(path))


def test_what_nobody_wants_any_more_is_given_up(journal: Journal, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 3_000_000)
    row = _row(journal, path)
    assert _after(journal, row, lambda digests: digests.forget(row.id)) == ""
    stopped = threading.Event()
    stopped.set()
    assert sha256(str(path), stopped) == ""
    assert sha256(str(tmp_path / "none")) == ""


@pytest.mark.parametrize("changed", [False, True])
def test_stopped_before_the_digest_was_known(
        play: Callable[..., Play], pdf: Callable[..., Path], tmp_path: Path,
        changed: bool) -> None:
    """The next start makes up for it, or notices that the file is another."""
    source = pdf(2)
    (document,) = play().add(source, page_range="1")
    p = play()
    p.finish()
    p.session.close()
    journal = Journal(tmp_path / "journal.db")
    journal.update_document(document, sha256="")
    journal.close()
    if changed:
        source.write_bytes(source.read_bytes() + b"\n% more\n")
    p = play({"pages": [SHORT]})
    p.session.set_page_range(document, "").result(PATIENCE)
    p.finish()
    view = p.heard.document(document)
    assert view is not None
    whole = p.session.document_result(document).result(PATIENCE)
    if changed:
        assert view.problem is not None
        assert (view.problem.code, view.finished, whole.sha256) == ("source.changed", 1, "")
    else:
        assert (view.problem, view.finished) == (None, 2)
        assert whole.sha256 == sha256(str(source))
