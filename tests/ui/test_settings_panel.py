"""The run settings: made from the declarations, whatever those become."""

from __future__ import annotations

import dataclasses

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QDoubleSpinBox,
    QLabel,
    QLineEdit,
    QSlider,
    QSpinBox,
)
from pytestqt.qtbot import QtBot

from desktop.engines import registry
from desktop.errors import Problem
from desktop.jobs.events import EngineState, EngineView, PageState, PageView
from desktop.protocol.messages import EngineReady
from desktop.settings import SETTINGS, Applies, Section, Setting, Value, Values
from desktop.ui.panels import notes
from desktop.ui.panels.fields import Addresses, Field, Switch
from desktop.ui.panels.settings import SettingsPanel, visible_and_advanced
from desktop.ui.tokens import DARK, LIGHT

ENGINES = [entry.name for entry in registry.ENGINES]
GIB = 1 << 30


def another(setting: Setting) -> Value:
    """A valid value that is not the default."""
    if setting.kind is bool:
        return not setting.default
    if setting.choices:
        return next((key for key in setting.choices if key != setting.default), setting.default)
    if setting.kind in (int, float):
        least = setting.minimum if setting.minimum is not None else 0
        return setting.kind(least if setting.default != least else setting.maximum or 1)
    if setting.key == "devices":
        return "0,1"
    return "/somewhere" if setting.is_path else "text"


@pytest.mark.parametrize("setting", [s for s in SETTINGS if s.key != "engine"],
                         ids=lambda s: s.key)
def test_every_setting_has_a_control_that_shows_and_gives_its_values(
        setting: Setting, qtbot: QtBot) -> None:
    value = another(setting)
    field = Field(setting, value)
    qtbot.addWidget(field)
    given: list[object] = []
    field.changed.connect(lambda _key, new: given.append(new))
    control = field.control
    assert control.accessibleName()
    assert control.toolTip()
    kinds = {bool: Switch, int: QSpinBox, float: (QSlider, QDoubleSpinBox)}
    expected = QComboBox if setting.choices else kinds.get(setting.kind, QLineEdit)
    if setting.key == "servers":
        expected = Addresses
    assert isinstance(control, expected)
    field.set_value(setting.default)
    assert given == []  # showing is not changing
    if isinstance(control, Switch):
        control.click()
    elif isinstance(control, QComboBox):
        control.setCurrentIndex(control.findData(value))
        control.activated.emit(control.currentIndex())
    elif isinstance(control, (QSpinBox, QDoubleSpinBox)):
        control.setValue(value)  # type: ignore[arg-type]
    elif isinstance(control, QSlider):
        control.setValue(control.minimum())
    elif isinstance(control, Addresses):
        control.setPlainText(str(value))
        control.given.emit()
        control.given.emit()  # left once more, unchanged
    elif isinstance(control, QLineEdit):
        control.setText(str(value))
        control.editingFinished.emit()
    assert len(given) == 1
    assert Values().with_(**{setting.key: given[0]})[setting.key] == given[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_at_most_eight_are_shown_and_none_is_missing(engine: str) -> None:
    shown, more = visible_and_advanced(engine)
    assert len(shown) <= 8
    assert shown[0].key == "engine"
    expected = {s.key for s in SETTINGS if s.applies_to(engine) and s.panel
                and s.section is not Section.APPEARANCE}
    assert {s.key for s in shown + more} == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_every_setting_carries_a_badge(engine: str, qtbot: QtBot) -> None:
    panel = SettingsPanel(Values({"engine": engine}), LIGHT)
    qtbot.addWidget(panel)
    shown, more = visible_and_advanced(engine)
    for setting in shown + more:
        assert panel._rows[setting.key].badge.text() == notes.badge(setting.applies)
    beside = [setting for setting in more if setting.key == "custom_prompt"]
    assert panel._more.text() == f"Advanced ({len(more) - len(beside)})"
    assert {notes.badge(a) for a in Applies} == {"now", "next page", "engine restart"}


def test_another_engine_has_other_settings(qtbot: QtBot) -> None:
    panel = SettingsPanel(Values(), LIGHT)
    qtbot.addWidget(panel)
    assert "text_layer" in panel._rows
    panel.set_values(Values({"engine": "scripted"}))
    assert "text_layer" not in panel._rows
    assert "crop" in panel._rows
    panel.apply_theme(DARK)


def test_crop_mode_says_what_the_page_costs() -> None:
    page = PageView("1-1", 1, 1, PageState.COMPLETE, width=1190, height=1684)
    values = Values({"engine": "scripted"})
    assert notes.crop_cost(values, page) == "This page: 2×3 tiles · 1,121 visual tokens"
    assert notes.crop_cost(values.with_(crop="off"), page) == (
        "This page: one view · 257 visual tokens")
    assert "No page" in notes.crop_cost(values, None)


READY = EngineReady("x", "m", "NPU 0", 32, int(27.1 * GIB), 32 * GIB, 118_000, 8_192)


@pytest.mark.parametrize(("key", "text"), [
    ("memory_utilization", "engine holds 27.1 GB of 32.0 GB · 118,000 tokens of cache"),
    ("concurrency", "The engine reads 32 at once."),
    ("max_tokens", "The engine's context is 8,192 tokens."),
    ("dpi", ""),
])
def test_what_the_engine_got_stands_under_what_was_asked(key: str, text: str) -> None:
    assert notes.got(key, READY) == text
    assert notes.got(key, None) == ""


def test_an_engine_that_failed_says_why_and_can_be_tried_again(qtbot: QtBot) -> None:
    panel = SettingsPanel(Values(), LIGHT)
    qtbot.addWidget(panel)
    panel.show()
    panel.set_engine(EngineView("embedded", EngineState.FAILED, problem=Problem(
        "engine.x", "It cannot start.", "Do this.")))
    assert panel._chooser.problem.text() == "It cannot start. Do this."
    with qtbot.waitSignal(panel.retry_wanted, timeout=60_000):
        panel._chooser.again.click()
    panel.set_engine(EngineView("embedded", EngineState.READY, ready=READY))
    assert not panel._chooser.problem.isVisible()
    assert "NPU 0" in panel._chooser.note.text()


def test_a_setting_that_the_running_engine_does_not_have_yet_says_so(qtbot: QtBot) -> None:
    """Pages in flight apply at once, until they are more than the engine was started for."""
    panel = SettingsPanel(Values({"engine": "vllm", "concurrency": 128}), LIGHT)
    qtbot.addWidget(panel)
    row = panel._rows["concurrency"]
    ready = dataclasses.replace(EngineView("vllm", EngineState.READY), ready=READY)
    panel.set_engine(dataclasses.replace(ready, outdated=("concurrency",)))
    assert row.badge.text() == "engine restart"
    assert row.badge.property("role") == "badge-warning"
    assert row.note.text() == ("The engine is started again for this before the next page. "
                               "The engine reads 32 at once.")
    assert panel._rows["max_tokens"].badge.text() == "next page"
    panel.set_engine(ready)
    assert row.badge.text() == "now"
    assert row.badge.property("role") == "badge"
    assert row.note.text() == "The engine reads 32 at once."


def test_what_another_engine_got_is_not_said_of_the_chosen_one(qtbot: QtBot) -> None:
    panel = SettingsPanel(Values(), LIGHT)
    qtbot.addWidget(panel)
    panel.set_engine(EngineView("embedded", EngineState.READY, ready=READY))
    assert "NPU 0" in panel._chooser.note.text()
    panel.set_values(Values({"engine": "remote", "servers": "http://gpu1:8000/v1"}))
    assert panel._chooser.note.text() == ""
    assert panel._rows["max_tokens"].note.text() == ""


def test_an_engine_that_is_not_there_says_what_to_install(
        qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = dataclasses.replace(registry.ENGINES[0], name="far", title="Far away",
                                  needs=("no_such_module",))
    monkeypatch.setattr(registry, "ENGINES", (*registry.ENGINES, missing))
    panel = SettingsPanel(Values(), LIGHT)
    qtbot.addWidget(panel)
    texts = [label.text() for label in panel.findChildren(QLabel)]
    assert any("no_such_module" in text and "pip install" in text for text in texts)
    box = panel._chooser.box
    item = box.model().item(box.findData("far"))  # type: ignore[attr-defined]
    assert not item.isEnabled()


def test_an_engine_that_another_python_may_run_can_be_chosen_all_the_same(
        qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    vllm = dataclasses.replace(registry.entry("vllm"), needs=("no_such_module",))
    monkeypatch.setattr(registry, "ENGINES", tuple(
        vllm if entry.name == "vllm" else entry for entry in registry.ENGINES))
    panel = SettingsPanel(Values(), LIGHT)
    qtbot.addWidget(panel)
    panel.show()
    box = panel._chooser.box
    row = box.findData("vllm")
    assert box.itemText(row) == "vLLM (not installed)"
    assert box.model().item(row).isEnabled()  # type: ignore[attr-defined]
    assert not panel._chooser.missing.isVisible()  # nobody asked for it
    panel.set_values(Values({"engine": "vllm"}))
    chooser = panel._chooser
    assert "no_such_module" in chooser.missing.text()
    assert "pip install no_such_module" in chooser.missing.text()
    with qtbot.waitSignal(panel.remedy_wanted, timeout=60_000) as wanted:
        chooser.remedy.click()
    panel.show_setting(wanted.args[0].key)
    field = panel._fields["engine_interpreter"]
    qtbot.waitUntil(field.isVisible, timeout=60_000)
    # with an interpreter it is judged there, when it starts
    panel.set_values(Values({"engine": "vllm", "engine_interpreter": "/opt/x/bin/python"}))
    assert not panel._chooser.missing.isVisible()
    assert panel._chooser.box.itemText(row) == "vLLM"


def test_settings_of_a_task_and_of_a_preset_are_shown_with_it_only(qtbot: QtBot) -> None:
    panel = SettingsPanel(Values({"engine": "vllm"}), LIGHT)
    qtbot.addWidget(panel)
    panel.show()
    panel.set_advanced(True)
    rows = panel._rows
    for key in ("custom_prompt", "ngram_size", "ngram_window"):
        assert not rows[key].isVisible()
    panel.set_values(Values({"engine": "vllm", "prompt": "custom", "ngram_preset": "custom"}))
    for key in ("custom_prompt", "ngram_size", "ngram_window"):
        assert panel._rows[key].isVisible()
    panel.set_values(Values({"engine": "vllm", "ngram_preset": "custom", "ngram": "off"}))
    assert not panel._rows["ngram_size"].isVisible()


@pytest.mark.parametrize(("engine", "last"), [("vllm", "memory_utilization"),
                                              ("remote", "servers")])
def test_the_eight_that_are_shown_at_once(engine: str, last: str) -> None:
    shown, more = visible_and_advanced(engine)
    assert {setting.key for setting in shown} == {
        "engine", "prompt", "crop", "dpi", "max_tokens", "concurrency", "loop_guard", last}
    if engine == "vllm":
        assert [setting.key for setting in more[:2]] == ["model", "engine_interpreter"]


def test_servers_are_entered_one_a_line(qtbot: QtBot) -> None:
    panel = SettingsPanel(Values({"engine": "remote", "servers": "http://a:1/v1 http://b:2"}),
                          LIGHT)
    qtbot.addWidget(panel)
    field = panel._fields["servers"]
    control = field.control
    assert isinstance(control, Addresses)
    assert control.toPlainText() == "http://a:1/v1\nhttp://b:2"
    control.setPlainText("http://a:1/v1\n\n http://c:3, http://d:4\n")
    heard: list[tuple[object, ...]] = []
    panel.changed.connect(lambda *args: heard.append(args))
    panel.action_wanted.connect(lambda *args: heard.append(args))
    field.buttons["probe"].click()  # what stands there counts
    assert heard == [("servers", "http://a:1/v1 http://c:3 http://d:4"), ("probe",)]


def test_the_wheel_scrolls_the_panel_and_changes_nothing(qtbot: QtBot) -> None:
    panel = SettingsPanel(Values(), LIGHT)
    qtbot.addWidget(panel)
    panel.show()
    spin = panel._fields["dpi"].control
    assert isinstance(spin, QSpinBox)
    before = spin.value()
    wheel = QWheelEvent(QPointF(5, 5), QPointF(5, 5), QPoint(0, 0), QPoint(0, -120),
                        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
                        Qt.ScrollPhase.NoScrollPhase, False)
    QApplication.sendEvent(spin, wheel)
    assert spin.value() == before
