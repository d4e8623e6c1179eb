"""The left half: the page with its tools."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QMenu, QToolButton, QVBoxLayout, QWidget

from desktop.i18n import N_, _
from desktop.ui.labels import colour_of, title_of
from desktop.ui.review.canvas import PageCanvas
from desktop.ui.review.paper import FIT_PAGE, FIT_WIDTH
from desktop.ui.review.strip import Strip
from desktop.ui.review.swatch import swatch
from desktop.ui.review.title import TitleTab
from desktop.ui.texts import say
from desktop.ui.theme import Theme

_ZOOMS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)


class PageView(QWidget):
    """Title, zoom, rotation and choice of boxes above the canvas."""

    status_message = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.canvas = PageCanvas(self)
        self.strip = Strip(self)
        self._hidden: set[str] = set()
        self._all_hidden = False
        self.title = TitleTab(self.strip)
        self.strip.row.addWidget(self.title, 1)
        self._zoom_out = self.strip.add_button("zoom-out", N_("Smaller (−)"))
        self._zoom = self.strip.add_button("", N_("Zoom"))
        self._zoom.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._zoom_in = self.strip.add_button("zoom-in", N_("Larger (+)"))
        self._fit = self.strip.add_button("", N_("Whole page or page width (0, 2)"), text=N_("Fit"))
        self._left = self.strip.add_button("rotate-ccw", N_("Turn the view left (Shift+R)"))
        self._right = self.strip.add_button("rotate-cw", N_("Turn the view right (R)"))
        self._boxes = self.strip.add_button("square-dashed", N_("Which boxes are drawn"),
                                            text=N_("Boxes"))
        self._boxes.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        for button in (self._zoom, self._boxes):
            button.setProperty("menu", "true")
        self._zoom.setMenu(self._zoom_menu())
        self._boxes.setMenu(QMenu(self))
        self._boxes.menu().aboutToShow.connect(self._fill_boxes_menu)
        self._zoom_out.clicked.connect(lambda: self.canvas.step_zoom(-1))
        self._zoom_in.clicked.connect(lambda: self.canvas.step_zoom(1))
        self._fit.clicked.connect(self._toggle_fit)
        self._left.clicked.connect(lambda: self.canvas.rotate(-90))
        self._right.clicked.connect(lambda: self.canvas.rotate(90))
        self.canvas.zoom_changed.connect(self._show_zoom)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.strip)
        layout.addWidget(self.canvas, 1)
        self._show_zoom()

    def apply_theme(self, theme: Theme) -> None:
        self.strip.apply_theme(theme)
        self.title.apply_theme(theme)
        self.canvas.apply_theme(theme)

    def set_title(self, title: str) -> None:
        """The name of the page on show."""
        self.title.set_text(title)
        self._make_room(self.width())

    # --- tools
    def _zoom_menu(self) -> QMenu:
        menu = QMenu(self)
        for name, fit in ((N_("Whole page"), FIT_PAGE), (N_("Page width"), FIT_WIDTH)):
            say(menu.addAction("", partial(self.canvas.set_fit, fit)), text=name)
        menu.addSeparator()
        for zoom in _ZOOMS:
            menu.addAction(_percent(zoom), partial(self.canvas.set_zoom, zoom))
        return menu

    def _toggle_fit(self) -> None:
        self.canvas.set_fit(FIT_WIDTH if self.canvas.whole else FIT_PAGE)

    def _show_zoom(self) -> None:
        there = self.canvas.has_image
        for tool in (self._zoom_out, self._zoom, self._zoom_in, self._fit, self._left,
                     self._right, self._boxes):
            tool.setEnabled(there)
        self._zoom.setText(_percent(self.canvas.zoom) if there else "– %")

    def _fill_boxes_menu(self) -> None:
        menu = self._boxes.menu()
        menu.clear()
        every = menu.addAction(_("All boxes"), lambda: self._hide(None, False))
        none = menu.addAction(_("No boxes"), lambda: self._hide(None, True))
        for action, on in ((every, not self._all_hidden and not self._hidden),
                           (none, self._all_hidden)):
            action.setCheckable(True)
            action.setChecked(on)
        labels = list(dict.fromkeys(mark.label for mark in self.canvas.marks))
        if labels:
            menu.addSeparator()
        for label in labels:
            entry = menu.addAction(swatch(colour_of(label)), title_of(label),
                                   partial(self._toggle, label))
            entry.setCheckable(True)
            entry.setChecked(not self._all_hidden and label not in self._hidden)

    def _hide(self, labels: set[str] | None, everything: bool) -> None:
        self._hidden = labels or set()
        self._all_hidden = everything
        self.canvas.set_hidden(None if everything else self._hidden)

    def _toggle(self, label: str) -> None:
        if self._all_hidden:
            others = {mark.label for mark in self.canvas.marks} - {label}
            self._hide(others, False)
        else:
            self._hide(self._hidden ^ {label}, False)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._make_room(event.size().width())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._make_room(self.width())

    def _make_room(self, width: int) -> None:
        """On a narrow pane the least used tools go; all are on the keyboard as well."""
        spare = width - self.title.sizeHint().width() - 16
        style, words = Qt.ToolButtonStyle, True

        def needed(shown: Sequence[QToolButton]) -> int:
            self._boxes.setToolButtonStyle(style.ToolButtonTextBesideIcon if words
                                           else style.ToolButtonIconOnly)
            return sum(tool.sizeHint().width() + 2 for tool in shown)

        shown = [self._zoom_out, self._zoom, self._zoom_in, self._fit, self._left, self._right,
                 self._boxes]
        for gives_way in (self._left, self._right, None, self._fit, self._zoom_out,
                          self._zoom_in):
            if needed(shown) <= spare:
                break
            if gives_way is None:
                words = False
            else:
                shown.remove(gives_way)
        needed(shown)
        for tool in (self._zoom_out, self._zoom_in, self._fit, self._left, self._right):
            tool.setVisible(tool in shown)


def _percent(zoom: float) -> str:
    return f"{round(zoom * 100)} %"
