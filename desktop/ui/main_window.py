"""The window at work: what the session says is shown, what a person does is passed on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
)
from PySide6.QtWidgets import QWidget

from desktop.engines import registry
from desktop.i18n import _, ngettext
from desktop.jobs import events as e
from desktop.jobs.session import Session
from desktop.settings.store import Store
from desktop.ui import dropping
from desktop.ui.commands import Commands
from desktop.ui.frame import Frame
from desktop.ui.models.queue import Totals
from desktop.ui.remedies import remedy
from desktop.ui.theme import Appearance, Theme


class MainWindow(Frame):
    """The frame, fed by the session through the bridge, with its actions carried out."""

    def __init__(self, session: Session, appearance: Appearance, store: Store,
                 loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(session, appearance, loop)
        self._ended = False
        self._locked: set[int] = set()
        """Documents whose password was asked for already."""
        self._told_of_waiting = False
        self._restarting = False
        self._totals: Totals | None = None
        self._shown: e.PageView | None = None
        self._basis: tuple[object, ...] = ()
        """What the buttons showed last depends on."""
        self.commands = Commands(self, store)
        self._connect()
        self._show_state()

    def _connect(self) -> None:
        self.bridge.delivered.connect(self._delivered)
        self.appearance.changed.connect(self.apply_theme)
        self.empty.files_wanted.connect(self.commands.add_files)
        self.empty.sample_wanted.connect(self.commands.sample)
        self.queue.page_chosen.connect(
            lambda page: self.controller.show(page, by_person=True))
        self.queue.retry_wanted.connect(self.commands.rerun_pages)
        self.queue.remove_wanted.connect(self.commands.remove)
        self.queue.folder_wanted.connect(self.commands.open_folder)
        self.model.edited.connect(self.commands.document_edited)
        self.settings.changed.connect(self.commands.change_setting)
        self.settings.retry_wanted.connect(self.use.warm_up)
        self.problem_list.go_to.connect(self.commands.go_to_problem)
        self.problem_list.remedy_wanted.connect(self.commands.tools.remedy)
        self.figures.problems_wanted.connect(lambda: self.show_bottom(self.problem_list))
        self.commands.benchmark.state_changed.connect(self._test_changed)
        self.controller.page_shown.connect(self._page_shown)
        self.controller.follow_changed.connect(self._follow_changed)

    def create_review(self) -> None:
        super().create_review()
        self._show_state()

    def retranslate(self) -> None:
        super().retranslate()
        self.commands.benchmark.retranslate()
        self._totals = None
        self._basis = ()
        self._show_state()

    def apply_theme(self, theme: Theme) -> None:
        super().apply_theme(theme)
        self.commands.benchmark.apply_theme(theme)
        self._show_state()

    # --- what the session says
    def open(self) -> None:
        """Listen to the session from now on."""
        self.bridge.open()

    def _delivered(self, events: Sequence[e.SessionEvent]) -> None:
        log: list[e.LogAdded] = []
        for event in events:
            if isinstance(event, e.LogAdded):
                log.append(event)
            elif isinstance(event, e.ProgressUpdated):
                self.state = event.progress
                self.figures.set_progress(event.progress)
                if event.progress.run is e.RunState.RUNNING:
                    self.toast.retract("waiting")
            elif isinstance(event, e.EngineUpdated):
                self._engine_updated(event.engine)
            elif isinstance(event, e.ProblemAdded):
                self.problems.put(event.problem)
            elif isinstance(event, e.ProblemRemoved):
                self.problems.take(event.key)
            elif isinstance(event, e.QueueFinished):
                self._finished(event)
            else:
                self.model.apply(event)
        if log:
            self.log.add(log)
        self.controller.apply(events)
        self._show_state()
        self._tell_of_waiting()

    def _engine_updated(self, engine: e.EngineView) -> None:
        before, self.engine = self.engine, engine
        self.settings.set_engine(engine)
        self.figures.set_engine(engine)
        if engine.state is not before.state:
            if engine.state is e.EngineState.RESTARTING:
                why = engine.problem.message if engine.problem else _("The engine stopped.")
                self.toast.say(why + " " + _("It is being started again; what it was reading is "
                                             "read once more."), "warning")
            elif engine.state is e.EngineState.FAILED and engine.problem is not None:
                offer = remedy(engine.problem)
                if offer is not None:
                    self.toast.say(engine.problem.line(), "error", offer.text,
                                   lambda: self.commands.tools.remedy(offer), about="engine")
                else:
                    self.toast.say(engine.problem.line(), "error", _("Settings"),
                                   self.commands.tools.show_settings, about="engine")
            elif engine.state is e.EngineState.READY and self._restarting:
                self.toast.say(_("The engine runs again."), "ok")
            if engine.state is e.EngineState.READY:
                self.toast.retract("engine")
            if engine.state is not e.EngineState.LOADING:
                self._restarting = engine.state is e.EngineState.RESTARTING

    def _finished(self, event: e.QueueFinished) -> None:
        text = ngettext("{n} page is read.", "{n} pages are read.", event.total).format(
            n=event.total)
        if event.suspicious:
            text += " " + ngettext("{n} needs a look.", "{n} need a look.",
                                   event.suspicious).format(n=event.suspicious)
            self.toast.say(text, "warning", _("Show"), self.commands.next_suspicious)
        else:
            self.toast.say(text, "ok")
        self.notice.say("Verso", text)

    def _show_state(self) -> None:
        """Bring buttons, titles and the centre in line with what there is, where that changed."""
        totals = self.model.totals
        if totals != self._totals:
            self._totals = totals
            fact = ""
            if totals.documents:
                fact = ngettext("{n} document", "{n} documents", totals.documents).format(
                    n=totals.documents)
            if totals.pages:
                fact += " · " + ngettext("{n} page", "{n} pages", totals.pages).format(
                    n=f"{totals.pages:,}")
            self.queue_dock.set_fact(fact)
            self._stack.setCurrentIndex(1 if totals.documents else 0)
            self.toast.raise_()  # the page that comes to the front must not cover it
        shown = self.model.page(self.controller.page_id or "")
        if shown != self._shown:
            self._shown = shown
            self.settings.set_page(shown)
        if self.model.locked.keys() != self._locked:
            self._ask_passwords(self.model.locked)
        self._show_buttons()

    def _ask_passwords(self, locked: Mapping[int, str]) -> None:
        """Say which documents wait for their password, when one more does."""
        fresh = [number for number in locked if number not in self._locked]
        self._locked = set(locked)
        if fresh:
            self.toast.say(
                _("“{name}” is protected by a password.").format(name=locked[fresh[0]])
                if len(locked) == 1 else
                ngettext("{n} document waits for its password.",
                         "{n} documents wait for their passwords.", len(locked)).format(
                    n=len(locked)),
                "warning", _("Enter password…"), lambda: self.queue.ask_password(fresh[0]),
                about="password")
        elif not locked:
            self.toast.retract("password")

    def _tell_of_waiting(self) -> None:
        """After a restart nothing is read by itself: say how to go on."""
        if self._told_of_waiting:
            return
        self._told_of_waiting = True

        def tell() -> None:
            count = self.state.total - self.state.finished
            if not self._ended and not count and any(
                    document.state is e.DocumentState.OPENING
                    for document in self.model.documents()):
                QTimer.singleShot(1000, self, tell)  # how many is not known yet
            elif not self._ended and count and self.state.run is e.RunState.PAUSED:
                self.toast.say(ngettext("{n} page from last time waits to be read.",
                                        "{n} pages from last time wait to be read.",
                                        count).format(n=count),
                               "info", _("Start"), self.commands.start, about="waiting")

        # Not where files of the command line start it all the same.
        QTimer.singleShot(1000, self, tell)

    def _show_buttons(self) -> None:
        """Buttons and engine, where anything they depend on changed."""
        state = self.state
        totals = self.model.totals
        basis = (totals.documents > 0, totals.suspicious, state.run, state.finished < state.total,
                 state.in_flight > 0, self.controller.page_id is None, self.engine,
                 len(self.problems.problems), self.appearance.theme.name, self.use.lent,
                 self.measuring_shown)
        if basis == self._basis:
            return
        self._basis = basis
        self.figures.set_problems(len(self.problems.problems))
        self.commands.show_state(totals.documents > 0, totals.suspicious)
        entry = next((x for x in registry.ENGINES if x.name == self.engine.name), None)
        self.top.set_engine(self.engine, _(entry.title) if entry else self.engine.name,
                            self.use.lent)

    def _test_changed(self) -> None:
        """A test began or ended, or another page is in front."""
        self._basis = ()
        self.figures.set_measured(self.use.lent)
        self._show_buttons()

    def benchmark_panes(self) -> list[QWidget]:
        page = self.commands.benchmark.page
        return [] if page is None else [page.form.levels, page.tabs]

    def _page_shown(self, page_id: str | None) -> None:
        self.queue.show_page(page_id, select=not self.queue.hasFocus())
        self._show_state()

    def _follow_changed(self, follow: bool) -> None:
        self.actions_["follow"].setChecked(follow)
        if self.pane is not None:
            self.pane.set_following(follow)

    # --- drops
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropping.acceptable(event.mimeData()):
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
            self.empty.set_over(True)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self.empty.set_over(False)

    def dropEvent(self, event: QDropEvent) -> None:
        self.empty.set_over(False)
        if self.measuring_shown:
            files = dropping.local_files(event.mimeData())
            if self.commands.benchmark.take_files(files):
                event.setDropAction(Qt.DropAction.CopyAction)
                event.accept()
            return
        if self.commands.take(event.mimeData()):
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self._ended:
            self.save_layout()
            self.end()
        event.accept()
        self.closed.emit()

    def end(self) -> None:
        """Let go of the session: no events, no requests from here on."""
        self._ended = True
        self.notice.close()
        self.commands.tools.close()
        self.commands.benchmark.close()
        self.thumbnails.close()
        self.tasks.close()
        self.bridge.close()
        if self.pane is not None:
            self.pane.close_engine()

    def add(self, files: Sequence[Path]) -> None:
        """Queue FILES and read them."""
        self.commands.add(files)
