"""How figures are shown: charts, tables, remarks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from desktop.ui.benchmark.figures import Figure, Row
from tests.ui.benchmark.driving import QUICK, Open, run
from tests.ui.conftest import WAIT


def level(row: Row, concurrency: int, speed: float) -> Row:
    return replace(row, concurrency=concurrency, output=Figure(speed, 1.0), rounds=())


def test_the_knee_is_marked_in_charts_and_table(bench: Open, qtbot: QtBot) -> None:
    window, tab, page = bench()
    run(tab, page, qtbot)
    one = page.shown.rows[0]
    rows = tuple(level(one, n, speed) for n, speed in ((1, 100), (8, 700), (16, 720), (32, 690)))
    page.set_shown(replace(page.shown, rows=rows))
    page.draw_now()
    assert page.shown.reached == 8
    for chart in (page.throughput, page.latency):
        assert chart.knee_line.isVisible()
        assert chart.knee_line.value() == 3
    assert page.throughput.knee_text.toPlainText() == "knee: 8 · 97 % of the best"
    knee = page.model.index(1, 0)
    assert page.model.data(knee) == "8 · knee"
    assert page.model.data(knee, Qt.ItemDataRole.BackgroundRole).name() == (
        window.appearance.theme.badge_warning)
    page.apply.click()
    assert window.session.values["concurrency"] == 8


def test_a_wide_table_fits_into_a_narrow_window(bench: Open, qtbot: QtBot) -> None:
    window, tab, page = bench()
    window.resize(1280, 800)
    run(tab, page, qtbot)
    one = replace(page.shown.rows[0], goodput=12.5, busy=98.0, ended="failed", error="It died.")
    rows = tuple(replace(level(one, n, 3456.0), total=Figure(56789.0, 3456.0))
                 for n in (1, 8, 16, 32, 64, 100))
    page.set_shown(replace(page.shown, rows=rows))
    for table in (page.table, page.times):
        page.tabs.setCurrentWidget(table)
        table.fit()
        qtbot.waitUntil(lambda table=table: table.horizontalScrollBar().maximum() == 0,
                        timeout=WAIT)
        assert table.columnWidth(table.model().columnCount() - 1) >= table.fontMetrics(
            ).horizontalAdvance("failed") + 16


def test_the_remark_is_seen_in_the_narrowest_window(bench: Open, qtbot: QtBot) -> None:
    window, tab, page = bench()
    run(tab, page, qtbot)
    keys = [column.key for column in page.model.columns]

    def hidden() -> set[str]:
        return {key for place, key in enumerate(keys) if page.table.isColumnHidden(place)}

    window.resize(1500, 800)
    qtbot.waitUntil(lambda: not hidden(), timeout=WAIT)
    window.resize(1024, 700)
    qtbot.waitUntil(lambda: "total" in hidden(), timeout=WAIT)
    qtbot.waitUntil(lambda: page.table.horizontalScrollBar().maximum() == 0, timeout=WAIT)
    assert hidden() <= {"total", "busy", "cold"}
    window.resize(1500, 800)
    qtbot.waitUntil(lambda: not hidden(), timeout=WAIT)


def test_the_label_of_the_published_curve_covers_nothing_measured(bench: Open,
                                                                 qtbot: QtBot) -> None:
    _window, tab, page = bench()
    run(tab, page, qtbot)
    one = page.shown.rows[0]
    chart = page.throughput
    for speeds in ((152, 303, 552, 999, 1623, 2332), (40, 60, 110, 230, 330, 420),
                   (400, 420, 410, 430, 440, 430)):
        rows = tuple(level(one, 2 ** n, speed) for n, speed in enumerate(speeds))
        page.set_shown(replace(page.shown, rows=rows))
        page.draw_now()
        assert chart.reference_text.isVisible()
        label = chart.reference_text.mapRectToParent(chart.reference_text.boundingRect())
        xs, ys = chart.curve.getData()
        at = np.linspace(xs[0], xs[-1], 500)
        covered = [x for x, y in zip(at, np.interp(at, xs, ys), strict=True)
                   if label.contains(x, y)]
        assert covered == [], speeds


def test_strategies_are_compared_in_the_remarks(bench: Open, qtbot: QtBot) -> None:
    _window, tab, page = bench()
    run(tab, page, qtbot, replace(QUICK, levels="4", strategy="compare", rounds=1))
    said = [page.remarks.item(line).text() for line in range(page.remarks.count())]
    assert sum("times as fast as one by one, with" in one for one in said) == 2
    assert [row.label for row in page.shown.rows] == ["one by one", "in batches of 4", "4"]
