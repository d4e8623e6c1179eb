"""Which page stands beside its result, and everything the review pane is fed with.

The view follows the page that is being read until a person chooses one; "follow" takes it back.
Content arrives by two ways – what there is of a page (``page_result``) and what changes from now
on (the bridge) – and is joined here.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QImage

from desktop.errors import VersoError
from desktop.i18n import _
from desktop.intake.model import RenderedPage
from desktop.jobs import events as e
from desktop.jobs.errors import UnknownPage
from desktop.jobs.events import PageState, PageView
from desktop.jobs.session import Session
from desktop.ui.bridge import Bridge, RawJoined
from desktop.ui.models.queue import QueueModel
from desktop.ui.tasks import Tasks

if TYPE_CHECKING:
    from desktop.ui.review.pane import ReviewPane

log = logging.getLogger(__name__)

CONTENT = (e.BlocksChanged, e.RawText, e.PageCleared, e.PageRegionsFound)
"""What is said about a page's content while it is read."""

_OVERLAP = 2_000

DWELL = 1.0
"""Seconds a followed page stays at least: quick pages must not flicker past."""


class ReviewController(QObject):
    """Feeds the review pane from session and bridge."""

    page_shown = Signal(object)
    """Id of the page that is shown now, or None."""
    follow_changed = Signal(bool)

    def __init__(self, session: Session, bridge: Bridge, model: QueueModel, tasks: Tasks,
                 parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._bridge = bridge
        self._model = model
        self._tasks = tasks
        self._pane: ReviewPane | None = None
        self.page_id: str | None = None
        self.follow = True
        self._shown_at = 0.0
        self._joined = False
        """Whether the page's result has come in; changes that came before it wait."""
        self._early: list[e.SessionEvent] = []
        self._live: dict[str, None] = {}
        self._raw_tail = ""
        """End of a result just shown: the next piece may begin within it."""
        self._turned = 0
        self._was_final = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._follow)

    # --- the pane
    def attach(self, pane: ReviewPane) -> None:
        """Feed PANE from now on; what is shown already is shown in it too."""
        self._pane = pane
        pane.page_step.connect(self.step)
        pane.navigated.connect(self.person_took_over)
        if self.page_id is not None:
            self._present()

    def retranslate(self) -> None:
        """Name the page in the current language."""
        page = self._model.page(self.page_id) if self.page_id else None
        if self._pane is not None:
            self._pane.page.set_title(_title(page))

    # --- choosing a page
    def show(self, page_id: str | None, *, by_person: bool) -> None:
        """Show a page; BY_PERSON ends following and asks for the page to be read first."""
        if by_person:
            self.set_follow(False)
            self._session.look_at(page_id)
        if page_id == self.page_id:
            return
        self.page_id = page_id
        self._bridge.watch(page_id)
        self._shown_at = time.monotonic()
        self._present()
        self.page_shown.emit(page_id)

    def step(self, by: int) -> None:
        """Show the next (+1) or previous (-1) page."""
        page = self._model.step(self.page_id, by)
        if page is not None:
            self.show(page, by_person=True)

    def step_suspicious(self, by: int) -> bool:
        """Show the next page a person should look at; False when there is none."""
        page = self._model.step(self.page_id, by, lambda view: view.state.suspicious)
        if page is None:  # once around
            page = self._model.step(None, by, lambda view: view.state.suspicious)
        if page is None:
            return False
        self.show(page, by_person=True)
        return True

    def person_took_over(self) -> None:
        """The person scrolls or zooms: the view stays where it is."""
        self.set_follow(False)

    def set_follow(self, follow: bool) -> None:
        """Follow the page that is being read, or stay."""
        if follow == self.follow:
            return
        self.follow = follow
        if follow:
            self._session.look_at(None)
            self._follow()
        self.follow_changed.emit(follow)

    def _follow(self) -> None:
        if not self.follow:
            return
        shown = self._model.page(self.page_id) if self.page_id else None
        if shown is not None and shown.state is PageState.STREAMING:
            return
        target = next(iter(self._live), None)
        if target is None:
            if shown is None:
                self.show(self._model.step(None, 1), by_person=False)
            return
        left = self._shown_at + DWELL - time.monotonic()
        if shown is not None and shown.state.final and left > 0:
            if not self._timer.isActive():
                self._timer.start(round(left * 1000) + 1)
            return
        self.show(target, by_person=False)

    # --- events
    def apply(self, events: Sequence[e.SessionEvent]) -> None:
        """Take over what EVENTS say; the model has taken them over already."""
        moved = False
        for event in events:
            if isinstance(event, e.PageUpdated):
                self._page_updated(event.page)
                moved = True
            elif isinstance(event, (e.DocumentAdded, e.DocumentUpdated, e.DocumentRemoved)):
                moved = True
            elif isinstance(event, RawJoined) and event.page_id == self.page_id:
                # In the result that is on its way; blocks may come twice, text must not.
                self._early = [x for x in self._early if not isinstance(x, e.RawText)]
            elif isinstance(event, CONTENT) and event.page_id == self.page_id:
                self._content(event)
        if moved:
            if self.page_id is not None and self._model.page(self.page_id) is None:
                self.show(None, by_person=False)
            self._live = {page: None for page in self._live if self._model.page(page) is not None}
            self._follow()

    def _page_updated(self, page: PageView) -> None:
        if page.state is PageState.STREAMING:
            self._live[page.id] = None
        else:
            self._live.pop(page.id, None)
        if page.id != self.page_id or self._pane is None:
            return
        self._pane.set_facts(page)
        if page.rotation != self._turned:
            self._turned = page.rotation
            self._tasks.spawn(self._load_bitmap(page.id), "bitmap")
        if page.state.final and not self._was_final:
            # All of it once more, as it is kept: crops come with it.
            self._tasks.spawn(self._load_result(page.id), "result")
        self._was_final = page.state.final

    def _content(self, event: e.SessionEvent) -> None:
        if not self._joined:
            self._early.append(event)
        elif self._pane is not None:
            self._pass_on(event)

    def _pass_on(self, event: e.SessionEvent) -> None:
        pane = self._pane
        if pane is None:
            return
        if isinstance(event, e.BlocksChanged):
            pane.apply_blocks(event.page_id, event.blocks)
        elif isinstance(event, e.RawText):
            tail, self._raw_tail = self._raw_tail, ""
            pane.append_raw(
                event.page_id, event.text[overlap(tail, event.text):])
        elif isinstance(event, e.PageRegionsFound):
            pane.set_regions(event.page_id, event.regions)
        elif isinstance(event, e.PageCleared):
            pane.clear_page(event.page_id)

    # --- feeding
    def _present(self) -> None:
        self._joined = False
        self._early = []
        pane = self._pane
        if pane is None:
            return
        page = self._model.page(self.page_id) if self.page_id else None
        pane.show_page(self.page_id, _title(page))
        if page is not None:
            pane.set_facts(page)
        self._turned = page.rotation if page else 0
        self._was_final = page is not None and page.state.final
        if self.page_id is not None:
            self._tasks.spawn(self._load_result(self.page_id), "result")
            self._tasks.spawn(self._load_bitmap(self.page_id), "bitmap")

    async def _load_result(self, page_id: str) -> None:
        self._joined = False
        future = self._session.page_result(page_id)
        future.add_done_callback(lambda _done: self._bridge.join_raw(page_id))
        try:
            result = await asyncio.wrap_future(future)
        except UnknownPage:
            # Its document was removed meanwhile; that event is on its way.
            log.info("page %s is not in the queue any more", page_id)
            return
        if page_id != self.page_id or self._pane is None:
            return
        self._pane.set_result(page_id, result)
        self._joined = True
        early, self._early = self._early, []
        self._raw_tail = result.raw[-_OVERLAP:]
        for event in early:
            self._pass_on(event)

    async def _load_bitmap(self, page_id: str) -> None:
        future = self._session.bitmap(page_id)
        try:
            rendered = await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.add_done_callback(_discard)
            raise
        except VersoError as error:
            log.info("no picture of page %s: %s", page_id, error)
            if page_id == self.page_id and self._pane is not None:
                self._pane.set_bitmap_failed(
                    page_id, error.problem().message)
            return
        image = await asyncio.to_thread(_read, rendered)
        if page_id == self.page_id and self._pane is not None:
            self._pane.set_bitmap(page_id, image)
            self._pane.set_damaged(page_id, rendered.damaged)


def _title(page: PageView | None) -> str:
    return _("Page {n}").format(n=page.number) if page else ""


def overlap(before: str, after: str) -> int:
    """How many characters at the start of AFTER are the end of BEFORE already."""
    for count in range(min(len(before), len(after)), 0, -1):
        if before.endswith(after[:count]):
            return count
    return 0


def _read(rendered: RenderedPage) -> QImage:
    """The bitmap in memory; its file is gone afterwards."""
    image = QImage(rendered.image)
    rendered.delete()
    return image


def _discard(future: Future[RenderedPage]) -> None:
    if not future.cancelled() and future.exception() is None:
        future.result().delete()
