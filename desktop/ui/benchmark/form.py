"""The form: engine, pages, levels, rounds; limits and strategy under “Advanced”."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSpinBox,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from desktop.benchmark.errors import BadPlan
from desktop.benchmark.plan import GAIN, Plan
from desktop.i18n import N_, _, ngettext
from desktop.ui.benchmark import controls
from desktop.ui.benchmark import wish as wishes
from desktop.ui.benchmark.elided import shortened
from desktop.ui.benchmark.preview import Known, text
from desktop.ui.benchmark.wish import Wish
from desktop.ui.panels.captions import label, set_role, small
from desktop.ui.panels.fields import WheelGuard
from desktop.ui.texts import say
from desktop.ui.theme import icon
from desktop.ui.tokens import Theme

_PAGES = ((wishes.SAMPLES, N_("Sample pages of Verso")),
          (wishes.DOCUMENT, N_("The document shown")),
          (wishes.CHOSEN, N_("Files or a folder")))
_STRATEGIES = ((wishes.CONTINUOUSLY, N_("Continuously")),
               (wishes.ONE_BY_ONE, N_("One by one")),
               (wishes.BATCHES, N_("In batches")),
               (wishes.COMPARE, N_("Compare all three")))
_BETWEEN = ((False, N_("Start the engine anew")), (True, N_("Keep the engine")))
_UNITS = ((True, N_("× those at once")), (False, N_("pages")))


class _Scroll(QScrollArea):
    """As high as what is in it, where there is room for that."""

    def __init__(self, body: QWidget) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.setWidget(body)
        body.installEventFilter(self)

    def sizeHint(self) -> QSize:
        body = self.widget()
        assert body is not None
        high = body.heightForWidth(self.width())
        # It is never made lower than its least height, which may be more than it needs when wide.
        high = max(high, body.minimumSizeHint().height()) if high > 0 else body.sizeHint().height()
        return QSize(body.sizeHint().width(), high)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, 120)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.widget() and event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)


class Form(QWidget):
    """Gives a :class:`Wish`. What the test takes stands below, and is always seen."""

    changed = Signal()
    """Something of the wish changed."""
    sources_changed = Signal()
    """Other pages are to be read."""
    engine_chosen = Signal(str)
    settings_wanted = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        say(self, accessibleName=N_("Test"))
        self._theme = theme
        self._paths: tuple[str, ...] = ()
        self._filling = True  # until everything is there
        self._known = Known()
        self.plan: Plan | None = None
        """What the form asks for; None while something in it cannot be."""
        self._body = QWidget()
        self._column = QVBoxLayout(self._body)
        self._column.setContentsMargins(12, 10, 12, 4)
        self._column.setSpacing(6)
        heading = small(QLabel())
        say(heading, text=N_("TEST"))
        heading.setProperty("role", "heading")
        self._column.addWidget(heading)
        self._build_target()
        self._build_load()
        self._build_advanced()
        self._column.addStretch(1)
        self.area = _Scroll(self._body)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        outer.addWidget(self.area, 1)
        self._build_preview(outer)
        outer.addStretch(0)
        guard = WheelGuard(self)
        for box in (*self.findChildren(QComboBox), *self.findChildren(QSpinBox)):
            box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            box.installEventFilter(guard)
        self._fit()
        self.set_advanced(False)
        self.set_wish(Wish())
        self.apply_theme(theme)

    # --- building
    def _titled(self, title: str, *fields: QWidget, into: QVBoxLayout | None = None,
                first: int = 1) -> QLabel:
        """TITLE above FIELDS, which stand side by side; it names the first."""
        column = into or self._column
        made = QLabel()
        say(made, text=title)
        made.setWordWrap(True)
        made.setBuddy(fields[0])
        column.addSpacing(4)
        column.addWidget(made)
        row = QHBoxLayout()
        row.setSpacing(8)
        for place, one in enumerate(fields):
            row.addWidget(one, first if place == 0 else 0)
        column.addLayout(row)
        if not fields[0].property("said-accessibleName"):
            say(fields[0], accessibleName=title)
        return made

    def _combo(self, choices: Sequence[tuple[object, str]]) -> QComboBox:
        box = QComboBox()
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setMinimumContentsLength(8)
        for key, title in choices:
            box.addItem(_(title), key)
        box.setProperty("titles", [title for _key, title in choices])
        box.currentIndexChanged.connect(self._changed)
        return box

    def _spin(self, field: str, unit: str = "", none: str = "") -> QSpinBox:
        spin = QSpinBox()
        spin.setRange(*wishes.range_of(field))
        spin.setGroupSeparatorShown(True)
        spin.lineEdit().setTextMargins(5, 0, 0, 0)
        spin.setProperty("unit", unit)
        spin.setProperty("none", none)
        self._name_spin(spin)
        spin.valueChanged.connect(self._changed)
        return spin

    @staticmethod
    def _name_spin(spin: QSpinBox) -> None:
        if spin.property("unit"):
            spin.setSuffix(" " + _(spin.property("unit")))
        if spin.property("none"):
            spin.setSpecialValueText(_(spin.property("none")))

    def _check(self, words: str, tip: str = "") -> QCheckBox:
        box = QCheckBox()
        say(box, text=words, **({"toolTip": tip} if tip else {}))
        box.toggled.connect(self._changed)
        return box

    def _build_target(self) -> None:
        self.engine = QComboBox()
        self.engine.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.engine.setMinimumContentsLength(8)
        self.engine.activated.connect(
            lambda _row: self.engine_chosen.emit(self.engine.currentData()))
        self._titled(N_("Engine"), self.engine)
        self.target = small(label("", "secondary"))
        self._column.addWidget(self.target)
        self.settings = QPushButton()
        say(self.settings, text=N_("Run settings…"),
            toolTip=N_("The engine is measured with the settings of the conversion"))
        self.settings.clicked.connect(self.settings_wanted)
        self._column.addWidget(self.settings, 0, Qt.AlignmentFlag.AlignLeft)

    def _build_load(self) -> None:
        self.pages = self._combo(_PAGES)
        self.pages.currentIndexChanged.connect(self._pages_chosen)
        self._titled(N_("Pages"), self.pages)
        row = QHBoxLayout()
        row.setSpacing(8)
        self.files = QPushButton()
        say(self.files, text=N_("Files…"), accessibleName=N_("Choose files to measure with"))
        self.files.clicked.connect(lambda: self._choose(False))
        self.folder = QPushButton()
        say(self.folder, text=N_("Folder…"), accessibleName=N_("Choose a folder to measure with"))
        self.folder.clicked.connect(lambda: self._choose(True))
        row.addWidget(self.files)
        row.addWidget(self.folder)
        row.addStretch(1)
        self._column.addLayout(row)
        self.facts = small(label("", "secondary"))
        self._column.addWidget(self.facts)

        self.levels = QLineEdit()
        self.levels.textChanged.connect(self._changed)
        say(self.levels, placeholderText=N_("1, 8, 16"))
        self._titled(N_("Pages at once"), self.levels)
        self.raising = self._check(N_("raise until the gain falls under 5 %"), N_(
            "Doubles the pages at once, from the last level on, as long as that pays"))
        assert GAIN == 5.0  # said in words above
        self._column.addWidget(self.raising)

        pair = QHBoxLayout()
        pair.setSpacing(12)
        for title, name in ((N_("Warm-up rounds"), "warmup"), (N_("Rounds"), "rounds")):
            one = QVBoxLayout()
            one.setSpacing(6)
            spin = self._spin(name)
            setattr(self, name, spin)
            self._titled(title, spin, into=one)
            pair.addLayout(one, 1)
        self._column.addLayout(pair)

        self.amount = self._spin("amount")
        self.unit = self._combo(_UNITS)
        say(self.unit, accessibleName=N_("Unit of the pages a round"))
        self._titled(N_("Pages a round"), self.amount, self.unit, first=0)
        self.amount.setFixedWidth(self.fontMetrics().horizontalAdvance("100,000") + 48)
        self.steady = small(label("", "secondary"))
        self._column.addWidget(self.steady)
        self.between = self._combo(_BETWEEN)
        self._titled(N_("Between levels"), self.between)

    warmup: QSpinBox
    rounds: QSpinBox

    def _build_advanced(self) -> None:
        self.more = QToolButton()
        self.more.setProperty("quiet", True)
        self.more.setCheckable(True)
        self.more.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.more.setIconSize(QSize(14, 14))
        self.more.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.more.toggled.connect(self.set_advanced)
        self._column.addSpacing(4)
        self._column.addWidget(self.more, 0, Qt.AlignmentFlag.AlignLeft)
        self.advanced = QWidget()
        column = QVBoxLayout(self.advanced)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        self.strategy = self._combo(_STRATEGIES)
        self.batch = self._spin("batch")
        say(self.batch, accessibleName=N_("Pages of a batch"), toolTip=N_("Pages of a batch"))
        say(self.strategy, toolTip=N_("Continuously: the next page when one ends, as a conversion "
                                      "does. Compared are all three ways."))
        self._titled(N_("How pages are handed over"), self.strategy, self.batch, into=column)
        self.minutes = self._spin("minutes", N_("min"), N_("none"))
        self._titled(N_("Time cap"), self.minutes, into=column)
        self.cold = self._check(N_("measure a cold round"), N_(
            "The first round after the engine's start, apart from the others"))
        self.unique = self._check(controls.UNIQUE, N_(
            "At most 6 of 255 steps along the top edge, so that no cache knows the page"))
        self.ahead = self._check(controls.AHEAD, N_(
            "Leaves drawing out of the figures; otherwise pages are drawn beside the reading, as "
            "in a conversion"))
        column.addSpacing(4)
        for box in (self.cold, self.unique, self.ahead):
            column.addWidget(box)
        self.ttft = self._spin("ttft", N_("ms"), N_("no limit"))
        self.tpot = self._spin("tpot", N_("ms"), N_("no limit"))
        self.e2el = self._spin("e2el", N_("ms"), N_("no limit"))
        self._titled(N_("Good enough: first token within"), self.ttft, into=column)
        self._titled(N_("Good enough: each further token within"), self.tpot, into=column)
        self._titled(N_("Good enough: whole page within"), self.e2el, into=column)
        self._column.addWidget(self.advanced)

    def _build_preview(self, outer: QVBoxLayout) -> None:
        self.card = QFrame()
        self.card.setProperty("role", "note")
        inner = QVBoxLayout(self.card)
        inner.setContentsMargins(10, 8, 10, 8)
        self.preview = label("", "")
        self.preview.setWordWrap(True)
        say(self.preview, accessibleName=N_("What the test takes"))
        inner.addWidget(self.preview)
        row = QHBoxLayout()
        row.setContentsMargins(12, 8, 12, 12)
        row.addWidget(self.card)
        outer.addLayout(row)

    # --- values
    def wish(self) -> Wish:
        """What is entered."""
        return Wish(
            self.pages.currentData(), self._paths, self.levels.text(), self.raising.isChecked(),
            self.warmup.value(), self.rounds.value(), self.amount.value(),
            bool(self.unit.currentData()), bool(self.between.currentData()),
            self.strategy.currentData(), self.batch.value(), self.cold.isChecked(),
            self.unique.isChecked(), self.ahead.isChecked(), self.minutes.value(),
            self.ttft.value(), self.tpot.value(), self.e2el.value())

    def set_wish(self, wish: Wish) -> None:
        """Enter WISH."""
        self._filling = True
        self._paths = wish.paths
        for box, key in ((self.pages, wish.pages), (self.unit, wish.times),
                         (self.between, wish.keep_engine), (self.strategy, wish.strategy)):
            box.setCurrentIndex(max(0, box.findData(key)))
        self.levels.setText(wish.levels)
        for name in ("warmup", "rounds", "amount", "batch", "minutes", "ttft", "tpot", "e2el"):
            getattr(self, name).setValue(getattr(wish, name))
        for name in ("raising", "cold", "unique", "ahead"):
            getattr(self, name).setChecked(getattr(wish, name))
        self._filling = False
        self._changed()
        self.sources_changed.emit()

    def set_paths(self, paths: Sequence[str]) -> None:
        """Measure with these files and folders."""
        self.set_wish(replace(self.wish(), pages=wishes.CHOSEN, paths=tuple(paths)))

    def _changed(self) -> None:
        if self._filling:
            return
        wish = self.wish()
        self.batch.setVisible(wish.strategy in (wishes.BATCHES, wishes.COMPARE))
        self.levels.setEnabled(wish.continuous)
        self.raising.setEnabled(wish.continuous)
        chosen = wish.pages == wishes.CHOSEN
        self.files.setVisible(chosen)
        self.folder.setVisible(chosen)
        self.steady.setText("" if not wish.times or wish.amount >= 4 else _(
            "From 4 times on the steady state is reported as well."))
        self.steady.setVisible(bool(self.steady.text()))
        self._preview()
        self.changed.emit()

    def _pages_chosen(self) -> None:
        if not self._filling:
            self.sources_changed.emit()

    def _preview(self) -> None:
        try:
            self.plan = self.wish().plan()
        except BadPlan as error:
            self.plan = None
            said, role = error.problem().message, "error"
        else:
            said, role = text(self.plan, self._known), ""
        self.preview.setText(said)
        set_role(self.preview, role)

    # --- what others know
    def set_known(self, known: Known) -> None:
        """What earlier runs of the engine tell."""
        self._known = known
        self._preview()

    def set_engines(self, engines: Sequence[tuple[str, str]], current: str) -> None:
        """(name, title) of those that can be used."""
        self.engine.clear()
        for name, title in engines:
            self.engine.addItem(title, name)
        self.engine.setCurrentIndex(self.engine.findData(current))

    def set_target(self, said: str) -> None:
        """The settings in use, in a few words."""
        self._say_of(self.target, said)
        self.target.setVisible(bool(said))

    def set_facts(self, said: str, wrong: bool = False) -> None:
        """What is known of the pages."""
        self._say_of(self.facts, said)
        self.facts.setVisible(bool(said))
        set_role(self.facts, "error" if wrong else "secondary")

    def _say_of(self, made: QLabel, said: str) -> None:
        room = self.width() - 24 - self.area.verticalScrollBar().sizeHint().width()
        short = shortened(said, made.fontMetrics(), room)
        made.setText(short)
        made.setToolTip(said if short != said else "")
        made.setAccessibleName(said)

    def set_running(self, running: bool) -> None:
        """While a test runs nothing of it can be changed."""
        for part in (self.engine, self.pages, self.files, self.folder, self.warmup, self.rounds,
                     self.amount, self.unit, self.between, self.advanced, self.settings):
            part.setEnabled(not running)
        self.levels.setEnabled(not running and self.wish().continuous)
        self.raising.setEnabled(not running and self.wish().continuous)

    def _fit(self) -> None:
        """As narrow as the words allow, with the bar for scrolling."""
        self.advanced.show()  # what is hidden has no width
        wide = max(260, self._body.minimumSizeHint().width())
        self.advanced.setVisible(self.more.isChecked())
        self.setFixedWidth(wide + 14)

    # --- choosing
    def _choose(self, folder: bool) -> None:
        dialog = QFileDialog(self, _("Choose a folder") if folder else _("Choose files"),
                             str(Path(self._paths[0]).parent) if self._paths else "")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.Directory if folder
                           else QFileDialog.FileMode.ExistingFiles)
        dialog.filesSelected.connect(self.set_paths)
        dialog.open()

    def set_advanced(self, opened: bool) -> None:
        """Show or fold the rest."""
        self.more.setChecked(opened)
        self.advanced.setVisible(opened)
        self._name_more()

    def _name_more(self) -> None:
        count = 8
        self.more.setText(ngettext("Advanced ({n})", "Advanced ({n})", count).format(n=count))
        self.more.setAccessibleName(self.more.text())
        self.more.setIcon(icon("chevron-down" if self.more.isChecked() else "chevron-right",
                               self._theme, "secondary"))

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._theme = theme
        self._name_more()

    def retranslate(self) -> None:
        """Name everything in the current language; ``say_again`` has named the rest."""
        self._filling = True
        for box in (self.pages, self.unit, self.between, self.strategy):
            for row, title in enumerate(box.property("titles")):
                box.setItemText(row, _(title))
        for spin in self.findChildren(QSpinBox):
            self._name_spin(spin)
        self._filling = False
        self._name_more()
        self._fit()
        self._changed()


