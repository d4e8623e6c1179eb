"""When blocks are converted and handed on: the first text at once, the rest in measure."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from desktop.document.model import Block
from desktop.ui.review import feeder as feeders
from desktop.ui.review.feeder import AT_ONCE, Feeder
from desktop.ui.review.rendering import RenderedBlock
from tests.ui.review.helpers import pause, wait_for


class Shown(QObject):
    """Collects what is handed on, and answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.feeder = Feeder(self)
        self.feeder.batch.connect(self.take)
        self.batches: list[list[str]] = []
        self.threads: list[threading.Thread] = []

    def take(self, batch: list[RenderedBlock]) -> None:
        self.batches.append([block.html for block in batch])

    def put(self, *texts: str) -> None:
        self.feeder.put([Block(index, "text", (), text) for index, text in enumerate(texts)],
                        self.convert)

    def convert(self, block: Block) -> str:
        self.threads.append(threading.current_thread())
        return block.markdown


@pytest.fixture
def shown(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> Shown:
    # Whatever waits for the interval waits for longer than these tests last.
    monkeypatch.setattr(feeders, "INTERVAL", 600.0)
    made = Shown()
    made.feeder._pause = feeders.INTERVAL
    return made


def test_the_first_text_is_handed_on_while_it_is_given(shown: Shown) -> None:
    shown.put("Re")
    assert shown.batches == [["Re"]]
    assert shown.threads == [threading.main_thread()]
    shown.feeder.done()
    shown.put("Reve")
    pause(30)
    assert shown.batches == [["Re"]]  # from now on in measure
    shown.feeder.clear()
    shown.put("Next page")
    assert shown.batches[1:] == [["Next page"]]


def test_a_block_without_text_does_not_hold_up_the_text(shown: Shown) -> None:
    shown.put("")
    shown.put("Re")
    assert shown.batches == [[""]]  # the first does not show yet
    shown.feeder.done()
    assert shown.batches == [[""], ["Re"]]
    shown.feeder.done()
    shown.put("Reve")
    pause(30)
    assert len(shown.batches) == 2


def test_a_long_text_is_converted_on_a_thread(shown: Shown) -> None:
    shown.put("x" * AT_ONCE, "y")
    assert shown.batches == []
    wait_for(lambda: bool(shown.batches))
    assert [len(text) for text in shown.batches[0]] == [AT_ONCE, 1]
    assert threading.main_thread() not in shown.threads


def test_what_follows_the_first_text_is_converted_on_a_thread(
        shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeders, "INTERVAL", 0.01)
    shown.put("Re")
    shown.feeder.done()
    shown.put("Reve")
    wait_for(lambda: len(shown.batches) == 2)
    assert shown.batches == [["Re"], ["Reve"]]
    assert shown.threads[1] is not threading.main_thread()


@pytest.mark.logs_errors
def test_text_that_cannot_be_converted_is_left_out(shown: Shown) -> None:
    def fail(block: Block) -> str:
        raise ValueError(block.markdown)
    shown.feeder.put([Block(0, "text", (), "Re")], fail)
    assert shown.batches == []
    assert shown.feeder.idle
