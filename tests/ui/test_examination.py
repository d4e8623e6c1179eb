"""The page that says what the doctor found: on this machine, and on one with NPUs and faults."""

from __future__ import annotations

import functools
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema
import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAccessible, QGuiApplication, QShortcut
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from desktop.client import probing
from desktop.doctor import diagnosis, engines
from desktop.errors import Problem
from desktop.jobs.events import EngineState, EngineView
from desktop.ui.dialogs.examination import ExaminationDialog
from desktop.ui.main_window import MainWindow
from desktop.ui.panels.chooser import EngineChooser
from desktop.ui.remedies import remedy
from desktop.ui.tokens import DARK
from tests.doctor import ascend_tree
from tests.doctor.test_doctor import schema
from tests.support import programs
from tests.ui.conftest import WAIT

Open = Callable[[], ExaminationDialog]


@pytest.fixture
def page(window: MainWindow, qtbot: QtBot) -> Iterator[Open]:
    """Opens the page by its action, which has a key and stands in the menu."""
    assert window.actions_["examine"].shortcut().toString() == "Ctrl+Shift+D"

    def by_action() -> ExaminationDialog:
        window.actions_["examine"].trigger()
        found = window.commands._dialogs["examination"]
        assert isinstance(found, ExaminationDialog)
        return found

    yield by_action
    for dialog in list(window.commands._dialogs.values()):
        dialog.close()
    window.commands.tools.examining.close()


@pytest.fixture(autouse=True)
def quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is loaded to look at an engine but in the test that is about this machine."""
    if request.function is not test_what_is_found_on_this_machine:
        monkeypatch.setattr(engines, "examine",
                            functools.partial(engines.examine, thorough=False))


@pytest.fixture
def npus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with two NPUs and two faults."""
    tree = ascend_tree.healthy(tmp_path / "machine")
    tree.drop("/dev/devmm_svm")
    tree.versions["vllm"] = "0.19.1"
    monkeypatch.setattr(diagnosis, "_ascend", lambda *_what: tree.look())


def answered(page: ExaminationDialog, qtbot: QtBot) -> ExaminationDialog:
    with qtbot.waitSignal(page.complete, timeout=WAIT):
        pass
    return page


def test_what_is_found_on_this_machine(page: Open, qtbot: QtBot) -> None:
    dialog = page()
    assert dialog.shown is None
    assert dialog.progress.isVisible()
    assert not dialog.copy.isEnabled()
    answered(dialog, qtbot)
    assert dialog.shown is not None
    assert not dialog.progress.isVisible()
    headings = [label.text() for label in dialog.findChildren(QLabel)
                if label.property("role") == "heading"]
    assert headings[:3] == ["Machine", "Built-in engine", "GPU"]
    assert "Remote servers" in headings
    titles = {frame.row.title for frame in dialog.rows}
    assert {"Memory", "Python", "Built in", "vLLM server"} <= titles
    dialog.copy.click()
    copied = QGuiApplication.clipboard().text()
    assert copied.startswith("Verso ")
    assert "MACHINE" in copied
    assert "Built in (embedded)" in copied


def test_faults_are_told_in_words_and_colours(page: Open, qtbot: QtBot, npus: None) -> None:
    dialog = answered(page(), qtbot)
    assert "2 things are wrong" in dialog.more.text()
    assert dialog.more.property("role") == "error"
    frames = {frame.row.title: frame for frame in dialog.rows}
    nodes = frames["Device nodes"]
    assert nodes.verdict.text() == "wrong"
    assert nodes.verdict.property("role") == "error"
    said = [label.text() for label in nodes.findChildren(QLabel)]
    assert any("devmm_svm" in text for text in said)
    assert any("--device /dev/devmm_svm" in text for text in said)
    assert frames["CANN"].verdict.property("role") == "ok"
    assert frames["vLLM"].row.problems  # the version's row
    assert "pip install vllm==0.18.0" in "\n".join(
        label.text() for label in frames["vLLM"].findChildren(QLabel))


def test_the_keyboard_and_the_screen_reader(page: Open, qtbot: QtBot, npus: None) -> None:
    dialog = answered(page(), qtbot)
    dialog.rows[0].setFocus()
    for _step in range(3):
        qtbot.keyClick(dialog.focusWidget(), Qt.Key.Key_Down)
    assert dialog.focusWidget() is dialog.rows[3]
    qtbot.keyClick(dialog.focusWidget(), Qt.Key.Key_Up)
    assert dialog.focusWidget() is dialog.rows[2]
    # Only one of them is a stop of the Tab key.
    assert [frame for frame in dialog.rows if frame.focusPolicy() & Qt.FocusPolicy.TabFocus] == [
        dialog.rows[0]]
    nodes = next(frame for frame in dialog.rows if frame.row.title == "Device nodes")
    interface = QAccessible.queryAccessibleInterface(nodes)
    name = interface.text(QAccessible.Text.Name)
    assert name.startswith("Device nodes: davinci0, davinci1 [wrong] The control nodes devmm_svm")
    for button in dialog.findChildren(QPushButton):
        assert QAccessible.queryAccessibleInterface(button).text(QAccessible.Text.Name)
    nodes.setFocus()
    qtbot.keyClick(nodes, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text().startswith("Device nodes: davinci0")
    # Reached by the arrows, a row comes into sight.
    last = dialog.rows[-1]
    dialog.rows[-2].setFocus()
    qtbot.keyClick(dialog.rows[-2], Qt.Key.Key_Down)
    seen = last.mapTo(dialog._area.viewport(), last.rect().topLeft()).y()
    assert 0 <= seen < dialog._area.viewport().height()


def test_it_is_asked_again_and_saved(page: Open, window: MainWindow, qtbot: QtBot,
                                     tmp_path: Path) -> None:
    dialog = answered(page(), qtbot)
    first = dialog.shown
    shortcut, = dialog.findChildren(QShortcut)
    assert shortcut.key().toString() == "F5"
    shortcut.activated.emit()
    assert dialog.progress.isVisible()
    assert dialog.rows  # the last answer stays in sight
    answered(dialog, qtbot)
    assert dialog.shown is not first
    assert window.commands._dialogs["examination"] is page()  # once
    target = tmp_path / "report.json"
    window.commands.tools.examining.save(dialog, target)
    qtbot.waitUntil(target.exists, timeout=WAIT)
    jsonschema.validate(json.loads(target.read_text("utf-8")), schema())
    qtbot.waitUntil(lambda: str(target) in window.toast.text.text(), timeout=WAIT)
    (tmp_path / "file").write_text("")
    window.commands.tools.examining.save(dialog, tmp_path / "file" / "report.json")
    qtbot.waitUntil(lambda: "cannot be saved" in window.toast.text.text(), timeout=WAIT)


def test_the_window_goes_on_meanwhile_and_nothing_is_left(
        page: Open, window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path, no_process_left: Callable[[], list[str]]) -> None:
    """With a driver's tool that hangs: it is on a thread, and ends with the page."""
    programs.write(tmp_path / "nvidia-smi", "#!/bin/sh\nsleep 600\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    turns = [0]
    beat = QTimer(window)
    beat.setInterval(5)
    beat.timeout.connect(lambda: turns.__setitem__(0, turns[0] + 1))
    beat.start()
    dialog = page()
    qtbot.waitUntil(lambda: any("sleep 600" in line for line in no_process_left()), timeout=WAIT)
    turned = turns[0]
    qtbot.waitUntil(lambda: turns[0] > turned + 20, timeout=WAIT)
    beat.stop()
    assert dialog.shown is None
    assert "the machine" in dialog.more.text()
    begin = time.monotonic()
    dialog.close()
    window.commands.tools.examining.close()
    assert time.monotonic() - begin < 600
    qtbot.waitUntil(lambda: not any("sleep 600" in line for line in no_process_left()),
                    timeout=WAIT)


@pytest.mark.logs_errors
def test_a_failure_is_told_and_it_can_be_asked_again(
        page: Open, window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_values: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    with monkeypatch.context() as broken:
        broken.setattr(diagnosis, "_ascend", fails)
        dialog = page()
        qtbot.waitUntil(lambda: "Something went wrong" in dialog.summary.text(), timeout=WAIT)
    assert not dialog.progress.isVisible()
    assert not dialog.copy.isEnabled()
    dialog.again.click()
    answered(dialog, qtbot)
    assert dialog.copy.isEnabled()


def test_what_is_asked_within_a_thread_is_cancelled() -> None:
    cancel = threading.Event()
    answers: list[probing.Answer] = []

    def work() -> None:
        with probing.cancelled_by(cancel):
            answers.append(probing.ask(["sleep", "600"], seconds=600))
        answers.append(probing.ask(["true"], seconds=60))

    thread = threading.Thread(target=work)
    thread.start()
    cancel.set()
    thread.join(60)
    assert [answer.cancelled for answer in answers] == [True, False]
    assert answers[1].status == 0


def test_it_is_offered_where_an_engine_fails(page: Open, window: MainWindow,
                                             qtbot: QtBot) -> None:
    offer = remedy(Problem("worker.died", "The engine stopped.", "Look at the log."))
    assert offer is not None
    assert offer.action == "examine"
    window.commands.tools.remedy(offer)
    assert "examination" in window.commands._dialogs
    window.commands._dialogs["examination"].close()
    chooser = window.settings.findChild(EngineChooser)
    assert chooser is not None
    memory = Problem("vllm.memory", "Too little.", "Lower it.")
    for problem, buttons in ((memory, [True, True]),
                             (Problem("worker.died", "Stopped.", "Again."), [False, True])):
        chooser.show_engine(EngineView("vllm", EngineState.FAILED, problem=problem))
        assert [not chooser.remedy.isHidden(), not chooser.examine.isHidden()] == buttons
    chooser.show_engine(EngineView("vllm", EngineState.FAILED, problem=memory))
    chooser.examine.click()
    assert "examination" in window.commands._dialogs
    chooser.show_engine(window.engine)
    assert chooser.examine.isHidden() == (window.engine.state is not EngineState.FAILED)
    window.commands.tools.fill_menu()
    assert "Examine this machine…" in [
        action.text() for action in window.top.engine_menu.actions()]
    assert "Examine this machine…" in [
        action.text() for action in window.top.gear_menu.actions()]


def test_what_can_be_done_at_once_is_a_button(page: Open, window: MainWindow,
                                              qtbot: QtBot) -> None:
    dialog = answered(page(), qtbot)
    row = next(frame for frame in dialog.rows if frame.row.title == "DeepSeek-OCR-2")
    if not row.row.problems:
        pytest.skip("the model is on this machine")
    button, = row.findChildren(QPushButton)
    assert button.text() == "Get the model…"
    button.click()
    assert "model" in window.commands._dialogs


def test_dark_and_another_language(page: Open, window: MainWindow, qtbot: QtBot) -> None:
    dialog = answered(page(), qtbot)
    before = len(dialog.rows)
    dialog.apply_theme(DARK)
    answered(dialog, qtbot)
    assert len(dialog.rows) == before
    window.commands.say_everything_again()
    again = window.commands._dialogs["examination"]
    assert isinstance(again, ExaminationDialog)
    assert again is not dialog
    answered(again, qtbot)
    assert len(again.rows) == before
