"""The window on a real session with the scripted engine; pages come from real files."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import qasync
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

# Before any QApplication is made.
import desktop.ui.review  # noqa: F401
from desktop.jobs.session import Session
from desktop.settings import Values
from desktop.settings.store import Store
from desktop.ui.main_window import MainWindow
from desktop.ui.theme import Appearance

WAIT = 120_000
"""Milliseconds the slowest machine may take for something that takes a moment."""


@pytest.fixture(scope="module")
def loop(qapp: QApplication) -> Iterator[asyncio.AbstractEventLoop]:
    """asyncio on Qt's loop, which pytest-qt turns."""
    made = qasync.QEventLoop(qapp, already_running=True)
    yield made
    qapp.aboutToQuit.disconnect(made._after_run_forever)
    made._after_run_forever()
    asyncio.events._set_running_loop(None)
    # A loop that runs already cannot be closed; its threads must not outlive the application.
    executor = made._QEventLoop__default_executor
    if executor is not None:
        executor.shutdown()


@pytest.fixture(scope="module")
def appearance(qapp: QApplication) -> Iterator[Appearance]:
    """The light scheme, as every module begins with it."""
    made = Appearance(qapp, "light")
    yield made
    made.setParent(None)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``script(pages=[…])``: what the scripted engine plays. The test gets a session of its
    own."""
    def play(**content: object) -> None:
        monkeypatch.setenv("VERSO_SCRIPT", json.dumps(content))
    return play


@contextlib.contextmanager
def opened(home: Path, appearance: Appearance,
           loop: asyncio.AbstractEventLoop, *, review: bool = True) -> Iterator[MainWindow]:
    """The whole window on a real session with the scripted engine, with the plain rendering;
    without REVIEW its pane is still to be made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERSO_NO_WEBENGINE", "1")
        patch.setenv("VERSO_CONFIG_DIR", str(home / "config"))
        session = Session(home / "journal.sqlite", home / "cache", Values({"engine": "scripted"}))
        window = MainWindow(session, appearance, Store(), loop)
        window.resize(1280, 800)
        window.show()
        window.open()
        if review:
            window.create_review()
            window.load_rendering()
        QApplication.processEvents()
        try:
            yield window
        finally:
            window.close()
            session.close()
            window.deleteLater()
            QApplication.processEvents()


@pytest.fixture(scope="module")
def shared_window(appearance: Appearance, loop: asyncio.AbstractEventLoop,
                  tmp_path_factory: pytest.TempPathFactory) -> Iterator[MainWindow]:
    """One window for the tests of a module that need no script of their own."""
    with opened(tmp_path_factory.mktemp("window"), appearance, loop) as window:
        yield window


@pytest.fixture
def window(request: pytest.FixtureRequest, qtbot: QtBot) -> Iterator[MainWindow]:
    """A window with an empty queue: the module's, or a new one for a test with a script."""
    if "script" in request.fixturenames:
        home = request.getfixturevalue("verso_home")
        with opened(home, request.getfixturevalue("appearance"),
                    request.getfixturevalue("loop")) as made:
            yield made
        return
    shared: MainWindow = request.getfixturevalue("shared_window")
    yield shared
    shared.session.remove([document.id for document in shared.model.documents()])
    qtbot.waitUntil(lambda: not shared.model.documents() and not shared.problems.problems,
                    timeout=WAIT)
    shared.commands.change_setting("dpi", 144)
    shared.controller.set_follow(True)
    shared.bottom_dock.hide()
    shared.toast._next = None
    shared.toast.text.clear()
    shared.toast.hide()
