"""Places by block, without Qt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop.ui.review.geometry import Rect
from desktop.ui.review.linking import (
    Extent,
    Place,
    Scroll,
    block_at,
    find_place,
    neighbour,
    position,
)


def column(*heights: float, gap: float = 10, left: float = 0, right: float = 100) -> list[Extent]:
    found, top = [], 0.0
    for number, height in enumerate(heights, 1):
        found.append(Extent(f"b{number}", (Rect(left, top, right, top + height),)))
        top += height + gap
    return found


def test_place_is_block_and_fraction() -> None:
    page, text = column(100, 50), column(30, 400)
    place = find_place(page, 25)
    assert place == Place("b1", "b1", 0.25)
    assert position(text, place) == (50, 7.5)


def test_gap_is_shared_between_its_neighbours() -> None:
    place = find_place(column(100, 50, gap=20), 105)
    assert place == Place("b1", "b2", 0.25)
    assert position(column(10, 10, gap=4), place) == (50, 11)


def test_blocks_the_other_side_lacks_are_passed_over() -> None:
    page = column(100, 100, 100, gap=0)
    assert find_place(page, 150, known={"b1", "b3"}) == Place("b1", "b3", 0.5)
    assert find_place(page, 150, known=set()) is None
    assert position(column(5), Place("b1", "b9", 0.5)) == (50, 5)
    assert position(column(5), Place("b8", "b9", 0.5)) is None


def test_x_chooses_among_columns() -> None:
    page = [Extent("left", (Rect(0, 0, 100, 500),)), Extent("right", (Rect(120, 0, 220, 500),))]
    assert find_place(page, 50, x=10).before == "left"  # type: ignore[union-attr]
    assert find_place(page, 50, x=200).before == "right"  # type: ignore[union-attr]
    assert find_place(page, 50, x=112).before == "right"  # type: ignore[union-attr]
    assert find_place(page, 50).before == "left"  # type: ignore[union-attr]


def test_a_block_in_two_pieces_is_gone_through_in_order() -> None:
    split = Extent("b1", (Rect(0, 600, 100, 700), Rect(120, 0, 220, 300)))
    assert split.point(0.25) == (50, 700)
    assert split.point(0.5) == (170, 100)
    assert find_place([split], 100, x=150) == Place("b1", "b1", 0.5)


def test_both_ends_meet_and_no_block_is_out_of_reach() -> None:
    scroll = Scroll(0, 100, 1000)
    assert scroll.line == 0
    assert scroll._replace(top=900).line == 1000
    assert scroll.top_for(1000) == 900
    assert Scroll(0, 100, 80).line == 0
    assert Scroll(0, 100, 80).top_for(50) == 0


def test_revealing_moves_as_little_as_can_be() -> None:
    scroll = Scroll(200, 100, 1000)
    assert scroll.revealing(220, 240) == 200
    assert scroll.revealing(100, 120) == 100 - 12.5
    assert scroll.revealing(400, 420) == 420 + 12.5 - 100
    assert scroll.revealing(500, 900) == 500 - 12.5
    assert scroll.revealing(0, 10) == 0


def test_the_smallest_block_under_a_point_is_meant() -> None:
    page = [Extent("figure", (Rect(0, 0, 100, 100),)), Extent("label", (Rect(40, 40, 60, 60),))]
    assert block_at(page, 50, 50) == "label"
    assert block_at(page, 10, 10) == "figure"
    assert block_at(page, 200, 10) is None


def test_stepping_stays_within_the_page() -> None:
    ids = ["b1", "b2", "b3"]
    assert neighbour(ids, None, 1) == "b1"
    assert neighbour(ids, None, -1) == "b3"
    assert neighbour(ids, "b3", 1) == "b3"
    assert neighbour(ids, "b2", -1) == "b1"
    assert neighbour([], "b2", 1) is None


@given(st.lists(st.floats(1, 900), min_size=1, max_size=30),
       st.lists(st.floats(1, 900), min_size=1, max_size=30), st.floats(0, 1))
def test_there_and_back_is_the_same_place(one: list[float], two: list[float], at: float) -> None:
    count = min(len(one), len(two))
    left, right = column(*one[:count]), column(*two[:count])
    y = at * left[-1].bottom
    place = find_place(left, y)
    assert place is not None
    there = position(right, place)
    assert there is not None
    back = find_place(right, there[1])
    assert back is not None
    home = position(left, back)
    assert home is not None
    assert home[1] == pytest.approx(y, abs=0.5)
