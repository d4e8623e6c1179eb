"""The queue's model: right by Qt's own tester, quick for huge documents."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QModelIndex
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from desktop.jobs import events as e
from desktop.jobs.events import DocumentState, DocumentView, PageState, PageView
from desktop.protocol.messages import Region
from desktop.ui.models.queue import LIVE_ROLE, QueueModel, Totals


def document(number: int, pages: int = 3, **more: object) -> DocumentView:
    values = {"id": number, "path": f"/{number}.pdf", "name": f"{number}.pdf",
              "state": DocumentState.OPEN, "pages": pages, "selected": pages, **more}
    return DocumentView(**values)  # type: ignore[arg-type]


def pages(number: int, count: int = 3) -> tuple[PageView, ...]:
    return tuple(PageView(f"{number}-{n}", number, n, PageState.WAITING)
                 for n in range(1, count + 1))


@pytest.fixture
def model(qtbot: QtBot) -> QueueModel:
    made = QueueModel()
    made._tester = QAbstractItemModelTester(  # type: ignore[attr-defined]
        made, QAbstractItemModelTester.FailureReportingMode.Warning)  # a warning fails the test
    return made


def test_documents_come_change_and_go(model: QueueModel) -> None:
    for number in (1, 2, 3):
        model.apply(e.DocumentAdded(document(number), pages(number)))
    model.apply(e.DocumentRemoved(2))
    assert [d.id for d in model.documents()] == [1, 3]
    assert model.page("2-1") is None
    assert model.page_index("3-2").parent() == model.document_index(3)
    model.apply(e.DocumentUpdated(document(3, 5, page_range="1-5"), pages(3, 5)))
    assert model.rowCount(model.document_index(3)) == 5
    model.apply(e.DocumentUpdated(document(3, 0, state=DocumentState.PASSWORD), ()))
    assert model.rowCount(model.document_index(3)) == 0


def counted(model: QueueModel) -> Totals:
    """The totals, counted over all documents."""
    documents = model.documents()
    return Totals(len(documents), sum(d.selected for d in documents),
                  sum(d.suspicious for d in documents))


def test_the_totals_are_those_of_all_documents_whatever_happens(model: QueueModel) -> None:
    locked = {"state": DocumentState.PASSWORD, "selected": 0}
    story: list[tuple[e.SessionEvent, set[int]]] = [
        (e.DocumentAdded(document(1), pages(1)), set()),
        (e.DocumentAdded(document(2, 0, **locked)), {2}),
        (e.DocumentAdded(document(3, 5, suspicious=2), pages(3, 5)), {2}),
        (e.DocumentUpdated(document(3, 5, selected=1, suspicious=1), pages(3, 1)), {2}),
        (e.DocumentAdded(document(3, 4, suspicious=3), pages(3, 4)), {2}),  # once more
        (e.DocumentUpdated(document(1, 3, suspicious=1)), {2}),
        (e.DocumentUpdated(document(1, 0, **locked)), {1, 2}),
        (e.DocumentUpdated(document(2, 2), pages(2, 2)), {1}),
        (e.DocumentUpdated(document(9, 2), pages(9, 2)), {1}),  # of none that is here
        (e.DocumentRemoved(9), {1}),
        (e.DocumentRemoved(3), {1}),
        (e.DocumentRemoved(1), set()),
        (e.DocumentRemoved(2), set()),
    ]
    for event, locked_now in story:
        model.apply(event)
        assert model.totals == counted(model), event
        assert set(model.locked) == locked_now, event
    assert model.totals == Totals()


def test_a_page_that_changes_touches_one_row(model: QueueModel, qtbot: QtBot) -> None:
    model.apply(e.DocumentAdded(document(1), pages(1)))
    model.apply(e.PageUpdated(PageView("1-3", 1, 3, PageState.STREAMING)))
    changed: list[QModelIndex] = []
    model.dataChanged.connect(lambda first, last, _roles: changed.append((first, last)))
    model.apply(e.PageUpdated(PageView("1-2", 1, 2, PageState.STREAMING)))
    assert [(a.row(), b.row()) for a, b in changed] == [(1, 1)]
    assert model.page("1-2").state is PageState.STREAMING  # type: ignore[union-attr]
    model.apply(e.PageUpdated(PageView("9-9", 9, 9, PageState.STREAMING)))  # of no document here
    assert len(changed) == 1


def test_progress_of_a_page(model: QueueModel) -> None:
    model.apply(e.DocumentAdded(document(1), pages(1)))
    streaming = PageView("1-1", 1, 1, PageState.STREAMING, output_tokens=50, blocks=2)
    assert model.fraction(streaming) == -1
    model.apply(e.PageRegionsFound("1-1", tuple(Region("text", (0, 0, 1, 1)) for _ in range(8))))
    assert model.fraction(streaming) == 0.25
    model.apply(e.PageUpdated(PageView("1-2", 1, 2, PageState.COMPLETE, output_tokens=100)))
    other = PageView("1-3", 1, 3, PageState.STREAMING, output_tokens=50)
    assert model.fraction(other) == 0.5


def test_steps_cross_documents(model: QueueModel) -> None:
    model.apply(e.DocumentAdded(document(1), pages(1)))
    model.apply(e.DocumentAdded(document(2, 0), ()))
    model.apply(e.DocumentAdded(document(3), pages(3)))
    assert model.step(None, 1) == "1-1"
    assert model.step("1-3", 1) == "3-1"
    assert model.step("3-1", -1) == "1-3"
    assert model.step("3-3", 1) is None
    assert model.step("1-1", -1) is None
    assert model.step(None, -1) == "3-3"
    model.apply(e.PageUpdated(PageView("3-2", 3, 2, PageState.LOOP)))
    assert model.step("1-1", 1, lambda page: page.state.suspicious) == "3-2"


def test_two_thousand_pages_cost_one_row_a_change(qtbot: QtBot) -> None:
    model = QueueModel()  # without the tester, which walks all rows after every change
    model.apply(e.DocumentAdded(document(1, 2000), pages(1, 2000)))
    calls = 0

    def count(*_args: object) -> None:
        nonlocal calls
        calls += 1

    model.dataChanged.connect(count)
    for n in range(1, 2001):
        model.apply(e.PageUpdated(PageView(f"1-{n}", 1, n, PageState.COMPLETE)))
    assert calls == 2000
    assert model.page_index("1-2000").row() == 1999


def test_a_document_tells_that_a_page_of_it_is_read(model: QueueModel) -> None:
    model.apply(e.DocumentAdded(document(1), pages(1)))
    index = model.document_index(1)
    told: list[bool] = []
    model.dataChanged.connect(
        lambda first, _last: first == index and told.append(index.data(LIVE_ROLE)))
    for number, state in ((1, PageState.STREAMING), (2, PageState.STREAMING),
                          (1, PageState.COMPLETE), (2, PageState.FAILED)):
        model.apply(e.PageUpdated(PageView(f"1-{number}", 1, number, state)))
    assert told == [True, False]
