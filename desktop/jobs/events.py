"""What the session tells its front ends: frozen snapshots, sent on the session's own thread."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Union

from desktop.document.model import Block
from desktop.errors import Problem
from desktop.protocol.messages import EngineReady, Region


class PageState(str, enum.Enum):
    """Where a page is. The last seven are final and are the words of report.json."""

    WAITING = "waiting"
    RENDERING = "rendering"
    READY = "ready"
    """Drawn and handed to the engine, not begun."""
    STREAMING = "streaming"
    COMPLETE = "complete"
    LENGTH = "length"
    LOOP = "loop"
    EMPTY = "empty"
    BLANK = "blank"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether the page is done with."""
        return self not in _UNFINISHED

    @property
    def suspicious(self) -> bool:
        """Whether a person should look at it."""
        return self in (PageState.LENGTH, PageState.LOOP, PageState.EMPTY, PageState.FAILED)


_UNFINISHED = (PageState.WAITING, PageState.RENDERING, PageState.READY, PageState.STREAMING)


class DocumentState(str, enum.Enum):
    """Where a document is, before its pages are known and after."""

    OPENING = "opening"
    PASSWORD = "password"
    """Needs one; asked again after a restart."""
    OPEN = "open"
    UNREADABLE = "unreadable"


class EngineState(str, enum.Enum):
    """Where the engine is."""

    OFF = "off"
    LOADING = "loading"
    READY = "ready"
    RESTARTING = "restarting"
    """It died; it is started again after a pause."""
    FAILED = "failed"


class RunState(str, enum.Enum):
    """What the person asked for."""

    RUNNING = "running"
    PAUSED = "paused"


@dataclass(frozen=True)
class DocumentView:
    """One document of the queue."""

    id: int
    path: str
    name: str
    """Shown: the file's name, or a label for pasted images."""
    state: DocumentState
    pages: int = 0
    page_range: str = ""
    """As typed, "1-3,7"; "" is all."""
    selected: int = 0
    """Pages within the range."""
    finished: int = 0
    suspicious: int = 0
    problem: Problem | None = None


@dataclass(frozen=True)
class PageView:
    """One page of a document that is within the chosen range."""

    id: str
    document_id: int
    number: int
    state: PageState
    problem: Problem | None = None
    seconds: float = 0.0
    first_text: float = 0.0
    prompt_tokens: int = 0
    output_tokens: int = 0
    blocks: int = 0
    tables: int = 0
    width: int = 0
    height: int = 0
    rotation: int = 0
    """Clockwise degrees it was turned by to be upright."""
    attempts: int = 0
    loops: int = 0
    """Times that its output repeated itself and it was begun again, in the attempt that counts."""


@dataclass(frozen=True)
class EngineView:
    """The engine as the window shows it."""

    name: str
    state: EngineState
    step: str = ""
    fraction: float = -1.0
    ready: EngineReady | None = None
    problem: Problem | None = None
    retry_in: float = 0.0
    """Seconds until it is started again (RESTARTING)."""
    outdated: tuple[str, ...] = ()
    """Keys of settings that it must be started again for: it is, before the next page."""


@dataclass(frozen=True)
class ProgressView:
    """The figures of the status bar."""

    run: RunState
    total: int = 0
    finished: int = 0
    in_flight: int = 0
    tokens_per_second: float = 0.0
    pages_per_minute: float = 0.0
    seconds_left: float = -1.0
    """-1 while it cannot be told."""


@dataclass(frozen=True)
class ProblemView:
    """A row of the Problems list. PAGE is 0 for a document's or the engine's own problem."""

    key: str
    problem: Problem
    document_id: int = 0
    document: str = ""
    page: int = 0
    page_id: str = ""


@dataclass(frozen=True)
class DocumentAdded:
    document: DocumentView
    pages: tuple[PageView, ...] = ()


@dataclass(frozen=True)
class DocumentUpdated:
    """PAGES is given when the list of pages itself changed (opened, range edited)."""

    document: DocumentView
    pages: tuple[PageView, ...] | None = None


@dataclass(frozen=True)
class DocumentRemoved:
    document_id: int


@dataclass(frozen=True)
class PageUpdated:
    page: PageView


@dataclass(frozen=True)
class PageRegionsFound:
    page_id: str
    regions: tuple[Region, ...]


@dataclass(frozen=True)
class PageCleared:
    """The page is being read again: what was shown of it no longer holds."""

    page_id: str


@dataclass(frozen=True)
class BlocksChanged:
    """Blocks that are new or differ, with everything they now hold, ascending by index."""

    page_id: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class RawText:
    """The next piece of the page's raw output, exactly as the engine wrote it."""

    page_id: str
    text: str


@dataclass(frozen=True)
class EngineUpdated:
    engine: EngineView


@dataclass(frozen=True)
class ProgressUpdated:
    progress: ProgressView


@dataclass(frozen=True)
class ProblemAdded:
    problem: ProblemView


@dataclass(frozen=True)
class ProblemRemoved:
    key: str


@dataclass(frozen=True)
class LogAdded:
    level: int
    source: str
    text: str
    time: float


@dataclass(frozen=True)
class QueueFinished:
    """Every selected page that can be done is done."""

    total: int
    suspicious: int


SessionEvent = Union[
    DocumentAdded, DocumentUpdated, DocumentRemoved, PageUpdated, PageRegionsFound, PageCleared,
    BlocksChanged, RawText, EngineUpdated, ProgressUpdated, ProblemAdded, ProblemRemoved,
    LogAdded, QueueFinished,
]


@dataclass(frozen=True)
class PageResult:
    """What is kept of a page: all its blocks (edits applied), its raw text, its crops."""

    view: PageView
    blocks: tuple[Block, ...]
    raw: str
    regions: tuple[Region, ...] = ()
    crops: dict[str, str] = field(default_factory=dict)
    """Block id → path of the PNG crop, for blocks whose label is in ``model.CROPPED``."""


@dataclass(frozen=True)
class DocumentResult:
    """What an export is made from. PAGES are read from the journal one by one as they are asked
    for, so that a document of thousands of pages is never held as a whole: go over them on a
    thread that may block, and not on the session's own."""

    view: DocumentView
    sha256: str
    engine: str
    model: str
    settings: dict[str, object]
    pages: Sequence[PageResult]
