"""Pages that repeat themselves: begun again, read in halves, kept and flagged."""

from __future__ import annotations

from desktop.jobs.events import BlocksChanged, PageCleared, PageState, ProblemAdded, RawText
from desktop.jobs.journal import Journal
from tests.jobs.conftest import PATIENCE, SHORT, Gates, Pdf, Play, Player

TEXT = "<|ref|>text<|/ref|><|det|>[[100, {}, 900, {}]]<|/det|>\n{}\n\n"
LOOP = {"kind": "loop", "at": -1, "span": 30}
UPPER = TEXT.format(100, 300, "What stands above")
LOWER = TEXT.format(300, 600, "What stands below")
WHOLE = TEXT.format(100, 200, "A page that says it again and again and again")
ENDLESS = {"text": WHOLE, "rate": 0, "delta": [1, 30], "tokens": 1}


def shown(p: Play, page_id: str) -> str:
    """The raw text as a listener has it that forgets what it is told to forget."""
    text = ""
    for event in p.heard.events:
        if isinstance(event, PageCleared) and event.page_id == page_id:
            text = ""
        elif isinstance(event, RawText) and event.page_id == page_id:
            text += event.text
    return text


def test_a_second_try_helps(play: Player, pdf: Pdf, gates: Gates) -> None:
    # Held up until the first reading has been shown, before it is taken back.
    gate = gates()
    p = play({"pages": [{**ENDLESS, "match": "*-1", "second_try": True,
                         "faults": [gate.at(-1), {**LOOP, "reads": [1]}]}, SHORT]})
    p.add(pdf(2))
    p.session.start()
    p.heard.until(lambda: any(event.page_id == "1-1" for event in p.heard.of(BlocksChanged)))
    gate.open()
    assert p.session.wait(PATIENCE)
    result = p.session.page_result("1-1").result(PATIENCE)
    assert (result.view.state, result.view.problem, result.view.loops) == (
        PageState.COMPLETE, None, 1)
    assert result.raw == WHOLE == shown(p, "1-1")
    assert [block.markdown for block in result.blocks] == [
        "A page that says it again and again and again"]
    assert result.view.output_tokens > len(WHOLE) // 30  # what was thrown away counts
    assert 0 < result.view.first_text <= result.view.seconds
    cleared = p.heard.events.index(PageCleared("1-1"))
    assert any(isinstance(event, BlocksChanged) and event.page_id == "1-1"
               for event in p.heard.events[:cleared])  # it was seen while it streamed
    other = p.heard.page("1-2")
    assert other is not None
    assert other.loops == 0
    assert not p.heard.of(ProblemAdded)

    p = play()  # the journal keeps it
    p.session.start()
    again = p.session.page_result("1-1").result(PATIENCE)
    assert again.view.loops == 1


def test_halves_help(play: Player, pdf: Pdf) -> None:
    p = play({"pages": [{**ENDLESS, "second_try": True, "again": [WHOLE, UPPER, LOWER],
                         "faults": [{**LOOP, "reads": [1, 2]}]}]})
    p.add(pdf(1))
    p.finish()
    result = p.session.page_result("1-1").result(PATIENCE)
    assert (result.view.state, result.view.loops) == (PageState.COMPLETE, 2)
    assert [block.markdown for block in result.blocks] == [
        "What stands above", "What stands below"]
    above, below = (block.boxes[0] for block in result.blocks)
    assert (above[0], above[2]) == (below[0], below[2]) == (100, 900)
    assert 40 < above[1] < above[3] < 200  # of the whole page now
    assert 570 < below[1] < below[3] < 830
    assert result.raw == shown(p, "1-1")


def test_a_page_that_loops_whatever_is_tried_is_kept_and_flagged(
        play: Player, pdf: Pdf) -> None:
    p = play({"pages": [{**ENDLESS, "faults": [LOOP]}]})
    p.add(pdf(1))
    p.finish()
    result = p.session.page_result("1-1").result(PATIENCE)
    assert result.view.state is PageState.LOOP
    assert result.view.problem is not None
    assert (result.view.problem.code, result.view.loops) == ("page.loop", 1)
    assert result.blocks[0].markdown.startswith("A page that says it again")
    assert len(result.raw) < 30_000
    assert result.raw == shown(p, "1-1")
    assert p.session.retry_failed() == 1
    assert p.session.wait(PATIENCE)


def test_without_the_guard_nothing_is_stopped(play: Player, pdf: Pdf) -> None:
    p = play({"pages": [{**ENDLESS, "delta": 500, "faults": [{**LOOP, "times": 400}]}]},
             loop_guard=False)
    p.add(pdf(1))
    p.finish()
    result = p.session.page_result("1-1").result(PATIENCE)
    assert (result.view.state, result.view.loops) == (PageState.COMPLETE, 0)
    assert len(result.raw) > 400 * 30


def test_a_journal_of_the_release_before_is_brought_up_to_date(play: Player, pdf: Pdf) -> None:
    p = play()
    p.add(pdf(1))
    p.finish()
    path = p.session._core.journal.path
    p.session.close()
    import sqlite3

    with sqlite3.connect(path) as db:
        db.execute("ALTER TABLE pages DROP COLUMN loops")
        db.execute("DROP TABLE benchmarks")
        db.execute("PRAGMA user_version = 1")
    db.close()
    journal = Journal(path)
    (row,) = journal.pages(1)
    assert (row.state, row.loops) == (PageState.COMPLETE, 0)
    journal.close()
