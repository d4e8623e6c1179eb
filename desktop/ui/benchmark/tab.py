"""What the page does: tests are started, shown, kept, compared and saved from here."""

from __future__ import annotations

import asyncio
import gc
import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QSettings, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QFileDialog, QLabel, QMenu
from shiboken6 import isValid

from desktop import paths
from desktop.benchmark import environment, history
from desktop.benchmark.command import command_line
from desktop.benchmark.plan import Plan
from desktop.benchmark.workload import Workload
from desktop.errors import VersoError
from desktop.i18n import N_, _, ngettext
from desktop.ui import words
from desktop.ui.background import in_background
from desktop.ui.benchmark import wish as wishes
from desktop.ui.benchmark.figures import Shown, shown_of, strategy_words
from desktop.ui.benchmark.measuring import Measuring, News, Phase, look_at
from desktop.ui.benchmark.past import PastDialog
from desktop.ui.benchmark.preview import Known
from desktop.ui.benchmark.readings import Readings, of_document
from desktop.ui.benchmark.saving import FORMATS, Format, file_name, picture, write
from desktop.ui.benchmark.target import target_words
from desktop.ui.benchmark.wish import Wish
from desktop.ui.frame import Frame
from desktop.ui.texts import say
from desktop.ui.tokens import Theme

if TYPE_CHECKING:
    from desktop.ui.benchmark.page import BenchmarkPage

_SETTLE_MS = 400
"""After the last key, before files are looked at and the form is kept."""
_CHARTS_MS = 1_000
"""Between two drawings of the charts while a test runs."""


class NoPages(VersoError):
    """The form names no pages."""

    code = "window.benchmark_no_pages"
    message = N_("No pages are chosen to measure with.")
    hint = N_("Choose files or a folder, add a document to the queue, or take the sample pages.")


class BenchmarkTab(QObject):
    """Everything behind the page; made with the window, the page itself when it is first seen."""

    state_changed = Signal()
    """What can be done now has changed."""
    opened = Signal()
    """The page is there."""

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
        self.page: BenchmarkPage | None = None
        self.waiting = QLabel()
        say(self.waiting, text=N_("Loading …"))
        self.waiting.setAlignment(Qt.AlignmentFlag.AlignCenter)
        window.centre.addWidget(self.waiting)
        self.measuring = Measuring(window.session, window.use, window.tasks, self)
        self.measuring.phase_changed.connect(self._phase_changed)
        self.measuring.delivered.connect(self._news)
        self.measuring.finished.connect(self._finished)
        self.measuring.kept.connect(self._kept)
        self._shown = Shown()
        self._readings = Readings()
        self._past: PastDialog | None = None
        self._known_for = ""
        self._level = 0
        self._settle = self._timer(_SETTLE_MS, self._settled)
        self._look = self._timer(_SETTLE_MS, self._look_at_pages)
        self._draw = self._timer(_CHARTS_MS, self._draw_now)
        self._building = False

    def _timer(self, interval: int, call: Callable[[], None]) -> QTimer:
        made = QTimer(self)
        made.setSingleShot(True)
        made.setInterval(interval)
        made.timeout.connect(call)
        return made

    # --- coming and going
    def show_page(self) -> None:
        """Bring the page to the front; it is made when that happens for the first time."""
        self._window.centre.setCurrentWidget(self.page or self.waiting)
        if self.page is None and not self._building:
            self._building = True
            self._window.tasks.spawn(self._build(), "benchmark page")
        elif self.page is not None:
            self._refresh()

    async def _build(self) -> None:
        def load() -> None:
            # A full collection of garbage in the midst of it would hold the window up.
            gc.disable()
            try:
                importlib.import_module("desktop.ui.benchmark.page")
            finally:
                gc.enable()

        await in_background(load, "benchmark libraries")
        from desktop.ui.benchmark.page import BenchmarkPage

        window = self._window
        page = BenchmarkPage(window.appearance.theme)
        kept = self._kept_settings()
        page.form.set_wish(Wish.of(kept.value("wish", "")))
        page.form.set_advanced(kept.value("advanced", "false") == "true")
        page.form.changed.connect(self._settle.start)
        page.form.sources_changed.connect(self._look.start)
        page.form.engine_chosen.connect(lambda name: self._change("engine", name))
        page.form.settings_wanted.connect(self._show_settings)
        page.teaching.start_wanted.connect(self.start)
        page.teaching.history_wanted.connect(self.show_past)
        page.apply_wanted.connect(self.use)
        page.copy_wanted.connect(self.copy_command)
        self.page = page
        window.centre.addWidget(page)
        if window.centre.currentWidget() is self.waiting:
            window.centre.setCurrentWidget(page)
            page.form.levels.setFocus()
        self._refresh()
        page.live.set_title(_("No test was made yet"))
        self._look_at_pages()
        # What is there by now stays until the window closes: the collector need not go over these
        # 200,000 objects (100 ms) whenever a large run is fetched.
        gc.freeze()
        self.opened.emit()
        self.state_changed.emit()

    def close(self) -> None:
        """The window closes."""
        for timer in (self._settle, self._look, self._draw):
            if timer.isActive() and timer is self._settle:
                self._settled()
            timer.stop()
        self.measuring.close()

    @staticmethod
    def _kept_settings() -> QSettings:
        kept = QSettings(str(paths.config_dir() / "window.ini"), QSettings.Format.IniFormat)
        kept.beginGroup("benchmark")
        return kept

    def _settled(self) -> None:
        if self.page is None:
            return
        kept = self._kept_settings()
        kept.setValue("wish", self.page.form.wish().kept())
        kept.setValue("advanced", "true" if self.page.form.more.isChecked() else "false")

    def _refresh(self) -> None:
        """What others may have changed: engine, settings, history."""
        if self.page is None:
            return
        values = self._session.values
        self.page.form.set_engines(self._engines(), values["engine"])
        self.page.form.set_target(target_words(values))
        self._window.tasks.spawn(self._learn(values["engine"]), "benchmark history")

    def values_changed(self) -> None:
        """Other settings are in force."""
        if self._window.centre.currentWidget() is self.page:
            self._refresh()
            self._look.start()

    async def _learn(self, engine: str) -> None:
        """What is known of ENGINE from earlier tests."""
        rows = await asyncio.wrap_future(self._session.benchmarks())
        known = Known()
        for row in rows:
            if row.engine == engine and row.concurrency:
                found = await asyncio.wrap_future(self._session.benchmark(row.id))
                if found is not None:
                    known = Known(history.speeds(found), history.start_seconds(found))
                break
        if self.page is not None:
            self.page.form.set_known(known)
            self.page.teaching.history.setVisible(bool(rows))

    # --- the pages
    def sources(self) -> list[Path]:
        """Those the form means; [] for the samples. Raises NoPages."""
        assert self.page is not None
        wish = self.page.form.wish()
        if wish.pages == wishes.SAMPLES:
            return []
        if wish.pages == wishes.CHOSEN:
            if not wish.paths:
                raise NoPages
            return [Path(path) for path in wish.paths]
        window = self._window
        shown = window.model.page(window.controller.page_id or "")
        document = window.model.document(shown.document_id) if shown is not None else None
        if document is None:
            document = next(iter(window.model.documents()), None)
        if document is None:
            raise NoPages
        return [Path(document.path)]

    def _look_at_pages(self) -> None:
        if self.page is None or self.measuring.running:
            return
        try:
            sources = self.sources()
        except NoPages as error:
            self.page.form.set_facts(error.problem().line(), wrong=True)
            return
        self._window.tasks.spawn(self._tell_pages(sources), "benchmark look")

    async def _tell_pages(self, sources: list[Path]) -> None:
        found = await look_at(sources)
        if self.page is None:
            return
        if isinstance(found, VersoError):
            names = ", ".join(path.name for path in sources[:3])
            self.page.form.set_facts(f"{names}: {found.problem().line()}", wrong=True)
        else:
            self.page.form.set_facts(self._facts(found, sources))

    def _facts(self, found: Workload, sources: list[Path]) -> str:
        said = ngettext("{n} page", "{n} pages", len(found.pages)).format(
            n=words.count_of(len(found.pages)))
        parts = [said]
        if sources:
            parts.insert(0, ", ".join(path.name for path in sources[:3])
                         + (" …" if len(sources) > 3 else ""))
        if found.left_out:
            parts.append(ngettext("{n} file left out", "{n} files left out",
                                  len(found.left_out)).format(n=len(found.left_out)))
        assert self.page is not None
        if self.page.form.wish().unique:
            parts.append(_("each copy is marked, caches cannot help"))
        else:
            states = environment.caches(self._session.values, {}).values()
            if "on" in states:
                parts.append(_("they repeat, and a cache of the engine is on"))
            elif "unknown" in states:
                parts.append(_("they repeat, and the server may have a cache"))
        return words.DOT.join(parts)

    def take_files(self, files: list[Path]) -> bool:
        """Measure with FILES, that were dropped; False where that cannot be now."""
        if self.page is None or self.measuring.running or not files:
            return False
        self.page.form.set_paths([str(path) for path in files])
        return True

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
            sources = self.sources()
        except NoPages as error:
            self._window.show_problem(error.problem())
            return
        self._begin(plan)
        self.measuring.start(plan, sources, self._session.values, self._window.state)

    def _begin(self, plan: Plan) -> None:
        assert self.page is not None
        self._shown, self._readings = Shown(), Readings()
        self._level = 0
        page = self.page
        page.end_comparison()
        page.set_readings(self._readings)
        page.set_shown(self._shown)
        page.stack.setCurrentIndex(1)
        page.tabs.setCurrentIndex(0)
        page.live.begin()
        page.live.set_title(_("Opening the pages"))

    def stop(self) -> None:
        """End it now; finished rounds are kept."""
        self.measuring.cancel()

    def _phase_changed(self) -> None:
        phase = self.measuring.phase
        if self.page is not None:
            running = phase is not Phase.IDLE
            self.page.set_running(running)
            if phase is Phase.STOPPING:
                self.page.live.set_title(_("Stopping: the engine is being ended"))
            elif phase is Phase.IDLE:
                self._show_ended()
        self.state_changed.emit()

    def _show_ended(self) -> None:
        assert self.page is not None
        if not self._shown.document:  # it was stopped before it began, or could not begin
            self._shown = Shown()
            self.page.set_shown(self._shown)
            self.page.live.set_title(_("No test was made yet"))
        self._refresh()

    def _news(self, news: News) -> None:
        if self.page is None or not self.measuring.running:
            return
        live = self.page.live
        if news.rows:
            for index, row in sorted(news.rows.items()):
                self._shown = self._shown.with_row(index, row)
            self.page.model.set_shown(self._shown)
            if not self._draw.isActive():
                self._draw.start()
        if self.measuring.phase is Phase.RUNNING:
            title = self._title(news)
            if title:
                live.set_title(title)
            if news.live is not None:
                live.show_live(news.live, _left(news))
        live.pulse.add(news.speeds)
        if news.samples:
            self._readings.add(news.samples)
            self.page.devices.refresh_soon()

    def _title(self, news: News) -> str:
        """What is going on; "" where that did not change."""
        plan = self.measuring.plan
        if news.round is not None:
            one = news.round
            at = _level_words(one.level.concurrency, str(one.level.strategy))
            return words.DOT.join(({
                "cold": _("Cold round"),
                "warm-up": _("Warm-up {n} of {total}").format(n=one.number, total=plan.warmup),
            }.get(one.kind, _("Round {n} of {total}").format(n=one.number, total=plan.rounds)), at))
        if news.progress is not None:
            step = news.progress.step or _("Engine starts")
            if news.progress.fraction >= 0:
                step += f" {news.progress.fraction:.0%}"
            return step
        if news.level is not None:
            return words.DOT.join((_("Engine starts"), _level_words(
                news.level.level.concurrency, str(news.level.level.strategy))))
        return ""

    def _draw_now(self) -> None:
        if self.page is not None and self.measuring.running:
            self.page.set_shown(self._shown)

    def _finished(self, shown: Shown) -> None:
        self._draw.stop()
        self._show(shown, self._readings)
        said = {"complete": _("The test is done."), "interrupted": _("The test was stopped."),
                "time cap": _("The test ended at its time cap."),
                "failed": _("The test failed.")}[str(shown.document["ended"])]
        problem = next((row.error for row in shown.rows if row.error), "")
        if problem:
            self._window.toast.say(f"{said} {problem}", "error")
        elif shown.document["ended"] != "interrupted":
            self._window.toast.say(said, "ok")
            self._window.notice.say("Verso", said)

    def _show(self, shown: Shown, readings: Readings) -> None:
        self._shown, self._readings = shown, readings
        if self.page is None:
            return
        self.page.end_comparison()
        self.page.set_shown(shown)
        self.page.set_readings(readings)
        self.page.live.set_title(shown.title)
        self.state_changed.emit()

    def _kept(self, _number: int) -> None:
        if self._past is not None and isValid(self._past):
            self._fill_past()

    # --- what is done with a run
    @property
    def has_document(self) -> bool:
        """Whether a whole run is shown."""
        return bool(self._shown.document)

    def use(self, concurrency: int) -> None:
        """Read so many pages at once from now on."""
        before = self._session.values["concurrency"]
        self._change("concurrency", concurrency)
        self._window.toast.say(
            _("Conversions read {n} pages at once from now on.").format(n=concurrency), "ok",
            _("Undo"), lambda: self._change("concurrency", before))

    def copy_command(self) -> None:
        """The command line of the run shown; before there is one, of what the form asks for."""
        if self._shown.document:
            command = str(self._shown.document["command"])
        elif self.page is not None and self.page.form.plan is not None:
            try:
                sources = [str(path) for path in self.sources()]
            except NoPages as error:
                self._window.show_problem(error.problem())
                return
            command = command_line(self.page.form.plan, sources, self._session.values, {})
        else:
            return
        QGuiApplication.clipboard().setText(command)
        self._window.toast.say(_("Copied: {command}").format(command=command), "ok")

    def fill_menu(self, menu: QMenu) -> None:
        """Put the formats into the export menu."""
        menu.clear()
        for form in FORMATS:
            action = menu.addAction(f"{_(form.title)}…")
            action.setEnabled(self.has_document)
            action.triggered.connect(lambda _checked=False, form=form: self._ask_where(form))

    def _ask_where(self, form: Format) -> None:
        kept = self._kept_settings()
        chooser = QFileDialog(self._window, _("Save the test"),
                              str(kept.value("folder", str(Path.home()))))
        chooser.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        chooser.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        chooser.setNameFilter(f"*.{form.suffix}")
        chooser.setDefaultSuffix(form.suffix)
        chooser.selectFile(file_name(self._shown.document, form.suffix))

        def chosen(name: str) -> None:
            kept.setValue("folder", str(Path(name).parent))
            self.save(form, Path(name))

        chooser.fileSelected.connect(chosen)
        chooser.open()

    def save(self, form: Format, path: Path) -> None:
        """Write the run shown to PATH."""
        page, shown = self.page, self._shown
        if page is None or not shown.document:
            return
        page.draw_now()
        drawn = None if form.text is not None else picture(
            page.charts, shown, self._window.appearance.theme, page.font())

        async def keep() -> None:
            await in_background(lambda: write(path, form, shown.document, drawn), "save benchmark")
            self._window.toast.say(_("The test is saved: {path}").format(path=path), "ok")

        self._window.tasks.spawn(keep(), f"save benchmark {form.suffix}")

    # --- earlier ones
    def show_past(self) -> None:
        """Open the list of earlier tests."""
        dialog = PastDialog(self._window)
        dialog.show_wanted.connect(self._show_kept)
        dialog.compare_wanted.connect(self._compare_kept)
        dialog.renamed.connect(self._session.rename_benchmark)
        dialog.removed.connect(self._forget)
        self._past = dialog
        self._open("past", dialog)
        self._fill_past()

    def _fill_past(self) -> None:
        async def fill() -> None:
            rows = await asyncio.wrap_future(self._session.benchmarks())
            if self._past is not None and isValid(self._past):
                self._past.set_rows(rows)
            if self.page is not None:
                self.page.teaching.history.setVisible(bool(rows))
        self._window.tasks.spawn(fill(), "benchmark list")

    def _forget(self, ids: list[int]) -> None:
        for number in ids:
            self._session.remove_benchmark(number)
        self._fill_past()

    async def _fetch(self, number: int) -> Shown | None:
        rows = await asyncio.wrap_future(self._session.benchmarks())
        name = next((row.name for row in rows if row.id == number), "")
        found: Mapping[str, Any] | None = await asyncio.wrap_future(
            self._session.benchmark(number))
        if found is None:
            return None
        return await in_background(lambda: shown_of(found, name), "benchmark figures")

    def _show_kept(self, number: int) -> None:
        async def show() -> None:
            shown = await self._fetch(number)
            if shown is not None and not self._busy():
                self._show(shown, await in_background(lambda: of_document(shown.document)))
        self._window.tasks.spawn(show(), "benchmark show")

    def _compare_kept(self, number: int, other: int) -> None:
        async def show() -> None:
            one, two = await self._fetch(number), await self._fetch(other)
            if one is None or two is None or self._busy():
                return
            self._show(one, await in_background(lambda: of_document(one.document)))
            if self.page is not None:
                # The earlier one is what the later one is held against: it stands first.
                self.page.compare(two, history.compare(one.document, two.document))
        self._window.tasks.spawn(show(), "benchmark show")

    def _busy(self) -> bool:
        if self.measuring.running:
            self._window.toast.say(_("A test runs: another can be shown when it has ended."))
            return True
        return False

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
        self._look_at_pages()
        if not self.measuring.running:
            self.page.live.set_title(self._shown.title if self._shown.document
                                     else _("No test was made yet"))


def _level_words(concurrency: int, strategy: str) -> str:
    if strategy == "continuous":
        return _("{n} at once").format(n=concurrency)
    return strategy_words(strategy)


def _left(news: News) -> float | None:
    """Seconds, from how long it took so far."""
    live = news.live
    if live is None or live.done < 4 or live.expected <= live.done:
        return None
    return live.at / live.done * (live.expected - live.done)


