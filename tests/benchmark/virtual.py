"""Runner, worker and scripted engine in one loop whose clock jumps from event to event."""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from desktop.benchmark.clock import LoopClock
from desktop.benchmark.events import BenchEvent
from desktop.benchmark.feed import Ready
from desktop.benchmark.link import Surroundings
from desktop.benchmark.plan import Plan
from desktop.benchmark.runner import Runner
from desktop.benchmark.workload import Page, Workload
from desktop.client.client import ClientEvent, WorkerDied
from desktop.engines import scripted
from desktop.errors import Problem
from desktop.intake.model import RenderedPage
from desktop.jobs.preparing import Prepared
from desktop.protocol.messages import (
    VERSION,
    EngineFailed,
    Event,
    Hello,
    PageStarted,
    SetConcurrency,
    StartEngine,
    SubmitPage,
)
from desktop.settings import Values
from desktop.worker.loop import Worker

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[Any]:
        found = super().select(0)
        if not found and timeout is None:
            raise RuntimeError("nothing will ever happen")
        if not found and timeout:
            self.loop.elapsed += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """Waiting takes no time but the clock's; what runs in an executor runs at once."""

    def __init__(self) -> None:
        self.elapsed = 1000.0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.elapsed

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        done: asyncio.Future[Any] = self.create_future()
        try:
            done.set_result(func(*args))
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            done.set_exception(error)
        return done


def run(make: Callable[[VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    """The result of a coroutine in a loop of this kind."""
    loop = VirtualLoop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(make(loop))
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
            loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        asyncio.set_event_loop(None)
        loop.close()


class _Time:
    """The module ``time`` as the scripted engine sees it."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.monotonic = loop.time


class _Outbox:
    def __init__(self, send: Callable[[Event], None]) -> None:
        self.send = send

    async def room(self) -> None:
        return


class InProcessClient:
    """A worker in the same loop instead of in a process."""

    made: list[InProcessClient]

    def __init__(self, on_event: Callable[[ClientEvent], None]) -> None:
        self._tell = on_event
        self._worker: Worker | None = None
        self._task: asyncio.Task[int] | None = None
        self._concurrency = 0
        self._pages: dict[str, SubmitPage] = {}
        self._reading: set[str] = set()
        self.most_at_once = 0
        self.most_handed_over = 0
        self.submitted: list[SubmitPage] = []

    def start(self, engine: str, settings: dict[str, Any], *,
              interpreter: str | None = None) -> None:
        self._worker = Worker(_Outbox(self._sent))  # type: ignore[arg-type]
        self._task = asyncio.get_running_loop().create_task(self._work(self._worker))
        self._tell(Hello(VERSION, 0, ""))
        self._worker.take(StartEngine(VERSION, engine, settings))
        self._worker.take(SetConcurrency(self._concurrency))

    def set_concurrency(self, pages: int) -> None:
        self._concurrency = pages
        if self._worker is not None:
            self._worker.take(SetConcurrency(pages))

    def submit(self, page: SubmitPage) -> None:
        assert self._worker is not None
        self._pages[page.page_id] = page
        self.submitted.append(page)
        self.most_handed_over = max(self.most_handed_over, len(self._pages))
        self._worker.take(page)

    def close(self, timeout: float = 5.0) -> None:
        if self._worker is not None:
            self._worker.stop()

    def _sent(self, event: Event) -> None:
        if getattr(event, "finish", None) is not None:
            self._pages.pop(event.page_id, None)  # type: ignore[attr-defined]
            self._reading.discard(event.page_id)  # type: ignore[attr-defined]
        if isinstance(event, PageStarted):
            self._reading.add(event.page_id)
            self.most_at_once = max(self.most_at_once, len(self._reading))
        if isinstance(event, EngineFailed):
            self._tell(event)
            problem = Problem(*event.problem.problem())
            self._tell(WorkerDied(problem, tuple(self._pages), 1.0))
            return
        self._tell(event)  # type: ignore[arg-type]

    async def _work(self, worker: Worker) -> int:
        return await worker.run()


class Dummy:
    """Pages that nobody looks at; the scripted engine does not. SECONDS: to draw one."""

    def __init__(self, loop: VirtualLoop, seconds: float = 0.0) -> None:
        self._loop = loop
        self.seconds = seconds
        self.drawn = 0
        self.open = 0
        self.most_open = 0
        self.failing: dict[str, Ready] = {}

    async def prepare(self, pages: object) -> None:
        return

    async def page(self, page: Page, serial: int) -> Ready:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        if self.seconds:
            await asyncio.sleep(self.seconds)
        self.drawn += 1
        source = self
        if page.name in self.failing:
            return self.failing[page.name]

        class Counted(Ready):
            def discard(self) -> None:
                source.open -= 1

        return Counted(page, RenderedPage("/nowhere.ppm", 100, 100, 144), self.seconds)


def workload(pages: int = 1) -> Workload:
    """So many pages of one file."""
    return Workload(("x.pdf",), tuple(Page("/x.pdf", number, f"x.pdf #{number}")
                                      for number in range(1, pages + 1)), 1, "0" * 64)


class Ran:
    """A runner that has ended, and what it told."""

    def __init__(self, runner: Runner, events: list[BenchEvent], clients: list[InProcessClient],
                 source: Dummy) -> None:
        self.runner = runner
        self.levels = runner.levels
        self.ended = runner.ended
        self.events = events
        self.clients = clients
        self.source = source

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]


def measure(plan: Plan, *, pages: int = 1, drawing: float = 0.0,
            script: dict[str, Any] | None = None, monkeypatch: Any = None,
            prepare: Callable[[Values, threading.Event], Prepared] | None = None,
            during: Callable[[Runner, BenchEvent], None] | None = None,
            values: Values | None = None, failing: dict[str, Ready] | None = None) -> Ran:
    """Carry PLAN out with the scripted engine; DURING is called with each event."""
    import json

    used = values or Values({"engine": "scripted"})

    async def main(loop: VirtualLoop) -> Ran:
        monkeypatch.setattr(scripted, "time", _Time(loop))
        events: list[BenchEvent] = []
        clients: list[InProcessClient] = []
        source = Dummy(loop, drawing)
        source.failing = failing or {}

        def client(on_event: Callable[[ClientEvent], None]) -> InProcessClient:
            clients.append(InProcessClient(on_event))
            return clients[-1]

        def tell(event: BenchEvent) -> None:
            events.append(event)
            if during is not None:
                during(runner, event)

        settings = {**used.as_dict(), "script": json.dumps(script or {})}
        runner = Runner(plan, workload(pages), used, Surroundings(
            LoopClock(loop), client, source,
            prepare or (lambda values, cancel: Prepared(None, settings))), tell)
        await runner.run()
        return Ran(runner, events, clients, source)

    return run(main)
