"""The worker's loop with engines that keep to the contract badly, and its bounded outbox."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from multiprocessing.connection import Pipe
from typing import Any

import pytest

from desktop.engines import registry
from desktop.engines.base import Engine, EngineDied, Finish, Output, Progress, Text
from desktop.errors import VersoError
from desktop.protocol import messages as m
from desktop.protocol.wire import Channel, ChannelClosed
from desktop.worker import outbox as outboxes
from desktop.worker.loop import Worker
from desktop.worker.outbox import Outbox, OutboxHandler

READY = m.EngineReady("odd", "", "", capacity=2)


class Odd(Engine):
    """Does what the test puts into ``reading``; loading calls ``loading``."""

    name = "odd"
    reading: Callable[[m.SubmitPage], AsyncIterator[Output]]
    loading: Callable[[Progress], None]

    async def start(self, settings: dict[str, Any], progress: Progress) -> m.EngineReady:
        type(self).loading(progress)
        return READY

    def read(self, page: m.SubmitPage) -> AsyncIterator[Output]:
        return type(self).reading(page)

    async def close(self) -> None:
        raise RuntimeError("cannot even close")


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> type[Odd]:
    entry = registry.EngineEntry("odd", "Odd", "", f"{__name__}:Odd")
    monkeypatch.setattr(registry, "ENGINES", (*registry.ENGINES, entry))
    Odd.loading = staticmethod(lambda progress: None)
    return Odd


Fact = Callable[[list[m.AnyEvent]], object]


def run(*commands: m.AnyCommand | Fact) -> list[m.AnyEvent]:
    """The events that follow COMMANDS, the first of which are given to an engine that is ready;
    a function is asked what came so far until it says something true."""
    ours, theirs = Pipe(duplex=True)
    application, channel = Channel.of_application(ours), Channel.of_worker(theirs)
    events: list[m.AnyEvent] = []

    async def until(fact: Fact) -> None:
        deadline = time.monotonic() + 60
        while not fact(events):
            assert time.monotonic() < deadline, f"waited in vain: {events}"
            await asyncio.sleep(0.005)

    async def play() -> None:
        outbox = Outbox(channel)
        outbox.attach(asyncio.get_running_loop())
        worker = Worker(outbox)
        running = asyncio.ensure_future(worker.run())
        try:
            worker.take(m.StartEngine(m.VERSION, "odd", {}))
            await until(lambda events: came(m.EngineReady)(events) or came(m.EngineFailed)(events))
            for command in commands:
                if isinstance(command, m.Command):
                    worker.take(command)
                else:
                    await until(command)
        finally:
            worker.stop()
            await running
            await asyncio.to_thread(outbox.close, 120)
            channel.close()

    async def listen() -> None:
        try:
            while True:
                events.append(await asyncio.to_thread(application.receive))
        except ChannelClosed:
            application.close()

    async def both() -> None:
        await asyncio.gather(play(), listen())

    asyncio.run(both())
    return events


def came(kind: type[m.AnyEvent], number: int = 1, **fields: object) -> Fact:
    """So many events of KIND with these FIELDS."""
    return lambda events: sum(isinstance(event, kind) and all(
        getattr(event, key) == value for key, value in fields.items())
        for event in events) >= number


def over(*page_ids: str) -> Fact:
    """These pages have come to their end."""
    return lambda events: set(page_ids) <= ends(events).keys()


def page(page_id: str) -> m.SubmitPage:
    return m.SubmitPage(page_id, "", 1, 1)


def ends(events: list[m.AnyEvent]) -> dict[str, m.PageFinished]:
    return {event.page_id: event for event in events if isinstance(event, m.PageFinished)}


@pytest.mark.logs_errors
def test_an_engine_that_does_not_say_how_a_page_ended(odd: type[Odd]) -> None:
    async def reading(page: m.SubmitPage) -> AsyncIterator[Output]:
        yield Text("cut")
    odd.reading = staticmethod(reading)
    events = run(page("p"), over("p"))
    assert ends(events)["p"].finish == "length"
    assert events[-1] == m.Bye()  # although closing the engine failed


@pytest.mark.logs_errors
def test_an_engine_that_dies_while_no_page_is_with_it(
        odd: type[Odd], monkeypatch: pytest.MonkeyPatch) -> None:
    async def watch(self: Odd) -> EngineDied | None:
        await asyncio.sleep(0.05)
        return EngineDied(detail="exit status -9")
    monkeypatch.setattr(odd, "watch", watch)
    events = run(came(m.EngineFailed), page("too late"))
    (failed,) = (event for event in events if isinstance(event, m.EngineFailed))
    assert (failed.problem.code, failed.problem.detail, failed.fatal) == (
        "engine.died", "exit status -9", False)
    assert not ends(events)


@pytest.mark.logs_errors
def test_an_engine_whose_watch_fails_reads_all_the_same(
        odd: type[Odd], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async def watch(self: Odd) -> EngineDied | None:
        raise RuntimeError("blind")

    async def reading(page: m.SubmitPage) -> AsyncIterator[Output]:
        yield Finish()
    odd.reading = staticmethod(reading)
    monkeypatch.setattr(odd, "watch", watch)
    events = run(lambda _events: "blind" in caplog.text, page("p"), over("p"))
    assert ends(events)["p"].finish == "complete"
    assert "blind" in caplog.text


@pytest.mark.logs_errors
def test_pages_begin_when_an_engine_s_budget_grows_by_itself(
        odd: type[Odd], monkeypatch: pytest.MonkeyPatch) -> None:
    engines: list[Odd] = []
    both = asyncio.Event()

    async def reading(page: m.SubmitPage) -> AsyncIterator[Output]:
        if page.page_id == "second":
            both.set()
        else:
            odd.budget = 2
            (engine,) = engines
            assert engine.grown is not None
            asyncio.get_running_loop().call_soon(engine.grown)
        await asyncio.wait_for(both.wait(), 60)  # The first does not end before the second begins.
        yield Finish()

    def create(self: Odd) -> None:
        engines.append(self)
    odd.reading = staticmethod(reading)
    monkeypatch.setattr(odd, "__init__", create)
    monkeypatch.setattr(odd, "budget", 1)
    monkeypatch.setattr(odd, "cost", lambda self, page: 1)
    events = run(page("first"), page("second"), over("first", "second"))
    assert {key: end.finish for key, end in ends(events).items()} == {
        "first": "complete", "second": "complete"}


@pytest.mark.logs_errors
def test_an_engine_that_becomes_larger_says_so_and_reads_more_at_once(
        odd: type[Odd], monkeypatch: pytest.MonkeyPatch) -> None:
    engines: list[Odd] = []
    asked: list[int] = []
    larger = m.EngineReady("odd", "", "", capacity=3, cache_tokens=9)
    all_three = asyncio.Event()

    async def reading(page: m.SubmitPage) -> AsyncIterator[Output]:
        (engine,) = engines
        assert engine.changed is not None
        if page.page_id == "3":
            all_three.set()
        elif page.page_id == "2":
            asyncio.get_running_loop().call_soon(engine.changed, larger)
        await asyncio.wait_for(all_three.wait(), 60)  # None ends before the third has begun.
        yield Finish()

    odd.reading = staticmethod(reading)
    monkeypatch.setattr(odd, "__init__", lambda self: engines.append(self))
    monkeypatch.setattr(odd, "set_concurrency", lambda self, pages: asked.append(pages))
    events = run(page("1"), page("2"), page("3"), over("1", "2", "3"))
    assert [event for event in events if isinstance(event, m.EngineReady)] == [READY, larger]
    assert {key: end.finish for key, end in ends(events).items()} == dict.fromkeys(
        "123", "complete")
    assert asked == [2, 3]


@pytest.mark.logs_errors
def test_an_engine_that_swallows_a_cancel(odd: type[Odd]) -> None:
    async def reading(page: m.SubmitPage) -> AsyncIterator[Output]:
        while True:
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                logging.info("not me")
            yield Text("x")
    odd.reading = staticmethod(reading)
    events = run(page("p"), came(m.PageText, page_id="p"), m.CancelPage("p"), over("p"))
    assert ends(events)["p"].finish == "cancelled"


@pytest.mark.logs_errors
def test_an_engine_that_never_waits_keeps_nobody_from_their_turn(odd: type[Odd]) -> None:
    async def reading(page: m.SubmitPage) -> AsyncIterator[Output]:
        if page.page_id == "short":
            yield Text("short")
            yield Finish(output_tokens=3)
        while page.page_id == "endless":
            yield Text("x", 1)
    odd.reading = staticmethod(reading)

    def much(events: list[m.AnyEvent]) -> bool:
        return sum(event.tokens for event in events if isinstance(event, m.PageText)) > 100

    events = run(page("endless"), much, page("short"), over("short"), m.CancelPage("endless"),
                 over("endless"))
    assert {key: end.finish for key, end in ends(events).items()} == {
        "short": "complete", "endless": "cancelled"}
    assert ends(events)["short"].output_tokens == 3
    assert ends(events)["endless"].output_tokens > 100


@pytest.mark.logs_errors
def test_an_engine_that_yields_what_is_no_output(odd: type[Odd]) -> None:
    async def reading(page: m.SubmitPage) -> AsyncIterator[Output]:
        yield "text"  # type: ignore[misc]
    odd.reading = staticmethod(reading)
    end = ends(run(page("p"), over("p")))["p"]
    assert end.finish == "failed"
    assert end.problem is not None
    assert "not an output" in end.problem.detail


@pytest.mark.logs_errors
@pytest.mark.parametrize(("error", "code", "fatal"), [
    (ModuleNotFoundError("No module named 'torch'", name="torch"), "engine.missing", True),
    (SystemExit(1), "engine.crashed", False),
    (MemoryError(), "engine.crashed", False),
    (VersoError(), "internal", True)])
def test_the_ways_loading_may_fail(
    odd: type[Odd], error: BaseException, code: str, fatal: bool,
) -> None:
    def loading(progress: Progress) -> None:
        raise error
    odd.loading = staticmethod(loading)
    failed = [event for event in run() if isinstance(event, m.EngineFailed)]
    assert [(event.problem.code, event.fatal) for event in failed] == [(code, fatal)]


@pytest.mark.logs_errors
def test_progress_reported_too_often_is_thinned_out(odd: type[Odd]) -> None:
    def loading(progress: Progress) -> None:
        for number in range(5001):
            progress("Reading weights", number / 5000)
        progress("Warming up", -1)
    odd.loading = staticmethod(loading)
    told = [event for event in run() if isinstance(event, m.EngineLoading)]
    assert len(told) < 100
    assert told[0].fraction == 0
    assert [(event.step, event.fraction) for event in told[-2:]] == [
        ("Reading weights", 1), ("Warming up", -1)]


def test_producers_wait_while_nobody_reads() -> None:
    ours, theirs = Pipe(duplex=True)
    channel = Channel.of_worker(theirs)

    async def produce() -> int:
        outbox = Outbox(channel)
        outbox.attach(asyncio.get_running_loop())
        made = 0

        async def producer() -> None:
            nonlocal made
            while made < 3000:
                outbox.send(m.PageText("p", "x" * 1000))
                made += 1
                await outbox.room()

        task = asyncio.ensure_future(producer())
        while made < outboxes.HIGH:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)  # for a producer that does not wait to go on
        stopped_at = made
        application = Channel.of_application(ours)
        for _ in range(3000):
            await asyncio.to_thread(application.receive)
        await task
        await asyncio.to_thread(outbox.close, 120)
        return stopped_at

    # What fits into the queue, and into the kernel's buffer.
    assert outboxes.HIGH <= asyncio.run(produce()) < outboxes.HIGH + 1000
    ours.close()
    theirs.close()


def test_a_log_record_of_endless_lines_is_cut() -> None:
    sent: list[Any] = []
    outbox = type("Sink", (), {"send": lambda self, event: sent.append(event)})()
    handler = OutboxHandler(outbox)
    handler.emit(logging.LogRecord("n", logging.INFO, "", 1, "line\n" * 100_000, (), None))
    assert 10 < len(sent) <= 200
    for _ in range(1000):
        handler.emit(logging.LogRecord("n", logging.INFO, "", 1, "again", (), None))
    assert len(sent) < 600
