"""One declared setting as a control: what the declaration says decides which."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QComboBox,
    QDoubleSpinBox,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QSlider,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from desktop.i18n import N_, _
from desktop.settings import Setting, Value
from desktop.ui.tokens import LIGHT, Theme


class Switch(QAbstractButton):
    """On or off, told by the knob's place as well as by colour."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.theme: Theme = LIGHT

    def sizeHint(self) -> QSize:
        return QSize(38, 24)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ground = QRectF(3, (self.height() - 18) / 2, 32, 18)
        on, theme = self.isChecked(), self.theme
        tone = theme.accent if on else theme.surface
        painter.setBrush(QColor(tone if self.isEnabled() else theme.track))
        painter.setPen(QPen(QColor(theme.accent if on else theme.border_strong), 1))
        painter.drawRoundedRect(ground, 9, 9)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.on_accent if on else theme.border_strong))
        painter.drawEllipse(QRectF(ground.right() - 15 if on else ground.left() + 3,
                                   ground.top() + 3, 12, 12))
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(theme.text), 1.5))
            painter.drawRoundedRect(ground.adjusted(-2, -2, 2, 2), 11, 11)


class WheelGuard(QObject):
    """A wheel over a field that has no focus scrolls the panel instead of changing a value."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if (event.type() == QEvent.Type.Wheel and isinstance(watched, QWidget)
                and not watched.hasFocus()):
            event.ignore()
            return True
        return False


class Addresses(QPlainTextEdit):
    """A list, one entry a line. Its value is the entries with a space between two."""

    given = Signal()
    """A person has left the field."""
    LINES = 3

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTabChangesFocus(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFixedHeight(self.fontMetrics().lineSpacing() * self.LINES + 14)

    def value(self) -> str:
        """What is entered."""
        return " ".join(self.toPlainText().replace(",", " ").split())

    def set_value(self, value: str) -> None:
        """Show VALUE."""
        if value != self.value():
            self.setPlainText("\n".join(value.replace(",", " ").split()))

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.given.emit()

    def sizeHint(self) -> QSize:
        return QSize(120, self.height())

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()


PLACEHOLDERS = {
    "model": N_("the downloaded one"), "engine_interpreter": N_("the one that runs Verso"),
    "devices": N_("all"), "remote_model": N_("the first it lists"),
    "hub_address": N_("none"), "proxy": N_("as the environment says"), "stop": N_("none"),
}
"""What an empty field means."""

ACTIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "model": (("get_model", N_("Get the model…")),),
    "engine_interpreter": (("check", N_("Check")),),
    "servers": (("probe", N_("Probe servers")), ("key", N_("Key…"))),
}
"""Setting → what can be done about it: an action of the window and its name."""


class Field(QWidget):
    """The control of one setting. ``changed`` is emitted with every value a person gives."""

    changed = Signal(str, object)
    """Key and value."""
    action_wanted = Signal(str)
    """One of :data:`ACTIONS`."""
    _shown = ""
    """What a list was last known to hold."""

    def __init__(self, setting: Setting, value: Value, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setting = setting
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        self._layout = QHBoxLayout()
        self._layout.setSpacing(8)
        column.addLayout(self._layout)
        self.control: QWidget = self._make()
        self.buttons: dict[str, QPushButton] = {}
        if setting.is_path or setting.key in ACTIONS:
            # Below, so that a path has the whole width.
            column.addLayout(self._actions(ACTIONS.get(setting.key, ())))
        self.control.setAccessibleName(_(setting.title))
        self.control.setAccessibleDescription(_(setting.help))
        self.control.setToolTip(_(setting.help))
        self.setFocusProxy(self.control)
        self._guard = WheelGuard(self)
        if isinstance(self.control, (QComboBox, QAbstractSpinBox, QSlider)):
            self.control.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            self.control.installEventFilter(self._guard)
        self.set_value(value)

    @property
    def compact(self) -> bool:
        """Whether it stands in the line of its title (a switch)."""
        return isinstance(self.control, Switch)

    def _make(self) -> QWidget:
        setting = self.setting
        if setting.kind is bool:
            switch = Switch()
            switch.toggled.connect(self._tell)
            self._layout.addWidget(switch)
            return switch
        if setting.choices:
            box = QComboBox()
            # A long choice must not make the dock wider than a person chose.
            box.setSizeAdjustPolicy(
                QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            box.setMinimumContentsLength(6)
            for key, title in setting.choices.items():
                box.addItem(_(title), key)
            box.activated.connect(lambda _row: self._tell(box.currentData()))
            self._layout.addWidget(box, 1)
            return box
        if setting.kind is float and setting.minimum is not None and setting.maximum is not None:
            return self._slider(setting.minimum, setting.maximum, setting.step or 0.01)
        if setting.kind in (int, float):
            return self._spin()
        if setting.key == "servers":
            addresses = Addresses()
            addresses.setPlaceholderText("http://gpu1:8000/v1")
            addresses.given.connect(lambda: self._tell_list(addresses))
            self._layout.addWidget(addresses, 1)
            return addresses
        edit = QLineEdit()
        edit.setPlaceholderText(_(PLACEHOLDERS.get(setting.key, "")))
        edit.editingFinished.connect(lambda: self._tell(edit.text().strip()))
        self._layout.addWidget(edit, 1)
        return edit

    def _tell_list(self, addresses: Addresses) -> None:
        if addresses.value() != self._shown:
            self._shown = addresses.value()
            self._tell(self._shown)

    def _actions(self, declared: tuple[tuple[str, str], ...]) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        edit = self.control
        if isinstance(edit, QLineEdit):
            browse = QPushButton(_("Browse…"))
            browse.setAccessibleName(_("Browse for {title}").format(title=_(self.setting.title)))
            browse.clicked.connect(lambda: self._browse(edit))
            row.addWidget(browse)
        for name, title in declared:
            button = QPushButton(_(title))
            button.clicked.connect(lambda _checked=False, name=name: self._act(name))
            self.buttons[name] = button
            row.addWidget(button)
        row.addStretch(1)
        return row

    def _act(self, name: str) -> None:
        """What stands in the field counts, also where it was not left yet."""
        if isinstance(self.control, Addresses):
            self._tell_list(self.control)
        elif isinstance(self.control, QLineEdit):
            self._tell(self.control.text().strip())
        self.action_wanted.emit(name)

    def _slider(self, least: float, most: float, step: float) -> QWidget:
        slider = QSlider(Qt.Orientation.Horizontal)
        slider.setRange(round(least / step), round(most / step))
        shown = QLabel()
        shown.setProperty("role", "secondary")
        slider.valueChanged.connect(lambda ticks: shown.setText(f"{ticks * step:.2f}"))
        slider.valueChanged.connect(lambda ticks: self._tell(round(ticks * step, 6)))
        self._layout.addWidget(slider, 1)
        self._layout.addWidget(shown)
        return slider

    def _spin(self) -> QWidget:
        setting = self.setting
        spin: QSpinBox | QDoubleSpinBox = QSpinBox() if setting.kind is int else QDoubleSpinBox()
        most = setting.maximum if setting.maximum is not None else 2_000_000_000
        least = setting.minimum if setting.minimum is not None else -most
        kind = int if setting.kind is int else float
        spin.setRange(kind(least), kind(most))  # type: ignore[arg-type]
        spin.setSingleStep(kind(setting.step or 1))  # type: ignore[arg-type]
        spin.setGroupSeparatorShown(True)
        spin.lineEdit().setTextMargins(5, 0, 0, 0)
        spin.setKeyboardTracking(False)
        if setting.unit:
            spin.setSuffix(f" {_(setting.unit)}")
        if setting.default == 0 and setting.minimum == 0:
            spin.setSpecialValueText(_("Automatic"))
        spin.valueChanged.connect(self._tell)
        self._layout.addWidget(spin, 1)
        return spin

    def _browse(self, edit: QLineEdit) -> None:
        dialog = QFileDialog(self, _(self.setting.title), edit.text())
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        if self.setting.key == "engine_interpreter":
            # A program, or the folder of an environment: that is typed.
            dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        else:
            dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.fileSelected.connect(edit.setText)
        dialog.fileSelected.connect(self._tell)
        dialog.open()

    def _tell(self, value: object) -> None:
        self.changed.emit(self.setting.key, value)

    def set_value(self, value: Value) -> None:
        """Show VALUE without telling anybody."""
        blocked = self.control.blockSignals(True)
        if isinstance(self.control, Switch):
            self.control.setChecked(bool(value))
        elif isinstance(self.control, QComboBox):
            self.control.setCurrentIndex(self.control.findData(value))
        elif isinstance(self.control, QSlider):
            step = self.setting.step or 0.01
            self.control.blockSignals(blocked)  # its label follows the signal
            self.blockSignals(True)
            self.control.setValue(round(float(value) / step))
            self.blockSignals(False)
        elif isinstance(self.control, (QSpinBox, QDoubleSpinBox)):
            self.control.setValue(value)  # type: ignore[arg-type]
        elif isinstance(self.control, Addresses):
            self._shown = str(value)
            self.control.set_value(self._shown)
        elif isinstance(self.control, QLineEdit):
            self.control.setText(str(value))
        self.control.blockSignals(blocked)

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        if isinstance(self.control, Switch):
            self.control.theme = theme
            self.control.update()
