"""Page ranges as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop.intake.errors import BadPageRange, PageRangeOutside
from desktop.intake.ranges import check, format_pages, parse


@pytest.mark.parametrize(("text", "numbers"), [
    ("", [1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ("  ", [1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ("1-3,7", [1, 2, 3, 7]),
    ("5-", [5, 6, 7, 8, 9]),
    ("-3", [1, 2, 3]),
    ("4", [4]),
    (" 2 - 3 , 3,2 ", [2, 3]),
    ("7,1", [1, 7]),
    ("8-20", [8, 9]),
    ("1–3，5", [1, 2, 3, 5]),
])
def test_what_a_range_names(text: str, numbers: list[int]) -> None:
    assert parse(text, 9) == numbers


@pytest.mark.parametrize("text", ["a", "1-2-3", "3-1", "0", "0-2", "-", ",", "1,,2", "1.5",
                                  "-0", "9" * 60])
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(BadPageRange) as caught:
        parse(text, 9)
    assert caught.value.problem().code == "intake.bad_page_range"
    with pytest.raises(BadPageRange):
        check(text)


def test_a_range_outside_the_document_says_how_many_pages_there_are() -> None:
    with pytest.raises(PageRangeOutside) as caught:
        parse("10-12", 9)
    assert "9" in caught.value.problem().line()
    check("10-12")


@given(st.sets(st.integers(1, 300), min_size=1))
def test_written_and_read_again(numbers: set[int]) -> None:
    assert parse(format_pages(numbers), 300) == sorted(numbers)


@given(st.text("0123456789-, –x", max_size=12), st.integers(1, 50))
def test_any_text_is_a_range_within_the_document_or_an_error(text: str, pages: int) -> None:
    try:
        numbers = parse(text, pages)
    except BadPageRange:
        return
    assert numbers
    assert numbers == sorted(set(numbers))
    assert 1 <= numbers[0] <= numbers[-1] <= pages


def test_a_range_of_astronomic_length_costs_nothing() -> None:
    assert parse("1-99999999999999", 3) == [1, 2, 3]
