"""Export from the window: which formats, where to, and the work away from the window's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QSettings, Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QMenu

from desktop import paths
from desktop.i18n import _, ngettext
from desktop.jobs.events import DocumentResult
from desktop.ui.frame import Frame


class Exporting:
    """Fills the menu from the registry of formats and carries an export out."""

    def __init__(self, window: Frame) -> None:
        self._window = window

    def fill_menu(self, menu: QMenu) -> None:
        """One entry a format, and one for all of them."""
        from desktop.export import EXPORTERS

        menu.clear()
        documents = self._documents()
        menu.addSection(ngettext("{n} document", "{n} documents", len(documents)).format(
            n=len(documents)))
        for name, exporter in EXPORTERS.items():
            menu.addAction(f"{_(exporter.title)}…",
                           self._chooser([name]))
        menu.addSeparator()
        menu.addAction(_("All formats…"), self._chooser(list(EXPORTERS)))

    def _documents(self) -> list[int]:
        """The documents meant: those chosen in the queue, else that of the page shown, else
        all."""
        window = self._window
        chosen = [document.id for document in window.queue.chosen_documents()]
        if chosen:
            return chosen
        shown = window.model.page(window.controller.page_id or "")
        if shown is not None:
            return [shown.document_id]
        return [document.id for document in window.model.documents()]

    def _chooser(self, formats: Sequence[str]) -> Callable[[], None]:
        return lambda: self.choose_folder(formats)

    def choose_folder(self, formats: Sequence[str]) -> None:
        """Ask where to, then write."""
        documents = self._documents()
        remembered = QSettings(str(paths.config_dir() / "window.ini"), QSettings.Format.IniFormat)
        dialog = QFileDialog(self._window, _("Export to folder"),
                             str(remembered.value("export", str(Path.home()))))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)

        def chosen(name: str) -> None:
            remembered.setValue("export", name)
            self.start(documents, Path(name), formats)

        dialog.fileSelected.connect(chosen)
        dialog.open()

    def start(self, documents: Sequence[int], folder: Path, formats: Sequence[str]) -> None:
        """Write DOCUMENTS in FORMATS below FOLDER; a message says when it is done."""
        self._window.tasks.spawn(self._export(list(documents), folder, list(formats)))

    async def _export(self, documents: list[int], folder: Path, formats: list[str]) -> None:
        from desktop.export import ExportOptions, export

        session = self._window.session
        options = ExportOptions.of(session.values, lambda page: session.bitmap(page).result())
        written: list[Path] = []
        for number in documents:
            result: DocumentResult = await asyncio.wrap_future(session.document_result(number))
            written += await asyncio.to_thread(export, result, folder, formats, options)
        target = written[0].parent if len(documents) == 1 and written else folder
        self._window.toast.say(
            ngettext("{n} document was exported to {folder}.",
                     "{n} documents were exported to {folder}.", len(documents)).format(
                n=len(documents), folder=target),
            "ok", _("Open folder"),
            lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(target))))
