"""Panes with real web engine and with the plain rendering; both must do the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtWidgets import QApplication

# Before any QApplication is made.
import desktop.ui.review  # noqa: F401
from desktop.ui.review.pane import ReviewPane
from tests.ui.review.helpers import SIZE, fresh, pause, wait_for


@pytest.fixture(scope="session")
def _panes(qapp: QApplication) -> Iterator[Callable[[str], ReviewPane]]:
    """One pane of each kind for the whole run: starting Chromium takes a second."""
    made: dict[str, ReviewPane] = {}

    def get(kind: str) -> ReviewPane:
        if kind not in made:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("VERSO_NO_WEBENGINE", "1" if kind == "plain" else "")
                pane = ReviewPane()
                pane.resize(*SIZE)
                pane.show()
                pane.result.start_rendering()
                made[kind] = pane
                wait_for(lambda: pane.result.rendering is not None
                         and getattr(pane.result.rendering, "_waiting", None) is None, 60)
        # The pointer of the display shall not be over another pane's window.
        for name, other in made.items():
            other.setVisible(name == kind)
        return made[kind]

    yield get
    for pane in made.values():
        pane.close_engine()
        pane.hide()
        pane.deleteLater()
    pause(50)


@pytest.fixture(params=["web", "plain"])
def pane(request: pytest.FixtureRequest, _panes: Callable[[str], ReviewPane]) -> ReviewPane:
    """A pane that shows an empty page, with each rendering in turn."""
    return fresh(_panes(request.param))


@pytest.fixture
def web_pane(_panes: Callable[[str], ReviewPane]) -> ReviewPane:
    """A pane with the web engine that shows an empty page."""
    return fresh(_panes("web"))


@pytest.fixture
def plain_pane(_panes: Callable[[str], ReviewPane]) -> ReviewPane:
    """A pane without web engine that shows an empty page."""
    return fresh(_panes("plain"))
