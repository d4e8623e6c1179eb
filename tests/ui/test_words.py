"""What a person reads for every state."""

from __future__ import annotations

import dataclasses

import pytest

from desktop.errors import Problem
from desktop.jobs.events import (
    DocumentState,
    DocumentView,
    EngineState,
    EngineView,
    PageState,
    PageView,
)
from desktop.protocol.messages import EngineReady
from desktop.ui import words
from desktop.ui.tokens import DARK, LIGHT


def page(state: PageState, **more: object) -> PageView:
    return dataclasses.replace(PageView("1-1", 1, 1, state), **more)


@pytest.mark.parametrize(("view", "text"), [
    (page(PageState.STREAMING, output_tokens=412), "streaming · 412 tokens"),
    (page(PageState.STREAMING, output_tokens=1412), "streaming · 1,412 tokens"),
    (page(PageState.STREAMING, blocks=1), "streaming · 1 block"),
    (page(PageState.STREAMING), "streaming"),
    (page(PageState.LOOP, tables=2, blocks=7), "loop stopped, kept 2 tables"),
    (page(PageState.LENGTH, blocks=5), "cut by length, kept 5 blocks"),
    (page(PageState.LENGTH), "cut by length, nothing kept"),
    (page(PageState.BLANK), "blank"),
    (page(PageState.FAILED, problem=Problem("c", "It broke.", "Mend it.")), "It broke."),
])
def test_a_page_in_words(view: PageView, text: str) -> None:
    assert words.page_words(view).text == text


@pytest.mark.parametrize("state", list(PageState))
def test_every_page_state_has_words_and_a_tone_of_both_themes(state: PageState) -> None:
    said = words.page_words(page(state))
    assert said.text
    assert getattr(LIGHT, said.tone)
    assert getattr(DARK, said.tone)


def document(**more: object) -> DocumentView:
    return dataclasses.replace(
        DocumentView(1, "/a.pdf", "a.pdf", DocumentState.OPEN, 8, "", 8), **more)


@pytest.mark.parametrize(("view", "text"), [
    (document(), "waiting"), (document(finished=3), "3 / 8"), (document(finished=8), "8"),
    (document(finished=8, suspicious=2), "2 to check"), (document(selected=0), "no pages"),
    (document(state=DocumentState.PASSWORD), "password…"),
    (document(state=DocumentState.OPENING), "opening"),
    (document(state=DocumentState.UNREADABLE), "unreadable"),
])
def test_a_document_in_words(view: DocumentView, text: str) -> None:
    assert words.document_words(view).text == text


def test_a_document_that_is_being_read_says_so() -> None:
    assert words.document_words(document(), live=True).text == "reading"


READY = EngineReady("embedded", "models", "CPU", 2)


@pytest.mark.parametrize(("engine", "text"), [
    (EngineView("e", EngineState.OFF), "Built in · not loaded"),
    (EngineView("e", EngineState.LOADING, "Reading weights", 0.5),
     "Built in · Reading weights 50%"),
    (EngineView("e", EngineState.READY, ready=READY), "Built in · CPU · ready"),
    (EngineView("e", EngineState.RESTARTING, retry_in=4.0), "Built in · restarting in 4.0 s"),
    (EngineView("e", EngineState.FAILED), "Built in · cannot start"),
])
def test_the_engine_in_words(engine: EngineView, text: str) -> None:
    assert words.engine_words(engine, "Built in").text == text


def test_facts_of_a_page() -> None:
    view = page(PageState.COMPLETE, width=1190, height=1684, prompt_tokens=1132, first_text=0.4,
                seconds=10.0, output_tokens=960, attempts=2)
    assert words.page_facts(view) == [
        "1190 × 1684 px · upright · 1,132 prompt tokens",
        "first block after 0.4 s · 96 tokens/s · 10 s in all", "complete", "read 2 times"]


@pytest.mark.parametrize(("seconds", "text"), [
    (0.42, "0.4 s"), (38.4, "38 s"), (240, "4 min"), (7_800, "2 h 10 min")])
def test_durations(seconds: float, text: str) -> None:
    assert words.seconds_of(seconds) == text
