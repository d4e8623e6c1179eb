"""The page behind the window: it comes and goes, and a test is started and ended from here.

What it is made of: :mod:`sources` (which pages are read), :mod:`measuring` (the test itself),
:mod:`following` (what is seen of it), :mod:`earlier` (tests of the journal), :mod:`exporting`
(files, the command line), :mod:`remembered` (the form between two starts).
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QDialog, QLabel, QMenu

from desktop.i18n import N_, _, ngettext
from desktop.ui.background import in_background
from desktop.ui.benchmark import remembered
from desktop.ui.benchmark.earlier import EarlierTests
from desktop.ui.benchmark.exporting import RunExporting
from desktop.ui.benchmark.figures import Shown
from desktop.ui.benchmark.following import Following
from desktop.ui.benchmark.measuring import Measuring, News, Phase
from desktop.ui.benchmark.readings import Readings
from desktop.ui.benchmark.saving import FORMATS
from desktop.ui.benchmark.sources import SETTLE_MS, NoPages, Sources
from desktop.ui.benchmark.target import target_words
from desktop.ui.frame import Frame
from desktop.ui.texts import say
from desktop.ui.tokens import Theme

if TYPE_CHECKING:
    from desktop.ui.benchmark.page import BenchmarkPage


class BenchmarkTab(QObject):
    """Everything behind the page; made with the window, the page itself when it is first seen."""

    state_changed = Signal()
    """What can be done now has changed."""
    opened = Signal()
    """The page is there."""

    page: BenchmarkPage | None = None
    """None until it is first seen; the same holds for the four that serve it."""
    sources: Sources
    following: Following
    earlier: EarlierTests
    exporting: RunExporting

    def __init__(self, window: Frame, change: Callable[[str, object], None],
                 open_dialog: Callable[[str, QDialog], None],
                 engines: Callable[[], list[tuple[str, str]]],
                 show_settings: Callable[[], None]) -> None:
        """CHANGE uses a setting's value; OPEN_DIALOG shows one under a name; ENGINES that can be
        used: (name, title)."""
        super().__init__(window)
        self._window = window
        self._session = window.session
        self._change = change
        self._open = open_dialog
        self._engines = engines
        self._show_settings = show_settings
        self.waiting = QLabel()
        say(self.waiting, text=N_("Loading …"))
        self.waiting.setAlignment(Qt.AlignmentFlag.AlignCenter)
        window.centre.addWidget(self.waiting)
        self.measuring = Measuring(window.session, window.use, window.tasks, self)
        self.measuring.phase_changed.connect(self._phase_changed)
        self.measuring.delivered.connect(self._news)
        self.measuring.finished.connect(self._finished)
        self.measuring.kept.connect(self._kept)
        self._settle = QTimer(self)
        self._settle.setSingleShot(True)
        self._settle.setInterval(SETTLE_MS)
        self._settle.timeout.connect(self._settled)
        self._building = False

    # --- coming and going
    def show_page(self) -> None:
        """Bring the page to the front; it is made when that happens for the first time."""
        self._window.centre.setCurrentWidget(self.page or self.waiting)
        if self.page is None and not self._building:
            self._building = True
            self._window.tasks.spawn(self._build(), "benchmark page")
        elif self.page is not None:
            self._refresh()
            self.sources.look_soon()  # another document may be shown, or a password known

    async def _build(self) -> None:
        def load() -> None:
            # A full collection of garbage in the midst of it would hold the window up.
            gc.disable()
            try:
                importlib.import_module("desktop.ui.benchmark.page")
            finally:
                gc.enable()

        try:
            await in_background(load, "benchmark libraries")
        finally:
            self._building = False  # where it fails, the next time it is tried again
        from desktop.ui.benchmark.page import BenchmarkPage

        window = self._window
        page = BenchmarkPage(window.appearance.theme)
        wish, advanced = remembered.form()
        page.form.set_wish(wish)
        page.form.set_advanced(advanced)
        self._serve(page)
        self.page = page
        window.centre.addWidget(page)
        if window.centre.currentWidget() is self.waiting:
            window.centre.setCurrentWidget(page)
            page.form.levels.setFocus()
        self._refresh()
        page.live.set_title(_("No test was made yet"))
        self.sources.look()
        # What is there by now stays until the window closes: the collector need not go over these
        # 200,000 objects (100 ms) whenever a large run is fetched.
        gc.freeze()
        self.opened.emit()
        self.state_changed.emit()

    def _serve(self, page: BenchmarkPage) -> None:
        """Make what PAGE is served by, and connect what it asks for."""
        def busy() -> bool:
            return self.measuring.running

        self.sources = Sources(self._window, page.form, busy, self)
        self.following = Following(page, self)
        self.earlier = EarlierTests(self._window, page, self._open, self._show, busy, self)
        self.exporting = RunExporting(self._window, page, self.sources, self)
        page.form.changed.connect(self._settle.start)
        page.form.engine_chosen.connect(lambda name: self._change("engine", name))
        page.form.settings_wanted.connect(self._show_settings)
        page.teaching.start_wanted.connect(self.start)
        page.teaching.history_wanted.connect(self.earlier.open)
        page.apply_wanted.connect(self.use)
        page.copy_wanted.connect(self.exporting.copy_command)

    def close(self) -> None:
        """The window closes."""
        if self._settle.isActive():
            self._settle.stop()
            self._settled()
        if self.page is not None:
            self.sources.stop()
            self.following.stop()
        self.measuring.close()

    def _settled(self) -> None:
        if self.page is not None:
            remembered.keep_form(self.page.form.wish(), self.page.form.more.isChecked())

    def _refresh(self) -> None:
        """What others may have changed: engine, settings, history."""
        if self.page is None:
            return
        values = self._session.values
        self.page.form.set_engines(self._engines(), values["engine"])
        self.page.form.set_target(target_words(values))
        self._window.tasks.spawn(self.earlier.learn(values["engine"]), "benchmark history")

    def values_changed(self) -> None:
        """Other settings are in force."""
        if self.page is not None and self._window.centre.currentWidget() is self.page:
            self._refresh()
            self.sources.look_soon()

    # --- what the window asks for
    def take_files(self, files: list[Path]) -> bool:
        """Measure with FILES, that were dropped; False where that cannot be now."""
        return self.page is not None and self.sources.take(files)

    def show_past(self) -> None:
        """Open the list of earlier tests."""
        if self.page is not None:
            self.earlier.open()

    def copy_command(self) -> None:
        """Copy the command line that measures the same."""
        if self.page is not None:
            self.exporting.copy_command()

    @property
    def has_document(self) -> bool:
        """Whether a whole run is shown."""
        return self.page is not None and bool(self.page.shown.document)

    def fill_menu(self, menu: QMenu) -> None:
        """Put the formats into the export menu."""
        menu.clear()
        for form in FORMATS:
            action = menu.addAction(f"{_(form.title)}…")
            action.setEnabled(self.has_document)
            action.triggered.connect(
                lambda _checked=False, form=form: self.exporting.ask_where(form))

    def use(self, concurrency: int) -> None:
        """Read so many pages at once from now on."""
        before = self._session.values["concurrency"]
        self._change("concurrency", concurrency)
        self._window.toast.say(
            _("Conversions read {n} pages at once from now on.").format(n=concurrency), "ok",
            _("Undo"), lambda: self._change("concurrency", before))

    # --- a test
    def start_or_stop(self) -> None:
        """Start a test, or stop the one that runs."""
        if self.measuring.running:
            self.measuring.cancel()
        else:
            self.start()

    def start(self) -> None:
        """Start what the form asks for."""
        if self.page is None or self.measuring.running:
            return
        form = self.page.form
        plan = form.plan
        if plan is None:
            self._window.toast.say(form.preview.text(), "warning")
            return
        try:
            sources = self.sources.chosen()
        except NoPages as error:
            self._window.show_problem(error.problem())
            return
        self.following.begin()
        self.measuring.start(plan, sources, self._session.values, self._window.state)

    def stop(self) -> None:
        """End it now; finished rounds are kept."""
        self.measuring.cancel()

    def _phase_changed(self) -> None:
        phase = self.measuring.phase
        if self.page is not None:
            self.page.set_running(phase is not Phase.IDLE)
            if phase is Phase.STOPPING:
                self.page.live.set_title(_("Stopping: the engine is being ended"))
            elif phase is Phase.IDLE:
                self._show_ended(self.page)
        self.state_changed.emit()

    def _show_ended(self, page: BenchmarkPage) -> None:
        if not page.shown.document:  # it was stopped before it began, or could not begin
            self.following.stop()
            page.set_shown(Shown())
            page.live.set_title(_("No test was made yet"))
        self._refresh()

    def _news(self, news: News) -> None:
        if self.page is not None and self.measuring.running:
            self.following.take(news, self.measuring.phase, self.measuring.plan)

    def _finished(self, shown: Shown) -> None:
        self._show(shown, self.following.readings)
        said = {"complete": _("The test is done."), "interrupted": _("The test was stopped."),
                "time cap": _("The test ended at its time cap."),
                "failed": _("The test failed.")}[str(shown.document["ended"])]
        wrong = [row for row in shown.rows if row.error]
        if wrong and self.page is not None and all(row.speed is None for row in shown.rows):
            self.page.tabs.setCurrentWidget(self.page.remarks)  # there is nothing else to see
        if wrong:
            if len(shown.rows) > len(wrong):
                said += " " + ngettext("{n} level failed.", "{n} levels failed.",
                                       len(wrong)).format(n=len(wrong))
            self._window.toast.say(f"{said} {wrong[0].at_once}: {wrong[0].error}", "error")
        elif shown.document["ended"] != "interrupted":
            self._window.toast.say(said, "ok")
            self._window.notice.say("Verso", said)

    def _kept(self, _number: int) -> None:
        self.earlier.list_changed()

    def _show(self, shown: Shown, readings: Readings) -> None:
        """Show a whole run: the one that has ended, or an earlier one."""
        assert self.page is not None
        self.following.stop()
        self.page.end_comparison()
        self.page.set_shown(shown)
        self.page.set_readings(readings)
        self.page.live.set_title(shown.title)
        self.state_changed.emit()

    # --- words and colours
    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        if self.page is not None:
            self.page.apply_theme(theme)

    def retranslate(self) -> None:
        """Say everything in the current language."""
        if self.page is None:
            return
        self.page.retranslate()
        self._refresh()
        self.sources.look()
        if not self.measuring.running:
            self.page.live.set_title(self.page.shown.title if self.page.shown.document
                                     else _("No test was made yet"))
