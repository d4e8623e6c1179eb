"""The right half: what was read from the page, rendered and as text."""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Iterable, Sequence

from PySide6.QtCore import QEvent, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QMenu,
    QStackedWidget,
    QTabBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from desktop.document.model import Block
from desktop.i18n import N_, _
from desktop.ui.review import web_engine_wanted
from desktop.ui.review.clipboard import block_data, fill_copy_menu
from desktop.ui.review.content import PageContent, html_of, markdown_of
from desktop.ui.review.crops import CropSource
from desktop.ui.review.fallback import TextRendering
from desktop.ui.review.feeder import Feeder
from desktop.ui.review.find_bar import FindBar
from desktop.ui.review.linking import Extent, Scroll, find_place, position
from desktop.ui.review.rendering import RenderedBlock, Rendering
from desktop.ui.review.sources import MarkdownView, RawView
from desktop.ui.review.strip import Strip
from desktop.ui.review.verdict import VerdictBar
from desktop.ui.texts import say
from desktop.ui.theme import LIGHT, Theme

log = logging.getLogger(__name__)

RENDERED, MARKDOWN, RAW = range(3)
_TABS = (N_("Rendered"), N_("Markdown"), N_("Raw"))


class ResultView(QWidget):
    """Tabs Rendered, Markdown, Raw; search; copy."""

    hovered = Signal(str)
    chosen = Signal(str)
    activated = Signal(str)
    scrolled = Signal()
    measured = Signal()
    touched = Signal()
    block_step = Signal(int)
    page_step = Signal(int)
    status_message = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._content: PageContent | None = None
        self._choice = self._hover = ""
        self._following = False
        self._streaming = False
        self._unseen: dict[str, Block] = {}
        """Changed blocks that the Markdown tab shows when it is turned to."""
        self._unseen_raw: list[str] = []
        self._empty_text = self._to_reveal = ""
        self.rendering: Rendering | None = None
        self._closed = False
        self.strip = Strip(self)
        self.tabs = QTabBar(self.strip)
        self.tabs.setDrawBase(False)
        self.tabs.setExpanding(False)
        say(self.tabs, accessibleName=N_("Views of the result"))
        for name in _TABS:
            self.tabs.addTab(_(name))
        self.strip.row.addWidget(self.tabs)
        self.strip.row.addStretch(1)
        search = self.strip.add_button("search", N_("Find on this page (Ctrl+F)"))
        self._copy = self.strip.add_button("copy", N_("Copy the page, or the chosen block"),
                                           text=N_("Copy"))
        self._copy.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._copy.setProperty("menu", "true")
        menu = QMenu(self)
        self._copy.setMenu(menu)
        menu.aboutToShow.connect(lambda: self._fill_menu(menu, self._choice, False))
        self.find_bar = FindBar(self)
        self.verdict = VerdictBar(self)
        self._furniture = False
        self._stack = QStackedWidget(self)
        self._rendered_holder = QWidget(self._stack)
        holder = QVBoxLayout(self._rendered_holder)
        holder.setContentsMargins(0, 0, 0, 0)
        self.markdown = MarkdownView(self._stack)
        self.raw = RawView(self._stack)
        for page in (self._rendered_holder, self.markdown, self.raw):
            self._stack.addWidget(page)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        for widget in (self.strip, self.find_bar, self.verdict):
            layout.addWidget(widget)
        layout.addWidget(self._stack, 1)
        self._feeder = Feeder(self)
        self._feeder.batch.connect(self._show_batch)
        self.tabs.currentChanged.connect(self._change_tab)
        search.clicked.connect(self.find_bar.open_bar)
        self.find_bar.wanted.connect(self._find)
        self.find_bar.closed.connect(self.setFocus)
        self._focus_shown()
        self._keep_room()
        self._pass_on(self.markdown)
        self.raw.touched.connect(self.touched)

    def _pass_on(self, view: Rendering | MarkdownView) -> None:
        """What a person does in VIEW is done in the result."""
        view.hovered.connect(self.hovered)
        view.chosen.connect(self.chosen)
        view.activated.connect(self.activated)
        view.scrolled.connect(self.scrolled)
        view.touched.connect(self.touched)
        view.block_step.connect(self.block_step)
        view.page_step.connect(self.page_step)

    # --- starting the rendering
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self.rendering is None:
            # After the first paint: the window stands before Chromium is loaded. First the
            # library, then the engine, so that neither pause is longer than it must be.
            QTimer.singleShot(0, lambda: QTimer.singleShot(0, self._load_library))

    def _load_library(self) -> None:
        if web_engine_wanted():
            with contextlib.suppress(ImportError):
                importlib.import_module("PySide6.QtWebEngineWidgets")
        QTimer.singleShot(0, self.start_rendering)

    def start_rendering(self) -> None:
        """Load the rendering if it is not there yet; the plain one where the web engine cannot
        start or is not wanted (``VERSO_NO_WEBENGINE=1``)."""
        if self.rendering is not None or self._closed:
            return
        if not web_engine_wanted():
            self._use(TextRendering(self._crop_source, self._rendered_holder))
            return
        try:
            from desktop.ui.review.web import WebRendering
        except ImportError as error:
            log.warning("The web engine cannot be loaded (%s); using the plain view.", error)
            self._use(TextRendering(self._crop_source, self._rendered_holder))
            return
        self._use(WebRendering(self._crop_source, self._rendered_holder))

    def _use(self, rendering: Rendering) -> None:
        old, self.rendering = self.rendering, rendering
        layout = self._rendered_holder.layout()
        assert layout is not None
        if old is not None:
            layout.removeWidget(old)
            old.close_engine()
            old.deleteLater()
        layout.addWidget(rendering)
        self._focus_shown()
        rendering.apply_theme(self._theme)
        rendering.set_following(self._following)
        rendering.set_empty_text(self._empty_text)
        rendering.set_marked(self._hover, self._choice)
        self._pass_on(rendering)
        rendering.measured.connect(self._rendering_measured)
        rendering.applied.connect(self._feeder.done)
        rendering.copy_wanted.connect(self.copy_chosen)
        rendering.menu_wanted.connect(self.open_menu)
        rendering.failed.connect(self._fall_back)
        if self._content is not None:
            self._feeder.clear()
            self._feed(self._content.ordered)

    def _fall_back(self, reason: str) -> None:
        log.warning("The web engine failed (%s); using the plain view.", reason)
        self.status_message.emit(_("The rendered view was restarted in a plainer form."))
        self._use(TextRendering(self._crop_source, self._rendered_holder))

    def close_engine(self) -> None:
        """End the web engine, in the order it wants; none is started any more."""
        self._closed = True
        if self.rendering is not None:
            self.rendering.close_engine()

    # --- what is shown
    def show_content(self, content: PageContent | None) -> None:
        """Another page, or none."""
        self._content = content
        self._to_reveal = ""
        self._feeder.clear()
        if self.rendering is not None:
            self.rendering.clear()
            self.rendering.set_empty_text(self._empty_text)
        self.markdown.clear_blocks()
        self.raw.clear_text()
        self._unseen.clear()
        self._unseen_raw.clear()
        if content is not None:
            self._feed(content.ordered)
            self._unseen.update((block.id, block) for block in content.ordered)
            self._unseen_raw.extend(content.raw)
            self._show_unseen()

    def apply_blocks(self, blocks: Sequence[Block]) -> None:
        """These blocks are new or differ."""
        self._feed(blocks)
        self._unseen.update((block.id, block) for block in blocks)
        self._show_unseen()

    def refresh_pictures(self, blocks: Sequence[Block]) -> None:
        """The pictures of these blocks can be had now."""
        self._feed(blocks)

    def append_raw(self, text: str) -> None:
        """The next piece of the raw output."""
        self._unseen_raw.append(text)
        self._show_unseen()

    def _show_unseen(self) -> None:
        """Bring the text tab that is shown up to date; the other costs nothing meanwhile."""
        tab = self.tabs.currentIndex()
        if tab == MARKDOWN and self._unseen:
            self.markdown.apply_blocks(list(self._unseen.values()))
            self._unseen.clear()
        elif tab == RAW and self._unseen_raw:
            self.raw.append_text("".join(self._unseen_raw))
            self._unseen_raw.clear()

    def set_streaming(self, streaming: bool) -> None:
        """Whether text still comes: a caret shows where."""
        if streaming != self._streaming:
            self._streaming = streaming
            if self.rendering is not None and self._content is not None:
                self.rendering.apply((), self._caret())

    def set_empty_text(self, text: str) -> None:
        """What stands there while nothing was read."""
        if text == self._empty_text:
            return
        self._empty_text = text
        self.markdown.setPlaceholderText(text)
        if self.rendering is not None:
            self.rendering.set_empty_text(text)

    def set_furniture(self, keep: bool) -> None:
        """Whether running headers, footers and page numbers belong to the Markdown."""
        if keep == self._furniture:
            return
        self._furniture = keep
        self.markdown.set_furniture(keep)
        if self._content is not None:
            self._unseen.update((block.id, block) for block in self._content.ordered)
            self._show_unseen()

    def set_following(self, following: bool) -> None:
        self._following = following
        if self.rendering is not None:
            self.rendering.set_following(following)

    def set_marked(self, hover: str, choice: str) -> None:
        """The blocks that are marked on both sides."""
        self._hover, self._choice = hover, choice
        if self.rendering is not None:
            self.rendering.set_marked(hover, choice)
        self.markdown.set_marked(hover, choice)

    def apply_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.strip.apply_theme(theme)
        self.find_bar.apply_theme(theme)
        self.verdict.apply_theme(theme)
        self.markdown.apply_theme(theme)
        self.raw.apply_theme(theme)
        if self.rendering is not None:
            self.rendering.apply_theme(theme)

    def retranslate(self) -> None:
        """Name the tabs in the current language; the rest says itself again."""
        for tab, name in enumerate(_TABS):
            self.tabs.setTabText(tab, _(name))
        self._keep_room()

    @property
    def streaming(self) -> bool:
        """Whether text still comes."""
        return self._streaming

    @property
    def idle(self) -> bool:
        """Whether everything given shows."""
        return self._feeder.idle

    def _feed(self, blocks: Iterable[Block]) -> None:
        content = self._content
        if self.rendering is None or content is None:
            return
        pictures = content.pictures()
        self._feeder.put(blocks, lambda block: html_of(block, pictures.get(block.id)))

    def _show_batch(self, blocks: list[RenderedBlock]) -> None:
        if self.rendering is not None:
            self.rendering.apply(blocks, self._caret())

    def _caret(self) -> str:
        if not self._streaming or self._content is None:
            return ""
        ordered = self._content.ordered
        return self._content.live_end or (ordered[-1].id if ordered else "")

    def _crop_source(self, block_id: str) -> CropSource | None:
        return self._content.crop_source(block_id) if self._content is not None else None

    # --- linking
    @property
    def _linked(self) -> Rendering | MarkdownView | None:
        tab = self.tabs.currentIndex()
        return self.rendering if tab == RENDERED else self.markdown if tab == MARKDOWN else None

    @property
    def extents(self) -> list[Extent]:
        """Where the blocks lie in the shown tab; none in Raw."""
        view = self._linked
        return view.extents if view is not None else []

    @property
    def where(self) -> Scroll:
        view = self._linked
        return view.where if view is not None else Scroll(0, 0, 0)

    def scroll_to(self, top: float) -> None:
        view = self._linked
        if view is not None:
            view.scroll_to(top)

    def reveal(self, block_id: str) -> None:
        """Bring a block into sight, moving as little as can be; as soon as it is there."""
        self._to_reveal = block_id
        for extent in self.extents:
            if extent.id == block_id:
                self._to_reveal = ""
                self.scroll_to(self.where.revealing(extent.top, extent.bottom))

    def _rendering_measured(self) -> None:
        if self._to_reveal:
            self.reveal(self._to_reveal)
        self.measured.emit()

    # --- tools
    def _change_tab(self, tab: int) -> None:
        before = self._stack.currentIndex()
        place = None
        if before != RAW and before != tab:
            view = self.rendering if before == RENDERED else self.markdown
            place = find_place(view.extents, view.where.line) if view is not None else None
        self._stack.setCurrentIndex(tab)
        self._focus_shown()
        self._show_unseen()
        # The other tab shows the same place.
        spot = position(self.extents, place) if place is not None else None
        if spot is not None:
            self.scroll_to(self.where.top_for(spot[1]))
        if self.find_bar.isVisible():
            self.find_bar.search(False)
        self.measured.emit()

    def _focus_shown(self) -> None:
        """Whoever gives the result the keyboard gives it to the tab that shows."""
        views = (self.rendering or self.tabs, self.markdown, self.raw)
        self.setFocusProxy(views[self.tabs.currentIndex()])

    def _find(self, text: str, backward: bool) -> None:
        if self.tabs.currentIndex() == RENDERED:
            if self.rendering is not None:
                self.rendering.search(text, backward=backward, found=self.find_bar.show_count)
            return
        view = self.markdown if self.tabs.currentIndex() == MARKDOWN else self.raw
        self.find_bar.show_count(*view.find_text(text, backward))

    def copy_block(self, block_id: str) -> None:
        """A block as Markdown; a table also as HTML and TSV."""
        block = self._content.blocks.get(block_id) if self._content is not None else None
        if block is None:
            return
        QGuiApplication.clipboard().setMimeData(block_data(block))
        self.status_message.emit(_("Block {number} copied").format(number=block.index + 1))

    def copy_page(self) -> None:
        """The whole page: its Markdown, or its raw text from the Raw tab."""
        if self._content is None:
            return
        if self.tabs.currentIndex() == RAW:
            text = "".join(self._content.raw)
        else:
            text = markdown_of(self._content, furniture=self._furniture)
        QGuiApplication.clipboard().setText(text)
        self.status_message.emit(_("Page copied"))

    def copy_chosen(self) -> None:
        """The chosen block; the page where none is."""
        if self._choice:
            self.copy_block(self._choice)
        else:
            self.copy_page()

    def open_menu(self, block_id: str, spot: QPoint, selected: bool) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._fill_menu(menu, block_id, selected)
        menu.popup(spot)

    def _fill_menu(self, menu: QMenu, block_id: str, selected: bool) -> None:
        rendering = self.rendering
        selection = rendering.copy_selection if selected and rendering is not None else None
        blocks = self._content.blocks if self._content is not None else {}
        fill_copy_menu(menu, blocks, block_id, selection=selection, page=self.copy_page,
                       block=self.copy_block)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._keep_room()

    def _keep_room(self) -> None:
        """Never narrower than the tabs with two icons beside them."""
        self.setMinimumWidth(max(260, self.tabs.sizeHint().width() + 110))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._copy.setToolButtonStyle(
            Qt.ToolButtonStyle.ToolButtonTextBesideIcon
            if event.size().width() >= self.tabs.sizeHint().width() + 180
            else Qt.ToolButtonStyle.ToolButtonIconOnly)

    def sizeHint(self) -> QSize:
        return QSize(460, 620)
