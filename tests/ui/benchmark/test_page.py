"""The page Benchmark in the real window, on the scripted engine: tests from beginning to end, keys,
words."""

from __future__ import annotations

import csv
import gettext
import json
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QGuiApplication, QImage
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from desktop import i18n
from desktop.jobs.benchmarks import BenchmarkRow
from desktop.jobs.events import EngineState, PageState
from desktop.ui.benchmark.measuring import Phase
from desktop.ui.benchmark.past import PastDialog
from desktop.ui.benchmark.saving import FORMATS
from desktop.ui.benchmark.wish import Wish
from desktop.ui.main_window import MainWindow
from tests.ui.benchmark.driving import PAGE, QUICK, Open, opened, run
from tests.ui.conftest import WAIT
from tests.ui.test_language import OWN_NAMES, Marked, untranslated

USED = (QAbstractButton, QComboBox, QAbstractSpinBox, QLineEdit, QAbstractItemView)


def test_a_test_from_beginning_to_end(bench: Open, qtbot: QtBot, tmp_path: Path) -> None:
    window, tab, page = bench()
    assert page.stack.currentWidget() is page.teaching
    assert not window.queue_dock.isVisible()
    assert not window.top.button("export").isEnabled()
    seen: list[Phase] = []
    lent: list[bool] = []
    busy: list[bool] = []
    tab.measuring.phase_changed.connect(lambda: seen.append(tab.measuring.phase))
    tab.measuring.phase_changed.connect(lambda: lent.append(window.use.lent))
    # A bar that has been busy goes on being animated, which costs more than the whole page.
    tab.measuring.phase_changed.connect(lambda: busy.append(page.live.bar.maximum() == 0))
    run(tab, page, qtbot)
    assert not any(busy)
    assert seen == [Phase.OPENING, Phase.RUNNING, Phase.IDLE]
    assert lent == [False, True, False]

    # the table: a row a level, its rounds under it
    rows = page.shown.rows
    assert [row.concurrency for row in rows] == [1, 2]
    assert page.model.rowCount() == 2
    first = page.model.index(0, 0)
    assert page.model.rowCount(first) == 2
    keys = [column.key for column in page.model.columns]
    cell = page.model.index(1, keys.index("output"))
    assert page.model.data(cell) == rows[1].output.text
    # twice as many pages at once is twice as fast here, but for what the machine takes
    assert rows[0].output.mean is not None
    assert rows[1].output.mean is not None
    assert rows[1].output.mean > 1.2 * rows[0].output.mean

    # two levels, the second far faster: it is offered, but no knee
    assert page.shown.knee == 2
    assert page.shown.reached is None
    assert not page.throughput.knee_line.isVisible()
    assert any("knee was not reached" in page.remarks.item(line).text()
               for line in range(page.remarks.count()))
    level = page.model.index(1, 0)
    assert page.model.data(level) == "2 · fastest"
    assert "faster still" in page.apply.toolTip()
    assert page.model.data(level, Qt.ItemDataRole.BackgroundRole).name() == (
        window.appearance.theme.badge_warning)
    assert page.model.data(first, Qt.ItemDataRole.BackgroundRole) is None
    xs, ys = page.throughput.curve.getData()
    assert list(xs) == [0, 1]
    assert list(ys) == [row.output.mean for row in rows]
    assert len(page.throughput.reference.getData()[0]) == 6
    assert page.throughput.reference_text.toPlainText() == "CANN recipe (Atlas A2)"
    assert list(page.latency.curve.getData()[1]) == [
        row.latency.p50 for row in rows if row.latency]
    assert "at once" in page.throughput.plot.accessibleDescription()

    # latencies are a table of their own, filled when it is looked at
    assert page.times_model.rowCount() == 0
    page.tabs.setCurrentWidget(page.times)
    assert page.times_model.rowCount() == 2
    times = [column.key for column in page.times_model.columns]
    assert {"ttft", "tpot", "itl", "latency"} <= set(times)
    assert rows[1].latency is not None
    assert page.times_model.data(
        page.times_model.index(1, times.index("latency"))) == rows[1].latency.text
    page.tabs.setCurrentWidget(page.table)

    # use this
    page.apply.click()
    assert window.session.values["concurrency"] == 2

    # what was measured, and how to measure it again
    assert "m-1" in page.note.text()
    tab.copy_command()
    assert QGuiApplication.clipboard().text().startswith("verso bench --concurrent 1,2")

    # files
    for form in FORMATS:
        tab.exporting.save(form, tmp_path / f"run.{form.suffix}")
    qtbot.waitUntil(lambda: all((tmp_path / f"run.{form.suffix}").exists() for form in FORMATS),
                    timeout=WAIT)
    found = json.loads((tmp_path / "run.json").read_text("utf-8"))
    assert [level["output_tps"] for level in found["levels"]] == [
        row.output.mean for row in rows]
    assert found["knee"] == 2
    assert found["engine"]["model"] == "m-1"
    with open(tmp_path / "run.csv", encoding="utf-8") as file:
        assert len(list(csv.reader(file))) == 5
    assert "| 2 |" in (tmp_path / "run.md").read_text("utf-8")
    picture = QImage(str(tmp_path / "run.png"))
    assert picture.width() > 2 * page.charts.width()

    # the history: shown again, compared
    tab.show_past()
    dialog = window.commands._dialogs["past"]
    qtbot.waitUntil(lambda: dialog.table.rowCount() == 1, timeout=WAIT)
    kept = dialog.chosen()
    assert not dialog.compare_button.isEnabled()
    assert dialog.show_button.isDefault()
    assert dialog.size().boundedTo(window.size()) == dialog.size()
    assert not dialog.table.horizontalScrollBar().isVisible()
    shown = page.shown
    dialog.show_button.click()
    qtbot.waitUntil(lambda: page.shown is not shown, timeout=WAIT)
    assert page.shown.rows == shown.rows
    assert page.shown.document == shown.document
    qtbot.waitUntil(lambda: not isValid(dialog) or not dialog.isVisible(), timeout=WAIT)

    def again() -> PastDialog:
        tab.show_past()
        found = window.commands._dialogs["past"]
        assert isinstance(found, PastDialog)
        qtbot.waitUntil(lambda: found.table.rowCount() == 1, timeout=WAIT)
        return found

    item = again().table.item(0, 1)
    assert item is not None
    item.setText("before")
    tab.earlier.compare(kept[0], kept[0])
    qtbot.waitUntil(lambda: page.other is not None, timeout=WAIT)
    page.draw_now()
    assert page.other is not None
    assert page.other.name == "before"
    assert page.comparison.table.rowCount() == 2
    assert list(page.throughput.other_curve.getData()[0]) == [0, 1]
    assert page.tabs.currentWidget() is page.comparison
    assert page.comparison.table.item(0, 1).text() == "as fast, within the scatter"
    page.comparison.close_button.click()
    page.draw_now()
    assert page.other is None
    assert not page.comparison.table.isColumnHidden(2)  # tokens
    dialog = again()
    dialog.remove_button.click()
    qtbot.waitUntil(lambda: dialog.table.rowCount() == 0, timeout=WAIT)
    dialog.close()

    # back to the conversion, as it was
    window.actions_["convert_page"].trigger()
    assert window.queue_dock.isVisible()
    assert window.actions_["start_pause"].text() == "Start"


def test_conversion_is_paused_and_goes_on(bench: Open, qtbot: QtBot, sample_pdf: Path) -> None:
    slow = {**PAGE, "rate": 40}
    window, tab, page = bench(pages=[slow])
    window.add([sample_pdf])
    qtbot.waitUntil(lambda: window.engine.state is EngineState.READY
                    and window.state.in_flight > 0, timeout=WAIT)
    page.form.set_wish(Wish(levels="1", warmup=0, rounds=1, cold=False))
    tab.start()
    qtbot.waitUntil(lambda: tab.measuring.phase is Phase.RUNNING, timeout=WAIT)
    qtbot.waitUntil(lambda: window.engine.state is EngineState.OFF
                    and window.state.in_flight == 0, timeout=WAIT)
    assert "conversion is paused" in window.figures._labels["test"].text()
    assert "being measured" in window.top.pill.full
    window.actions_["convert_page"].trigger()
    assert not window.actions_["start_pause"].isEnabled()
    # what is asked for meanwhile waits
    window.commands.start()
    assert "measured" in window.toast.text.text()
    assert window.engine.state is EngineState.OFF
    qtbot.waitUntil(lambda: not tab.measuring.running, timeout=WAIT)
    assert not window.use.lent

    def states() -> list[PageState]:
        return [one.state for document in window.model.documents()
                for one in window.model.pages(document.id)]

    qtbot.waitUntil(lambda: bool(states()) and all(state.final for state in states()),
                    timeout=WAIT)
    assert window.figures._labels["test"].text() == ""


def test_cancelled_at_once_with_the_finished_rounds(bench: Open, qtbot: QtBot) -> None:
    window, tab, page = bench(pages=[{**PAGE, "rate": 100}])
    page.form.set_wish(Wish(levels="1, 2", warmup=0, rounds=500, cold=False))
    tab.start()
    qtbot.waitUntil(lambda: bool(page.model.shown.rows)
                    and len(page.model.shown.rows[0].rounds) >= 2, timeout=WAIT)
    assert not page.form.levels.isEnabled()
    window.actions_["stop"].trigger()
    assert tab.measuring.phase is Phase.STOPPING
    assert not window.actions_["stop"].isEnabled()
    qtbot.waitUntil(lambda: not tab.measuring.running, timeout=WAIT)
    [row] = page.shown.rows
    assert row.ended == "interrupted"
    assert len(row.rounds) >= 2
    assert "stopped after" in row.remark
    assert page.form.levels.isEnabled()
    assert page.shown.document["ended"] == "interrupted"
    rows = window.session.benchmarks().result()
    assert [one.ended for one in rows] == ["interrupted"]


def test_stopped_before_it_began(bench: Open, qtbot: QtBot) -> None:
    _window, tab, page = bench()
    tab.start()
    assert tab.measuring.phase is Phase.OPENING
    tab.stop()
    qtbot.waitUntil(lambda: not tab.measuring.running, timeout=WAIT)
    assert page.shown.rows == ()
    assert page.stack.currentWidget() is page.teaching


def test_the_list_of_earlier_tests_is_as_wide_as_its_rows(window: MainWindow,
                                                          qtbot: QtBot) -> None:
    window.resize(2400, 900)
    dialog = PastDialog(window)
    dialog.show()
    rows = [BenchmarkRow(number, 1.7e9, "a name", "vllm", model, "NVIDIA H200", "", "complete", 3,
                         16, 3643.0, "tok/s") for number, model in enumerate((
                             "short", "a-long-name/of-a-model " * 5), 1)]
    dialog.set_rows(rows[:1])
    assert dialog.width() == 900
    dialog.set_rows(rows)
    qtbot.waitUntil(lambda: dialog.width() > 900, timeout=WAIT)
    qtbot.waitUntil(lambda: dialog.table.viewport().width() > 850, timeout=WAIT)
    assert dialog.table.horizontalScrollBar().maximum() == 0
    window.resize(1024, 700)
    dialog.set_rows(rows)
    assert dialog.width() <= window.width()
    dialog.close()


@pytest.mark.logs_errors
def test_an_engine_that_does_not_start(bench: Open, qtbot: QtBot) -> None:
    window, tab, page = bench(load={"faults": [{"kind": "error", "message": "no device"}]})
    page.form.set_wish(QUICK)
    with qtbot.waitSignal(tab.measuring.finished, timeout=WAIT):
        tab.start()
    qtbot.waitUntil(lambda: not tab.measuring.running, timeout=WAIT)
    assert all(row.ended == "failed" for row in page.shown.rows)
    assert page.shown.rows[0].remark == "failed"
    [said] = [page.remarks.item(line).text() for line in range(page.remarks.count())]
    assert said.startswith("1, 2 at once: ")
    assert page.tabs.currentWidget() is page.remarks
    assert "failed" in window.toast.text.text()
    assert window.session.benchmarks().result() == []  # nothing was measured


@pytest.mark.logs_errors
def test_why_pages_and_levels_failed_is_in_the_remarks(bench: Open, qtbot: QtBot) -> None:
    wrong = {**PAGE, "faults": [{"kind": "raise", "message": "It is torn.", "hint": "Glue it."}]}
    dying = {**PAGE, "faults": [{"kind": "died"}]}
    window, tab, page = bench(pages=[
        {**wrong, "match": "b0-*-2"}, {**dying, "match": "b1-m2-*"}, PAGE])
    run(tab, page, qtbot, Wish(levels="2, 3", warmup=0, rounds=2, cold=False))
    said = [page.remarks.item(line).text() for line in range(page.remarks.count())]
    assert "2 at once: 2 pages failed: It is torn. Glue it." in said
    assert [row.reasons for row in page.shown.rows] == [(("It is torn. Glue it.", 2),), ()]
    assert sum("The engine stopped working." in one for one in said) == 1
    toast = window.toast.text.text()
    assert toast.startswith("The test is done. 1 level failed. 3 at once: ")
    assert sum("finished round" in one for one in said) == 1


def test_an_engine_without_tokens(bench: Open, qtbot: QtBot) -> None:
    _window, tab, page = bench(pages=[{**PAGE, "tokens": 0, "prompt_tokens": 0}])
    run(tab, page, qtbot)
    keys = {column.key for column in page.model.columns}
    assert "output" not in keys
    assert {"pages", "chars"} <= keys
    assert page.throughput.measure.currentData() == "pages"
    assert not page.throughput.reference_text.isVisible()
    assert list(page.throughput.curve.getData()[1]) == [
        row.pages.mean for row in page.shown.rows]
    [kept] = tab._session.benchmarks().result()
    tab.earlier.compare(kept.id, kept.id)
    qtbot.waitUntil(lambda: page.comparison.table.rowCount() == 2, timeout=WAIT)
    assert [page.comparison.table.isColumnHidden(place) for place in range(5)] == [
        False, False, True, False, False]


def test_keys_reach_the_page_in_front(window: MainWindow, qtbot: QtBot) -> None:
    _window, _tab, page = opened(window, qtbot)
    actions = window.actions_
    assert actions["start_pause"].text() == "Start test"
    assert actions["past"].isVisible()
    assert not actions["rerun"].isVisible()
    assert not actions["next_page"].isEnabled()
    assert page.form.levels in window.panes()
    window.commands.show_benchmark(False)
    assert actions["start_pause"].text() == "Start"
    assert not actions["past"].isVisible()
    assert actions["rerun"].isVisible()


def test_docks_come_back_and_are_saved_as_they_were(window: MainWindow, qtbot: QtBot) -> None:
    window.settings_dock.show()
    opened(window, qtbot)
    assert not window.settings_dock.isVisible()
    assert window._docks is not None
    window.commands.tools.show_settings()
    assert window.settings_dock.isVisible()
    window.commands.show_benchmark(False)
    assert window.settings_dock.isVisible()
    assert window._docks is None


def test_everything_has_a_name_and_is_reached_by_keyboard(window: MainWindow,
                                                          qtbot: QtBot) -> None:
    _window, _tab, page = opened(window, qtbot)
    nameless, unreachable = [], []
    for widget in page.findChildren(QWidget):
        inner = isinstance(widget.parent(), (QComboBox, QAbstractSpinBox, QAbstractItemView)) or (
            isinstance(widget.parent(), QWidget)
            and isinstance(widget.parent().parent(), (QComboBox, QAbstractItemView)))
        own = widget.objectName().startswith(("qt_", "Scroll"))
        if not isinstance(widget, USED) or inner or own:
            continue
        interface = QAccessible.queryAccessibleInterface(widget)
        if not interface.text(QAccessible.Text.Name):
            nameless.append(f"{type(widget).__name__} in {type(widget.parent()).__name__}")
        if not widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
            unreachable.append(f"{type(widget).__name__} in {type(widget.parent()).__name__}")
    assert nameless == []
    # Headings of tables are reached through the table; buttons of tab bars by the arrow keys.
    assert [one for one in unreachable if not one.startswith(("QHeaderView", "QTableCorner"))
            and "QTabBar" not in one] == []
    window.commands.show_benchmark(False)


def test_everything_is_said_again_in_another_language(window: MainWindow, qtbot: QtBot,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    _window, _tab, page = opened(window, qtbot)
    page.form.set_advanced(True)
    qtbot.waitUntil(lambda: bool(page.form.facts.text()), timeout=WAIT)
    monkeypatch.setattr(i18n, "_catalogue", Marked())
    try:
        window.commands.say_everything_again()
        qtbot.waitUntil(lambda: "‹" in page.form.facts.text(), timeout=WAIT)
        left = untranslated(page, (*OWN_NAMES, "scripted"))
        assert not left, "\n".join(map(str, left))
        for place in range(page.tabs.count()):
            assert "‹" in page.tabs.tabText(place)
        for place in range(page.model.columnCount()):
            assert "‹" in page.model.headerData(place, Qt.Orientation.Horizontal)
    finally:
        monkeypatch.setattr(i18n, "_catalogue", gettext.NullTranslations())
        window.commands.say_everything_again()
        page.form.set_advanced(False)
        window.commands.show_benchmark(False)
