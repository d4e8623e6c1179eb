"""Which page next: pure decisions."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from desktop.jobs.records import PageKey
from desktop.jobs.scheduler import (
    ALONE_AFTER,
    MAX_DEATHS,
    PREFETCH,
    Candidate,
    given_up,
    to_begin,
    to_put_back,
    to_submit,
    window_size,
)


class Waiting:
    """A queue of so many pages of one document."""

    def __init__(self, pages: int) -> None:
        self.keys = [PageKey(1, number) for number in range(1, pages + 1)]

    def next_waiting(self, skip: Collection[PageKey], limit: int) -> list[PageKey]:
        return [key for key in self.keys if key not in skip][:limit]

    def is_waiting(self, key: PageKey) -> bool:
        return key in self.keys


def keys(*numbers: int) -> list[PageKey]:
    return [PageKey(1, number) for number in numbers]


def test_pages_come_in_order_and_no_more_than_the_window_holds() -> None:
    assert to_begin(Waiting(2000), [], 4) == keys(1, 2, 3, 4)
    assert to_begin(Waiting(2000), keys(1, 2), 4) == keys(3, 4)
    assert to_begin(Waiting(2000), keys(1, 2, 3, 4), 4) == []
    assert to_begin(Waiting(2), keys(1), 4) == keys(2)


def test_the_page_looked_at_goes_first() -> None:
    assert to_begin(Waiting(2000), keys(1, 2), 4, PageKey(1, 900)) == keys(900, 3)


def test_the_page_looked_at_enters_a_full_window_but_only_once() -> None:
    full = keys(1, 2, 3, 4)
    looked_at = PageKey(1, 900)
    assert to_begin(Waiting(2000), full, 4, looked_at) == [looked_at]
    assert to_begin(Waiting(2000), [*full, looked_at], 4, looked_at) == []
    assert to_begin(Waiting(2000), [*full, PageKey(1, 700)], 4, looked_at) == []


def test_somebody_who_leafs_through_a_document_does_not_fill_the_window() -> None:
    active = keys(1, 2, 3, 4, 700)
    looked_at = PageKey(1, 900)
    assert to_put_back(Waiting(2000), active, keys(3, 4, 700), 4, looked_at) == (1, 700)
    assert to_put_back(Waiting(2000), active, [], 4, looked_at) is None
    assert to_put_back(Waiting(2000), keys(1, 2, 3, 4), keys(3, 4), 4, looked_at) is None
    assert to_put_back(Waiting(2000), active, keys(3, 4, 700), 4, PageKey(1, 700)) is None
    assert to_put_back(Waiting(800), active, keys(3, 4, 700), 4, looked_at) is None
    assert to_put_back(Waiting(2000), active, keys(3, 4, 700), 4) is None


def test_a_page_that_is_done_can_be_looked_at_in_peace() -> None:
    assert to_begin(Waiting(10), [], 2, PageKey(7, 1)) == keys(1, 2)


@given(capacity=st.integers(0, 300), pages=st.integers(0, 50), active=st.integers(0, 50))
def test_the_window_never_overflows(capacity: int, pages: int, active: int) -> None:
    window = window_size(capacity)
    assert window == max(1, capacity) + PREFETCH
    busy = [PageKey(9, number) for number in range(active)]
    assert len(busy) + len(to_begin(Waiting(pages), busy, window)) <= max(window, len(busy))


def test_drawn_pages_are_handed_over_in_queue_order() -> None:
    drawn = [Candidate(key) for key in keys(5, 3, 4)]
    assert to_submit(drawn, []) == keys(3, 4, 5)
    assert to_submit(drawn, [], PageKey(1, 5)) == keys(5, 3, 4)


def test_a_suspect_is_read_alone() -> None:
    suspect = Candidate(PageKey(1, 2), deaths=ALONE_AFTER)
    others = [Candidate(key) for key in keys(1, 3)]
    assert to_submit([suspect, *others], []) == keys(1)  # what comes before it still goes
    assert to_submit([suspect, others[1]], [Candidate(PageKey(1, 1))]) == []  # waits for it
    assert to_submit([suspect, others[1]], []) == keys(2)
    assert to_submit([others[1]], [suspect]) == []  # nothing beside it
    assert to_submit([others[1]], []) == keys(3)


def test_when_a_page_is_given_up() -> None:
    assert [given_up(deaths) for deaths in range(5)] == [False, False, False, True, True]
    assert ALONE_AFTER < MAX_DEATHS  # it gets a chance alone before it is given up
