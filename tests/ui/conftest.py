"""The window on a real session with the scripted engine; pages come from real files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import qasync
from pytestqt.qtbot import QtBot

# Before any QApplication is made.
import desktop.ui.review  # noqa: F401
from desktop import paths
from desktop.jobs.session import Session
from desktop.settings import Values
from desktop.settings.store import Store
from desktop.ui.main_window import MainWindow
from desktop.ui.theme import Appearance

WAIT = 30_000
"""Milliseconds the slowest machine may take for something that takes a moment."""


@pytest.fixture
def loop(qapp: object) -> Iterator[asyncio.AbstractEventLoop]:
    """asyncio on Qt's loop, which pytest-qt turns."""
    made = qasync.QEventLoop(qapp, already_running=True)
    yield made
    asyncio.events._set_running_loop(None)
    made._after_run_forever()
    qapp.aboutToQuit.disconnect()  # type: ignore[attr-defined]
    executor = made._QEventLoop__default_executor if hasattr(
        made, "_QEventLoop__default_executor") else None
    if executor is not None:
        executor.shutdown()


@pytest.fixture
def appearance(qapp: object) -> Iterator[Appearance]:
    """The light scheme, as every test begins with it."""
    made = Appearance(qapp, "light")  # type: ignore[arg-type]
    yield made
    made.setParent(None)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``script(pages=[…])``: what the scripted engine plays from now on."""
    def play(**content: object) -> None:
        monkeypatch.setenv("VERSO_SCRIPT", json.dumps(content))
    return play


@pytest.fixture
def session(verso_home: Path) -> Iterator[Session]:
    """A real session with the scripted engine, closed at the end."""
    made = Session(paths.data_dir() / "journal.sqlite", paths.cache_dir(),
                   Values({"engine": "scripted"}))
    yield made
    made.close()


@pytest.fixture
def window(qtbot: QtBot, session: Session, appearance: Appearance,
           loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
           ) -> Iterator[MainWindow]:
    """The whole window, open, with the plain rendering of results."""
    monkeypatch.setenv("VERSO_NO_WEBENGINE", "1")
    made = MainWindow(session, appearance, Store(), loop)
    made.resize(1280, 800)
    made.show()
    made.open()
    made.create_review()
    qtbot.waitExposed(made)
    yield made
    made.close()
    made.deleteLater()
    qtbot.wait(20)
