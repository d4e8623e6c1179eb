"""The review pane: page and result side by side, held together block by block."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from desktop.document.model import Block
from desktop.i18n import _
from desktop.jobs.events import PageResult, PageState
from desktop.jobs.events import PageView as PageFacts
from desktop.protocol.messages import Region
from desktop.ui.review.content import PageContent
from desktop.ui.review.linking import find_place, neighbour, position
from desktop.ui.review.page_view import PageView
from desktop.ui.review.result import ResultView
from desktop.ui.review.verdict import in_place_of_text, needs_a_look
from desktop.ui.theme import LIGHT, Theme, colour


class ReviewPane(QWidget):
    """Shows one page at a time. What comes for another page is ignored: :meth:`set_result`
    brings everything when a page is turned to."""

    page_step = Signal(int)
    """The next (+1) or previous (−1) page was asked for."""
    navigated = Signal()
    """The person scrolled, zoomed, chose or turned: stop following the live page."""
    status_message = Signal(str)
    """A short line for the status bar."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._content: PageContent | None = None
        self._hover = self._choice = ""
        self._following = self._damaged = False
        self._facts: PageFacts | None = None
        self._page_leads = False
        """Whether the page was scrolled last: the result then keeps to it."""
        self._theme = LIGHT
        self.page = PageView(self)
        self.result = ResultView(self)
        self.canvas = self.page.canvas
        self._splitter = QSplitter(Qt.Orientation.Horizontal, self)
        self._splitter.setObjectName("review")
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setHandleWidth(1)
        self._splitter.addWidget(self.page)
        self._splitter.addWidget(self.result)
        self._splitter.setSizes([1000, 1000])
        self.page.setMinimumWidth(220)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._splitter)
        self._connect()
        self.show_page(None, "")

    def _connect(self) -> None:
        for side in (self.canvas, self.result):
            side.hovered.connect(self.hover)
            side.block_step.connect(self.step_block)
            side.page_step.connect(self._step_page)
        self.canvas.chosen.connect(lambda block_id: self._choose_from(self.canvas, block_id))
        self.result.chosen.connect(lambda block_id: self._choose_from(self.result, block_id))
        self.canvas.activated.connect(self._show_both)
        self.result.activated.connect(self._show_both)
        self.canvas.menu_wanted.connect(
            lambda block_id, spot: self.result.open_menu(block_id, spot, False))
        self.canvas.scrolled.connect(self._page_scrolled)
        self.result.scrolled.connect(self._result_scrolled)
        self.result.measured.connect(self._result_measured)
        self.result.touched.connect(self._result_touched)
        self.page.status_message.connect(self.status_message)
        self.result.status_message.connect(self.status_message)

    # --- what is shown
    def show_page(self, page_id: str | None, title: str) -> None:
        """Turn to a page (None: none); its content follows through the other methods."""
        self._content = None if page_id is None else PageContent(page_id)
        self._hover = self._choice = ""
        self._page_leads = self._damaged = False
        self._facts = None
        self.page.set_title(title)
        self.canvas.set_marked("", "")
        self.canvas.set_regions(())
        self.canvas.set_blocks(())
        self.canvas.set_image(None)
        self.canvas.set_message("file-text", _("Choose a page to see it here.")
                                if page_id is None else _("Drawing the page…"))
        self.canvas.reset_view()
        self.result.set_streaming(False)
        self.result.show_content(self._content)
        self.result.set_empty_text("")
        self.result.verdict.say("")
        self.result.set_marked("", "")

    def set_bitmap(self, page_id: str, image: QImage) -> None:
        """The upright bitmap of the page; it is not copied and must not be changed."""
        content = self._mine(page_id)
        if content is None:
            return
        content.bitmap = image
        self.canvas.set_image(image)
        self.result.refresh_pictures(content.new_pictures())

    def set_bitmap_failed(self, page_id: str, text: str) -> None:
        """The page cannot be drawn; TEXT says why."""
        if self._mine(page_id) is not None:
            self.canvas.set_image(None)
            self.canvas.set_message("triangle-alert", text)

    def set_regions(self, page_id: str, regions: Sequence[Region]) -> None:
        """Boxes known before their text."""
        content = self._mine(page_id)
        if content is not None:
            content.regions = tuple(regions)
            self.canvas.set_regions(regions)

    def clear_page(self, page_id: str) -> None:
        """The page is read again: what was read before goes, its bitmap stays."""
        content = self._mine(page_id)
        if content is not None:
            content.clear()
            self._refill(content)
            self._say_state()

    def apply_blocks(self, page_id: str, blocks: Sequence[Block]) -> None:
        """Blocks that are new or differ."""
        content = self._mine(page_id)
        if content is None:
            return
        changed = content.update(blocks)
        if changed:
            # The text first: whatever else Chromium is told lets it run, and this thread wait.
            self.result.apply_blocks(changed)
            self.canvas.set_blocks(content.ordered)
            self._say_state()

    def set_result(self, page_id: str, result: PageResult) -> None:
        """Everything there is of the page: replaces what is shown of it."""
        content = self._mine(page_id)
        if content is None:
            return
        self.set_facts(result.view)
        same = content.blocks == {block.id: block for block in result.blocks}
        content.crops = dict(result.crops)
        content.regions = result.regions
        if same and "".join(content.raw) == result.raw:
            # It was seen streaming in; pictures show already if they could be cut from the bitmap.
            if content.bitmap is None:
                self.result.refresh_pictures(content.new_pictures())
            return
        content.blocks = {block.id: block for block in result.blocks}
        content.raw = [result.raw]
        self._refill(content)
        self._say_state()

    def append_raw(self, page_id: str, text: str) -> None:
        """The next piece of the raw output."""
        content = self._mine(page_id)
        if content is not None:
            content.raw.append(text)
            self.result.append_raw(text)

    def set_facts(self, facts: PageFacts) -> None:
        """What is known of the page on show: whether text still comes, what became of it."""
        if self._mine(facts.id) is not None:
            self._facts = facts
            self.result.set_streaming(facts.state is PageState.STREAMING)
            self._say_state()

    def set_damaged(self, page_id: str, damaged: bool) -> None:
        """Whether parts of the page could not be drawn because the file is damaged."""
        if self._mine(page_id) is not None:
            self._damaged = damaged
            self._say_state()

    def set_furniture(self, keep: bool) -> None:
        """Whether running headers, footers and page numbers belong to the Markdown."""
        self.result.set_furniture(keep)

    def _say_state(self) -> None:
        facts, content = self._facts, self._content
        if facts is None or content is None:
            return
        # Not while there is text on its way: it would stand there for a moment.
        self.result.set_empty_text("" if content.blocks else in_place_of_text(facts))
        self.result.verdict.say(needs_a_look(facts, self._damaged))

    def set_following(self, following: bool) -> None:
        """Keep the live end in sight until the person navigates."""
        self._following = following
        self.result.set_following(following)

    def apply_theme(self, theme: Theme) -> None:
        """Use THEME's colours."""
        self._theme = theme
        self.page.apply_theme(theme)
        self.result.apply_theme(theme)
        self._splitter.setStyleSheet(
            f"QSplitter#review::handle {{ background: {colour(theme, 'border').name()}; }}")

    def retranslate(self) -> None:
        """Say in the current language what does not say itself again."""
        self.result.retranslate()
        if self._content is None:
            self.canvas.set_message("file-text", _("Choose a page to see it here."))
        self._say_state()

    def close_engine(self) -> None:
        """Before the application ends: let Chromium go in order."""
        self.result.close_engine()

    @property
    def page_id(self) -> str | None:
        """The page on show."""
        return self._content.page_id if self._content is not None else None

    def _mine(self, page_id: str) -> PageContent | None:
        content = self._content
        return content if content is not None and content.page_id == page_id else None

    def _refill(self, content: PageContent) -> None:
        self._hover = self._choice = ""
        self.canvas.set_regions(content.regions)
        self.canvas.set_blocks(content.ordered)
        self._mark()
        self.result.show_content(content)

    # --- marks
    def hover(self, block_id: str) -> None:
        """Mark a block lightly on both sides ("": none)."""
        if block_id != self._hover:
            self._hover = block_id
            self._mark()

    def choose(self, block_id: str) -> None:
        """Mark a block on both sides and bring it into sight on both ("": none)."""
        self._choice = block_id
        self._mark()
        self._page_leads = False
        if block_id:
            self.canvas.reveal(block_id)
            self.result.reveal(block_id)

    @property
    def chosen(self) -> str:
        """The chosen block, or ""."""
        return self._choice

    def step_block(self, step: int) -> None:
        """Choose the next (+1) or previous (−1) block."""
        if self._content is None:
            return
        ids = [block.id for block in self._content.ordered]
        found = neighbour(ids, self._choice or None, step)
        if found is not None:
            self._navigate()
            self.choose(found)

    def copy_chosen(self) -> None:
        """Copy the chosen block; the page where none is."""
        self.result.copy_chosen()

    def find(self) -> None:  # type: ignore[override]
        """Open the bar for searching."""
        self.result.find_bar.open_bar()

    def _choose_from(self, side: object, block_id: str) -> None:
        self._navigate()
        self._choice = block_id
        self._page_leads = False
        self._mark()
        if block_id and side is self.canvas:
            self.result.reveal(block_id)
        elif block_id:
            self.canvas.reveal(block_id)

    def _show_both(self, block_id: str) -> None:
        if block_id:
            self._navigate()
            self.choose(block_id)

    def _mark(self) -> None:
        self.canvas.set_marked(self._hover, self._choice)
        self.result.set_marked(self._hover, self._choice)

    # --- scrolling together
    def _page_scrolled(self) -> None:
        self._page_leads = True
        self._navigate()
        self._bring_result()

    def _result_scrolled(self) -> None:
        self._page_leads = False
        self._navigate()
        extents = self.canvas.extents
        known = {extent.id for extent in extents}
        place = find_place(self.result.extents, self.result.where.line, known=known)
        spot = position(extents, place) if place is not None else None
        if spot is not None:
            self.canvas.scroll_to(self.canvas.where.top_for(spot[1]), spot[0])

    def _bring_result(self) -> None:
        """Move the result to the place the page is at."""
        extents = self.result.extents
        known = {extent.id for extent in extents}
        place = find_place(self.canvas.extents, self.canvas.where.line,
                           x=self.canvas.pointer_x, known=known)
        spot = position(extents, place) if place is not None else None
        if spot is not None:
            self.result.scroll_to(self.result.where.top_for(spot[1]))

    def _result_measured(self) -> None:
        """Its blocks lie elsewhere (a picture came, it was widened): keep to the page, unless
        text streams in, which must not move what is being read."""
        if self._page_leads and not self.result.streaming:
            self._bring_result()

    def _result_touched(self) -> None:
        self._page_leads = False
        self._navigate()

    def _navigate(self) -> None:
        if self._following:
            self.set_following(False)
        self.navigated.emit()

    def _step_page(self, step: int) -> None:
        self._navigate()
        self.page_step.emit(step)

    def sizeHint(self) -> QSize:
        return QSize(920, 640)
