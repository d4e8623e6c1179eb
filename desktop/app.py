"""The application with a window: the only place that wires its parts together."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from desktop import log as logs
from desktop import paths
from desktop.errors import Problem, VersoError
from desktop.i18n import N_, _, set_language
from desktop.ui import display
from desktop.ui.signals import SignalWatch

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from desktop.jobs.session import Session
    from desktop.ui.main_window import MainWindow
    from desktop.ui.single import SingleInstance

log = logging.getLogger(__name__)


class WindowBusy(VersoError):
    """A window has the journal but does not answer."""

    code = "window.busy"
    message = N_("Another Verso window is open and does not answer.")
    hint = N_("Close it, or end its process, and start again.")


def prepare_environment() -> None:
    """What has to be set before the QApplication is made."""
    os.environ.setdefault("QT_API", "pyside6")
    # Importing it sets what Qt and Chromium read from the environment at their start.
    importlib.import_module("desktop.ui.review")


def run(files: Sequence[Path] = (), *, debug: bool = False) -> int:
    """Open the window with FILES queued, until it is closed; the exit status.

    When a window is open already, FILES are handed to it. Raises NoDisplay, MissingLibrary.
    """
    signals = SignalWatch()
    try:
        return _run(list(files), debug, signals)
    finally:
        signals.close()


def _run(files: list[Path], debug: bool, signals: SignalWatch) -> int:
    logs.start("verso", debug=debug)
    display.check()
    prepare_environment()
    logs.catch_unhandled()
    from PySide6.QtCore import QCoreApplication
    from PySide6.QtWidgets import QApplication

    QCoreApplication.setApplicationName("Verso")
    QCoreApplication.setOrganizationName("Verso")
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    app.setDesktopFileName("verso")
    app.setQuitOnLastWindowClosed(False)

    from desktop.ui.single import SingleInstance

    single = SingleInstance()
    if not single.claim():
        if single.hand_over(files):
            return 0
        print(WindowBusy().problem().line(), file=sys.stderr)
        return 1
    try:
        return _run_window(app, single, files, signals)
    finally:
        single.release()


def _run_window(app: QApplication, single: SingleInstance, files: list[Path],
                signals: SignalWatch) -> int:
    import qasync

    from desktop.jobs.session import Session
    from desktop.settings.store import Store
    from desktop.ui.main_window import MainWindow
    from desktop.ui.theme import Appearance

    store = Store()
    values, problems = store.load()
    set_language(values["language"], paths.resources() / "translations")
    appearance = Appearance(app, values["theme"])
    try:
        session = Session(paths.data_dir() / paths.JOURNAL, paths.cache_dir(), values)
    except VersoError as error:
        return _say_and_end(app, error.problem(), signals)
    loop = qasync.QEventLoop(app)
    asyncio.set_event_loop(loop)
    with loop:
        window = MainWindow(session, appearance, store, loop)
        single.files_came.connect(window.add)
        single.files_came.connect(window.bring_to_front)
        for problem in problems:
            window.show_problem(problem)
        closed = asyncio.Event()
        window.closed.connect(closed.set)
        signals.watch(window.close)
        loop.run_until_complete(_live(window, session, files, closed))
    asyncio.set_event_loop(None)
    return 0


async def _live(window: MainWindow, session: Session, files: list[Path],
                closed: asyncio.Event) -> None:
    """From the first picture of the window to the end of every process behind it."""
    window.show()
    window.open()
    window.add(files)
    await bring_up(window, session, closed)
    await closed.wait()
    # Off the window's thread: it may take seconds until the last process is gone.
    await asyncio.to_thread(window.commands.benchmark.measuring.wait)
    await asyncio.to_thread(session.close)


async def bring_up(window: MainWindow, session: Session, closed: asyncio.Event) -> None:
    """Everything that is not needed to see the window, one step at a time.

    Between the steps the window answers. The engine comes last: it would compete for the processor
    with Chromium's start, which is the step that the window waits for longest.
    """
    await asyncio.sleep(0.03)  # the window is on the screen before anything else is loaded
    with contextlib.suppress(ImportError):  # without the web engine the plain view serves
        await asyncio.to_thread(_load_libraries)
    for step in (window.create_review, window.load_rendering):
        if closed.is_set():
            return
        step()
        await asyncio.sleep(0.02)
    if not closed.is_set():
        session.warm_up()


def _load_libraries() -> None:
    """On a thread: the libraries that the review pane and its rendering need."""
    from desktop.ui.review import web_engine_wanted

    importlib.import_module("desktop.ui.review.pane")
    if web_engine_wanted():
        importlib.import_module("desktop.ui.review.web")


def _say_and_end(app: object, problem: Problem, signals: SignalWatch) -> int:
    """Nothing can run: say so in a window of its own, and on the terminal."""
    from PySide6.QtWidgets import QMessageBox

    print(problem.line(), file=sys.stderr)
    box = QMessageBox(QMessageBox.Icon.Critical, "Verso", problem.message)
    box.setInformativeText(problem.hint)
    box.addButton(_("Close"), QMessageBox.ButtonRole.AcceptRole)
    signals.watch(box.reject)
    box.exec()
    return 1
