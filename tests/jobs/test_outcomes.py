"""How pages end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from desktop.jobs.events import (
    PageState,
    ProblemAdded,
    ProblemRemoved,
)
from tests.jobs.conftest import PATIENCE, SHORT, Pdf, Player

PICTURE = "<|ref|>image<|/ref|><|det|>[[{box}]]<|/det|>\n"
ENDINGS: list[tuple[dict[str, Any], PageState, str | None]] = [
    ({**SHORT, "finish": "length"}, PageState.LENGTH, "page.length"),
    ({**SHORT, "finish": "loop"}, PageState.LOOP, "page.loop"),
    ({**SHORT, "finish": "blank"}, PageState.BLANK, None),
    ({"text": "", "finish": "empty"}, PageState.EMPTY, "page.empty"),
    ({"text": "<|ref|>text<|/ref|><|det|>[[1, 2, 300, 400]]<|/det|>\n\n"}, PageState.EMPTY,
     "page.empty"),
    # A picture and no text is a page all the same: a photograph is just that.
    ({"text": PICTURE.format(box="100, 100, 500, 400")}, PageState.COMPLETE, None),
    ({"text": PICTURE.format(box="0, 0, 999, 999"), "finish": "empty"}, PageState.COMPLETE, None),
    # A mode of the model that puts the text where labels stand otherwise.
    ({"text": "<|ref|>Dear Sir,<|/ref|><|det|>[[1, 2, 300, 400]]<|/det|>\n"},
     PageState.COMPLETE, None),
]


def test_how_pages_end(play: Player, pdf: Pdf) -> None:
    p = play({"pages": [{**entry, "match": f"*-{number}"}
                        for number, (entry, _, _) in enumerate(ENDINGS, 1)]},
             loop_guard=False)
    p.add(pdf(len(ENDINGS)))
    p.finish()
    expected = {}
    for number, (entry, state, code) in enumerate(ENDINGS, 1):
        result = p.session.page_result(f"1-{number}").result(PATIENCE)
        assert result.view.state is state, entry
        assert result.raw == entry["text"]  # text so far is kept
        assert (result.view.problem.code if result.view.problem else None) == code, entry
        if code is not None:
            expected[f"1-{number}"] = (code, number, "made.pdf")
    assert {view.page_id: (view.problem.code, view.page, view.document) for view in
            (event.problem for event in p.heard.of(ProblemAdded))} == expected
    document = p.heard.document(1)
    assert document is not None
    assert (document.finished, document.suspicious) == (len(ENDINGS), len(expected))


@pytest.mark.parametrize(("limit", "asked", "parts"), [
    (0, 8192, ("engine's limit", "token limit")),
    (8192, 8192, ("8192 tokens", "--max-tokens")),
    (7000, 8192, ("7000 tokens", "Context length"))])
def test_a_page_that_was_cut_off_says_by_which_limit(
        limit: int, asked: int, parts: tuple[str, str], play: Player, pdf: Pdf) -> None:
    p = play({"pages": [{**SHORT, "finish": "length", "limit": limit}]}, max_tokens=asked)
    p.add(pdf(1))
    p.finish()
    page = p.heard.page("1-1")
    assert page is not None
    assert page.problem is not None
    assert page.problem.code == "page.length"
    assert parts[0] in page.problem.message
    assert parts[1] in page.problem.hint


def test_a_page_that_fails_fails_alone_and_can_be_retried(
        play: Player, pdf: Pdf, tmp_path: Path) -> None:
    fault = {"kind": "raise", "at": 20, "once": str(tmp_path / "once"), "code": "page.odd",
             "message": "It is odd.", "hint": "Look at it."}
    p = play({"pages": [{**SHORT, "match": "*-2", "faults": [fault]}, SHORT]})
    (document,) = p.add(pdf(3))
    p.finish()
    page = p.heard.page("1-2")
    assert page is not None
    assert page.state is PageState.FAILED
    assert page.problem is not None
    assert (page.problem.code, page.problem.message) == ("page.odd", "It is odd.")
    view = p.heard.document(document)
    assert view is not None
    assert (view.finished, view.suspicious) == (3, 1)

    assert p.session.retry_failed() == 1
    assert p.session.wait(PATIENCE)
    page = p.heard.page("1-2")
    assert page is not None
    assert (page.state, page.problem, page.attempts) == (PageState.COMPLETE, None, 2)
    assert ProblemRemoved("1-2") in p.heard.events
    assert p.session.retry_failed() == 0


def test_blank_pages_cost_the_engine_nothing(play: Player, samples: Path) -> None:
    p = play()
    p.add(samples / "blank.pdf")
    p.finish()
    page = p.heard.page("1-1")
    assert page is not None
    assert (page.state, page.attempts, page.problem) == (PageState.BLANK, 0, None)
    assert page.width > 0
    p.session.set_values(p.session.values.with_(skip_blank=False))
    p.session.rerun(["1-1"])
    assert p.session.wait(PATIENCE)
    page = p.heard.page("1-1")
    assert page is not None
    assert (page.state, page.attempts) == (PageState.COMPLETE, 1)


def test_a_page_without_end_is_stopped(play: Player, pdf: Pdf,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop.jobs.reading.MAX_RAW", 5000)
    p = play({"pages": [{**SHORT, "repeat": 0, "rate": 2000, "delta": 100}]}, loop_guard=False)
    p.add(pdf(1))
    p.finish()
    page = p.heard.page("1-1")
    assert page is not None
    assert page.state is PageState.LENGTH
    assert 5000 < len(p.session.page_result("1-1").result(PATIENCE).raw) < 50_000
