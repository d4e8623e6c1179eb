"""Sessions with real drawing processes and a real worker that plays a script."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from desktop.jobs.events import (
    DocumentAdded,
    DocumentUpdated,
    DocumentView,
    PageState,
    PageUpdated,
    PageView,
    RawText,
    SessionEvent,
)
from desktop.jobs.session import Session
from desktop.settings import Values
from tests.support import processes
from tests.support.gate import Gate

E = TypeVar("E")
PATIENCE = 240.0

SHORT = {"text": "<|ref|>text<|/ref|><|det|>[[100, 100, 900, 200]]<|/det|>\nHello\n", "rate": 0}
"""A page that is read at once."""

FIGURE = ("<|ref|>title<|/ref|><|det|>[[100, 50, 900, 90]]<|/det|>\n# Title\n\n"
          "<|ref|>image<|/ref|><|det|>[[100, 100, 500, 400]]<|/det|>\n\n"
          "<|ref|>table<|/ref|><|det|>[[100, 500, 900, 700]]<|/det|>\n"
          "<table><tr><td>1</td></tr></table>\n")
SLOW = {"text": "<|ref|>text<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>\n"
                + " ".join(f"word{number * number}" for number in range(3000)),
        "rate": 50, "delta": 5}
"""A page that is not done before the test is."""


class Heard:
    """What a listener was told, to be waited for."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.batches: list[Sequence[SessionEvent]] = []

    def __call__(self, batch: Sequence[SessionEvent]) -> None:
        with self._changed:
            self.batches.append(batch)
            self._changed.notify_all()

    @property
    def events(self) -> list[SessionEvent]:
        with self._changed:
            return [event for batch in self.batches for event in batch]

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def until(self, condition: Callable[[], Any], what: str = "") -> None:
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE), what or "waited in vain"

    def page(self, page_id: str) -> PageView | None:
        """The page as it was last told."""
        found = None
        for event in self.events:
            if isinstance(event, PageUpdated) and event.page.id == page_id:
                found = event.page
            elif isinstance(event, (DocumentAdded, DocumentUpdated)) and event.pages:
                found = next((page for page in event.pages if page.id == page_id), found)
        return found

    def document(self, document_id: int) -> DocumentView | None:
        found = None
        for event in self.events:
            if isinstance(event, (DocumentAdded, DocumentUpdated)) \
                    and event.document.id == document_id:
                found = event.document
        return found

    def until_page(self, page_id: str, *states: PageState) -> None:
        self.until(lambda: (page := self.page(page_id)) is not None and page.state in states,
                   f"page {page_id} never became {states}, it is {self.page(page_id)}")

    def until_streaming(self, count: int) -> list[str]:
        """Wait until text has come of COUNT pages; their ids. Any COUNT: pages are drawn by
        several processes, and which one is done first is not said."""
        found: list[str] = []

        def enough() -> bool:
            found[:] = sorted({event.page_id for event in self.of(RawText)})
            return len(found) >= count

        self.until(enough)
        return found

    def finished_order(self) -> list[str]:
        """Ids of pages in the order in which they became final, each once."""
        return list(dict.fromkeys(event.page.id for event in self.of(PageUpdated)
                                  if event.page.state.final))

    def started_order(self) -> list[str]:
        return list(dict.fromkeys(event.page.id for event in self.of(PageUpdated)
                                  if event.page.state is PageState.STREAMING))


class Play:
    """A session with the scripted engine, and what it told."""

    def __init__(self, folder: Path, script: dict[str, Any], values: dict[str, object],
                 **options: Any) -> None:
        self.heard = Heard()
        self.session = Session(folder / "journal.db", folder / "cache",
                               Values({"engine": "scripted", **values}),
                               engine_args={"script": json.dumps(script)}, **options)
        self.session.subscribe(self.heard)

    def add(self, *paths: Path, **options: Any) -> list[int]:
        return self.session.add(paths, **options).result(PATIENCE)

    def worker(self) -> psutil.Process:
        """The process of the engine that runs now."""
        return processes.worker_of(os.getpid())

    def finish(self) -> None:
        """Read everything there is."""
        self.session.start()
        assert self.session.wait(PATIENCE)


Player = Callable[..., Play]
Gates = Callable[[], Gate]
Pdf = Callable[..., Path]


@pytest.fixture
def play(tmp_path: Path, no_process_left: object) -> Iterator[Callable[..., Play]]:
    """``play(script, **values)``: a session; called again it opens the same journal, after the
    one before was closed."""
    made: list[Play] = []

    def make(script: dict[str, Any] | None = None, *, options: dict[str, Any] | None = None,
             **values: object) -> Play:
        for earlier in made:
            earlier.session.close()
        made.append(Play(tmp_path, script or {"pages": [SHORT]}, values, **(options or {})))
        return made[-1]

    yield make
    for one in made:
        one.session.close()


@pytest.fixture
def pdf(tmp_path: Path) -> Callable[..., Path]:
    """``pdf(pages, name)``: a digital document with one line of text a page."""
    import pymupdf

    def make(pages: int = 3, name: str = "made.pdf", text: str = "Page") -> Path:
        document = pymupdf.open()
        for number in range(1, pages + 1):
            document.new_page(width=200, height=280).insert_text((20, 40), f"{text} {number}")
        path = tmp_path / name
        document.save(path)
        document.close()
        return path

    return make


@pytest.fixture
def gates(tmp_path: Path) -> Gates:
    """``gates()``: a place at which pages are held up until the test opens it."""
    count = 0

    def make() -> Gate:
        nonlocal count
        count += 1
        return Gate(tmp_path / f"gate-{count}")

    return make
