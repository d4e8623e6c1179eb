"""Every state of the window in light and dark, at three sizes: no word is cut off.

The pictures are kept in ``tests/_output/states`` to be looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QSpinBox,
    QStyle,
    QStyleOptionComboBox,
    QStyleOptionSpinBox,
    QTabBar,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from desktop.jobs.events import EngineState, EngineView
from desktop.models.download import Failed, Progress
from desktop.settings import Values
from desktop.settings.store import Store
from desktop.ui import findings
from desktop.ui.dialogs.model import ModelDialog
from desktop.ui.dialogs.report import Found, ReportDialog
from desktop.ui.dialogs.server_key import ServerKeyDialog
from desktop.ui.main_window import MainWindow
from desktop.ui.panels.fields import Switch
from desktop.ui.review.title import TitleTab
from desktop.ui.theme import Appearance, Theme
from desktop.ui.topbar import EnginePill
from desktop.ui.views import fitting
from tests.support.data import ROOT
from tests.ui.conftest import WAIT
from tests.ui.stage import (
    ENGINE_SETTINGS,
    INTERPRETER,
    MEMORY,
    SERVERS,
    STATES,
    VLLM,
    StagedSession,
)

OUT = ROOT / "tests" / "_output" / "states"
SIZES = ((1024, 700), (1280, 800), (1920, 1080))


def cut_words(window: QWidget) -> list[str]:
    """What cannot be read whole: text wider or higher than the room its widget has."""
    found = []
    for widget in window.findChildren(QWidget):
        if not widget.isVisible() or widget.width() <= 0 or widget.window() is not window:
            continue
        reason = _cut(widget) or _covered(widget, window)
        if reason:
            found.append(f"{type(widget).__name__} {reason}")
    return found


def looked_at(window: QWidget, qtbot: QtBot, shortened: list[str]) -> tuple[QPixmap, list[str]]:
    """Its picture and what is cut off in it, SHORTENED texts included. A lay-out that is under way
    gets the time to end, on a busy machine too: what stays cut off is."""
    for _look in range(20):
        shortened.clear()
        qtbot.wait(60)
        picture = window.grab()
        found = [*cut_words(window), *(f"shortened “{text}”" for text in shortened)]
        if not found:
            break
        qtbot.wait(200)
    return picture, found


def _cut(widget: QWidget) -> str:
    metrics = widget.fontMetrics()
    if isinstance(widget, QLabel) and widget.text() and widget.pixmap().isNull():
        room = widget.contentsRect()
        if widget.wordWrap():
            needed = metrics.boundingRect(
                QRect(0, 0, room.width(), 10_000), int(Qt.TextFlag.TextWordWrap), widget.text())
            if needed.height() > room.height() + 1 or needed.width() > room.width() + 1:
                return f"“{widget.text()}” needs {needed.size()}, has {room.size()}"
        elif widget.sizeHint().width() > widget.width() + 1:
            return f"“{widget.text()}” needs {widget.sizeHint().width()}, has {widget.width()}"
    elif isinstance(widget, TitleTab):
        if widget.sizeHint().width() > widget.width():
            return f"title needs {widget.sizeHint().width()}, has {widget.width()}"
    elif isinstance(widget, (EnginePill, QToolButton)):
        if (widget.isVisible() and widget.text() and widget.sizeHint().width() > widget.width()
                and widget.toolButtonStyle() != Qt.ToolButtonStyle.ToolButtonIconOnly):
            return f"“{widget.text()}” needs {widget.sizeHint().width()}, has {widget.width()}"
    elif isinstance(widget, QAbstractButton) and not isinstance(widget, Switch):
        if widget.text() and metrics.horizontalAdvance(widget.text()) > widget.width() - 8:
            return f"“{widget.text()}” has {widget.width()}"
    elif isinstance(widget, QComboBox):
        option = QStyleOptionComboBox()
        widget.initStyleOption(option)
        room = widget.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox, option,
            QStyle.SubControl.SC_ComboBoxEditField, widget)
        if metrics.horizontalAdvance(widget.currentText()) > room.width():
            return f"“{widget.currentText()}” has {room.width()}"
    elif isinstance(widget, QSpinBox):
        option_ = QStyleOptionSpinBox()
        widget.initStyleOption(option_)
        if metrics.horizontalAdvance(widget.text()) > widget.lineEdit().width():
            return f"“{widget.text()}” has {widget.lineEdit().width()}"
    elif isinstance(widget, QLineEdit) and not isinstance(widget.parent(), QSpinBox):
        if metrics.horizontalAdvance(widget.placeholderText()) > widget.width() - 8:
            return f"placeholder “{widget.placeholderText()}”"
    elif isinstance(widget, QTabBar):
        for index in range(widget.count()):
            if metrics.horizontalAdvance(widget.tabText(index)) > widget.tabRect(index).width():
                return f"tab “{widget.tabText(index)}”"
            if widget.tabRect(index).right() > widget.width():
                return f"tab “{widget.tabText(index)}” reaches out of its bar"
    return ""


def _covered(widget: QWidget, window: QWidget) -> str:
    """Whether a widget with words stands partly outside its parent (scroll areas excepted)."""
    if not isinstance(widget, (QLabel, QAbstractButton)) or not widget.text():  # type: ignore[union-attr]
        return ""
    parent = widget.parentWidget()
    if parent is None or parent.parentWidget() is None:
        return ""
    spot = QRect(widget.mapTo(window, QPoint(0, 0)), widget.size())
    room = window.rect()
    if spot.left() < room.left() - 1 or spot.right() > room.right() + 1:
        return f"“{widget.text()}” reaches out of the window"  # type: ignore[attr-defined]
    mine = QRect(widget.pos(), widget.size())
    if mine.right() > parent.width() + 1 or mine.left() < -1:
        return f"“{widget.text()}” reaches out of its parent"  # type: ignore[attr-defined]
    return ""


@pytest.fixture
def cuts() -> Iterator[list[str]]:
    """Texts the delegates had to shorten."""
    found: list[str] = []
    fitting.on_cut = found.append
    yield found
    fitting.on_cut = None


@pytest.fixture
def staged(qtbot: QtBot, appearance: Appearance, loop: asyncio.AbstractEventLoop,
           monkeypatch: pytest.MonkeyPatch
           ) -> Iterator[Callable[[str], tuple[MainWindow, StagedSession]]]:
    """``staged(state)``: a window in that state."""
    monkeypatch.setenv("VERSO_NO_WEBENGINE", "1")
    made: list[MainWindow] = []

    def build(state: str) -> tuple[MainWindow, StagedSession]:
        session = StagedSession(Values(
            ENGINE_SETTINGS.get(state.split("-")[0], {"engine": "scripted"})))
        window = MainWindow(session, appearance, Store(), loop)  # type: ignore[arg-type]
        made.append(window)
        window.resize(1280, 800)
        with qtbot.waitExposed(window, timeout=WAIT):
            window.show()
            window.open()
            window.create_review()
        STATES[state](session)
        qtbot.wait(80)
        if window.model.documents():
            window.queue.expand(window.model.index(0, 0))
        if state == "streaming":
            window.controller.show("1-37", by_person=False)
        elif state == "problems":
            window.show_bottom(window.problem_list)
        elif state == "password":
            window.queue.ask_password(4)
        elif state in ("settings-advanced", "vllm-advanced"):
            window.settings.set_advanced(True)
        if state in ("vllm-memory", "vllm-missing", "remote-gone"):
            window.show_bottom(window.problem_list)
        # The page is drawn and its result laid out before anybody looks.
        qtbot.wait(400)
        return window, session

    yield build
    for window in made:
        window.close()
        window.deleteLater()
    qtbot.wait(20)


@pytest.mark.parametrize("state", STATES)
def test_no_word_is_cut_off(state: str, staged: Callable[[str], tuple[MainWindow, StagedSession]],
                            appearance: Appearance, qtbot: QtBot, cuts: list[str]) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    window, _session = staged(state)
    wrong: list[str] = []
    for width, height in SIZES:
        window.resize(width, height)
        window.usual_sizes()
        for theme in ("light", "dark"):
            appearance.choose(theme)
            picture, found = looked_at(window, qtbot, cuts)
            assert picture.width() >= width
            picture.save(str(OUT / f"{state}-{theme}-{width}x{height}.png"))
            wrong += [f"{width}×{height} {theme}: {text}" for text in found]
    assert not wrong, "\n".join(wrong)


def test_no_word_is_cut_off_with_larger_text(
        staged: Callable[[str], tuple[MainWindow, StagedSession]], qapp: QApplication,
        qtbot: QtBot, cuts: list[str]) -> None:
    usual = qapp.font()
    larger = qapp.font()
    larger.setPointSizeF(usual.pointSizeF() * 1.5)
    qapp.setFont(larger)
    try:
        window, _session = staged("problems")
        for width, height in ((1280, 800), (1024, 700)):
            window.resize(width, height)
            window.usual_sizes()
            picture, wrong = looked_at(window, qtbot, cuts)
            picture.save(str(OUT / f"problems-150-percent-{width}x{height}.png"))
            assert not wrong, "\n".join(wrong)
    finally:
        qapp.setFont(usual)


def dialogs(theme: Theme) -> Iterator[tuple[str, QWidget]]:
    """The windows about engines, each as full as it gets."""
    def report(title: str, found: Found | None) -> ReportDialog:
        made = ReportDialog(title, theme, again=lambda: None, act=lambda _remedy: None)
        if found is None:
            made.wait("Looking at ~/venvs/ocr: torch and vLLM are loaded there, which may take a "
                      "minute.")
        else:
            made.show_found(found)
        return made

    yield "details", report("Engine", findings.engine(
        EngineView("vllm", EngineState.READY, ready=VLLM), "vLLM"))
    yield "failed", report("Engine", findings.engine(
        EngineView("vllm", EngineState.FAILED, problem=MEMORY), "vLLM"))
    yield "checking", report("Engine interpreter", None)
    yield "interpreter", report("Engine interpreter", findings.interpreter(INTERPRETER))
    yield "servers", report("Servers", findings.servers(SERVERS))
    values = Values({"engine": "vllm"})
    folder = Path("/home/ada/.local/share/verso/models/DeepSeek-OCR-2")
    for name, free, event in (
            ("model", 3_000_000_000, None),
            ("model-runs", 60_000_000_000,
             Progress("fetching", 2_400_000_000, 6_790_000_000, 4, 11, 48e6)),
            ("model-waits", 60_000_000_000,
             Progress("fetching", 2_400_000_000, 6_790_000_000, 4, 11, 0.0, 8.0,
                      "huggingface.co does not answer (ConnectTimeout)")),
            ("model-fails", 60_000_000_000, Failed(MEMORY))):
        box = ModelDialog(values, folder)
        box.set_room(free)
        if event is not None:
            box.set_running(True)
            box.show_event(event)
        yield name, box
    key = ServerKeyDialog(["http://gpu1:8000/v1", "http://gpu2:8000/v1"])
    key.show_source("keyring")
    yield "key", key


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_word_is_cut_off_in_the_windows_about_engines(
        scheme: str, appearance: Appearance, qtbot: QtBot) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    appearance.choose(scheme)
    wrong: list[str] = []
    for name, made in dialogs(appearance.theme):
        with qtbot.waitExposed(made, timeout=WAIT):
            made.show()
        picture, found = looked_at(made, qtbot, [])
        picture.save(str(OUT / f"dialog-{name}-{scheme}.png"))
        wrong += [f"{name}: {text}" for text in found]
        made.close()
        made.deleteLater()
    assert not wrong, "\n".join(wrong)


def test_the_check_sees_cut_words(qtbot: QtBot) -> None:
    """The check itself: a label that is too narrow is found."""
    host = QWidget()
    label = QLabel("a sentence that needs more room than it has", host)
    label.setFixedWidth(60)
    qtbot.addWidget(host)
    host.show()
    assert cut_words(host)
    label.setFixedWidth(label.sizeHint().width())
    host.resize(label.width() + 10, 40)
    qtbot.wait(20)
    assert cut_words(host) == []
