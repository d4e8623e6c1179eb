"""The run settings dock, made from the declared settings."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from desktop.i18n import N_, _
from desktop.jobs.events import EngineState, EngineView, PageView
from desktop.settings import SETTINGS, Applies, Section, Setting, Values
from desktop.ui import words
from desktop.ui.panels import notes
from desktop.ui.panels.captions import label, set_role, small
from desktop.ui.panels.chooser import EngineChooser
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
    more = [s for s in panel if s not in shown]
    # Without these two nothing else about such an engine matters.
    return shown, sorted(more, key=lambda s: s.key not in ("model", "engine_interpreter"))


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
        self._applies = setting.applies
        self.badge = small(label("", ""))
        self.badge.setToolTip(_("When a change takes effect"))
        self.set_outdated(False)
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
        self.note = small(label("", "secondary"))
        self.note.hide()
        column.addWidget(self.note)

    def set_outdated(self, outdated: bool) -> None:
        """OUTDATED: the engine that runs must be started again for the value it has now."""
        applies = Applies.ENGINE_RESTART if outdated else self._applies
        self.badge.setText(notes.badge(applies))
        set_role(self.badge,
                 "badge-warning" if applies is Applies.ENGINE_RESTART else "badge")

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
    action_wanted = Signal(str)
    """Something that can be done about a setting (see ``fields.ACTIONS``)."""
    remedy_wanted = Signal(object)
    """A Remedy for what is wrong with the engine."""
    details_wanted = Signal()
    """What the engine got, all of it."""

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
        self._chooser.set_values(values)
        self._refresh()

    def set_engine(self, engine: EngineView) -> None:
        """Show what the engine got."""
        self._engine = engine
        self._refresh()

    def set_page(self, page: PageView | None) -> None:
        """Show facts of PAGE, and what settings cost on it."""
        self._page = page
        self._refresh()

    def show_setting(self, key: str) -> None:
        """Bring the control of the setting KEY into sight and give it the focus."""
        field = self._fields.get(key)
        if field is None:
            self.setFocus()
            return
        if self._advanced.isAncestorOf(field):
            self.set_advanced(True)
        # A lay-out that has just unfolded has its sizes after the next turn of the loop.
        QTimer.singleShot(0, field, partial(self._go_to, key))

    def _go_to(self, key: str) -> None:
        self.ensureWidgetVisible(self._rows[key], 0, 24)
        self._fields[key].setFocus(Qt.FocusReason.ShortcutFocusReason)

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
        # What belongs to the chosen task stands with it.
        beside = [setting for setting in more if setting.key == "custom_prompt"]
        for setting in shown:
            column.addWidget(self._row(setting))
            if setting.key == "prompt":
                for each in beside:
                    column.addWidget(self._row(each))
        more = [setting for setting in more if setting not in beside]
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
        self._facts_title = label("", "heading")
        self._facts = small(label("", "secondary"))
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
        setting = setting.worded(self._values["engine"])
        if setting.key == "engine":
            self._chooser = EngineChooser(self._values)
            self._chooser.changed.connect(self.changed)
            self._chooser.retry_wanted.connect(self.retry_wanted)
            self._chooser.remedy_wanted.connect(self.remedy_wanted)
            self._chooser.details_wanted.connect(self.details_wanted)
            row = _Row(setting, self._chooser, compact=False)
        else:
            field = Field(setting, self._values[setting.key])
            field.changed.connect(self.changed)
            field.action_wanted.connect(self.action_wanted)
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
        # One that still runs while another is chosen has nothing to say about that.
        engine = self._engine
        if engine is not None and engine.name != self._values["engine"]:
            engine = None
        ready = engine.ready if engine and engine.state is EngineState.READY else None
        self._chooser.show_engine(engine)
        for key, row in self._rows.items():
            row.setVisible(notes.relevant(key, self._values))
            if key == "engine":
                continue
            outdated = engine is not None and key in engine.outdated
            row.set_outdated(outdated)
            row.set_note(notes.under(
                notes.crop_cost(self._values, self._page) if key == "crop"
                else notes.got(key, ready), outdated))
        page = self._page
        self._line.setVisible(page is not None)
        self._facts_title.setVisible(page is not None)
        self._facts.setVisible(page is not None)
        if page is not None:
            self._facts_title.setText(_("Page {n}").format(n=page.number).upper())
            self._facts.setText("\n".join(words.page_facts(page)))
