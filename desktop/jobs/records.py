"""What the journal keeps, as plain rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from desktop.errors import Problem
from desktop.jobs.events import DocumentState, DocumentView, PageState, PageView
from desktop.protocol.messages import Region


class PageKey(NamedTuple):
    """Which page of which document; NUMBER counts from 1. Sorts in queue order."""

    document_id: int
    number: int

    @property
    def id(self) -> str:
        """The page's id outside the journal: ``12-3``."""
        return f"{self.document_id}-{self.number}"

    @classmethod
    def of(cls, page_id: str) -> PageKey | None:
        """The key behind an id; None when it is not one."""
        document, _, number = page_id.partition("-")
        if not (document.isdecimal() and number.isdecimal()):
            return None
        return cls(int(document), int(number))


@dataclass(frozen=True)
class DocumentRow:
    """A row of ``documents``. LOCKED: its file asks for a password. HELD: set aside, neither
    read nor counted until it is added again. SIZE and MTIME_NS are the file's when SHA256 was
    last known to be true."""

    id: int
    path: str
    name: str
    state: DocumentState
    sha256: str
    size: int
    mtime_ns: int
    pages: int
    page_range: str
    locked: bool
    held: bool
    problem: Problem | None


@dataclass(frozen=True)
class PageRow:
    """A row of ``pages``. STATE is ``waiting`` or a final state: that a page is in flight is
    known to the running session alone, so a cut leaves nothing to repair."""

    key: PageKey
    selected: bool
    state: PageState
    problem: Problem | None
    attempts: int
    deaths: int
    seconds: float
    first_text: float
    prompt_tokens: int
    output_tokens: int
    blocks: int
    tables: int
    width: int
    height: int
    rotation: int
    fingerprint: str
    engine: str
    model: str
    loops: int = 0

    def view(self, state: PageState | None = None, *, width: int = 0, height: int = 0,
             rotation: int | None = None) -> PageView:
        """As front ends see it; what is given is known better by the page in flight."""
        return PageView(
            self.key.id, self.key.document_id, self.key.number, state or self.state,
            self.problem, self.seconds, self.first_text, self.prompt_tokens, self.output_tokens,
            self.blocks, self.tables, width or self.width, height or self.height,
            self.rotation if rotation is None else rotation, self.attempts, self.loops)


@dataclass(frozen=True)
class Outcome:
    """How a page ended, to be saved in one piece."""

    state: PageState
    problem: Problem | None = None
    raw: str = ""
    regions: tuple[Region, ...] = ()
    confidences: dict[int, float] = field(default_factory=dict)
    crops: tuple[int, ...] = ()
    """Indices of the blocks that have a crop."""
    seconds: float = 0.0
    first_text: float = 0.0
    prompt_tokens: int = 0
    output_tokens: int = 0
    blocks: int = 0
    tables: int = 0
    width: int = 0
    height: int = 0
    rotation: int = 0
    fingerprint: str = ""
    engine: str = ""
    model: str = ""
    loops: int = 0


@dataclass(frozen=True)
class ResultRow:
    """What was saved of a page besides its row."""

    raw: str = ""
    regions: tuple[Region, ...] = ()
    confidences: dict[int, float] = field(default_factory=dict)
    crops: tuple[int, ...] = ()
    edits: dict[int, str] = field(default_factory=dict)
    """Block index → Markdown that a person wrote in place of the engine's."""


class Counts(NamedTuple):
    """Pages of one document within its range."""

    selected: int = 0
    finished: int = 0
    suspicious: int = 0


def document_view(row: DocumentRow, counts: Counts) -> DocumentView:
    """A document as front ends see it."""
    return DocumentView(row.id, row.path, row.name, row.state, row.pages, row.page_range,
                        counts.selected, counts.finished, counts.suspicious, row.problem)
