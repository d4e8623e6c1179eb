"""The files that pages come from: unreadable, locked, gone, changed, given twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from desktop.intake.errors import NoDocuments, PasswordNeeded
from desktop.jobs.events import (
    DocumentState,
    PageState,
    ProblemAdded,
)
from tests.jobs.conftest import PATIENCE, SHORT, SLOW, Pdf, Player


def test_files_that_cannot_be_read_are_one_problem_each(
        play: Player, pdf: Pdf, samples: Path, tmp_path: Path) -> None:
    p = play()
    ids = p.add(samples / "header_only.pdf", pdf(1), samples / "not_an_image.png",
                tmp_path / "missing.pdf")
    p.finish()
    states = [view.state for view in map(p.heard.document, ids) if view]
    assert states == [DocumentState.UNREADABLE, DocumentState.OPEN, DocumentState.UNREADABLE,
                      DocumentState.UNREADABLE]
    told = {event.problem.document_id: event.problem.problem.code
            for event in p.heard.of(ProblemAdded)}
    assert told == {1: "intake.unreadable", 3: "intake.not_a_document", 4: "intake.file_missing"}
    pdf(2, "missing.pdf")
    assert p.session.retry_failed() == 3
    assert p.session.wait(PATIENCE)
    view = p.heard.document(ids[3])
    assert view is not None
    assert (view.state, view.finished) == (DocumentState.OPEN, 2)
    (tmp_path / "empty folder").mkdir()
    with pytest.raises(NoDocuments):
        p.add(tmp_path / "empty folder")


def test_passwords_are_asked_for_again_after_a_restart(play: Player, samples: Path,
                                                       tmp_path: Path) -> None:
    p = play({"capacity": 1, "pages": [{**SHORT, "match": "*-1"}, SLOW]})
    (document,) = p.add(samples / "encrypted.pdf")
    assert p.session.wait(PATIENCE)
    view = p.heard.document(document)
    assert view is not None
    assert view.state is DocumentState.PASSWORD
    assert view.problem is not None
    assert view.problem.code == "intake.password_needed"
    assert not p.session.unlock(document, "wrong").result(PATIENCE)
    assert p.session.unlock(document, "verso").result(PATIENCE)
    view = p.heard.document(document)
    p.session.start()
    p.heard.until_page("1-1", PageState.COMPLETE)
    p.session.close()
    assert b"verso\x00" not in (tmp_path / "journal.db").read_bytes()

    p = play()
    p.finish()  # nothing that can be done
    view = p.heard.document(document)
    assert view is not None
    assert (view.state, view.finished) == (DocumentState.PASSWORD, 1)
    assert view.selected > 1
    with pytest.raises(PasswordNeeded):
        p.session.bitmap("1-1").result(PATIENCE)
    assert p.session.page_result("1-1").result(PATIENCE).raw
    assert p.session.unlock(document, "verso").result(PATIENCE)
    assert p.session.wait(PATIENCE)
    view = p.heard.document(document)
    assert view is not None
    assert (view.state, view.finished) == (DocumentState.OPEN, view.selected)
    page = p.heard.page("1-1")
    assert page is not None
    assert page.attempts == 1
    p.session.bitmap("1-1").result(PATIENCE).delete()


def test_a_source_that_went_away_or_changed_is_noticed(play: Player, pdf: Pdf) -> None:
    p = play({"capacity": 1, "pages": [SHORT]})
    path = pdf(3)
    p.add(path)
    p.finish()
    p = play()
    hidden = path.rename(path.with_suffix(".away"))
    p.session.rerun(["1-2"])
    p.finish()
    view = p.heard.document(1)
    assert view is not None
    assert (view.state, view.finished) == (DocumentState.UNREADABLE, 2)
    assert view.problem is not None
    assert view.problem.code == "source.missing"

    hidden.rename(path)
    path.touch()  # another time, the same content: nothing to say
    assert p.session.retry_failed() == 1
    assert p.session.wait(PATIENCE)
    view = p.heard.document(1)
    assert view is not None
    assert (view.state, view.finished, view.problem) == (DocumentState.OPEN, 3, None)
    page = p.heard.page("1-1")
    assert page is not None
    assert page.attempts == 1

    pdf(2, text="Other")
    p.session.rerun(["1-1"])
    assert p.session.wait(PATIENCE)
    view = p.heard.document(1)
    assert view is not None
    assert view.problem is not None
    assert (view.problem.code, view.finished) == ("source.changed", 2)
    p.session.retry_failed()  # read anew, all of it
    assert p.session.wait(PATIENCE)
    view = p.heard.document(1)
    assert view is not None
    assert (view.state, view.pages, view.selected, view.finished) == (
        DocumentState.OPEN, 2, 2, 2)
    assert [page.attempts for page in map(p.heard.page, ("1-1", "1-2")) if page] == [2, 3]


def test_the_same_file_twice_is_one_document(play: Player, pdf: Pdf, tmp_path: Path) -> None:
    p = play()
    path = pdf(2)
    assert p.add(path, path, tmp_path) == [1]
    p.finish()
    assert p.add(path) == [1]
    assert p.session.wait(PATIENCE)
    page = p.heard.page("1-1")
    assert page is not None
    assert page.attempts == 1
    pdf(3, text="Other")
    assert p.add(path) == [2]  # another content is another document; the first keeps its results
    assert p.session.wait(PATIENCE)
    first = p.heard.document(1)
    assert first is not None
    assert first.problem is not None
    assert (first.problem.code, first.finished) == ("source.changed", 2)
