"""The choice of the engine, with what it got or why it does not run."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from desktop.engines import registry
from desktop.i18n import _
from desktop.jobs.events import EngineState, EngineView
from desktop.settings import Values
from desktop.ui.panels import notes
from desktop.ui.panels.captions import label, small
from desktop.ui.remedies import Remedy, examination, remedy


class EngineChooser(QWidget):
    """Which engine reads; one that cannot be used says why, in place, and what to do."""

    changed = Signal(str, object)
    retry_wanted = Signal()
    remedy_wanted = Signal(object)
    """A Remedy."""
    details_wanted = Signal()

    def __init__(self, values: Values, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        self.box = QComboBox()
        self.box.setAccessibleName(_("Engine"))
        self.box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.box.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.box.setMinimumContentsLength(6)
        column.addWidget(self.box)
        current = values["engine"]
        for entry in registry.ENGINES:
            if entry.hidden and entry.name != current:
                continue
            self.box.addItem(_(entry.title), entry.name)
        self.box.setCurrentIndex(self.box.findData(current))
        self.box.activated.connect(
            lambda _row: self.changed.emit("engine", self.box.currentData()))
        self.setFocusProxy(self.box)
        self.note = small(label("", "secondary"))
        self.missing = small(label("", "warning"))
        self.problem = small(label("", "error"))
        for text in (self.missing, self.problem):  # there may be a command in it
            text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.again = QPushButton(_("Try again"))
        self.again.clicked.connect(self.retry_wanted)
        self.remedy = QPushButton()
        self.remedy.clicked.connect(lambda: self.remedy_wanted.emit(self._remedy))
        self.details = QPushButton(_("Details…"))
        self.details.setAccessibleName(_("What the engine got"))
        self.details.clicked.connect(self.details_wanted)
        for widget in (self.note, self.missing, self.problem):
            column.addWidget(widget)
        row = QHBoxLayout()
        row.setSpacing(8)
        for button in (self.remedy, self.again, self.details):
            row.addWidget(button)
        row.addStretch(1)
        column.addLayout(row)
        self.examine = QPushButton(examination().text)
        self.examine.clicked.connect(lambda: self.remedy_wanted.emit(examination()))
        column.addWidget(self.examine, 0, Qt.AlignmentFlag.AlignLeft)
        self._remedy: Remedy | None = None
        self._engine: EngineView | None = None
        self.set_values(values)

    def set_values(self, values: Values) -> None:
        """Say which engines are not there as VALUES are."""
        self._why = {}
        model = self.box.model()
        for row in range(self.box.count()):
            entry = registry.entry(self.box.itemData(row))
            why = notes.why_missing(entry, values)
            self._why[entry.name] = why
            self.box.setItemText(row, notes.engine_title(entry, values))
            self.box.setItemData(row, why, Qt.ItemDataRole.ToolTipRole)
            # One that another Python can run is chosen first, and given its Python then.
            model.item(row).setEnabled(  # type: ignore[attr-defined]
                not why or notes.elsewhere(entry))
        self.show_engine(self._engine)

    def show_engine(self, engine: EngineView | None) -> None:
        """Say what the engine got, or why it does not run and what to do."""
        self._engine = engine
        ready = engine.ready if engine and engine.state is EngineState.READY else None
        note = notes.engine_got(ready)
        problem = engine.problem if engine else None
        failed = engine is not None and engine.state in (EngineState.FAILED,
                                                         EngineState.RESTARTING)
        if engine is not None and not note and engine.state is EngineState.LOADING:
            note = engine.step
        self.note.setText(note)
        self.note.setVisible(bool(note))
        self.problem.setText(problem.line() if problem and failed else "")
        self.problem.setVisible(bool(self.problem.text()))
        # Of the others in the list only those that cannot even be chosen need a word here.
        chosen = self.box.currentData()
        missing = [why for name, why in self._why.items() if why and (
            name == chosen or not notes.elsewhere(registry.entry(name)))]
        self.missing.setText("\n".join(missing))
        self.missing.setVisible(bool(missing) and not (
            failed and problem is not None and problem.code == "engine.not_installed"))
        self._remedy = remedy(problem) if problem and failed else None
        if self._remedy is None and self._why.get(chosen) and not failed:
            self._remedy = Remedy("show", _("Choose interpreter…"), "engine_interpreter")
        if self._remedy is not None and self._remedy.action == "examine":
            self._remedy = None  # it has a button of its own, with room for its words
        self.remedy.setText(self._remedy.text if self._remedy else "")
        self.remedy.setAccessibleName(self._remedy.text if self._remedy else _("What to do"))
        self.remedy.setVisible(self._remedy is not None)
        self.again.setVisible(engine is not None and engine.state is EngineState.FAILED)
        self.examine.setVisible(failed)
        self.details.setVisible(ready is not None)
