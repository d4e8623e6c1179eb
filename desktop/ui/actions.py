"""Everything a person can do, once each: tool bar, menus and shortcuts share these."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from desktop.i18n import N_, _
from desktop.ui.theme import icon
from desktop.ui.tokens import Theme


@dataclass(frozen=True)
class _Declared:
    key: str
    text: str
    icon: str = ""
    shortcuts: tuple[str, ...] = ()
    tip: str = ""
    group: str = N_("General")
    checkable: bool = False


_QUEUE, _PAGES, _WINDOW, _TEST = N_("Queue"), N_("Pages"), N_("Window"), N_("Benchmark")

DECLARED: tuple[_Declared, ...] = (
    _Declared("add_files", N_("Add files…"), "file-plus", ("Ctrl+O",), group=_QUEUE),
    _Declared("add_folder", N_("Add folder…"), "folder-plus", ("Ctrl+Shift+O",), group=_QUEUE),
    _Declared("paste", N_("Paste"), "clipboard-paste", ("Ctrl+V",),
              N_("Add copied files or a copied picture"), _QUEUE),
    _Declared("screen", N_("Screen region…"), "square-dashed", ("Ctrl+Shift+S",),
              N_("Read a part of the screen"), _QUEUE),
    _Declared("sample", N_("Try the sample"), "file-text", group=_QUEUE),
    _Declared("start_pause", N_("Start"), "play", ("F5",), group=_QUEUE),
    _Declared("stop", N_("Stop"), "square", ("Ctrl+.",),
              N_("Stop now; pages being read wait again"), _QUEUE),
    _Declared("retry", N_("Retry failed"), "rotate-ccw", ("Ctrl+Shift+R",),
              N_("Read every page again that failed, looped or was cut"), _QUEUE),
    _Declared("rerun", N_("Re-run page"), "refresh-cw", ("Ctrl+R",),
              N_("Read the pages chosen in the queue, or the page shown, once more"), _PAGES),
    _Declared("export", N_("Export"), "download", ("Ctrl+E",), group=_QUEUE),
    _Declared("next_page", N_("Next page"), "chevron-right", ("PgDown",), group=_PAGES),
    _Declared("previous_page", N_("Previous page"), "chevron-left", ("PgUp",), group=_PAGES),
    _Declared("next_suspicious", N_("Next suspicious page"), "triangle-alert", ("F8",),
              group=_PAGES),
    _Declared("previous_suspicious", N_("Previous suspicious page"), "", ("Shift+F8",),
              group=_PAGES),
    _Declared("follow", N_("Follow"), "eye", ("Ctrl+L",),
              N_("Show the page that is being read"), _PAGES, checkable=True),
    _Declared("find", N_("Find"), "search", ("Ctrl+F",), group=_PAGES),
    _Declared("convert_page", N_("Convert"), "file-text", ("Ctrl+1",),
              N_("Turn documents into Markdown"), _WINDOW, checkable=True),
    _Declared("benchmark_page", N_("Benchmark"), "gauge", ("Ctrl+2",),
              N_("Measure how fast this machine reads"), _WINDOW, checkable=True),
    _Declared("past", N_("History"), "list", ("Ctrl+H",),
              N_("Tests that were made before"), _TEST),
    _Declared("copy_command", N_("Copy command"), "copy", ("Ctrl+Shift+C",),
              N_("Copy the command line that measures the same"), _TEST),
    _Declared("next_pane", N_("Next pane"), "", ("F6",), group=_WINDOW),
    _Declared("previous_pane", N_("Previous pane"), "", ("Shift+F6",), group=_WINDOW),
    _Declared("problems", N_("Problems"), "triangle-alert", ("Alt+P",), group=_WINDOW),
    _Declared("log", N_("Log"), "scroll-text", ("Alt+L",), group=_WINDOW),
    _Declared("examine", N_("Examine this machine…"), "cpu", ("Ctrl+Shift+D",),
              N_("What is here, what is missing for an engine, and what to do"), _WINDOW),
    _Declared("preferences", N_("Preferences…"), "settings", ("Ctrl+,",), group=_WINDOW),
    _Declared("shortcuts", N_("Keyboard shortcuts"), "keyboard", ("F1", "?"), group=_WINDOW),
    _Declared("about", N_("About Verso"), "info", group=_WINDOW),
    _Declared("quit", N_("Quit"), "x", ("Ctrl+Q",), group=_WINDOW),
)


_CONVERTS = ("retry", "paste", "screen")
"""Of the queue's, those that are of no use on the page Benchmark."""


class Actions:
    """QActions by key: ``actions["start_pause"]``."""

    def __init__(self, window: QWidget, theme: Theme) -> None:
        self._by_key: dict[str, QAction] = {}
        self._icons: dict[str, tuple[str, str]] = {}
        for declared in DECLARED:
            action = QAction(window)
            action.setShortcuts([QKeySequence(name) for name in declared.shortcuts])
            action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
            action.setCheckable(declared.checkable)
            self._by_key[declared.key] = action
            self._icons[declared.key] = (declared.icon, "text")
            window.addAction(action)
        self.retranslate()
        self.apply_theme(theme)
        self.show_benchmark(False)

    def __getitem__(self, key: str) -> QAction:
        return self._by_key[key]

    def retranslate(self) -> None:
        """Name everything in the current language."""
        for declared in DECLARED:
            action = self._by_key[declared.key]
            action.setText(_(declared.text))
            keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            tip = _(declared.tip or declared.text)
            action.setToolTip(f"{tip} ({keys})" if keys else tip)

    def show_benchmark(self, shown: bool) -> None:
        """Only what makes sense on the page in front can be done: SHOWN is Benchmark."""
        for declared in DECLARED:
            if declared.group in (_PAGES, _TEST) or declared.key in _CONVERTS:
                self._by_key[declared.key].setVisible(shown == (declared.group == _TEST))
        self._by_key["convert_page"].setChecked(not shown)
        self._by_key["benchmark_page"].setChecked(shown)

    def set_icon(self, key: str, name: str, theme: Theme, token: str = "text") -> None:
        """Give an action another icon, tinted by THEME's TOKEN."""
        self._icons[key] = (name, token)
        self._by_key[key].setIcon(icon(name, theme, token))

    def apply_theme(self, theme: Theme) -> None:
        """Tint the icons by THEME."""
        for key, (name, token) in self._icons.items():
            if name:
                self._by_key[key].setIcon(icon(name, theme, token))

    def overview(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Group → (what, keys), for the overview of shortcuts."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for declared in DECLARED:
            keys = [key.toString(QKeySequence.SequenceFormat.NativeText)
                    for key in self._by_key[declared.key].shortcuts()]
            if keys:
                groups.setdefault(_(declared.group), []).append(
                    (_(declared.text).rstrip("…"), ", ".join(keys)))
        return list(groups.items())
