"""What the form asks for and says, in the real window."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication
from pytestqt.qtbot import QtBot

from desktop.ui.benchmark import remembered
from desktop.ui.benchmark.figures import Shown
from desktop.ui.benchmark.readings import Readings
from desktop.ui.benchmark.wish import Wish
from desktop.ui.main_window import MainWindow
from tests.ui.benchmark.driving import DOCUMENT, Open, opened
from tests.ui.conftest import WAIT


def test_what_the_test_takes_is_always_seen(window: MainWindow, qtbot: QtBot) -> None:
    _window, _tab, page = opened(window, qtbot)
    window.resize(1024, 700)
    page.form.set_advanced(True)
    qtbot.waitUntil(lambda: page.form.area.verticalScrollBar().maximum() > 0, timeout=WAIT)
    card = page.form.card
    assert not card.visibleRegion().isEmpty()
    assert card.visibleRegion().boundingRect().height() == card.height()
    page.form.set_advanced(False)
    window.commands.show_benchmark(False)


def test_nothing_scrolls_where_there_is_room(window: MainWindow, qtbot: QtBot) -> None:
    _window, _tab, page = opened(window, qtbot)
    window.resize(1280, 1000)
    form = page.form
    for facts in ("3 pages", "a_document_of_words.pdf · 5 pages", "many words of it " * 20):
        form.set_facts(facts)
        qtbot.waitUntil(lambda: form.area.height() == form.area.sizeHint().height()
                        and form.area.verticalScrollBar().maximum() == 0, timeout=WAIT)
    window.commands.show_benchmark(False)


def test_what_is_said_of_caches_follows_the_form(window: MainWindow, qtbot: QtBot) -> None:
    _window, _tab, page = opened(window, qtbot)
    qtbot.waitUntil(lambda: "3 pages" in page.form.facts.text(), timeout=WAIT)
    page.form.unique.click()
    qtbot.waitUntil(lambda: "caches cannot help" in page.form.facts.text(), timeout=WAIT)
    page.form.unique.click()
    qtbot.waitUntil(lambda: "caches cannot help" not in page.form.facts.text(), timeout=WAIT)
    window.commands.show_benchmark(False)


def test_a_long_name_ends_in_dots(window: MainWindow, qtbot: QtBot, tmp_path: Path,
                                  sample_pdf: Path) -> None:
    _window, tab, page = opened(window, qtbot)
    window.resize(1024, 700)
    file = tmp_path / f"{'annual-report_' * 12}2025.pdf"
    file.write_bytes(sample_pdf.read_bytes())
    page.form.set_paths([str(file)])
    facts = page.form.facts
    qtbot.waitUntil(lambda: "…" in facts.text(), timeout=WAIT)
    assert file.name in facts.toolTip()
    assert file.name in facts.accessibleName()
    widest = max(facts.fontMetrics().horizontalAdvance(word) for word in facts.text().split(" "))
    assert widest <= facts.width()
    wide = page.width()
    tab._show(Shown(name="a name " * 60, document=DOCUMENT), Readings())
    qtbot.waitUntil(lambda: page.live.title.shown_text().endswith("…"), timeout=WAIT)
    assert page.width() == wide
    assert page.live.title.toolTip() == page.live.title.text()
    tab._show(Shown(), Readings())
    page.form.set_wish(Wish())
    window.commands.show_benchmark(False)


def test_files_that_do_not_exist_say_so(bench: Open, qtbot: QtBot, tmp_path: Path) -> None:
    window, tab, page = bench()
    page.form.set_wish(Wish(pages="chosen"))
    tab.start()
    assert "No pages are chosen" in window.toast.text.text()
    assert not tab.measuring.running
    page.form.set_paths([str(tmp_path / "gone.pdf")])
    qtbot.waitUntil(lambda: page.form.facts.property("role") == "error"
                    and "gone.pdf" in page.form.facts.text(), timeout=WAIT)
    tab.start()
    qtbot.waitUntil(lambda: not tab.measuring.running, timeout=WAIT)
    assert page.shown.rows == ()
    qtbot.waitUntil(lambda: "does not exist" in window.toast.text.text(), timeout=WAIT)


def test_a_protected_document_of_the_queue_is_measured_once_it_was_opened(
        bench: Open, qtbot: QtBot, samples: Path) -> None:
    window, tab, page = bench()
    window.add([samples / "encrypted.pdf"])
    qtbot.waitUntil(lambda: bool(window.model.locked), timeout=WAIT)
    [number] = window.model.locked
    page.form.set_wish(Wish(pages="document", levels="1", warmup=0, rounds=1, cold=False))
    qtbot.waitUntil(lambda: page.form.facts.property("role") == "error", timeout=WAIT)
    assert "password" in page.form.facts.accessibleName()
    window.commands.show_benchmark(False)
    assert window.session.unlock(number, "verso").result()
    qtbot.waitUntil(lambda: not window.model.locked, timeout=WAIT)
    window.actions_["benchmark_page"].trigger()
    qtbot.waitUntil(lambda: page.form.facts.property("role") == "secondary", timeout=WAIT)
    assert "encrypted.pdf" in page.form.facts.text()
    tab.copy_command()
    assert "--password-file passwords.txt" in QGuiApplication.clipboard().text()
    with qtbot.waitSignal(tab.measuring.kept, timeout=WAIT):
        tab.start()
    qtbot.waitUntil(lambda: not tab.measuring.running, timeout=WAIT)
    document = page.shown.document
    assert document["ended"] == "complete"
    assert "--password-file passwords.txt" in document["command"]


def test_dropped_files_are_measured_with(window: MainWindow, qtbot: QtBot,
                                         sample_pdf: Path) -> None:
    _window, _tab, page = opened(window, qtbot)
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(sample_pdf))])
    event = QDropEvent(QPointF(400, 300), Qt.DropAction.CopyAction, mime,
                       Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    window.dropEvent(event)
    assert page.form.wish().paths == (str(sample_pdf),)
    qtbot.waitUntil(lambda: sample_pdf.name in page.form.facts.text(), timeout=WAIT)
    assert window.model.documents() == []
    window.commands.show_benchmark(False)


def test_a_wish_that_cannot_be_says_why_and_is_not_started(window: MainWindow,
                                                           qtbot: QtBot) -> None:
    _window, tab, page = opened(window, qtbot)
    page.form.set_wish(Wish(levels="many"))
    assert page.form.plan is None
    assert "many" in page.form.preview.text()
    assert page.form.preview.property("role") == "error"
    tab.start()
    assert not tab.measuring.running
    page.form.set_wish(Wish())
    assert page.form.preview.property("role") == ""
    window.commands.show_benchmark(False)


def test_the_form_is_remembered(window: MainWindow, qtbot: QtBot) -> None:
    _window, _tab, page = opened(window, qtbot)
    page.form.set_wish(Wish(levels="3, 5", rounds=4, ttft=250))
    qtbot.waitUntil(lambda: remembered.form()[0].levels == "3, 5",
                    timeout=WAIT)
    assert remembered.form()[0] == page.form.wish()
    page.form.set_wish(Wish())
    window.commands.show_benchmark(False)
