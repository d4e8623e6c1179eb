"""Has the machine examined while the window goes on: on a thread of its own, which ends with it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QDialog, QFileDialog
from shiboken6 import isValid

from desktop.client import probing
from desktop.errors import Problem, VersoError, problem_of
from desktop.export.atomic import write_text
from desktop.i18n import N_, _
from desktop.settings import Values
from desktop.settings.store import Store
from desktop.ui.background import in_background
from desktop.ui.dialogs.examination import ExaminationDialog, Shown
from desktop.ui.frame import Frame
from desktop.ui.remedies import Remedy

_PATIENCE = 2.0
"""Seconds at the end for what runs to be gone."""


class NotSaved(VersoError):
    """The report cannot be written where a person wants it."""

    code = "window.report_not_saved"
    message = N_("The report cannot be saved as {path}: {reason}.")
    hint = N_("Choose another folder.")


class Cancelled(Exception):
    """Nobody waits for the answer any more."""


def examine(values: Values, tell: Callable[[str], None], cancel: threading.Event) -> Shown:
    """Look at everything, as ``verso doctor`` does; takes seconds to minutes. Any thread.

    Raises Cancelled soon after CANCEL is set; what was started for it is gone then.
    """
    from desktop.doctor import diagnosis, rows, text

    def step(what: str) -> None:
        if cancel.is_set():
            raise Cancelled
        tell(what)

    problems: tuple[Problem, ...] = tuple(Store().load().problems)
    with probing.cancelled_by(cancel):
        found = diagnosis.examine(values, problems, step)
    step("")
    groups = rows.groups(found)
    return Shown(found, rows.verdict(found, groups), groups, "\n".join(text.lines(found)) + "\n")


@dataclass(frozen=True)
class _Running:
    """An examination that may run: for whom, what ends it, and what says that it has ended."""

    dialog: ExaminationDialog
    cancel: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)


class Examining(QObject):
    """Opens the page and answers it."""

    _told = Signal(object, str)
    """From the thread that looks: its wish to end, and what it looks at."""

    def __init__(self, window: Frame, open_dialog: Callable[[str, QDialog], None],
                 act: Callable[[Remedy], None]) -> None:
        """OPEN_DIALOG shows a dialog under a name; ACT carries out a remedy."""
        super().__init__(window)
        self._window = window
        self._open = open_dialog
        self._act = act
        self._dialog: ExaminationDialog | None = None
        self._running: list[_Running] = []
        self._told.connect(self._show_step, Qt.ConnectionType.QueuedConnection)

    def open(self) -> None:
        """Show the page and examine; one that is there comes to the front."""
        if self._dialog is not None and isValid(self._dialog) and self._dialog.isVisible():
            self._dialog.raise_()
            self._dialog.activateWindow()
            return
        self.open_new()

    def open_new(self) -> None:
        """Show the page anew, in the current language."""
        dialog = ExaminationDialog(self._window.appearance.theme, self._window)
        self._window.appearance.changed.connect(dialog.apply_theme)
        dialog.again_wanted.connect(lambda: self._examine(dialog))
        dialog.save_wanted.connect(lambda: self._ask_where(dialog))
        dialog.remedy_wanted.connect(self._act)
        dialog.finished.connect(lambda _code: self._cancel(dialog))
        self._cancel()
        self._dialog = dialog
        self._open("examination", dialog)
        self._examine(dialog)

    def close(self) -> None:
        """End what runs."""
        self._cancel()
        for each in self._running:
            each.ended.wait(_PATIENCE)

    def _cancel(self, dialog: ExaminationDialog | None = None) -> None:
        """End what runs for DIALOG; None: everything."""
        for each in self._running:
            if dialog is None or each.dialog is dialog:
                each.cancel.set()

    # --- examining
    def _examine(self, dialog: ExaminationDialog) -> None:
        values = self._window.session.values
        running = _Running(dialog)
        cancel, ended = running.cancel, running.ended
        ended.set()  # until it begins: a window that closes at once waits for nothing
        self._running = [each for each in self._running
                         if not (each.cancel.is_set() and each.ended.is_set())]
        self._running.append(running)
        dialog.wait(_("Examining this machine …"), "")

        def work() -> Shown | None:
            ended.clear()
            try:
                return examine(values, lambda what: self._told.emit(cancel, what), cancel)
            except Cancelled:
                return None
            finally:
                ended.set()

        async def look() -> None:
            try:
                shown = await in_background(work, "examination")
            except Exception as error:
                if not cancel.is_set() and isValid(dialog):
                    dialog.show_failure(problem_of(error))
                raise
            if shown is not None and not cancel.is_set() and isValid(dialog):
                dialog.show_examination(shown)

        self._window.tasks.spawn(look(), "examine")

    def _show_step(self, cancel: threading.Event, what: str) -> None:
        if what and not cancel.is_set() and self._dialog is not None and isValid(self._dialog):
            self._dialog.set_step(_("Looking at {what} …").format(what=what))

    # --- keeping it
    def _ask_where(self, dialog: ExaminationDialog) -> None:
        chooser = QFileDialog(dialog, _("Save as JSON"))
        chooser.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        chooser.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        chooser.setNameFilter(_("JSON files") + " (*.json)")
        chooser.setDefaultSuffix("json")
        chooser.selectFile(f"verso-doctor-{date.today():%Y-%m-%d}.json")
        chooser.fileSelected.connect(lambda name: self.save(dialog, Path(name)))
        chooser.open()

    def save(self, dialog: ExaminationDialog, path: Path) -> None:
        """Write what DIALOG shows to PATH, as ``verso doctor --json`` prints it."""
        if dialog.shown is None:
            return
        found = dialog.shown.found

        def write() -> None:
            try:
                write_text(path, json.dumps(found.as_dict(), ensure_ascii=False, indent=2) + "\n")
            except OSError as error:
                raise NotSaved(path=path, reason=error.strerror or str(error)) from error

        async def keep() -> None:
            await in_background(write, "report")
            self._window.toast.say(_("The report is saved: {path}").format(path=path), "ok")

        self._window.tasks.spawn(keep(), "save report")
