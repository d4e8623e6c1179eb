"""What tests of the client share: a listener that keeps everything, scripts, pages."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from desktop.client.client import ClientEvent, EngineClient, Patience, WorkerDied
from desktop.engines.script import SAMPLE
from desktop.protocol.messages import (
    EngineReady,
    Hello,
    LogLine,
    PageFinished,
    PageStarted,
    PageText,
    SubmitPage,
)

QUICK = Patience(first_pause=0.1, longest_pause=0.2)
Kind = TypeVar("Kind")


class Recorder:
    """Keeps events with the time they came; tests wait on it."""

    def __init__(self) -> None:
        self.events: list[ClientEvent] = []
        self._changed = threading.Condition()

    def __call__(self, event: ClientEvent) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def until(self, found: Callable[[list[ClientEvent]], Any], patience: float = 120.0) -> Any:
        """Wait until FOUND says something true of all events; what it said."""
        deadline = time.monotonic() + patience
        with self._changed:
            while not (result := found(self.events)):
                rest = deadline - time.monotonic()
                assert rest > 0, "waited in vain; events:\n" + "\n".join(
                    str(event)[:300] for event in self.events[-60:])
                self._changed.wait(rest)
            return result

    def of(self, kind: type[Kind]) -> list[Kind]:
        """All events of one KIND so far."""
        with self._changed:
            return [event for event in self.events if isinstance(event, kind)]

    def wait(self, kind: type[Kind], number: int = 1, **fields: Any) -> Kind:
        """The NUMBERth event of KIND with these FIELDS."""
        def found(events: list[ClientEvent]) -> Kind | None:
            fitting = [event for event in events if isinstance(event, kind)
                       and all(getattr(event, key) == value for key, value in fields.items())]
            return fitting[number - 1] if len(fitting) >= number else None
        result: Kind = self.until(found)
        return result

    def finished(self, page_id: str) -> PageFinished:
        """The end of a page, awaited."""
        return self.wait(PageFinished, page_id=page_id)

    def streaming(self, page_id: str) -> None:
        """Wait until text of a page has come."""
        self.wait(PageText, page_id=page_id)

    def text(self, page_id: str) -> str:
        """The text of a page since it was begun last."""
        text = ""
        for event in self.events:
            if isinstance(event, PageStarted) and event.page_id == page_id:
                text = ""
            elif isinstance(event, PageText) and event.page_id == page_id:
                text += event.text
        return text

    def started(self) -> list[str]:
        """Ids of pages in the order they were begun."""
        return [event.page_id for event in self.of(PageStarted)]

    def log(self) -> list[str]:
        """Lines that came for the log."""
        return [event.text for event in self.of(LogLine)]

    def pid(self) -> int:
        """The process id of the worker that runs now."""
        return self.of(Hello)[-1].pid

    def died(self, number: int = 1) -> WorkerDied:
        """The NUMBERth death, awaited."""
        return self.wait(WorkerDied, number)

    def ready(self, number: int = 1) -> EngineReady:
        """The NUMBERth engine that got ready, awaited."""
        return self.wait(EngineReady, number)


def script(*pages: dict[str, Any], **top: Any) -> dict[str, Any]:
    """Engine settings that make the scripted engine play PAGES."""
    return {"script": json.dumps({"pages": [{"text": SAMPLE, **page} for page in pages or ({},)],
                                  **top})}


def page(page_id: str, **fields: Any) -> SubmitPage:
    """A page to be read; there is no bitmap behind it."""
    return SubmitPage(page_id, "/nowhere/page.ppm", 100, 140, **fields)


def fault(kind: str, **fields: Any) -> dict[str, Any]:
    """A page whose only fault is of KIND."""
    return {"faults": [{"kind": kind, "at": 80, **fields}]}


Start = Callable[..., tuple[EngineClient, Recorder]]
