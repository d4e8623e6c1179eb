"""One declared setting as a control: what the declaration says decides which."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QComboBox,
    QDoubleSpinBox,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSlider,
    QSpinBox,
    QWidget,
)

from desktop.i18n import _
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


class _WheelGuard(QObject):
    """A wheel over a field that has no focus scrolls the panel instead of changing a value."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if (event.type() == QEvent.Type.Wheel and isinstance(watched, QWidget)
                and not watched.hasFocus()):
            event.ignore()
            return True
        return False


class Field(QWidget):
    """The control of one setting. ``changed`` is emitted with every value a person gives."""

    changed = Signal(str, object)
    """Key and value."""

    def __init__(self, setting: Setting, value: Value, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setting = setting
        self._layout = QHBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(8)
        self.control: QWidget = self._make()
        self.control.setAccessibleName(_(setting.title))
        self.control.setAccessibleDescription(_(setting.help))
        self.control.setToolTip(_(setting.help))
        self.setFocusProxy(self.control)
        self._guard = _WheelGuard(self)
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
        edit = QLineEdit()
        edit.editingFinished.connect(lambda: self._tell(edit.text().strip()))
        self._layout.addWidget(edit, 1)
        if setting.is_path:
            browse = QPushButton(_("Browse…"))
            browse.setAccessibleName(_("Browse for {title}").format(title=_(setting.title)))
            browse.clicked.connect(lambda: self._browse(edit))
            self._layout.addWidget(browse)
        return edit

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
        elif isinstance(self.control, QLineEdit):
            self.control.setText(str(value))
        self.control.blockSignals(blocked)

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        if isinstance(self.control, Switch):
            self.control.theme = theme
            self.control.update()
