"""A tokenizer that would spoil every page is refused before the first one."""

from __future__ import annotations

import re

import pytest

from desktop.engines.vllm.failures import WrongTokenizer
from desktop.engines.vllm.tokens import SAMPLE, check

MARKS = ["<image>", "<|ref|>", "<|/ref|>", "<|det|>", "<|/det|>", "<|grounding|>", "<td>",
         "</td>", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"]


class Characters:
    """A tokenizer with an id for each mark and each character."""

    def __init__(self, marks: list[str], lost: str = "") -> None:
        self._marks = marks
        self._lost = lost
        self._pattern = re.compile("|".join(map(re.escape, marks)) + "|(?s:.)")

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        assert not add_special_tokens
        return [self._marks.index(token) if token in self._marks else 1000 + ord(token)
                for token in self._pattern.findall(text)]

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        assert not skip_special_tokens
        text = "".join(self._marks[i] if i < 1000 else chr(i - 1000) for i in ids)
        return text.replace(self._lost, "") if self._lost else text


def test_a_right_one_gives_prompts() -> None:
    tokens = check(Characters(MARKS))
    prompt = tokens.prompt("<image>\nGo.")
    assert prompt == [8, 0, 1010, 1000 + ord("G"), 1000 + ord("o"), 1000 + ord(".")]
    assert prompt.count(tokens.image) == 1
    assert tokens.white_list == (6, 7)
    assert tokens.prompt("<image>\nGo.") is not prompt


def test_lost_spaces_are_noticed() -> None:
    with pytest.raises(WrongTokenizer) as caught:
        check(Characters(MARKS, lost=" "))
    assert SAMPLE.splitlines()[1] not in caught.value.problem().detail.partition("→")[2]


def test_a_mark_that_falls_apart_is_noticed() -> None:
    with pytest.raises(WrongTokenizer) as caught:
        check(Characters([mark for mark in MARKS if mark != "<|det|>"]))
    assert "<|det|>" in caught.value.problem().message
