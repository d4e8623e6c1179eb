"""What a person can do about engines beside choosing one: look at what one got, check its
interpreter, try its servers, keep their keys, get its model. Everything slow runs elsewhere."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDialog
from shiboken6 import isValid

from desktop.client import interpreter, npu
from desktop.engines import registry
from desktop.errors import Problem, VersoError
from desktop.i18n import N_, _
from desktop.jobs.events import EngineState
from desktop.models import disk
from desktop.models.download import Download, Event, Failed, Finished, Progress
from desktop.models.errors import FolderUnusable
from desktop.models.places import download_folder
from desktop.models.source import source_of
from desktop.settings import setting
from desktop.ui import findings
from desktop.ui.background import in_background
from desktop.ui.dialogs.model import ModelDialog
from desktop.ui.dialogs.report import ReportDialog
from desktop.ui.dialogs.server_key import ServerKeyDialog
from desktop.ui.examining import Examining
from desktop.ui.frame import Frame
from desktop.ui.panels import notes
from desktop.ui.remedies import Remedy
from desktop.ui.texts import say
from desktop.ui.tokens import Theme

_PATIENCE = 2.0
"""Seconds at the end for what runs to be gone."""


class ModelDownload(QObject):
    """The one download that may run; its events come on the window's thread."""

    happened = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._download: Download | None = None
        self.last: Event | None = None

    @property
    def running(self) -> bool:
        """Whether one does."""
        return self._download is not None and self._download.outcome is None

    @property
    def folder(self) -> Path | None:
        """Where the last one goes or went."""
        return self._download.folder if self._download is not None else None

    def start(self, download: Callable[[Callable[[Event], None]], Download]) -> None:
        """Start what DOWNLOAD makes, given where its events go."""
        self.last = None
        self._download = download(self._deliver)
        self._download.start()

    def _deliver(self, event: Event) -> None:
        self.last = event
        self.happened.emit(event)

    def cancel(self) -> None:
        """Stop it; what came is kept."""
        if self._download is not None:
            self._download.cancel()

    def close(self) -> None:
        """Stop it and wait for its end."""
        if self._download is not None and self.running:
            self._download.cancel()
            self._download.wait(_PATIENCE)


class EngineTools(QObject):
    """Opens the dialogs and answers them."""

    def __init__(self, window: Frame, change: Callable[[str, object], None],
                 open_dialog: Callable[[str, QDialog], None]) -> None:
        """CHANGE uses a setting's value from now on; OPEN_DIALOG shows one under a name."""
        super().__init__(window)
        self._window = window
        self._session = window.session
        self._change = change
        self._open = open_dialog
        self._checks: list[tuple[threading.Event, threading.Event]] = []
        """Of every check that may run: what ends it, and what says that it has ended."""
        self.download = ModelDownload(window)
        self.download.happened.connect(self._downloaded, Qt.ConnectionType.QueuedConnection)
        self._model_dialog: ModelDialog | None = None
        window.settings.action_wanted.connect(self.act)
        window.settings.details_wanted.connect(self.details)
        window.settings.remedy_wanted.connect(self.remedy)

        self.examining = Examining(window, open_dialog, self.remedy)
        self._load = self._action(N_("Load the engine now"), self._window.use.warm_up)
        self._offered = (
            (self._action(N_("Get the model…"), self.get_model), "model"),
            (self._action(N_("Check interpreter"), self.check), "engine_interpreter"),
            (self._action(N_("Probe servers"), self.probe), "servers"))
        """With the setting of the engines it is about."""
        self._always = (self._action(N_("Engine details…"), self.details),
                        self._action(N_("Examine this machine…"), self.examining.open),
                        self._action(N_("Run settings"), self.show_settings))

    def _action(self, text: str, call: Callable[[], object]) -> QAction:
        action = QAction(self._window)
        say(action, text=text)
        action.triggered.connect(lambda _checked=False: call())
        return action

    def usable(self) -> list[tuple[str, str]]:
        """(name, title) of the engines that can be chosen."""
        values = self._session.values
        return [(entry.name, notes.engine_title(entry, values)) for entry in registry.ENGINES
                if (not entry.hidden or entry.name == values["engine"])
                and (notes.elsewhere(entry) or not notes.why_missing(entry, values))]

    def fill_menu(self) -> None:
        """Put the engines that can be chosen, and what can be done, into the pill's menu."""
        current = self._session.values["engine"]
        usable = [(name, title, name == current) for name, title in self.usable()]
        self._load.setEnabled(self._window.engine.state in (EngineState.OFF, EngineState.FAILED))
        for action, key in self._offered:
            action.setVisible(setting(key).applies_to(current))
        self._window.top.set_engine_choices(
            usable, lambda name: self._change("engine", name),
            [self._load, *(action for action, _key in self._offered), *self._always])

    def show_settings(self) -> None:
        """Open the run settings."""
        self._window.settings_dock.show()
        self._window.settings.setFocus()

    def act(self, action: str) -> None:
        """Do one of: get_model, check, probe, key, details, examine, retry."""
        {"get_model": self.get_model, "check": self.check, "probe": self.probe, "key": self.key,
         "examine": self.examining.open,
         "details": self.details, "retry": self._window.use.warm_up}[action]()

    def remedy(self, remedy: Remedy) -> None:
        """Do what REMEDY says."""
        if remedy.action == "show":
            self.show_setting(remedy.key)
        elif remedy.action == "set":
            for key, value in remedy.values.items():
                self._change(key, value)
            self._window.use.warm_up()
        else:
            self.act(remedy.action)

    def show_setting(self, key: str) -> None:
        """Bring the control of a setting into sight."""
        self._window.settings_dock.show()
        self._window.settings.show_setting(key)

    def close(self) -> None:
        """End everything that runs."""
        for cancel, _ended in self._checks:
            cancel.set()
        self.examining.close()
        for _cancel, ended in self._checks:
            ended.wait(_PATIENCE)
        self.download.close()

    # --- what the engine got
    def details(self) -> None:
        """Everything the engine got, or why it does not run."""
        engine = self._window.engine
        dialog = ReportDialog(_("Engine"), self._theme, self._window, act=self.remedy)
        dialog.again.hide()
        dialog.show_found(findings.engine(engine, self._title(engine.name)))
        self._open("details", dialog)

    # --- the interpreter
    def check(self) -> None:
        """Examine the interpreter that the settings name, thoroughly."""
        cancel = threading.Event()
        dialog = ReportDialog(_("Engine interpreter"), self._theme, self._window,
                              again=lambda: self._check(dialog, cancel), act=self.remedy)
        dialog.finished.connect(lambda _code: cancel.set())
        self._open("interpreter", dialog)
        self._check(dialog, cancel)

    def _check(self, dialog: ReportDialog, cancel: threading.Event) -> None:
        values = self._session.values
        asked = str(values["engine_interpreter"])
        entry = registry.entry(values["engine"])
        dialog.wait(_("Looking at {path}: torch and vLLM are loaded there, which may take a "
                      "minute.").format(path=asked or _("the Python that runs Verso")))

        ended = threading.Event()
        self._checks = [each for each in self._checks if not each[1].is_set()]
        self._checks.append((cancel, ended))

        def examine() -> interpreter.Report:
            try:
                return npu.examine(entry, asked, devices=str(values["devices"]), cancel=cancel)
            finally:
                ended.set()

        async def look() -> None:
            report = await in_background(examine, "interpreter")
            if not cancel.is_set():
                dialog.show_found(findings.interpreter(report))

        self._window.tasks.spawn(look(), "check interpreter")

    # --- the servers
    def probe(self) -> None:
        """Try the servers of the settings with a page."""
        open_ = [True]
        dialog = ReportDialog(_("Servers"), self._theme, self._window,
                              again=lambda: self._probe(dialog, open_), act=self.remedy)
        dialog.finished.connect(lambda _code: open_.clear())
        self._open("servers", dialog)
        self._probe(dialog, open_)

    def _probe(self, dialog: ReportDialog, open_: list[bool]) -> None:
        from desktop.engines.remote.probe import probe_all

        values = self._session.values
        dialog.wait(_("Trying the servers with a page; this may take a minute."))

        async def look() -> None:
            try:
                reports = await in_background(lambda: asyncio.run(probe_all(
                    str(values["servers"]), str(values["remote_model"]))), "probe")
            except VersoError as error:
                found = findings.refused(error.problem())
            else:
                found = findings.servers(reports)
            if open_:
                dialog.show_found(found)

        self._window.tasks.spawn(look(), "probe servers")

    def key(self) -> None:
        """Enter or forget the key of a server."""
        from desktop.engines.remote import addresses

        try:
            servers = addresses.parse(str(self._session.values["servers"]))
        except VersoError as error:
            self._window.show_problem(error.problem())
            return
        dialog = ServerKeyDialog(servers, self._window)
        dialog.chosen.connect(lambda server: self._look_up_key(dialog, server))
        dialog.store_wanted.connect(
            lambda server, value: self._keep_key(dialog, server, value))
        dialog.delete_wanted.connect(lambda server: self._keep_key(dialog, server, None))
        self._open("key", dialog)
        self._look_up_key(dialog, servers[0])

    def _look_up_key(self, dialog: ServerKeyDialog, server: str) -> None:
        from desktop.engines.remote import keys

        self._ask_keyring(dialog, server, lambda: keys.lookup(server).source)

    def _keep_key(self, dialog: ServerKeyDialog, server: str, value: str | None) -> None:
        from desktop.engines.remote import keys

        def work() -> str:
            if value is None:
                keys.delete(server)
            else:
                keys.store(server, value)
            return keys.lookup(server).source

        self._ask_keyring(dialog, server, work)

    def _ask_keyring(self, dialog: ServerKeyDialog, server: str,
                     work: Callable[[], str]) -> None:
        async def ask() -> None:
            problem: Problem | None = None
            source = ""
            try:
                source = await in_background(work, "keyring")
            except VersoError as error:
                problem = error.problem()
            if isValid(dialog) and dialog.server.currentText() == server:
                if problem is not None:
                    dialog.show_problem(problem)
                else:
                    dialog.show_source(source)

        self._window.tasks.spawn(ask(), "keyring")

    # --- the model
    def get_model(self) -> None:
        """Show the download, or let one be started."""
        values = self._session.values
        folder = self.download.folder if self.download.running else None
        dialog = ModelDialog(values, folder or download_folder(), self._window)
        dialog.changed.connect(self._change)
        dialog.room_wanted.connect(lambda where: self._measure(dialog, where))
        dialog.start_wanted.connect(lambda where: self._start_download(dialog, where))
        dialog.cancel_wanted.connect(self.download.cancel)
        dialog.finished.connect(self._model_dialog_closed)
        self._model_dialog = dialog
        self._open("model", dialog)
        self._measure(dialog, Path(dialog.folder.text()))
        if self.download.running:
            dialog.set_running(True)
            if self.download.last is not None:
                dialog.show_event(self.download.last)

    def _model_dialog_closed(self, _code: int) -> None:
        self._model_dialog = None

    def _measure(self, dialog: ModelDialog, folder: Path) -> None:
        def free() -> int | None:
            there = folder
            while not there.exists() and there != there.parent:
                there = there.parent
            try:
                return disk.free_bytes(there)
            except FolderUnusable:
                return None

        async def ask() -> None:
            room = await in_background(free, "disk")
            if self._model_dialog is dialog:
                dialog.set_room(room)

        self._window.tasks.spawn(ask(), "disk")

    def _start_download(self, dialog: ModelDialog, folder: Path) -> None:
        try:
            source = source_of(self._session.values)
        except VersoError as error:
            dialog.show_event(Failed(error.problem()))
            return
        dialog.set_running(True)
        dialog.show_event(Progress("asking"))
        self.download.start(lambda deliver: Download(source, folder, deliver))

    def _downloaded(self, event: Event) -> None:
        dialog = self._model_dialog
        if dialog is not None:
            dialog.show_event(event)
        if isinstance(event, Finished):
            self._use_model(event.folder)
            if dialog is None:
                self._window.toast.say(_("The model is here."), "ok")
        elif isinstance(event, Failed) and dialog is None:
            self._window.toast.say(event.problem.line(), "error", _("Get the model…"),
                                   self.get_model)

    def _use_model(self, folder: Path) -> None:
        """Let the engine load what has come; try again where it failed for want of it."""
        usual = folder == download_folder()
        self._change("model", "" if usual else str(folder))
        if self._window.engine.state is EngineState.FAILED:
            self._window.use.warm_up()

    # --- small things
    @property
    def _theme(self) -> Theme:
        return self._window.appearance.theme

    def _title(self, name: str) -> str:
        entry = next((each for each in registry.ENGINES if each.name == name), None)
        return _(entry.title) if entry else name
