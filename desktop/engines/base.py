"""What an engine is.

An engine reads page bitmaps and yields grounded Markdown in the model's own format:
``<|ref|>label<|/ref|><|det|>[[x1, y1, x2, y2]]<|/det|>``, a line break, the content, a blank
line. It runs inside the worker's asyncio loop and never blocks it: slow work belongs into
threads or processes of the engine's own. Cancelling the task that iterates ``read`` stops the
page within a block.

This module runs on Python 3.10 with msgspec alone; an engine's own dependencies are imported
in ``start``, never at import time.
"""

from __future__ import annotations

import abc
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Union

from desktop.errors import VersoError
from desktop.i18n import N_
from desktop.protocol.messages import EngineReady, Region, SubmitPage

Progress = Callable[[str, float], None]
"""Called with a step in words and a fraction 0–1 (-1: unknown) while an engine loads."""


class EngineDied(VersoError):
    """The engine is of no use any more: raised by ``read`` (the worker ends, is started again
    and the pages in flight are the caller's again), or by ``start`` when another try may help
    (any other VersoError there means that starting again cannot help)."""

    code = "engine.died"
    message = N_("The engine stopped working.")
    hint = N_("Verso starts it again by itself; if this repeats, see the log (View › Log).")


@dataclass(frozen=True)
class Text:
    """The next piece of grounded Markdown."""

    text: str
    tokens: int = 0


@dataclass(frozen=True)
class Oriented:
    """The bitmap must be turned clockwise by 90, 180 or 270 degrees; comes before any box."""

    clockwise: int


@dataclass(frozen=True)
class Regions:
    """Boxes known before their text, in reading order. Better ones may follow before the first
    text, in place of these."""

    regions: tuple[Region, ...]


@dataclass(frozen=True)
class Confidence:
    """Mean confidence 0–1 of the INDEXth block of the stream, after its text."""

    index: int
    confidence: float


@dataclass(frozen=True)
class Restarted:
    """All that was yielded about the page so far no longer holds: it is read again from its
    beginning. REASON is a word of :class:`desktop.protocol.messages.PageRestarted`."""

    reason: str = "server"


@dataclass(frozen=True)
class Finish:
    """Last output of a page: complete, length, loop, empty, blank."""

    reason: str = "complete"
    prompt_tokens: int = 0
    output_tokens: int = 0
    limit: int = 0
    """Most output tokens the page could have had; 0 where there is no limit."""


Output = Union[Text, Oriented, Regions, Confidence, Restarted, Finish]


class Engine(abc.ABC):
    """The contract. One instance a worker process."""

    name: ClassVar[str]

    may_loop: ClassVar[bool] = True
    """Whether its output can repeat itself without end, as that of a language model can: the
    loop guard watches it. An engine that finds lines and reads each once cannot, and a page of
    equal lines is to be left alone."""

    @abc.abstractmethod
    async def start(self, settings: dict[str, Any], progress: Progress) -> EngineReady:
        """Load everything and say what was got; raises VersoError with a way out."""

    @abc.abstractmethod
    def read(self, page: SubmitPage) -> AsyncIterator[Output]:
        """Read one page. The last output is a :class:`Finish`.

        A page that cannot be read raises VersoError; the engine lives on and takes the next.
        """

    def cost(self, page: SubmitPage) -> int:
        """What the page takes of :attr:`budget` while it is read (tokens: the page's own and
        those of its output); 0 where nothing is rationed."""
        return 0

    budget: int = 0
    """What all pages that are read at once may take together; 0: no limit but their number.
    Known after ``start``. A page that alone takes more is read alone."""

    grown: Callable[[], None] | None = None
    """Set by the worker: to be called, in the loop's thread, when ``budget`` has become larger by
    itself. Otherwise it is looked at when a page comes or ends."""

    def parts(self, page: SubmitPage) -> tuple[tuple[int, int, int, int], ...]:
        """Overlapping rectangles, in pixels x1, y1, x2, y2 and in reading order, as which the
        page is to be read one after the other; empty: as a whole."""
        return ()

    def second_try(self, page: SubmitPage) -> SubmitPage | None:
        """The page as it should be read again after its output looped; None: nothing about it
        can be changed, so it is read in two halves."""
        return None

    changed: Callable[[EngineReady], None] | None = None
    """Set by the worker: to be called, in the loop's thread, when what ``start`` returned has
    become something else."""

    async def watch(self) -> EngineDied | None:
        """Awaited once the engine is ready: returns when it has died, which nobody else notices
        while no page is with it; None where only a page can tell."""
        return None

    def set_concurrency(self, pages: int) -> None:
        """At most this many pages will be read at once; a hint, the worker keeps the limit."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Release memory, threads and processes; may be called after a failed start."""
