"""Whether anything was found on a page."""

from __future__ import annotations

import pytest

from desktop.document.parser import parse
from desktop.jobs.pages import found_something

PICTURE = "<|ref|>image<|/ref|><|det|>[[{box}]]<|/det|>\n"


@pytest.mark.parametrize(("raw", "found"), [
    ("", False), (" \n\n", False), ("<｜end▁of▁sentence｜>", False),
    ("<|ref|>text<|/ref|>\n<|det|> [[1, 2, 3, 4], [5, 6, 7, 8]]<|/det|>\n\n", False),
    ("table[[0, 0, 999, 999]]", False),
    ("<|ref|>image<|/ref|><|det|>nothing that is a box<|/det|>\n", False),
    ("<|ref|>text<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>\n.", True),
    ("see [[1]]", True), ("<table></table>", True),
    ("<|ref|>Dear Sir,<|/ref|><|det|>[[1, 2, 30, 40]]<|/det|>\n", True),
    (PICTURE.format(box="100, 100, 500, 400"), True),
    (PICTURE.format(box="0, 0, 999, 999"), True),
])
def test_whether_there_is_more_than_tags(raw: str, found: bool) -> None:
    assert found_something(parse(raw)) == found


def test_a_picture_of_a_page_that_has_words_is_no_answer() -> None:
    assert not found_something(parse(PICTURE.format(box="0, 0, 999, 999")), worded=True)
    assert found_something(parse(PICTURE.format(box="0, 0, 500, 999")), worded=True)
    assert found_something(parse(PICTURE.format(box="0, 0, 999, 999") + "\nand a word"),
                           worded=True)
