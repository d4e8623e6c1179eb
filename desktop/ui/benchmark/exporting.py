"""What leaves the page: files of a run, the command line that measures the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from desktop.benchmark.command import command_line
from desktop.i18n import _
from desktop.ui.background import in_background
from desktop.ui.benchmark import remembered
from desktop.ui.benchmark.saving import Format, file_name, picture, write
from desktop.ui.benchmark.sources import NoPages, Sources
from desktop.ui.frame import Frame

if TYPE_CHECKING:
    from desktop.ui.benchmark.page import BenchmarkPage


class RunExporting(QObject):
    """Asks where to, and writes in the background."""

    def __init__(self, window: Frame, page: BenchmarkPage, sources: Sources,
                 parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._window = window
        self._page = page
        self._sources = sources

    def ask_where(self, form: Format) -> None:
        """Ask for a file of FORM, and write it."""
        chooser = QFileDialog(self._window, _("Save the test"), remembered.folder())
        chooser.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        chooser.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        chooser.setNameFilter(f"*.{form.suffix}")
        chooser.setDefaultSuffix(form.suffix)
        chooser.selectFile(file_name(self._page.shown.document, form.suffix))

        def chosen(name: str) -> None:
            remembered.keep_folder(Path(name).parent)
            self.save(form, Path(name))

        chooser.fileSelected.connect(chosen)
        chooser.open()

    def save(self, form: Format, path: Path) -> None:
        """Write the run shown to PATH."""
        page, shown = self._page, self._page.shown
        if not shown.document:
            return
        page.draw_now()
        drawn = None if form.text is not None else picture(
            page.charts, shown, self._window.appearance.theme, page.font())

        async def keep() -> None:
            await in_background(lambda: write(path, form, shown.document, drawn), "save benchmark")
            self._window.toast.say(_("The test is saved: {path}").format(path=path), "ok")

        self._window.tasks.spawn(keep(), f"save benchmark {form.suffix}")

    def copy_command(self) -> None:
        """The command line of the run shown; before there is one, of what the form asks for."""
        shown, plan = self._page.shown, self._page.form.plan
        if shown.document:
            command = str(shown.document["command"])
        elif plan is not None:
            try:
                sources = [str(path) for path in self._sources.chosen()]
            except NoPages as error:
                self._window.show_problem(error.problem())
                return
            command = command_line(plan, sources, self._window.session.values, {},
                                   protected=self._sources.protected)
        else:
            return
        QGuiApplication.clipboard().setText(command)
        self._window.toast.say(_("Copied: {command}").format(command=command), "ok")
