"""The palette in Qt's terms: QPalette over Fusion, the style sheet, tinted icons, fonts."""

from __future__ import annotations

from string import Template

from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontInfo,
    QGuiApplication,
    QIcon,
    QPainter,
    QPalette,
    QPixmap,
)
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication

from desktop import paths
from desktop.ui.tokens import DARK, LIGHT, Theme

__all__ = ["DARK", "LIGHT", "Appearance", "Theme", "colour", "icon", "pixmap"]

_ICON_SIZES = (16, 32, 48)
_CJK_FALLBACK = ("Noto Sans CJK SC", "Source Han Sans SC", "Microsoft YaHei UI", "PingFang SC",
                 "WenQuanYi Micro Hei")


def colour(theme: Theme, token: str) -> QColor:
    """The colour called TOKEN of THEME."""
    return QColor(getattr(theme, token))


_pixmaps: dict[tuple[str, str, int, float], QPixmap] = {}
_MOST_PIXMAPS = 1_000


def pixmap(name: str, tone: str, size: int, ratio: float = 1.0) -> QPixmap:
    """The icon NAME in the colour TONE, SIZE logical pixels wide, for a screen of RATIO."""
    key = (name, tone, size, ratio)
    if key not in _pixmaps:
        if len(_pixmaps) >= _MOST_PIXMAPS:
            _pixmaps.clear()
        _pixmaps[key] = _drawn(name, tone, size, ratio)
    return _pixmaps[key]


def _drawn(name: str, tone: str, size: int, ratio: float) -> QPixmap:
    side = max(1, round(size * ratio))
    image = QPixmap(QSize(side, side))
    image.fill(Qt.GlobalColor.transparent)
    source = _svg(name).replace("currentColor", tone)
    renderer = QSvgRenderer(QByteArray(source.encode()))
    painter = QPainter(image)
    renderer.render(painter, QRectF(0, 0, side, side))
    painter.end()
    image.setDevicePixelRatio(ratio)
    return image


def icon(name: str, theme: Theme, token: str = "text") -> QIcon:
    """The icon NAME tinted by THEME, with a paler picture for disabled controls."""
    made = QIcon()
    for size in _ICON_SIZES:
        made.addPixmap(pixmap(name, getattr(theme, token), size))
        made.addPixmap(pixmap(name, theme.disabled, size), QIcon.Mode.Disabled)
    return made


_sources: dict[str, str] = {}


def _svg(name: str) -> str:
    if name not in _sources:
        path = paths.resources() / "icons" / f"{name}.svg"
        _sources[name] = path.read_text(encoding="utf-8")
    return _sources[name]


def _palette(theme: Theme) -> QPalette:
    palette = QPalette()
    role = QPalette.ColorRole
    for target, token in (
        (role.Window, "window"), (role.WindowText, "text"), (role.Base, "surface"),
        (role.AlternateBase, "window"), (role.Text, "text"), (role.Button, "window"),
        (role.ButtonText, "text"), (role.BrightText, "error"), (role.ToolTipBase, "surface"),
        (role.ToolTipText, "text"), (role.PlaceholderText, "secondary"),
        (role.Highlight, "accent"), (role.HighlightedText, "on_accent"), (role.Link, "link"),
        (role.LinkVisited, "link"), (role.Accent, "accent"), (role.Light, "surface"),
        (role.Midlight, "hover"), (role.Mid, "border"), (role.Dark, "border_strong"),
        (role.Shadow, "shadow"),
    ):
        palette.setColor(target, colour(theme, token))
    for target in (role.WindowText, role.Text, role.ButtonText, role.HighlightedText):
        palette.setColor(QPalette.ColorGroup.Disabled, target, colour(theme, "disabled"))
    palette.setColor(QPalette.ColorGroup.Disabled, role.Highlight, colour(theme, "border"))
    return palette


def _style_sheet(theme: Theme) -> str:
    text = (paths.resources() / "style" / "window.qss").read_text(encoding="utf-8")
    icons = (paths.resources() / "style").as_posix()
    return Template(text).substitute(theme.as_dict(), style=icons)


def with_fallback(font: QFont) -> QFont:
    """FONT with families behind it that have Chinese, Japanese and Korean characters."""
    # "Sans Serif" is no family: left as it is, the first one behind it would take its place.
    families = [QFontInfo(font).family()]
    wider = QFont(font)
    wider.setFamilies(families + [name for name in _CJK_FALLBACK if name not in families])
    return wider


class Appearance(QObject):
    """Which scheme is in force. Follows the system until a person chooses."""

    changed = Signal(object)
    """The new :class:`Theme`; palette and style sheet are already in place."""

    def __init__(self, app: QApplication, choice: str = "system") -> None:
        super().__init__(app)
        self._app = app
        self._choice = choice
        self.theme = LIGHT
        app.setStyle("Fusion")
        app.setFont(with_fallback(app.font()))
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._follow)
        self.choose(choice)

    @property
    def choice(self) -> str:
        """``system``, ``light`` or ``dark``."""
        return self._choice

    def choose(self, choice: str) -> None:
        """Use the scheme CHOICE (``system``, ``light``, ``dark``) from now on."""
        self._choice = choice
        hints = QGuiApplication.styleHints()
        if choice == "system":
            hints.unsetColorScheme()
        else:
            hints.setColorScheme(
                Qt.ColorScheme.Dark if choice == "dark" else Qt.ColorScheme.Light)
        self._follow()

    def _follow(self) -> None:
        if self._choice == "system":
            dark = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
        else:
            dark = self._choice == "dark"
        self.theme = DARK if dark else LIGHT
        self._app.setPalette(_palette(self.theme))
        self._app.setStyleSheet(_style_sheet(self.theme))
        self.changed.emit(self.theme)
