"""What the application and the worker say to each other.

Commands are imperatives (application → worker), events are facts (worker → application). Frozen,
tagged msgspec structs, encoded as msgpack and sent over a ``multiprocessing.connection`` as
bytes: never pickle, because a wire must not run code. Only paths, numbers and text cross.

This module runs on Python 3.10 with msgspec alone.
"""

from __future__ import annotations

from typing import Any, Dict, Tuple, Union

import msgspec

from desktop.errors import Problem

VERSION = 1
"""Changes with every incompatible change of a message."""

Box = Tuple[int, int, int, int]
"""x1, y1, x2, y2 in 0–999 of the upright page's width and height."""


class Command(msgspec.Struct, frozen=True, tag=True):
    """Base of what the application asks for."""


class Event(msgspec.Struct, frozen=True, tag=True):
    """Base of what the worker reports."""


class ProblemData(msgspec.Struct, frozen=True):
    """:class:`desktop.errors.Problem` on the wire."""

    code: str
    message: str
    hint: str
    detail: str = ""
    fix: Tuple[Tuple[str, Union[bool, int, float, str]], ...] = ()

    def problem(self) -> Problem:
        """As the application keeps it."""
        return Problem(self.code, self.message, self.hint, self.detail, self.fix)


# --- commands ---------------------------------------------------------------------------------


class StartEngine(Command, frozen=True, tag=True):
    """First command: load ENGINE with SETTINGS (key → value, as declared)."""

    version: int
    engine: str
    settings: Dict[str, Any]


class SubmitPage(Command, frozen=True, tag=True):
    """Read one page. The worker may hold more than it works on; PRIORITY 0 goes first."""

    page_id: str
    image: str
    """Path of the upright 8-bit RGB bitmap (binary PPM)."""
    width: int
    height: int
    words: str = ""
    """Path of the page's own words (see ``desktop.intake.words``); "" where it has none."""
    settings: Dict[str, Any] = {}
    """Values that may change from page to page (key → value)."""
    priority: int = 1
    attempt: int = 1
    timed: bool = False
    """Whether it is to be measured: times come with the text, which comes in larger pieces."""


class CancelPage(Command, frozen=True, tag=True):
    """Stop one page: it ends with PageFinished(finish="cancelled") within a block."""

    page_id: str


class RaisePage(Command, frozen=True, tag=True):
    """A page that was submitted and has not begun is wanted first."""

    page_id: str


class SetConcurrency(Command, frozen=True, tag=True):
    """At most this many pages at once from now on; 0 is the engine's own choice."""

    pages: int


class Shutdown(Command, frozen=True, tag=True):
    """Release everything and exit."""


# --- events -----------------------------------------------------------------------------------


class Hello(Event, frozen=True, tag=True):
    """First event, before any engine is imported."""

    version: int
    pid: int
    python: str


class EngineLoading(Event, frozen=True, tag=True):
    """Progress of loading, in words for the status bar. FRACTION 0–1, or -1 when unknown."""

    step: str
    fraction: float = -1.0


class EngineReady(Event, frozen=True, tag=True):
    """What the engine got; said again when that has changed (a server it uses was started anew).
    Figures that do not exist for an engine are 0 or ""."""

    engine: str
    model: str
    device: str
    capacity: int
    """Pages it works on at once by its own choice."""
    memory_used: int = 0
    """Bytes of device memory it holds (host memory for an engine without a device)."""
    memory_total: int = 0
    cache_tokens: int = 0
    context: int = 0
    eager: bool = False
    versions: Dict[str, str] = {}
    memory_free: int = 0
    """Bytes of device memory that nobody holds."""
    notes: Tuple[str, ...] = ()
    """What a person should know of how it runs, in sentences: repairs that were applied, settings
    that this version does not have."""


class EngineFailed(Event, frozen=True, tag=True):
    """The engine could not start, or died for good. FATAL: starting again cannot help."""

    problem: ProblemData
    fatal: bool = False


class PageStarted(Event, frozen=True, tag=True):
    """Work on the page began: AT seconds on the worker's monotonic clock, which is the machine's
    and so the application's as well."""

    page_id: str
    at: float = 0.0


class PageOriented(Event, frozen=True, tag=True):
    """The submitted bitmap has to be turned CLOCKWISE degrees (90, 180, 270) to be upright.

    Sent before any box of the page; all boxes refer to the turned page.
    """

    page_id: str
    clockwise: int


class Region(msgspec.Struct, frozen=True):
    """A box known before its text."""

    label: str
    box: Box


class PageRegions(Event, frozen=True, tag=True):
    """Provisional boxes in reading order, sent before the first text where known; sent again
    where better ones are found, in place of the first."""

    page_id: str
    regions: Tuple[Region, ...]


class PageRestarted(Event, frozen=True, tag=True):
    """What was sent about the page so far no longer holds: it is read again from its beginning.

    REASON: loop (its output repeated itself), server (a server broke off).
    """

    page_id: str
    reason: str


class PageText(Event, frozen=True, tag=True):
    """The next piece of the page's grounded Markdown; TOKENS it took (0 where not counted).

    TIMES, of a page that is measured: for each output of the engine's that the piece is made of,
    when it came (as in :class:`PageStarted`), its tokens and its characters. A piece may then be
    empty: tokens that are no text yet.
    """

    page_id: str
    text: str
    tokens: int = 0
    times: Tuple[Tuple[float, int, int], ...] = ()


class BlockConfidence(Event, frozen=True, tag=True):
    """Mean confidence 0–1 of the INDEXth block (from 0) in the stream, sent after its text."""

    page_id: str
    index: int
    confidence: float


class PageFinished(Event, frozen=True, tag=True):
    """The page is done.

    FINISH: complete, length, loop, empty, blank, failed, cancelled (the words of report.json).
    Times are seconds on the worker's clock, counted from the start of work on this page.
    """

    page_id: str
    finish: str
    problem: Union[ProblemData, None] = None
    seconds: float = 0.0
    first_text: float = 0.0
    prompt_tokens: int = 0
    output_tokens: int = 0
    limit: int = 0
    """Most output tokens it could have had; 0 where there is no limit."""


class LogLine(Event, frozen=True, tag=True):
    """A line for the log: LEVEL as in logging, SOURCE a logger's name or "stdout"/"stderr"."""

    level: int
    source: str
    text: str


class Bye(Event, frozen=True, tag=True):
    """Last event of an orderly shutdown."""


AnyCommand = Union[StartEngine, SubmitPage, CancelPage, RaisePage, SetConcurrency, Shutdown]
AnyEvent = Union[Hello, EngineLoading, EngineReady, EngineFailed, PageStarted, PageOriented,
                 PageRegions, PageRestarted, PageText, BlockConfidence, PageFinished, LogLine,
                 Bye]
