"""The run settings dock, made from the declared settings."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from desktop.engines import registry
from desktop.i18n import N_, _
from desktop.jobs.events import EngineState, EngineView, PageView
from desktop.settings import SETTINGS, Applies, Section, Setting, Values
from desktop.ui import words
from desktop.ui.panels import notes
from desktop.ui.panels.fields import Field
from desktop.ui.texts import say
from desktop.ui.theme import icon
from desktop.ui.tokens import Theme

MOST_VISIBLE = 8


def visible_and_advanced(engine: str) -> tuple[list[Setting], list[Setting]]:
    """The settings shown at once for ENGINE (at most eight, the engine itself is the first) and
    the rest."""
    panel = [s for s in SETTINGS
             if s.panel and s.section is not Section.APPEARANCE and s.applies_to(engine)]
    shown = [s for s in panel if s.visible_with(engine)][:MOST_VISIBLE]
    return shown, [s for s in panel if s not in shown]


def _label(text: str, role: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("role", role)
    label.setWordWrap(role in ("secondary", "error", "warning"))
    label.setTextFormat(Qt.TextFormat.PlainText)
    if label.wordWrap():
        label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
    return label


def _small(label: QLabel) -> QLabel:
    font = label.font()
    font.setPointSizeF(font.pointSizeF() * 0.88)
    label.setFont(font)
    return label


class EngineChooser(QWidget):
    """Which engine reads; those that cannot be used say why, in place."""

    changed = Signal(str, object)
    retry_wanted = Signal()

    def __init__(self, current: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        self.box = QComboBox()
        self.box.setAccessibleName(_("Engine"))
        self.box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        column.addWidget(self.box)
        self._missing: list[QLabel] = []
        for entry in registry.ENGINES:
            if entry.hidden and entry.name != current:
                continue
            self.box.addItem(_(entry.title), entry.name)
            why = notes.why_missing(entry)
            if why:
                item = self.box.model().item(self.box.count() - 1)  # type: ignore[attr-defined]
                item.setEnabled(False)
                self._missing.append(_small(_label(why, "warning")))
                column.addWidget(self._missing[-1])
        self.box.setCurrentIndex(self.box.findData(current))
        self.box.activated.connect(
            lambda _row: self.changed.emit("engine", self.box.currentData()))
        self.setFocusProxy(self.box)
        self.note = _small(_label("", "secondary"))
        self.problem = _small(_label("", "error"))
        self.again = QPushButton(_("Try again"))
        self.again.clicked.connect(self.retry_wanted)
        for widget in (self.note, self.problem):
            column.addWidget(widget)
        column.addWidget(self.again, 0, Qt.AlignmentFlag.AlignLeft)
        self.show_engine(None)

    def show_engine(self, engine: EngineView | None) -> None:
        """Say what the engine got, or why it does not run and what to do."""
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
        self.again.setVisible(engine is not None and engine.state is EngineState.FAILED)


class _Row(QWidget):
    """Title, badge, control and the note under it."""

    def __init__(self, setting: Setting, field: QWidget, compact: bool) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        head = QHBoxLayout()
        head.setSpacing(8)
        self.title = QLabel(_(setting.title))
        self.title.setBuddy(field)
        self.title.setWordWrap(True)
        self.title.setToolTip(_(setting.help))
        self.badge = _small(_label(
            notes.badge(setting.applies),
            "badge-warning" if setting.applies is Applies.ENGINE_RESTART else "badge"))
        self.badge.setToolTip(_("When a change takes effect"))
        if compact:
            # A switch stands beside its title, so that the badge goes below.
            words_ = QVBoxLayout()
            words_.setSpacing(4)
            words_.addWidget(self.title)
            words_.addWidget(self.badge, 0, Qt.AlignmentFlag.AlignLeft)
            head.addLayout(words_, 1)
            head.addWidget(field, 0, Qt.AlignmentFlag.AlignVCenter)
            column.addLayout(head)
        else:
            head.addWidget(self.title, 1)
            head.addWidget(self.badge, 0, Qt.AlignmentFlag.AlignVCenter)
            column.addLayout(head)
            column.addWidget(field)
        self.note = _small(_label("", "secondary"))
        self.note.hide()
        column.addWidget(self.note)

    def set_note(self, text: str) -> None:
        """TEXT under the control; nothing when it is empty."""
        self.note.setText(text)
        self.note.setVisible(bool(text))


class SettingsPanel(QScrollArea):
    """Every setting of a run that matters to the chosen engine, and facts of the page shown."""

    changed = Signal(str, object)
    """Key and value a person gave."""
    retry_wanted = Signal()
    """The engine should be started again."""

    def __init__(self, values: Values, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        say(self, accessibleName=N_("Run settings"))
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._values = values
        self._theme = theme
        self._page: PageView | None = None
        self._engine: EngineView | None = None
        self._open = False
        self._rows: dict[str, _Row] = {}
        self._fields: dict[str, Field] = {}
        self._build()

    # --- what it shows
    def set_values(self, values: Values) -> None:
        """Show VALUES; another engine has other settings."""
        rebuild = values["engine"] != self._values["engine"]
        self._values = values
        if rebuild:
            self._build()
            return
        for key, field in self._fields.items():
            field.set_value(values[key])
        self._refresh()

    def set_engine(self, engine: EngineView) -> None:
        """Show what the engine got."""
        self._engine = engine
        self._refresh()

    def set_page(self, page: PageView | None) -> None:
        """Show facts of PAGE, and what settings cost on it."""
        self._page = page
        self._refresh()

    def set_advanced(self, opened: bool) -> None:
        """Show or fold the settings under Advanced."""
        self._more.setChecked(opened)

    @property
    def advanced_open(self) -> bool:
        """Whether the settings under Advanced are shown."""
        return self._open

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._theme = theme
        for field in self._fields.values():
            field.apply_theme(theme)
        self._point()

    def retranslate(self) -> None:
        """Build the panel again in the current language."""
        self._build()

    # --- building
    def _build(self) -> None:
        self._rows, self._fields = {}, {}
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(12, 8, 12, 12)
        column.setSpacing(12)
        shown, more = visible_and_advanced(self._values["engine"])
        for setting in shown:
            column.addWidget(self._row(setting))
        self._more = QToolButton()
        self._more.setText(_("Advanced ({n})").format(n=len(more)))
        self._more.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._more.setProperty("quiet", True)
        self._more.setIconSize(QSize(14, 14))
        self._more.setCheckable(True)
        self._more.setChecked(self._open)
        self._more.setVisible(bool(more))
        self._advanced = QWidget()
        inner = QVBoxLayout(self._advanced)
        inner.setContentsMargins(0, 0, 0, 0)
        inner.setSpacing(12)
        for setting in more:
            inner.addWidget(self._row(setting))
        self._more.toggled.connect(self._unfold)
        column.addWidget(self._more, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._advanced)
        self._line = QFrame()
        self._line.setProperty("role", "line")
        column.addWidget(self._line)
        self._facts_title = _label("", "heading")
        self._facts = _small(_label("", "secondary"))
        column.addWidget(self._facts_title)
        column.addWidget(self._facts)
        column.addStretch(1)
        old = self.takeWidget()
        self.setWidget(body)
        if old is not None:
            old.deleteLater()
        self._unfold(self._open)
        self.apply_theme(self._theme)
        self._refresh()

    def _row(self, setting: Setting) -> QWidget:
        if setting.key == "engine":
            self._chooser = EngineChooser(self._values["engine"])
            self._chooser.changed.connect(self.changed)
            self._chooser.retry_wanted.connect(self.retry_wanted)
            row = _Row(setting, self._chooser, compact=False)
        else:
            field = Field(setting, self._values[setting.key])
            field.changed.connect(self.changed)
            self._fields[setting.key] = field
            row = _Row(setting, field, field.compact)
        self._rows[setting.key] = row
        return row

    def _unfold(self, opened: bool) -> None:
        self._open = opened
        self._advanced.setVisible(opened)
        self._point()

    def _point(self) -> None:
        self._more.setIcon(icon("chevron-down" if self._open else "chevron-right",
                                self._theme, "secondary"))

    def _refresh(self) -> None:
        ready = (self._engine.ready if self._engine and self._engine.state is EngineState.READY
                 else None)
        self._chooser.show_engine(self._engine)
        for key, row in self._rows.items():
            if key == "crop":
                row.set_note(notes.crop_cost(self._values, self._page))
            elif key != "engine":
                row.set_note(notes.got(key, ready))
        page = self._page
        self._line.setVisible(page is not None)
        self._facts_title.setVisible(page is not None)
        self._facts.setVisible(page is not None)
        if page is not None:
            self._facts_title.setText(_("Page {n}").format(n=page.number).upper())
            self._facts.setText("\n".join(words.page_facts(page)))
