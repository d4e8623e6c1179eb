"""What the actions do: each is one request to the session, and what is said about its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, QTimer, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication, QImage
from PySide6.QtWidgets import QDialog, QFileDialog, QWidget

from desktop import paths
from desktop.errors import VersoError
from desktop.i18n import N_, _, ngettext, set_language
from desktop.jobs.events import DocumentState, EngineState, ProblemView, RunState
from desktop.settings import InvalidSetting
from desktop.settings.store import Store
from desktop.ui import dropping, screen_region
from desktop.ui.benchmark.measuring import Phase
from desktop.ui.benchmark.tab import BenchmarkTab
from desktop.ui.engine_tools import EngineTools
from desktop.ui.exporting import Exporting
from desktop.ui.frame import Frame

_UNCOVER_MS = 300


class PasteFailed(VersoError):
    """A pasted picture cannot be kept."""

    code = "window.paste_failed"
    message = N_("The pasted picture cannot be saved ({reason}).")
    hint = N_("Check that there is free space in {folder}.")


class Commands:
    """Carries out what a person asks for."""

    def __init__(self, window: Frame, store: Store) -> None:
        self._window = window
        self._session = window.session
        self._store = store
        self._dialogs: dict[str, QDialog] = {}
        self._paused_by_person = False
        self._region: screen_region.ScreenRegion | None = None
        """Kept while it is shown: it has no parent."""
        self.exporting = Exporting(window)
        self.tools = EngineTools(window, self.change_setting, self._open)
        self.benchmark = BenchmarkTab(window, self.change_setting, self._open, self.tools.usable,
                                      self.tools.show_settings)
        self._connect()

    def _connect(self) -> None:
        actions, window = self._window.actions_, self._window
        for key, call in (
            ("add_files", self.add_files), ("add_folder", self.add_folder),
            ("paste", self.paste), ("sample", self.sample), ("screen", self.screen_region),
            ("start_pause", self.start_pause), ("stop", self.stop), ("retry", self.retry_failed),
            ("rerun", self.rerun), ("export", self.open_export_menu),
            ("next_page", lambda: window.controller.step(1)),
            ("previous_page", lambda: window.controller.step(-1)),
            ("next_suspicious", self.next_suspicious),
            ("previous_suspicious", lambda: window.controller.step_suspicious(-1)),
            ("find", self.find), ("next_pane", lambda: self.step_pane(1)),
            ("previous_pane", lambda: self.step_pane(-1)),
            ("problems", lambda: window.show_bottom(window.problem_list)),
            ("log", lambda: window.show_bottom(window.log)),
            ("convert_page", lambda: self.show_benchmark(False)),
            ("benchmark_page", lambda: self.show_benchmark(True)),
            ("past", self.benchmark.show_past), ("copy_command", self.benchmark.copy_command),
            ("examine", self.tools.examining.open),
            ("preferences", self.preferences), ("shortcuts", self.shortcuts),
            ("about", self.about), ("quit", window.close),
        ):
            actions[key].triggered.connect(lambda _checked=False, call=call: call())
        actions["follow"].setChecked(True)
        actions["follow"].toggled.connect(window.controller.set_follow)
        menu = window.top.gear_menu
        menu.addAction(actions["preferences"])
        menu.addSeparator()
        for dock in (window.queue_dock, window.settings_dock, window.bottom_dock):
            menu.addAction(dock.toggleViewAction())
        menu.addAction(actions["problems"])
        menu.addAction(actions["log"])
        menu.addSeparator()
        for key in ("examine", "shortcuts", "about", "quit"):
            menu.addAction(actions[key])
        window.top.export_about_to_show.connect(
            lambda: self._exports().fill_menu(window.top.export_menu))
        window.top.engine_menu.aboutToShow.connect(self.tools.fill_menu)

    # --- the two things that the window is for
    def show_benchmark(self, wanted: bool) -> None:
        """Bring the page Benchmark to the front, or the conversion."""
        self._window.bring_up_benchmark(wanted)
        if wanted:
            self.benchmark.show_page()
        self.benchmark.state_changed.emit()

    def _exports(self) -> Exporting | BenchmarkTab:
        return self.benchmark if self._window.measuring_shown else self.exporting

    # --- adding
    def add(self, files: Sequence[Path]) -> None:
        """Queue FILES and folders and read them, unless the person paused."""
        if files:
            self._window.tasks.spawn(self._add(list(files)))

    async def _add(self, files: list[Path]) -> None:
        await asyncio.wrap_future(self._session.add(files))
        if not self._paused_by_person:
            self._window.use.start()

    def take(self, mime: QMimeData) -> bool:
        """Queue what a drop or the clipboard holds; False when there is nothing to read."""
        image = dropping.image_of(mime)
        if image is not None:
            self._window.tasks.spawn(self._take_image(image))
            return True
        files = dropping.local_files(mime)
        self.add(files)
        return bool(files)

    async def _take_image(self, image: QImage) -> None:
        try:
            path = await asyncio.to_thread(dropping.keep_pasted, image)
        except OSError as error:
            raise PasteFailed(reason=error, folder=paths.data_dir()) from error
        await self._add([path])

    def paste(self) -> None:
        """Queue what the clipboard holds."""
        if not self.take(QGuiApplication.clipboard().mimeData()):
            self._window.toast.say(_("The clipboard holds no file and no picture."))

    def screen_region(self) -> None:
        """Let the person draw a rectangle on the screen; what is in it is read."""
        self._window.hide()
        # The window manager takes a moment to uncover what is behind the window.
        QTimer.singleShot(_UNCOVER_MS, self._window, self._choose_region)

    def _choose_region(self) -> None:
        grabbed = screen_region.grab()
        if grabbed is None:
            self._window.show()
            self._window.toast.say(_("This desktop lets no program see the screen. Take a picture "
                                     "with its own tool and paste it with Ctrl+V."))
            return
        self._region = region = screen_region.ScreenRegion(*grabbed)
        region.closed.connect(self._window.show)
        region.chosen.connect(lambda image: self._window.tasks.spawn(self._take_image(image)))
        region.show()
        region.activateWindow()

    def sample(self) -> None:
        """Queue the document that comes with the program."""
        self.add([paths.resources() / "samples" / "sample.pdf"])

    def add_files(self) -> None:
        """Let the person choose files."""
        dialog = self._file_dialog(_("Add files"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.filesSelected.connect(lambda names: self.add([Path(name) for name in names]))
        dialog.open()

    def add_folder(self) -> None:
        """Let the person choose a folder; everything in it is read."""
        dialog = self._file_dialog(_("Add folder"))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.fileSelected.connect(lambda name: self.add([Path(name)]))
        dialog.open()

    def _file_dialog(self, title: str) -> QFileDialog:
        dialog = QFileDialog(self._window, title)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return dialog

    # --- running
    def start_pause(self) -> None:
        """Start, or begin no further page; on the page Benchmark: start or stop a test."""
        if self._window.measuring_shown:
            self.benchmark.start_or_stop()
        elif self._running():
            self._paused_by_person = True
            self._window.use.pause()
        else:
            self.start()

    def start(self) -> None:
        """Read the waiting pages."""
        self._paused_by_person = False
        self._window.use.start()
        if self._window.engine.state is EngineState.FAILED:
            self._window.use.warm_up()

    def stop(self) -> None:
        """Stop the pages in flight, which wait again; on the page Benchmark: the test."""
        if self._window.measuring_shown:
            self.benchmark.stop()
            return
        self._paused_by_person = True
        self._window.use.stop()

    def retry_failed(self) -> None:
        """Read again what failed, looped or was cut."""
        async def retry() -> None:
            count = await asyncio.to_thread(self._session.retry_failed)
            if not self._paused_by_person:
                self._window.use.start()
            if not count:
                self._window.toast.say(_("Nothing has failed."))
        self._window.tasks.spawn(retry(), "retry")

    def rerun(self) -> None:
        """Read the chosen pages, or the page shown, once more."""
        chosen = [page.id for page in self._window.queue.chosen_pages()]
        shown = self._window.controller.page_id
        if shown and shown not in chosen:
            chosen = [shown]
        self.rerun_pages(chosen)

    def rerun_pages(self, page_ids: Sequence[str]) -> None:
        """Read these pages once more, now."""
        if page_ids:
            self._session.rerun(list(page_ids))
            self._paused_by_person = False
            self._window.use.start()

    def _running(self) -> bool:
        """Whether pages are being read; with an engine that has failed none are."""
        return (self._window.state.run is RunState.RUNNING and self._unfinished()
                and self._window.engine.state is not EngineState.FAILED)

    def _unfinished(self) -> bool:
        return self._window.state.finished < self._window.state.total

    def next_suspicious(self) -> None:
        """Show the next page a person should look at."""
        if not self._window.controller.step_suspicious(1):
            self._window.toast.say(_("No page needs a look."), "ok")

    # --- the queue
    def remove(self, document_ids: Sequence[int]) -> None:
        """Take documents out of the queue; one step takes them in again."""
        documents = [self._window.model.document(number) for number in document_ids]
        files = [(Path(d.path), d.page_range) for d in documents if d is not None]
        self._session.remove(list(document_ids))

        def back() -> None:
            for path, page_range in files:
                self._session.add([path], page_range=page_range)

        self._window.toast.say(
            ngettext("{n} document was taken out of the queue.",
                     "{n} documents were taken out of the queue.", len(files)).format(
                n=len(files)), "info", _("Add again"), back)

    def open_folder(self, document_id: int) -> None:
        """Show the folder a document lies in."""
        document = self._window.model.document(document_id)
        if document is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(Path(document.path).parent)))

    def document_edited(self, document_id: int, text: str) -> None:
        """A page range, or a password where the document asks for one, was typed."""
        document = self._window.model.document(document_id)
        if document is None:
            return
        if document.state is DocumentState.PASSWORD:
            self._window.tasks.spawn(self._unlock(document_id, text))
        elif text != document.page_range:
            self._window.tasks.spawn(self._set_range(document_id, text))

    async def _unlock(self, document_id: int, password: str) -> None:
        if not await asyncio.wrap_future(self._session.unlock(document_id, password)):
            self._window.toast.say(_("That password does not open the document."), "warning",
                                   _("Try again"),
                                   lambda: self._window.queue.ask_password(document_id),
                                   about="password")

    async def _set_range(self, document_id: int, page_range: str) -> None:
        await asyncio.wrap_future(self._session.set_page_range(document_id, page_range))

    def go_to_problem(self, problem: ProblemView) -> None:
        """Show the page a problem is about, its document, or the settings for the engine's."""
        window = self._window
        if problem.page_id and window.model.page(problem.page_id) is not None:
            window.controller.show(problem.page_id, by_person=True)
        elif problem.document_id:
            index = window.model.document_index(problem.document_id)
            if index.isValid():
                window.queue.setCurrentIndex(index)
                window.queue.scrollTo(index)
                window.queue.setFocus()
        else:
            self.tools.show_settings()

    # --- settings
    def change_setting(self, key: str, value: object) -> None:
        """Use VALUE from now on and keep it."""
        window = self._window
        try:
            values = self._session.values.with_(**{key: value})
        except InvalidSetting as error:
            window.show_problem(error.problem())
            window.settings.set_values(self._session.values)
            return
        if values == self._session.values:
            return
        self._session.set_values(values)
        window.settings.set_values(values)
        window.tasks.spawn(asyncio.to_thread(self._store.save, values), "save settings")
        if key == "theme":
            window.appearance.choose(str(value))
        elif key == "language":
            set_language(str(value), paths.resources() / "translations")
            self.say_everything_again()
        self.benchmark.values_changed()
        if key == "furniture" and window.pane is not None:
            window.pane.set_furniture(bool(value))

    # --- windows
    def _open(self, key: str, dialog: QDialog) -> None:
        before = self._dialogs.pop(key, None)
        if before is not None:
            before.close()
        self._dialogs[key] = dialog
        dialog.finished.connect(lambda _code: self._dialogs.pop(key, None))
        dialog.show()

    def say_everything_again(self) -> None:
        """Bring the window and its open dialogs to the current language."""
        self._window.retranslate()
        for name in list(self._dialogs):
            self._open_again(name)

    def _open_again(self, key: str) -> None:
        """Make an open dialog anew, where it was, in the current language."""
        place = self._dialogs[key].pos()
        makers = {"preferences": self.preferences, "shortcuts": self.shortcuts,
                  "about": self.about, "details": self.tools.details,
                  "model": self.tools.get_model, "key": self.tools.key,
                  "examination": self.tools.examining.open_new,
                  "past": self.benchmark.show_past}
        if key in makers:
            makers[key]()
            self._dialogs[key].move(place)
        else:  # it holds answers in the other language
            self._dialogs[key].close()

    def preferences(self) -> None:
        """Show what belongs to the window and not to a run."""
        from desktop.ui.dialogs.preferences import PreferencesDialog

        dialog = PreferencesDialog(self._session.values, self._window.appearance.theme,
                                   self._window)
        dialog.changed.connect(self.change_setting)
        self._open("preferences", dialog)

    def shortcuts(self) -> None:
        """Show all keys."""
        from desktop.ui.dialogs.shortcuts import ShortcutsDialog

        self._open("shortcuts", ShortcutsDialog(self._window.actions_, self._window))

    def about(self) -> None:
        """Show version and licences."""
        from desktop.ui.dialogs.about import AboutDialog

        self._open("about", AboutDialog(self._window.appearance.theme, self._window))

    def open_export_menu(self) -> None:
        """Open the menu of formats under its button."""
        button = self._window.top.button("export")
        if button.isEnabled():
            button.showMenu()

    def find(self) -> None:
        """Open the bar for searching in the page shown."""
        if self._window.pane is not None:
            self._window.pane.find()

    def step_pane(self, by: int) -> None:
        """Move the focus to the next part of the window."""
        panes = self._window.panes()
        focus = self._window.focusWidget()
        here = next((i for i, pane in enumerate(panes) if _inside(focus, pane)), -by)
        panes[(here + by) % len(panes)].setFocus(Qt.FocusReason.ShortcutFocusReason)

    # --- what can be done now
    def show_state(self, any_documents: bool, suspicious: int) -> None:
        """Enable what makes sense; the primary button says what it will do."""
        window, actions = self._window, self._window.actions_
        theme = window.appearance.theme
        if window.measuring_shown:
            self._show_test()
            return
        running = self._running()
        start = actions["start_pause"]
        start.setText(_("Pause") if running else _("Start"))
        start.setToolTip(_("Begin no further page; those being read end (F5)") if running
                         else _("Read the waiting pages (F5)"))
        look = ("pause" if running else "play", theme.name)
        start.setEnabled(self._unfinished() and not window.use.lent)
        if window.use.lent:
            start.setToolTip(_("Paused while the throughput is measured"))
        self._show_look(look)
        actions["stop"].setEnabled(running or window.state.in_flight > 0)
        actions["retry"].setEnabled(suspicious > 0)
        actions["retry"].setText(_("Retry failed ({n})").format(n=suspicious) if suspicious
                                 else _("Retry failed"))
        shown = window.controller.page_id is not None
        for key in ("rerun", "next_page", "previous_page", "find"):
            actions[key].setEnabled(shown)
        for key in ("next_suspicious", "previous_suspicious"):
            actions[key].setEnabled(suspicious > 0)
        actions["follow"].setEnabled(any_documents)
        window.top.button("follow").setVisible(any_documents)
        window.top.button("export").setEnabled(any_documents)
        actions["export"].setEnabled(any_documents)
        window.top.refit()

    _start_look = ("", "")

    def _show_look(self, look: tuple[str, str]) -> None:
        if look != self._start_look:
            self._start_look = look
            self._window.actions_.set_icon("start_pause", look[0], self._window.appearance.theme,
                                           "on_accent")

    def _show_test(self) -> None:
        """What can be done on the page Benchmark."""
        actions, tab = self._window.actions_, self.benchmark
        running = tab.measuring.running
        start, stop = actions["start_pause"], actions["stop"]
        start.setText(_("Start test"))
        start.setToolTip(_("Measure what the form asks for (F5)"))
        start.setEnabled(tab.page is not None and not running)
        self._show_look(("play", self._window.appearance.theme.name))
        stop.setEnabled(tab.measuring.phase in (Phase.OPENING, Phase.RUNNING))
        self._window.top.button("export").setEnabled(tab.has_document)
        actions["export"].setEnabled(tab.has_document)
        if tab.page is not None:
            tab.page.teaching.start.setEnabled(not running)
        self._window.top.refit()


def _inside(widget: QWidget | None, pane: QWidget) -> bool:
    return widget is not None and (widget is pane or pane.isAncestorOf(widget))
