"""Finding words in the result."""

from __future__ import annotations

from desktop.document.model import Block
from desktop.ui.review.pane import ReviewPane
from tests.ui.review.helpers import fill, wait_for


def test_searching_counts_and_goes_round(pane: ReviewPane) -> None:
    fill(pane, [Block(0, "text", (), "one needle"), Block(1, "text", (), "Needle, needle")])
    for tab in (0, 1):
        pane.result.tabs.setCurrentIndex(tab)
        pane.find()
        pane.result.find_bar.field.setText("needle")
        labels = []
        for _ in range(4):
            pane.result.find_bar._count.clear()
            pane.result.find_bar.search(False)
            wait_for(lambda: bool(pane.result.find_bar._count.text()))
            labels.append(pane.result.find_bar._count.text())
        assert labels == ["1 of 3", "2 of 3", "3 of 3", "1 of 3"]
        pane.result.find_bar.field.setText("nowhere")
        pane.result.find_bar.search(False)
        wait_for(lambda: pane.result.find_bar._count.text() == "not found")
        pane.result.find_bar.close_bar()
