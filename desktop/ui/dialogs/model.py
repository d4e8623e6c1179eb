"""Getting the model: from where, to where, how far it is."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from desktop.i18n import _
from desktop.models.disk import in_words
from desktop.models.download import STEPS, Cancelled, Event, Failed, Finished, Progress
from desktop.settings import Values, setting
from desktop.ui import words
from desktop.ui.panels.captions import label
from desktop.ui.panels.fields import Field

_TICKS = 10_000
SIZE = 6_800_000_000
"""Bytes of DeepSeek-OCR-2 as it was published, before the source has told."""


class ModelDialog(QDialog):
    """A view of a download; it goes on when the window is closed."""

    start_wanted = Signal(object)
    """The folder (a Path) it is to come into."""
    cancel_wanted = Signal()
    changed = Signal(str, object)
    """A setting of the source."""
    room_wanted = Signal(object)
    """The folder whose disk should be asked; answered with :meth:`set_room`."""

    def __init__(self, values: Values, folder: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(_("Get the model"))
        self.setMinimumWidth(560)
        self.running = False
        column = QVBoxLayout(self)
        column.setSpacing(12)
        column.addWidget(label(_(
            "DeepSeek-OCR-2 is downloaded once, about {size}. What has come is kept when it is "
            "interrupted, and every file is compared with its checksum.").format(
                size=in_words(SIZE)), "secondary"))
        form = QFormLayout()
        form.setHorizontalSpacing(16)
        form.setVerticalSpacing(8)
        self.fields: dict[str, Field] = {}
        for key in ("hub", "hub_address", "proxy"):
            field = Field(setting(key), values[key])
            field.changed.connect(self.changed)
            title = QLabel(_(setting(key).title))
            title.setBuddy(field)
            form.addRow(title, field)
            self.fields[key] = field
        self.folder = QLineEdit(str(folder))
        self.folder.setAccessibleName(_("Folder"))
        self.folder.textChanged.connect(lambda _text: self._look())
        self.browse = QPushButton(_("Browse…"))
        self.browse.setAutoDefault(False)
        self.browse.clicked.connect(self._browse)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.folder, 1)
        row.addWidget(self.browse)
        form.addRow(QLabel(_("Folder")), row)
        column.addLayout(form)
        self.room = label("", "secondary")
        column.addWidget(self.room)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(_("Progress"))
        self.bar.hide()
        column.addWidget(self.bar)
        self.state = label("", "secondary")
        column.addWidget(self.state)
        column.addStretch(1)
        buttons = QDialogButtonBox()
        self.start = QPushButton()
        self.start.setProperty("primary", True)
        self.start.clicked.connect(
            lambda: self.start_wanted.emit(Path(self.folder.text().strip()).expanduser()))
        self.cancel = QPushButton(_("Cancel download"))
        self.cancel.setAutoDefault(False)
        self.cancel.clicked.connect(self.cancel_wanted)
        self.shut = buttons.addButton(_("Close"), QDialogButtonBox.ButtonRole.RejectRole)
        self.shut.setAutoDefault(False)
        buttons.addButton(self.start, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.addButton(self.cancel, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.rejected.connect(self.reject)
        column.addWidget(buttons)
        self.set_running(False)
        self._look()

    def set_room(self, free: int | None) -> None:
        """Say how much is FREE on the folder's disk (bytes; None: not known)."""
        if free is None:
            self.room.setText("")
            return
        text = _("{free} are free there.").format(free=in_words(free))
        short = free < SIZE
        if short:
            text += " " + _("That may be too little: choose a folder on another disk.")
        self.room.setText(text)
        self._tone(self.room, "warning" if short else "secondary")

    def set_running(self, running: bool) -> None:
        """A download runs, or none does."""
        self.running = running
        for part in (*self.fields.values(), self.folder, self.browse):
            part.setEnabled(not running)
        self.start.setVisible(not running)
        self.cancel.setVisible(running)
        self.cancel.setEnabled(True)
        self.bar.setVisible(running)
        self.shut.setText(_("Hide") if running else _("Close"))
        self._name_start()

    def show_event(self, event: Event) -> None:
        """Show what the download said last."""
        if isinstance(event, Progress):
            self._progress(event)
            return
        self.set_running(False)
        if isinstance(event, Finished):
            self._say(_("The model was there already, complete.") if event.already else
                      _("The model is here and complete."), "secondary")
            self.start.hide()
        elif isinstance(event, Failed):
            self._say(event.problem.line(), "error")
        elif isinstance(event, Cancelled):
            self._say(_("Stopped. What has come is kept."), "secondary")

    def _progress(self, event: Progress) -> None:
        known = event.bytes > 0 and event.step in ("fetching", "checking")
        self.bar.setRange(0, _TICKS if known else 0)
        if known:
            self.bar.setValue(round(event.bytes_done / event.bytes * _TICKS))
        parts = [_(STEPS[event.step])]
        if known:
            parts.append(_("{done} of {all}").format(done=in_words(event.bytes_done),
                                                     all=in_words(event.bytes)))
        if event.files:
            parts.append(_("file {n} of {all}").format(
                n=min(event.files, event.files_done + 1), all=event.files))
        if event.trouble:
            parts.append(_("{trouble}; next try in {time}").format(
                trouble=event.trouble, time=words.seconds_of(event.retry_in)))
        elif event.speed > 0 and event.step == "fetching":
            parts.append(f"{in_words(event.speed)}/s")
            if event.seconds_left >= 0:
                parts.append(_("{time} left").format(time=words.seconds_of(event.seconds_left)))
        self._say(words.DOT.join(parts), "warning" if event.trouble else "secondary")

    def _say(self, text: str, role: str) -> None:
        self.state.setText(text)
        self._tone(self.state, role)

    def _tone(self, part: QLabel, role: str) -> None:
        if part.property("role") != role:
            part.setProperty("role", role)
            part.style().polish(part)

    def _look(self) -> None:
        self._name_start()
        self.room_wanted.emit(Path(self.folder.text().strip() or "/").expanduser())

    def _name_start(self) -> None:
        folder = Path(self.folder.text().strip() or ".").expanduser()
        begun = folder.with_name(f".{folder.name}.partial") if folder.name else folder
        self.start.setText(_("Resume") if begun.name.endswith(".partial") and begun.is_dir()
                           else _("Download"))
        self.start.setEnabled(bool(folder.name))

    def _browse(self) -> None:
        dialog = QFileDialog(self, _("Folder for the model"), self.folder.text())
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.fileSelected.connect(
            lambda name: self.folder.setText(str(Path(name) / "DeepSeek-OCR-2")))
        dialog.open()
