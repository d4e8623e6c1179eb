"""The rendered page in QtWebEngine. Import it only when it is needed: it is large.

Content runs no script: its world has JavaScript switched off and the content-security policy
allows none. Our own script lives in a world of its own.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

import shiboken6
from PySide6.QtCore import QObject, QPoint, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices, QFontInfo
from PySide6.QtWebChannel import QWebChannel
from PySide6.QtWebEngineCore import (
    QWebEngineFindTextResult,
    QWebEnginePage,
    QWebEngineProfile,
)
from PySide6.QtWebEngineWidgets import QWebEngineView
from PySide6.QtWidgets import QVBoxLayout, QWidget

from desktop.ui.labels import LABELS, colour_of
from desktop.ui.review.crops import CropSource
from desktop.ui.review.geometry import Rect
from desktop.ui.review.linking import Extent, Scroll
from desktop.ui.review.rendering import Found, RenderedBlock, Rendering
from desktop.ui.review.web_access import (
    PAGE_URL,
    WORLD,
    PageFiles,
    make_profile,
    page_script,
    register_scheme,
)
from desktop.ui.theme import LIGHT, Theme, colour

log = logging.getLogger(__name__)

_OPENED_OUTSIDE = ("http", "https", "mailto")


class _Page(QWebEnginePage):
    """Goes nowhere but to our own template."""

    def acceptNavigationRequest(self, url: QUrl | str, kind: QWebEnginePage.NavigationType,
                                is_main: bool) -> bool:
        return is_main and QUrl(url).toString() == PAGE_URL

    def __init__(self, profile: QWebEngineProfile, parent: QObject) -> None:
        super().__init__(profile, parent)
        self.complaints: list[str] = []
        """The last hundred lines that script or policy wrote to the console."""

    def javaScriptConsoleMessage(self, level: QWebEnginePage.JavaScriptConsoleMessageLevel,
                                 message: str, line: int, source: str) -> None:
        self.complaints = [*self.complaints[-99:], message]
        log.debug("page script, line %s: %s", line, message)


class _Bridge(QObject):
    """What our script can call."""

    came = Signal(str)

    @Slot(str)
    def message(self, text: str) -> None:
        self.came.emit(text)


class WebRendering(Rendering):
    """Blocks as HTML in Chromium."""

    def __init__(self, crops: Callable[[str], CropSource | None],
                 parent: QWidget | None = None) -> None:
        super().__init__(parent)
        register_scheme()
        self._theme = LIGHT
        self._waiting: list[str] | None = []
        self._reloaded = False
        self._shown: dict[str, RenderedBlock] = {}
        self._empty_text = ""
        self._caret = self._empty_text = ""
        self._marked = ("", "")
        self._following = False
        self._extents: list[Extent] = []
        self._scroll = Scroll(0, 0, 0)
        self._files = PageFiles(crops, self)
        self._profile, self.guard = make_profile(self._files, self)
        self._view = QWebEngineView(self)
        self._page = _Page(self._profile, self._view)
        self._page.setBackgroundColor(colour(self._theme, "surface"))
        self._bridge = _Bridge(self)
        self._bridge.came.connect(self._take)
        self._channel = QWebChannel(self)
        self._channel.registerObject("bridge", self._bridge)
        self._page.setWebChannel(self._channel, WORLD)
        self._page.scripts().insert(page_script())
        self._page.renderProcessTerminated.connect(self._terminated)
        self._view.setPage(self._page)
        self._view.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        self._view.setAcceptDrops(False)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._view)
        self.setFocusProxy(self._view)
        self._page.load(QUrl(PAGE_URL))

    # --- Rendering
    def clear(self) -> None:
        self._shown.clear()
        self._extents = []
        self._scroll = Scroll(0, self._scroll.viewport, self._scroll.viewport)
        self._marked = ("", "")
        self._caret = ""
        self._run("Verso.clear()")

    def apply(self, blocks: Sequence[RenderedBlock], caret: str) -> None:
        self._shown.update((block.id, block) for block in blocks)
        self._caret = caret
        if self._waiting is not None:
            # What has come together by the time it is ready is shown in one go.
            self.applied.emit()
            return
        self._run(_apply_call(blocks, caret), self._applied)

    def set_marked(self, hover: str, choice: str) -> None:
        if self._marked != (hover, choice):
            self._marked = (hover, choice)
            self._run(f"Verso.mark({json.dumps(hover)}, {json.dumps(choice)})")

    def set_following(self, following: bool) -> None:
        if following != self._following:
            self._following = following
            self._run(f"Verso.follow({json.dumps(following)})")

    def scroll_to(self, top: float) -> None:
        self._scroll = self._scroll._replace(top=min(max(top, 0.0), self._scroll.most))
        self._run(f"Verso.scrollTo({top:.1f})")

    def apply_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._page.setBackgroundColor(colour(theme, "surface"))
        self._run(self._theme_call())

    def search(self, text: str, *, backward: bool, found: Found) -> None:
        def report(result: QWebEngineFindTextResult) -> None:
            found(result.activeMatch(), result.numberOfMatches())
        flag = QWebEnginePage.FindFlag.FindBackward if backward else QWebEnginePage.FindFlag(0)
        self._run("Verso.lead()")
        self._page.findText(text, flag, report)

    def set_empty_text(self, text: str) -> None:
        self._empty_text = text
        self._run(f"Verso.empty({json.dumps(text)})")

    def copy_selection(self) -> None:
        self._page.triggerAction(QWebEnginePage.WebAction.Copy)

    @property
    def extents(self) -> list[Extent]:
        return self._extents

    @property
    def where(self) -> Scroll:
        return self._scroll

    def run_script(self, code: str, done: Callable[[Any], None]) -> None:
        """Evaluate CODE in our world and hand its value to DONE (tests read the state back)."""
        self._page.runJavaScript(code, WORLD.value, done)

    def close_engine(self) -> None:
        # The page must be gone before its profile goes, or Chromium complains.
        self._waiting = []
        self._view.setPage(None)  # type: ignore[arg-type]
        shiboken6.delete(self._page)

    # --- inside
    def _run(self, code: str, done: Callable[[Any], None] | None = None) -> None:
        if self._waiting is not None:
            return
        if done is None:
            self._page.runJavaScript(code, WORLD.value)
        else:
            self._page.runJavaScript(code, WORLD.value, done)

    def _applied(self, _count: object) -> None:
        self.applied.emit()

    def _begin(self) -> None:
        """The script is there (again): everything that should show, at once."""
        self._waiting = None
        self._run(self._theme_call())
        self._run(f"Verso.follow({json.dumps(self._following)})")
        self._run(f"Verso.empty({json.dumps(self._empty_text)})")
        if self._shown:
            blocks = sorted(self._shown.values(), key=lambda block: block.index)
            self._run(_apply_call(blocks, self._caret))
        hover, choice = self._marked
        self._run(f"Verso.mark({json.dumps(hover)}, {json.dumps(choice)})")
        self.ready.emit()

    def _theme_call(self) -> str:
        theme = self._theme
        info = QFontInfo(self.font())
        families = [info.family(), *self.font().families(), "Noto Sans CJK SC",
                    "Source Han Sans SC", "Microsoft YaHei UI", "PingFang SC"]
        quoted = ", ".join(json.dumps(name) for name in dict.fromkeys(families))
        variables = {f"--{key}": value for key, value in theme.as_dict().items()
                     if value.startswith("#")}
        variables |= {"--size": f"{info.pixelSize() * 1.1:.1f}px",
                      "--family": f"{quoted}, sans-serif",
                      "--tint": "17%" if theme.dark else "13%"}
        colours = {label: colour_of(label, theme.dark) for label in ["", *LABELS]}
        return "Verso.theme(" + json.dumps(
            {"variables": variables, "colours": colours, "dark": theme.dark}) + ")"

    def _take(self, text: str) -> None:
        message = json.loads(text)
        handler = getattr(self, f"_on_{message['kind']}")
        handler(message)

    def _on_ready(self, _message: dict[str, Any]) -> None:
        self._begin()

    def _on_measured(self, message: dict[str, Any]) -> None:
        self._extents = [Extent(id_, (Rect(0, top, width, bottom),))
                         for id_, _index, top, bottom, width in message["extents"]
                         if id_ in self._shown]
        self._scroll = Scroll(*message["scroll"])
        self.measured.emit()

    def _on_scroll(self, message: dict[str, Any]) -> None:
        self._scroll = Scroll(*message["scroll"])
        if message["led"]:
            self.scrolled.emit()

    def _on_hover(self, message: dict[str, Any]) -> None:
        self.hovered.emit(message["id"])

    def _on_choose(self, message: dict[str, Any]) -> None:
        self.chosen.emit(message["id"])

    def _on_activate(self, message: dict[str, Any]) -> None:
        self.activated.emit(message["id"])

    def _on_link(self, message: dict[str, Any]) -> None:
        url = QUrl(message["url"])
        if url.scheme() in _OPENED_OUTSIDE:
            QDesktopServices.openUrl(url)

    def _on_touched(self, _message: dict[str, Any]) -> None:
        self.touched.emit()

    def _on_step(self, message: dict[str, Any]) -> None:
        self.block_step.emit(message["by"])

    def _on_page(self, message: dict[str, Any]) -> None:
        self.page_step.emit(message["by"])

    def _on_copy(self, _message: dict[str, Any]) -> None:
        self.copy_wanted.emit()

    def _on_menu(self, message: dict[str, Any]) -> None:
        spot = self._view.mapToGlobal(QPoint(round(message["x"]), round(message["y"])))
        self.menu_wanted.emit(message["id"], spot, message["selected"])

    def _terminated(self, status: QWebEnginePage.RenderProcessTerminationStatus,
                    code: int) -> None:
        log.warning("The page's render process ended (%s, %s).", status.name, code)
        self._waiting = []
        if status == QWebEnginePage.RenderProcessTerminationStatus.NormalTerminationStatus:
            return
        if self._reloaded:
            self.failed.emit(f"render process: {status.name}, {code}")
            return
        self._reloaded = True
        self.applied.emit()
        self._page.load(QUrl(PAGE_URL))


def _apply_call(blocks: Sequence[RenderedBlock], caret: str) -> str:
    batch = {"caret": caret, "blocks": [
        {"id": b.id, "index": b.index, "label": b.label, "html": b.html,
         "doubt": b.doubt} for b in blocks]}
    return f"Verso.apply({json.dumps(batch)})"
