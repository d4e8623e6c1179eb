"""What a person does in the window, against the real session, intake and worker."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QModelIndex, QPoint, Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QApplication, QFileDialog, QLineEdit
from pytestqt.qtbot import QtBot

from desktop import paths
from desktop.jobs.events import (
    DocumentState,
    EngineState,
    EngineUpdated,
    PageState,
    RunState,
)
from desktop.jobs.session import Session
from desktop.settings import Values
from desktop.ui import screen_region
from desktop.ui.main_window import MainWindow
from desktop.ui.screen_region import ScreenRegion
from desktop.ui.theme import Appearance
from tests.support.drops import drop, mime_of
from tests.ui.conftest import WAIT, opened

Play = Callable[..., None]


def states(window: MainWindow, document: int = 0) -> list[PageState]:
    documents = window.model.documents()
    if len(documents) <= document:
        return []
    return [page.state for page in window.model.pages(documents[document].id)]


def all_final(window: MainWindow) -> bool:
    found = [state for row in range(len(window.model.documents()))
             for state in states(window, row)]
    return bool(found) and all(state.final for state in found)


def test_an_empty_window_teaches_what_to_do(window: MainWindow, qtbot: QtBot) -> None:
    assert window.empty.isVisible()
    assert not window.actions_["start_pause"].isEnabled()
    window.empty.sample.click()
    qtbot.waitUntil(lambda: all_final(window), timeout=WAIT)
    assert not window.empty.isVisible()
    assert states(window) == [PageState.COMPLETE] * 3
    qtbot.waitUntil(lambda: window.toast.isVisible(), timeout=WAIT)
    assert window.toast.text.text() == "3 pages are read."
    middle = window.toast.mapTo(window, window.toast.rect().center())
    assert window.childAt(middle) is not None
    assert window.toast.isAncestorOf(window.childAt(middle)) or (
        window.childAt(middle) is window.toast)


def test_dropped_files_are_read_and_shown(window: MainWindow, qtbot: QtBot, samples: Path,
                                          tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    shutil.copy(samples / "card.webp", folder / "扫描件.webp")
    assert drop(window, mime_of([samples / "scanned.pdf", folder]))
    qtbot.waitUntil(lambda: len(window.model.documents()) == 2 and all_final(window), timeout=WAIT)
    assert [document.name for document in window.model.documents()] == [
        "scanned.pdf", "扫描件.webp"]
    assert window.pane is not None
    qtbot.waitUntil(lambda: window.pane.page_id is not None  # type: ignore[union-attr]
                    and bool(window.pane._content.blocks), timeout=WAIT)
    blocks = window.pane._content.ordered  # type: ignore[attr-defined]
    assert "A page out of a script" in blocks[0].markdown
    qtbot.waitUntil(lambda: window.figures._labels["done"].text() == "2 of 2 pages", timeout=WAIT)


def test_a_drop_of_nothing_readable_is_refused(window: MainWindow) -> None:
    mime = QMimeData()
    mime.setText("just words")
    assert not drop(window, mime)


def test_drops_are_taken_while_pages_are_being_read(window: MainWindow, qtbot: QtBot,
                                                    samples: Path, script: Play) -> None:
    script(pages=[{"faults": [{"kind": "hang", "at": 60}]}])
    drop(window, mime_of([samples / "scanned.pdf"]))
    qtbot.waitUntil(lambda: PageState.STREAMING in states(window), timeout=WAIT)
    drop(window, mime_of([samples / "scan.png"]))
    qtbot.waitUntil(lambda: len(window.model.documents()) == 2, timeout=WAIT)
    assert PageState.STREAMING in states(window)


def test_a_pasted_picture_is_kept_and_read(window: MainWindow, qtbot: QtBot) -> None:
    image = QImage(64, 48, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.white)
    QGuiApplication.clipboard().setImage(image)
    window.actions_["paste"].trigger()
    qtbot.waitUntil(lambda: all_final(window), timeout=WAIT)
    kept = list((paths.data_dir() / "pasted").glob("*.png"))
    assert len(kept) == 1
    assert Path(window.model.documents()[0].path) == kept[0]


def _region(qtbot: QtBot) -> ScreenRegion:
    def shown() -> list[ScreenRegion]:
        return [w for w in QApplication.topLevelWidgets()
                if isinstance(w, ScreenRegion) and w.isVisible()]

    qtbot.waitUntil(lambda: bool(shown()), timeout=WAIT)
    return shown()[0]


def test_a_part_of_the_screen_is_read(window: MainWindow, qtbot: QtBot) -> None:
    window.actions_["screen"].trigger()
    region = _region(qtbot)
    assert not window.isVisible()
    button = Qt.MouseButton.LeftButton
    qtbot.mousePress(region, button, pos=QPoint(20, 30))
    qtbot.mouseMove(region, QPoint(80, 90))
    qtbot.mouseRelease(region, button, pos=QPoint(219, 129))
    qtbot.waitUntil(lambda: all_final(window), timeout=WAIT)
    assert window.isVisible()
    kept = QImage(window.model.documents()[0].path)
    scale = window.screen().devicePixelRatio()
    assert (kept.width(), kept.height()) == (200 * scale, 100 * scale)


def test_escape_leaves_the_screen_alone(window: MainWindow, qtbot: QtBot) -> None:
    window.actions_["screen"].trigger()
    qtbot.keyClick(_region(qtbot), Qt.Key.Key_Escape)
    qtbot.waitUntil(window.isVisible, timeout=WAIT)
    assert not window.model.documents()


def test_a_desktop_that_hides_the_screen_is_explained(
        window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen_region, "grab", lambda: None)
    window.actions_["screen"].trigger()
    qtbot.waitUntil(lambda: window.isVisible() and window.toast.isVisible(), timeout=WAIT)


def test_pasted_files_and_paths_are_read(window: MainWindow, qtbot: QtBot, samples: Path) -> None:
    QGuiApplication.clipboard().setMimeData(mime_of([samples / "scan.png"]))
    window.actions_["paste"].trigger()
    qtbot.waitUntil(lambda: len(window.model.documents()) == 1, timeout=WAIT)
    QGuiApplication.clipboard().setText(str(samples / "card.bmp"))
    window.actions_["paste"].trigger()
    qtbot.waitUntil(lambda: len(window.model.documents()) == 2, timeout=WAIT)
    QGuiApplication.clipboard().setText("nothing of use")
    window.actions_["paste"].trigger()
    assert "no file" in window.toast.text.text()


def test_pausing_and_stopping(window: MainWindow, qtbot: QtBot, samples: Path,
                              script: Play) -> None:
    script(capacity=1, pages=[{"faults": [{"kind": "hang", "at": 60}]}])
    drop(window, mime_of([samples / "twenty_pages.pdf"]))
    qtbot.waitUntil(lambda: PageState.STREAMING in states(window), timeout=WAIT)
    qtbot.waitUntil(lambda: window.actions_["start_pause"].text() == "Pause", timeout=WAIT)
    window.actions_["stop"].trigger()
    qtbot.waitUntil(lambda: window.state.run is RunState.PAUSED
                    and PageState.STREAMING not in states(window), timeout=WAIT)
    assert window.actions_["start_pause"].text() == "Start"
    qtbot.waitUntil(lambda: states(window) == [PageState.WAITING] * 20, timeout=WAIT)
    drop(window, mime_of([samples / "scan.png"]))  # a pause is not undone by a drop
    qtbot.waitUntil(lambda: len(window.model.documents()) == 2, timeout=WAIT)
    assert window.state.run is RunState.PAUSED


def test_a_password_is_asked_for_in_its_row(window: MainWindow, qtbot: QtBot,
                                            samples: Path) -> None:
    drop(window, mime_of([samples / "encrypted.pdf"]))
    qtbot.waitUntil(lambda: bool(window.model.documents()) and
                    window.model.documents()[0].state is DocumentState.PASSWORD, timeout=WAIT)
    number = window.model.documents()[0].id

    def type_password(word: str) -> None:
        window.queue.ask_password(number)
        editor = window.queue.findChild(QLineEdit)
        assert editor is not None
        assert editor.echoMode() == QLineEdit.EchoMode.Password
        qtbot.keyClicks(editor, word)
        qtbot.keyClick(editor, Qt.Key.Key_Return)

    qtbot.waitUntil(lambda: "protected by a password" in window.toast.text.text(), timeout=WAIT)
    window.toast.button.click()
    assert window.queue.findChild(QLineEdit) is not None
    qtbot.keyClick(window.queue.findChild(QLineEdit), Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: window.queue.findChild(QLineEdit) is None, timeout=WAIT)
    type_password("wrong")
    qtbot.waitUntil(lambda: "does not open" in window.toast.text.text(), timeout=WAIT)
    assert window.model.documents()[0].state is DocumentState.PASSWORD
    type_password("verso")
    qtbot.waitUntil(lambda: all_final(window), timeout=WAIT)
    assert "password" not in window.toast.text.text() or not window.toast.isVisible()


def test_after_a_restart_it_says_how_to_go_on(verso_home: Path, appearance: Appearance,
                                              loop: asyncio.AbstractEventLoop, qtbot: QtBot,
                                              sample_pdf: Path) -> None:
    first = Session(verso_home / "journal.sqlite", verso_home / "cache",
                    Values({"engine": "scripted"}))
    first.add([sample_pdf]).result(WAIT / 1000)
    first.close()
    with opened(verso_home, appearance, loop) as window:
        qtbot.waitUntil(window.toast.isVisible, timeout=WAIT)
        assert window.toast.text.text() == "3 pages from last time wait to be read."
        window.toast.button.click()
        qtbot.waitUntil(lambda: all_final(window), timeout=WAIT)


def test_after_a_restart_the_page_is_seen_however_late_its_pane_is_made(
        verso_home: Path, appearance: Appearance, loop: asyncio.AbstractEventLoop, qtbot: QtBot,
        sample_pdf: Path) -> None:
    first = Session(verso_home / "journal.sqlite", verso_home / "cache",
                    Values({"engine": "scripted"}))
    first.add([sample_pdf]).result(WAIT / 1000)
    first.close()
    with opened(verso_home, appearance, loop, review=False) as window:
        qtbot.waitUntil(lambda: bool(window.model.totals.pages), timeout=WAIT)
        assert not window.empty.isVisible()
        window.create_review()
        assert window.pane is not None
        assert window.pane.isVisible()
        assert window.controller.page_id == window.model.pages(window.model.documents()[0].id)[0].id


def test_an_offer_waits_behind_another_and_is_taken_back(window: MainWindow) -> None:
    done: list[str] = []
    toast = window.toast
    toast.say("Locked.", "warning", "Enter", lambda: done.append("enter"), about="password")
    toast.say("Pages wait.", "info", "Start", lambda: done.append("start"), about="waiting")
    toast.say("Done.", "ok")
    assert toast.text.text() == "Locked."
    toast.button.click()
    assert (toast.text.text(), done) == ("Pages wait.", ["enter"])
    toast.retract("password")
    assert toast.isVisible()
    toast.retract("waiting")
    assert not toast.isVisible()
    assert done == ["enter"]


def test_an_offer_comes_back_when_an_error_took_its_place(window: MainWindow) -> None:
    done: list[str] = []
    toast = window.toast
    toast.say("Taken out.", "info", "Add again", lambda: done.append("back"))
    toast.say("The disk is full.", "error")
    assert (toast.text.text(), toast.button.isVisible()) == ("The disk is full.", False)
    toast._close.click()
    assert toast.text.text() == "Taken out."
    toast.button.click()
    assert done == ["back"]
    assert not toast.isVisible()


def test_the_page_range_is_edited_in_place(window: MainWindow, qtbot: QtBot, samples: Path,
                                           script: Play) -> None:
    script(pages=[{"rate": 0}])
    drop(window, mime_of([samples / "twenty_pages.pdf"]))
    qtbot.waitUntil(lambda: all_final(window), timeout=WAIT)
    document = window.model.documents()[0]

    def type_range(text: str) -> None:
        window.queue.edit_range(document.id)
        editor = window.queue.findChild(QLineEdit)
        assert editor is not None
        editor.selectAll()
        qtbot.keyClicks(editor, text)
        qtbot.keyClick(editor, Qt.Key.Key_Return)

    type_range("2-3,7")
    qtbot.waitUntil(lambda: window.model.documents()[0].selected == 3, timeout=WAIT)
    assert [page.number for page in window.model.pages(document.id)] == [2, 3, 7]
    type_range("x-y")
    qtbot.waitUntil(lambda: window.toast.isVisible(), timeout=WAIT)
    assert window.model.documents()[0].page_range == "2-3,7"


def test_failed_pages_are_listed_found_and_retried(window: MainWindow, qtbot: QtBot,
                                                   samples: Path, script: Play) -> None:
    script(assign="number", pages=[
        {"text": "fine", "rate": 0},
        {"rate": 0, "finish": "length"},
        {"rate": 0, "faults": [{"kind": "raise", "attempts": [1, 2, 3]}]},
        {"text": "fine", "rate": 0}])
    window.add([samples / "frames.tif"])
    drop(window, mime_of([paths.resources() / "samples" / "sample.pdf"]))
    qtbot.waitUntil(lambda: len(window.model.documents()) == 2 and all_final(window), timeout=WAIT)
    found = [state for row in (0, 1) for state in states(window, row) if state.suspicious]
    assert PageState.LENGTH in found
    assert PageState.FAILED in found
    qtbot.waitUntil(lambda: len(window.problems.problems) == len(found), timeout=WAIT)
    assert window.figures.problems.isVisible()
    assert window.actions_["retry"].isEnabled()

    first = window.model.step(None, 1, lambda page: page.state.suspicious)
    window.actions_["next_suspicious"].trigger()
    assert window.model.page(window.controller.page_id or "").state.suspicious  # type: ignore[union-attr]
    assert not window.controller.follow
    window.show_bottom(window.problem_list)
    window.problem_list.activated.emit(window.problem_list.model().index(0, 0))
    assert window.controller.page_id == window.problems.problems[0].page_id
    window.problem_list.copy()
    assert window.problems.problems[0].problem.message in QGuiApplication.clipboard().text()
    assert first is not None


def test_the_view_follows_until_a_person_chooses(window: MainWindow, qtbot: QtBot, samples: Path,
                                                 script: Play) -> None:
    script(capacity=1, pages=[{"rate": 60, "delta": 4}])
    drop(window, mime_of([samples / "twenty_pages.pdf"]))
    qtbot.waitUntil(lambda: PageState.STREAMING in states(window), timeout=WAIT)
    qtbot.waitUntil(lambda: (page := window.model.page(window.controller.page_id or "")) is not None
                    and page.state is PageState.STREAMING, timeout=WAIT)
    index = window.model.index(15, 0, window.model.index(0, 0))
    window.queue.expand(window.model.index(0, 0))
    window.queue.scrollTo(index)
    qtbot.mouseClick(window.queue.viewport(), Qt.MouseButton.LeftButton,
                     pos=window.queue.visualRect(index).center())
    chosen = window.controller.page_id
    assert chosen == f"{window.model.documents()[0].id}-16"
    assert not window.actions_["follow"].isChecked()
    # It is read next, and stays on show when it is done.
    qtbot.waitUntil(lambda: states(window)[15].final, timeout=WAIT)
    assert window.controller.page_id == chosen
    window.actions_["follow"].trigger()
    qtbot.waitUntil(lambda: window.controller.page_id != chosen, timeout=WAIT)


def test_keys_walk_through_pages_and_panes(window: MainWindow, qtbot: QtBot) -> None:
    window.commands.sample()
    qtbot.waitUntil(lambda: all_final(window), timeout=WAIT)
    window.controller.show(window.model.step(None, 1), by_person=True)
    window.actions_["next_page"].trigger()
    assert window.model.page(window.controller.page_id or "").number == 2  # type: ignore[union-attr]
    window.actions_["previous_page"].trigger()
    assert window.model.page(window.controller.page_id or "").number == 1  # type: ignore[union-attr]
    window.activateWindow()
    seen = []
    for _ in range(len(window.panes())):
        window.actions_["next_pane"].trigger()
        seen.append(window.focusWidget())
    assert len({id(widget) for widget in seen}) == len(window.panes())


def test_removed_documents_can_be_taken_back(window: MainWindow, qtbot: QtBot,
                                             samples: Path) -> None:
    drop(window, mime_of([samples / "scan.png"]))
    qtbot.waitUntil(lambda: all_final(window), timeout=WAIT)
    window.queue.setCurrentIndex(window.model.index(0, 0))
    qtbot.keyClick(window.queue, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: window.empty.isVisible(), timeout=WAIT)
    assert (samples / "scan.png").is_file()
    window.toast.button.click()
    qtbot.waitUntil(lambda: len(window.model.documents()) == 1, timeout=WAIT)


def test_a_page_that_is_removed_while_it_is_asked_for_is_no_error(
        window: MainWindow, qtbot: QtBot, samples: Path) -> None:
    drop(window, mime_of([samples / "scan.png"]))
    qtbot.waitUntil(lambda: all_final(window), timeout=WAIT)
    page_id = window.model.pages(window.model.documents()[0].id)[0].id
    window.commands.remove([window.model.documents()[0].id])
    # Asked after the session has removed it, before the window has heard of that.
    window.tasks.spawn(window.controller._load_result(page_id), "result")
    qtbot.waitUntil(lambda: window.empty.isVisible(), timeout=WAIT)
    qtbot.waitUntil(lambda: "result" not in window.tasks._keyed, timeout=WAIT)
    assert window.toast.text.text() == "1 document was taken out of the queue."
    assert window.toast.button.text() == "Add again"


def test_settings_are_used_and_kept(window: MainWindow, qtbot: QtBot) -> None:
    field = window.settings._fields["dpi"]
    field.control.setValue(200)  # type: ignore[attr-defined]
    assert window.session.values["dpi"] == 200
    store = window.commands._store
    qtbot.waitUntil(lambda: store.load().values["dpi"] == 200, timeout=WAIT)


def test_export_writes_the_document(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    window.commands.sample()
    qtbot.waitUntil(lambda: all_final(window), timeout=WAIT)
    menu = window.top.export_menu
    window.commands.exporting.fill_menu(menu)
    assert [action.text() for action in menu.actions() if action.text()][-1] == "All formats…"
    menu.actions()[1].trigger()
    dialog = window.findChild(QFileDialog)
    assert dialog is not None
    dialog.fileSelected.emit(str(tmp_path))
    dialog.reject()
    qtbot.waitUntil(lambda: "exported" in window.toast.text.text(), timeout=WAIT)
    window.toast.text.clear()
    window.commands.exporting.start([window.model.documents()[0].id], tmp_path, ["md", "json"])
    qtbot.waitUntil(lambda: "exported" in window.toast.text.text(), timeout=WAIT)
    assert "A page out of a script" in (tmp_path / "sample" / "sample.md").read_text()
    assert (tmp_path / "sample" / "sample.json").is_file()


def test_an_export_that_cannot_be_written_says_so(window: MainWindow, qtbot: QtBot,
                                                  tmp_path: Path) -> None:
    window.commands.sample()
    qtbot.waitUntil(lambda: all_final(window), timeout=WAIT)
    (tmp_path / "file").write_text("in the way")
    window.commands.exporting.start([window.model.documents()[0].id], tmp_path / "file", ["md"])
    qtbot.waitUntil(lambda: window.toast._kind == "error", timeout=WAIT)


@pytest.mark.logs_errors
def test_a_killed_worker_is_said_and_nothing_is_lost(window: MainWindow, qtbot: QtBot,
                                                     samples: Path, script: Play,
                                                     tmp_path: Path) -> None:
    script(capacity=2, pages=[{"rate": 100, "delta": 8, "faults": [
        {"kind": "kill", "at": 100, "once": str(tmp_path / "died")}]}])
    said: list[EngineState] = []  # by the session: the window may have no turn meanwhile
    window.session.subscribe(lambda events: said.extend(
        event.engine.state for event in events if isinstance(event, EngineUpdated)))
    drop(window, mime_of([paths.resources() / "samples" / "sample.pdf"]))
    qtbot.waitUntil(lambda: all_final(window), timeout=WAIT)
    assert (tmp_path / "died").exists()
    assert EngineState.RESTARTING in said
    assert states(window) == [PageState.COMPLETE] * 3


def test_thumbnails_come_for_rows_that_are_seen(window: MainWindow, qtbot: QtBot) -> None:
    window.commands.sample()
    qtbot.waitUntil(lambda: all_final(window), timeout=WAIT)
    window.queue.expand(window.model.index(0, 0))
    pages = window.model.pages(window.model.documents()[0].id)
    qtbot.waitUntil(lambda: all(window.thumbnails.get(page.id, page.rotation) is not None
                                for page in pages), timeout=WAIT)


def test_closing_leaves_no_process(window: MainWindow, qtbot: QtBot, script: Play,
                                   no_process_left: Callable[[], list[str]]) -> None:
    window.commands.sample()
    qtbot.waitUntil(lambda: all_final(window), timeout=WAIT)
    assert no_process_left() != []
    window.close()
    window.session.close()
    assert no_process_left() == []


def test_the_layout_is_kept(window: MainWindow, qtbot: QtBot) -> None:
    window.settings_dock.hide()
    window.settings.set_advanced(True)
    window.save_layout()
    window.settings_dock.show()
    window.settings.set_advanced(False)
    window._restore()
    assert not window.settings_dock.isVisible()
    assert window.settings.advanced_open


def test_the_theme_changes_live(window: MainWindow) -> None:
    window.commands.change_setting("theme", "dark")
    assert window.queue.delegate.theme.dark
    window.commands.change_setting("theme", "light")
    assert not window.queue.delegate.theme.dark


def test_dialogs_do_not_block(window: MainWindow) -> None:
    for key in ("about", "shortcuts", "preferences"):
        window.actions_[key].trigger()
        dialog = window.commands._dialogs[key]
        assert dialog.isVisible()
        assert not dialog.isModal()
        dialog.close()


def test_the_menu_of_a_row(window: MainWindow, qtbot: QtBot) -> None:
    window.commands.sample()
    qtbot.waitUntil(lambda: all_final(window), timeout=WAIT)
    index: QModelIndex = window.model.index(0, 0)
    window.queue.setCurrentIndex(index)
    texts = [action.text() for action in window.queue.menu_for(index).actions() if action.text()]
    assert texts == ["Read again", "Retry what failed", "Page range…", "Open containing folder",
                     "Remove document from queue"]
