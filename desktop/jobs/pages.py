"""A page on its way: drawn, handed to the engine, read, saved."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import overload

from desktop.document.model import CROPPED, NOISE, Block
from desktop.document.parser import StreamParser, parse
from desktop.errors import Problem, VersoError
from desktop.i18n import _
from desktop.intake.model import RenderedPage
from desktop.jobs import errors
from desktop.jobs.events import PageResult, PageState, PageView
from desktop.jobs.figures import Figures
from desktop.jobs.records import Outcome, PageRow, ResultRow
from desktop.jobs.scheduler import Candidate
from desktop.protocol.messages import PageFinished, Region
from desktop.settings import Values, setting

MAX_RAW = 2_000_000
"""Characters of output after which a page is stopped: no real page has as many."""


WHOLE_PAGE = 0.9 * 999 * 999
"""Area of a box, in 0–999, from which it counts as the page itself."""


class Phase(enum.IntEnum):
    """How far the page is, in order."""

    DRAWING = 1
    DRAWN = 2
    SUBMITTED = 3
    STREAMING = 4
    SAVING = 5


_STATES = {Phase.DRAWING: PageState.RENDERING, Phase.DRAWN: PageState.READY,
           Phase.SUBMITTED: PageState.READY, Phase.STREAMING: PageState.STREAMING,
           Phase.SAVING: PageState.STREAMING}


class PageRun:
    """One attempt to read one page; lives while the page is in the window."""

    def __init__(self, row: PageRow, values: Values, fingerprint: str) -> None:
        self.key = row.key
        self.id = row.key.id
        self.row = row
        self.values = values
        self.fingerprint = fingerprint
        self.deaths = row.deaths
        self.stalled = False
        """Whether the last attempt ended because nothing was heard any more."""
        self.heard = 0.0
        """When the engine last said something about it, on the loop's clock."""
        self.phase = Phase.DRAWING
        self.task: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        self.drawn: asyncio.Future[RenderedPage] = loop.create_future()
        self.ended: asyncio.Future[PageFinished | None] = loop.create_future()
        """The engine's last word; None: its worker died, or fell silent."""
        self.rendered: RenderedPage | None = None
        self.begin()

    def begin(self) -> None:
        """Nothing has come of the page yet."""
        self.parser = StreamParser()
        self.raw: list[str] = []
        self.length = 0
        self.regions: tuple[Region, ...] = ()
        self.confidences: dict[int, float] = {}
        self.rotation = 0
        self.overflowed = False
        self.loops = 0
        if self.ended.done():
            self.ended = asyncio.get_running_loop().create_future()

    def begin_again(self, *, looped: bool) -> None:
        """The engine reads it from its beginning once more, within the same attempt; LOOPED:
        because the output repeated itself."""
        loops = self.loops + looped
        self.begin()
        self.loops = loops

    @property
    def candidate(self) -> Candidate:
        """For the scheduler."""
        return Candidate(self.key, self.deaths)

    @property
    def with_engine(self) -> bool:
        """Whether the engine has it."""
        return self.phase in (Phase.SUBMITTED, Phase.STREAMING)

    def block(self, index: int) -> Block:
        """The block as it is now."""
        block = self.parser.blocks[index]
        confidence = self.confidences.get(index)
        return block if confidence is None else replace(block, confidence=confidence)

    def blocks(self) -> tuple[Block, ...]:
        """All blocks as they are now."""
        return tuple(self.block(index) for index in range(len(self.parser.blocks)))

    def feed(self, text: str) -> Sequence[int]:
        """Take the next piece of output; the blocks that changed."""
        self.raw.append(text)
        self.length += len(text)
        return self.parser.feed(text)

    def size(self) -> tuple[int, int]:
        """Width and height of the upright page in pixels; 0 while it is not drawn."""
        if self.rendered is None:
            return 0, 0
        width, height = self.rendered.width, self.rendered.height
        return (height, width) if self.rotation in (90, 270) else (width, height)

    def view(self) -> PageView:
        """As front ends see it."""
        width, height = self.size()
        view = self.row.view(_STATES[self.phase], width=width, height=height,
                             rotation=self.rotation)
        return replace(view, blocks=len(self.parser.blocks), tables=tables(self.parser.blocks),
                       loops=self.loops)

    def result(self) -> PageResult:
        """What there is of it by now."""
        return PageResult(self.view(), self.blocks(), "".join(self.raw), self.regions)

    def outcome(self, event: PageFinished, engine: str, model: str) -> Outcome:
        """How it ended, without crops."""
        state = page_state(event.finish)
        if self.overflowed:
            state = PageState.LENGTH
        elif state in (PageState.COMPLETE, PageState.EMPTY):
            # Decided here alone, by what was understood of the output.
            worded = self.rendered is not None and bool(self.rendered.words)
            state = (PageState.COMPLETE if found_something(self.parser.blocks, worded=worded)
                     else PageState.EMPTY)
        width, height = self.size()
        problem = event.problem.problem() if event.problem is not None else None
        return Outcome(
            state, problem or self._verdict(state, event.limit), "".join(self.raw),
            self.regions, self.confidences, (), event.seconds, event.first_text,
            event.prompt_tokens, event.output_tokens,
            len(self.parser.blocks), tables(self.parser.blocks), width, height, self.rotation,
            self.fingerprint, engine, model, self.loops)

    def _verdict(self, state: PageState, limit: int) -> Problem | None:
        """What is wrong with it; LIMIT: most tokens that it could have had, 0 where unknown."""
        if state is not PageState.LENGTH or limit <= 0 or self.overflowed:
            return verdict(state)
        asked = setting("max_tokens")
        if limit < int(self.values[asked.key]):
            return errors.PageFilledContext(tokens=limit).problem()
        return errors.PageCutAt(tokens=limit, title=_(asked.title), flag=asked.flag).problem()


class StoredPages(Sequence[PageResult]):
    """The pages of a document, read from the journal whenever one is asked for."""

    def __init__(self, ids: Sequence[str], fetch: Callable[[str], PageResult]) -> None:
        self._ids = ids
        self._fetch = fetch

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, index: int) -> PageResult: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[PageResult]: ...

    def __getitem__(self, index: int | slice) -> PageResult | Sequence[PageResult]:
        if isinstance(index, slice):
            return StoredPages(self._ids[index], self._fetch)
        return self._fetch(self._ids[index])


def page_state(finish: str) -> PageState:
    """The final state that a finish reason of the protocol means."""
    try:
        state = PageState(finish)
    except ValueError:
        return PageState.FAILED
    return state if state.final else PageState.FAILED


def verdict(state: PageState) -> Problem | None:
    """What is wrong with a page that ended so, in words; None when nothing is."""
    kinds: dict[PageState, type[VersoError]] = {
        PageState.LENGTH: errors.PageCutOff, PageState.LOOP: errors.PageLooped,
        PageState.EMPTY: errors.PageEmpty, PageState.FAILED: errors.PageFailed}
    return kinds[state]().problem() if state in kinds else None


def tables(blocks: Sequence[Block]) -> int:
    """How many of BLOCKS are tables."""
    return sum(block.label == "table" for block in blocks)


def found_something(blocks: Sequence[Block], *, worded: bool = False) -> bool:
    """Whether BLOCKS hold text or a picture. A photograph is nothing but a picture; where the
    page is known to have words (WORDED), a picture of the whole page is no answer."""
    for block in blocks:
        if block.label != NOISE and block.markdown.strip():
            return True
        if block.label in CROPPED and any(
                not worded or (box[2] - box[0]) * (box[3] - box[1]) < WHOLE_PAGE
                for box in block.boxes):
            return True
    return False


def stored_result(row: PageRow, result: ResultRow, figures: Figures) -> PageResult:
    """What the journal has of a page, edits applied."""
    blocks = []
    for block in parse(result.raw):
        if block.index in result.confidences:
            block = replace(block, confidence=result.confidences[block.index])
        if block.index in result.edits:
            block = replace(block, markdown=result.edits[block.index], edited=True)
        blocks.append(block)
    crops = {f"b{index + 1}": str(figures.path(row.key, index)) for index in result.crops}
    return PageResult(row.view(), tuple(blocks), result.raw, result.regions, crops)
