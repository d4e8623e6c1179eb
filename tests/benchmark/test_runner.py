"""The runner with the real worker and the scripted engine, on a clock where every time is known."""

from __future__ import annotations

import heapq
import json
from typing import Any

import pytest

from desktop.benchmark.errors import BadPlan
from desktop.benchmark.events import (
    EngineStarted,
    LevelFinished,
    LevelStarted,
    Live,
    RequestFinished,
    RoundFinished,
    RoundStarted,
    RunStarted,
    Stopping,
)
from desktop.benchmark.feed import Ready
from desktop.benchmark.plan import COMPARED, Goodput, Plan, Requests, Strategy
from desktop.benchmark.results import Ended
from desktop.benchmark.runner import Runner
from desktop.benchmark.sampling import Reading, Sample
from desktop.benchmark.workload import Page
from desktop.errors import VersoError
from desktop.intake.model import RenderedPage
from desktop.jobs.preparing import Prepared
from desktop.settings import Values
from tests.benchmark.virtual import Ran, measure

EXACT = {"abs": 1e-6, "rel": 1e-9}


def page(deltas: int = 50, wait: float = 0.4, rate: float = 100.0, **more: Any) -> dict[str, Any]:
    """DELTAS of one token and two characters; the first after WAIT seconds, the others at RATE a
    second."""
    return {"text": "ab" * deltas, "delta": 2, "wait": wait, "rate": rate, "prompt_tokens": 300,
            **more}


def seconds(tokens: int, wait: float, rate: float) -> float:
    """From the page's begin to its last token."""
    return wait + (tokens - 1) / rate


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    def call(plan: Plan, *pages: dict[str, Any], **options: Any) -> Ran:
        script = {"capacity": 64, "assign": "number", "pages": pages or (page(),),
                  **options.pop("script", {})}
        return measure(plan, script=script, monkeypatch=monkeypatch, **options)
    return call


def approx(value: float) -> Any:
    return pytest.approx(value, **EXACT)


def test_every_figure_of_equal_pages(bench: Any) -> None:
    ran = bench(Plan(levels=(4,), warmup=1, rounds=3, requests=Requests(times=4),
                     goodput=Goodput({"ttft": 400, "e2el": 900})))
    [level] = ran.levels
    whole = seconds(50, 0.4, 100)
    assert ran.ended is Ended.COMPLETE
    assert len(level.rounds) == 3
    assert level.seconds.mean == approx(4 * whole)
    assert level.output_tps.mean == approx(16 * 50 / (4 * whole))
    assert level.output_tps.sd == pytest.approx(0, abs=1e-6)
    assert level.total_tps.mean == approx(16 * 350 / (4 * whole))
    assert level.pages_per_s.mean == approx(16 / (4 * whole))
    assert level.chars_per_s.mean == approx(16 * 100 / (4 * whole))
    assert level.goodput.mean == approx(16 / (4 * whole))
    for found, known in ((level.ttft, 0.4), (level.tpot, 0.01), (level.itl, 0.01),
                         (level.latency, whole)):
        assert (found.p50, found.p90, found.p99, found.mean) == (approx(known),) * 4
    assert (level.ttft.count, level.itl.count) == (48, 48 * 49)
    assert level.steady_output_tps.mean == approx(4 * 50 / whole)
    assert level.steady_total_tps.mean == approx(4 * 350 / whole)
    assert level.steady_pages_per_s.mean == approx(4 / whole)
    assert level.rounds[0].tokens_per_output == 1
    assert level.rounds[0].steady.seconds == approx(2 * whole)
    assert (level.outcomes, level.failed, level.looped) == ({"complete": 48}, 0, 0)


def test_pages_of_different_length_against_a_simulation(bench: Any) -> None:
    script = [page(20, 0.1), page(80, 0.3, 50), page(5, 0.05, 10), page(33, 0.7, 200),
              page(1, 0.25)]
    lengths = [seconds(20, 0.1, 100), seconds(80, 0.3, 50), seconds(5, 0.05, 10),
               seconds(33, 0.7, 200), 0.25]
    tokens = [20, 80, 5, 33, 1]
    ran = bench(Plan(levels=(3,), cold=False, warmup=0, rounds=1, requests=Requests(count=15)),
                *script, pages=5)
    places = [0.0] * 3
    ends = []
    for number in range(15):
        begin = heapq.heappop(places)
        ends.append(begin + lengths[number % 5])
        heapq.heappush(places, ends[-1])
    figures = ran.levels[0].rounds[0]
    assert figures.seconds == approx(max(ends))
    assert figures.output_tps == approx(3 * sum(tokens) / max(ends))
    assert [one.latency for one in figures.requests[:5]] == [approx(one) for one in lengths]
    assert figures.tpot.count == 12  # a page of one token has none
    assert ran.levels[0].itl.count == 3 * sum(each - 1 for each in tokens)
    assert [one.page for one in figures.requests[:6]] == [
        f"x.pdf #{number}" for number in (1, 2, 3, 4, 5, 1)]


def test_goodput_is_what_keeps_every_limit(bench: Any) -> None:
    limits = Goodput.parse(["ttft:350", "tpot:15", "latency:2000"])
    ran = bench(Plan(levels=(1,), cold=False, warmup=0, rounds=1, requests=Requests(count=4),
                     goodput=limits),
                page(50, 0.3), page(50, 0.36), page(50, 0.3, 60), page(250, 0.3))
    figures = ran.levels[0].rounds[0]
    assert figures.goodput == approx(1 / figures.seconds)


def test_strategies_compared(bench: Any) -> None:
    script = [page(1, 1.0), page(1, 2.0), page(1, 3.0), page(1, 6.0)]
    ran = bench(Plan(levels=(2,), strategies=(*COMPARED[:1], Strategy("batch", 2), COMPARED[2]),
                     cold=False, warmup=0, rounds=1, requests=Requests(count=8)),
                *script, pages=4)
    sequential, batch, continuous = ran.levels
    assert [level.level.requests for level in ran.levels] == [8, 8, 8]
    assert sequential.seconds.mean == approx(2 * (1 + 2 + 3 + 6))
    assert batch.seconds.mean == approx(2 * (2 + 6))
    # places: 1+3+1+3 … 0→1→4→(5)…: 1,2 | 3 at 1, 6 at 2 | 1 at 4, 2 at 5, 3 at 7, 6 at 8
    assert continuous.seconds.mean == approx(14)
    assert [client.most_at_once for client in ran.clients] == [1, 2, 2]


def test_as_many_in_flight_as_asked_and_never_more(bench: Any) -> None:
    ran = bench(Plan(levels=(5,), warmup=0, rounds=1, requests=Requests(count=23)))
    assert ran.clients[0].most_at_once == 5
    assert ran.clients[0].most_handed_over == 5 + 2  # two at hand, as in a conversion
    assert all(submitted.timed for submitted in ran.clients[0].submitted)


def test_a_page_at_hand_counts_from_when_there_was_a_place(bench: Any) -> None:
    ran = bench(Plan(levels=(2,), cold=False, warmup=0, rounds=1, requests=Requests(count=6)),
                page(1, 1.0), page(1, 3.0), page(1, 1.5), pages=3)
    requests = ran.levels[0].rounds[0].requests
    begin = requests[0].submitted
    # ends: 1 at 1, 3 at 2.5, 2 at 3, 4 at 3.5, 6 at 5, 5 at 6
    assert [one.submitted - begin for one in requests] == [
        approx(at) for at in (0, 0, 1, 2.5, 3, 3.5)]
    assert [one.ttft for one in requests] == [approx(each) for each in (1, 3, 1.5, 1, 3, 1.5)]


def test_batches_are_not_handed_over_ahead(bench: Any) -> None:
    ran = bench(Plan(strategies=(Strategy("batch", 3),), cold=False, warmup=0, rounds=1,
                     requests=Requests(count=9)))
    assert ran.clients[0].most_handed_over == 3


def test_an_engine_for_each_level_and_a_cold_round_each(bench: Any) -> None:
    plan = Plan(levels=(1, 2), warmup=1, rounds=2)
    ran = bench(plan, script={"load": {"seconds": 7.0}})
    assert len(ran.clients) == 2
    assert [level.start_seconds for level in ran.levels] == [approx(7), approx(7)]
    assert all(level.cold is not None for level in ran.levels)
    kinds = [(event.index, event.kind, event.number) for event in ran.of(RoundStarted)]
    assert kinds == [(index, kind, number) for index in (0, 1) for kind, number in (
        ("cold", 1), ("warm-up", 1), ("measured", 1), ("measured", 2))]
    assert len(ran.of(RequestFinished)) == plan.expected_requests() == 4 * 1 + 4 * 2


def test_one_engine_for_all_levels_is_cold_once(bench: Any) -> None:
    plan = Plan(levels=(1, 2), warmup=1, rounds=1, keep_engine=True)
    ran = bench(plan)
    assert len(ran.clients) == 1
    first, second = ran.levels
    assert (first.cold is None, second.cold is None) == (False, True)
    assert (first.start_seconds is None, second.start_seconds is None) == (False, True)
    assert plan.expected_requests() == 3 + 4 == len(ran.of(RequestFinished))
    assert ran.clients[0].most_at_once == 2


@pytest.mark.parametrize(("plan", "rooms"), [
    (Plan(levels=(1, 16), cold=False, warmup=0, rounds=1), [1, 16]),
    (Plan(levels=(1, 16), cold=False, warmup=0, rounds=1, keep_engine=True), [16]),
    (Plan(levels=(1,), cold=False, warmup=0, rounds=1, keep_engine=True, gain=5.0, most=10), [10])])
def test_an_engine_that_is_kept_has_room_for_the_levels_to_come(bench: Any, plan: Plan,
                                                                rooms: list[int]) -> None:
    """vLLM takes from the setting how many pages it reads at once at most."""
    asked: list[int] = []

    def prepare(values: Values, cancel: object) -> Prepared:
        asked.append(values["concurrency"])
        return Prepared(None, {**values.as_dict(), "script": json.dumps({"pages": [page(5, 0.1)]})})
    ran = bench(plan, prepare=prepare)
    assert ran.ended is Ended.COMPLETE
    assert asked == rooms
    assert ran.clients[-1].most_at_once == ran.levels[-1].concurrency


def test_the_order_of_events(bench: Any) -> None:
    ran = bench(Plan(levels=(1,), warmup=0, rounds=1))
    kinds = [type(event) for event in ran.events if not isinstance(event, Live)]
    assert kinds == [RunStarted, LevelStarted, EngineStarted, RoundStarted, RequestFinished,
                     RoundFinished, RoundStarted, RequestFinished, RoundFinished, LevelFinished]


def test_live_figures_are_those_of_the_last_seconds(bench: Any) -> None:
    ran = bench(Plan(levels=(4,), cold=False, warmup=0, rounds=1, requests=Requests(count=4)),
                page(1000, 0.0, 100))
    live = ran.of(Live)
    assert [event.at for event in live[:3]] == [approx(0.5), approx(1.0), approx(1.5)]
    # Messages come four times a second, so a rate is exact to an eighth of its two seconds.
    assert live[8].output_tps == pytest.approx(400, rel=0.13)
    assert (live[8].in_flight, live[8].done, live[8].expected) == (4, 0, 4)


def test_failures_and_loops_are_no_throughput(bench: Any) -> None:
    ran = bench(
        Plan(levels=(1,), cold=False, warmup=0, rounds=1, requests=Requests(count=5)),
        page(10, 1.0), page(10, 1.0, finish="loop"), page(10, 1.0, finish="length"),
        page(10, 1.0, faults=[{"kind": "raise", "at": 10, "code": "x.y"}]),
        page(10, 1.0, finish="empty"), values=Values({"engine": "scripted", "loop_guard": False}))
    figures = ran.levels[0].rounds[0]
    assert figures.outcomes == {"complete": 1, "loop": 1, "length": 1, "failed": 1, "empty": 1}
    assert (figures.counted, figures.looped, figures.failed) == (2, 1, 2)
    assert figures.output_tokens == 20
    assert figures.pages_per_s == approx(2 / figures.seconds)
    assert figures.ttft.count == 2
    assert ran.levels[0].flawed
    failed = figures.requests[3]
    assert failed.problem is not None
    assert failed.problem.code == "x.y"


def test_tokens_of_a_reading_that_was_thrown_away_do_not_count(bench: Any) -> None:
    text = "<|ref|>text<|/ref|><|det|>[[1, 1, 9, 9]]<|/det|>\n" + "again and again. " * 400
    ran = bench(Plan(levels=(1,), cold=False, warmup=0, rounds=1),
                {"text": text, "delta": 10, "rate": 1000, "wait": 0.5, "second_try": True,
                 "again": ["a fine page of text"]})
    [one] = ran.levels[0].rounds[0].requests
    assert (one.outcome, one.restarts) == ("complete", 1)
    assert one.output_tokens == 2  # 19 characters by tens
    assert one.characters == 19
    assert one.tpot == approx(0.001)


def test_an_engine_that_counts_no_tokens(bench: Any) -> None:
    ran = bench(Plan(levels=(2,), warmup=0, rounds=2),
                page(10, 1.0, tokens=0, prompt_tokens=0))
    level = ran.levels[0]
    assert (level.output_tps, level.total_tps, level.tpot, level.itl) == (None,) * 4
    assert level.rounds[0].output_tokens is None
    assert level.pages_per_s.mean == approx(2 / 1.09)
    assert level.chars_per_s.mean == approx(40 / 1.09)
    assert level.latency.p50 == approx(1.09)
    assert level.ttft.p50 == approx(1.0)


def test_several_tokens_in_one_output(bench: Any) -> None:
    ran = bench(Plan(levels=(1,), warmup=0, rounds=1), page(10, 0.5, 20, tokens=8))
    level = ran.levels[0]
    assert level.rounds[0].output_tokens == 80
    assert level.rounds[0].tokens_per_output == 8
    assert level.itl.p50 == approx(1 / 20)  # between outputs, as `vllm bench serve` has it
    assert level.tpot.p50 == approx(9 / 20 / 79)


def test_a_level_that_fails_does_not_end_the_run(bench: Any, tmp_path: Any) -> None:
    once = {"kind": "raise", "code": "too.many", "message": "No memory.", "once":
            str(tmp_path / "mark")}
    ran = bench(Plan(levels=(1, 2), warmup=0, rounds=1), script={"load": {"faults": [once]}})
    first, second = ran.levels
    assert (first.ended, second.ended) == (Ended.FAILED, Ended.COMPLETE)
    assert first.problem.code == "too.many"
    assert second.rounds
    assert ran.ended is Ended.COMPLETE


def test_an_engine_that_dies_keeps_the_finished_rounds(bench: Any) -> None:
    ran = bench(Plan(levels=(1, 2), cold=False, warmup=0, rounds=3, requests=Requests(count=2)),
                page(10, 1.0), page(10, 1.0), pages=2,
                script={"pages": [page(10, 1.0, match="b0-m2-2", faults=[
                    {"kind": "died", "at": 4}]), page(10, 1.0)]})
    first, second = ran.levels
    assert first.ended is Ended.FAILED
    assert first.problem.code == "engine.died"
    assert len(first.rounds) == 1
    assert len(second.rounds) == 3


def test_what_is_missing_everywhere_ends_the_run_at_once(bench: Any) -> None:
    def prepare(values: Values, cancel: object) -> Any:
        raise VersoError(detail="no model")
    ran = bench(Plan(levels=(1, 2, 3)), prepare=prepare)
    assert len(ran.levels) == 1
    assert ran.ended is Ended.FAILED


def test_pages_that_cannot_be_drawn_are_failures(bench: Any) -> None:
    bad = Page("/x.pdf", 2, "x.pdf #2")
    ran = bench(Plan(levels=(1,), cold=False, warmup=0, rounds=1, requests=Requests(count=4)),
                pages=2, failing={"x.pdf #2": Ready(bad, None, 0.0, VersoError(detail="x"))})
    figures = ran.levels[0].rounds[0]
    assert figures.outcomes == {"complete": 2, "failed": 2}


def test_a_round_in_which_nothing_was_read_ends_the_level(bench: Any) -> None:
    ran = bench(Plan(levels=(1, 2), warmup=2, rounds=5),
                page(10, 1.0, faults=[
                    {"kind": "raise", "message": "It is no page.", "hint": "Turn it."}]))
    assert [level.ended for level in ran.levels] == [Ended.FAILED] * 2
    assert "It is no page." in ran.levels[0].problem.message
    assert ran.levels[0].problem.hint == "Turn it."
    assert len(ran.of(RequestFinished)) == 1 + 2


def test_a_round_in_which_every_page_loops_brought_nothing(bench: Any) -> None:
    """As many tokens as pages: none. The rounds before it keep their figures."""
    ran = bench(Plan(levels=(1,), cold=False, warmup=0, rounds=3),
                script={"pages": [page(10, 1.0, match="b0-m3-*", finish="loop"), page(10, 1.0)]},
                values=Values({"engine": "scripted", "loop_guard": False}))
    [level] = ran.levels
    assert (level.ended, len(level.rounds), level.looped) == (Ended.FAILED, 3, 1)
    assert level.rounds[2].output_tps == level.rounds[2].pages_per_s == 0
    assert level.output_tps.mean == approx(2 / 3 * 10 / 1.09)
    assert level.pages_per_s.mean == approx(2 / 3 / 1.09)


def test_a_round_in_which_every_page_fails_brought_nothing(bench: Any) -> None:
    fails = [{"kind": "raise", "message": "No page."}]
    ran = bench(Plan(levels=(1,), cold=False, warmup=0, rounds=2),
                script={"pages": [page(10, 1.0, match="b0-m2-*", faults=fails), page(10, 1.0)]})
    [level] = ran.levels
    assert level.output_tps.mean == approx(10 / 1.09 / 2)
    assert level.total_tps.mean == approx(310 / 1.09 / 2)


def test_nothing_but_blank_pages(bench: Any) -> None:
    blank = Page("/x.pdf", 1, "x.pdf #1")
    ran = bench(Plan(levels=(1,)), failing={"x.pdf #1": Ready(blank, RenderedPage(
        "/nowhere.ppm", 100, 100, 144, blank=True))})
    assert ran.levels[0].problem.code == "benchmark.only_blank"
    assert "--skip-blank" in ran.levels[0].problem.hint


def test_devices_are_those_of_the_measured_rounds(bench: Any) -> None:
    """What the warm-up took is none of a strategy's busy share."""
    def during(runner: Runner, event: object) -> None:
        if isinstance(event, RequestFinished):
            busy = 10.0 if event.kind == "measured" else 90.0
            runner._sampled(Sample(event.request.ended, (Reading("cuda:0", "H", busy),)))
    ran = bench(Plan(levels=(1,), warmup=2, rounds=3), during=during)
    [level] = ran.levels
    assert {reading.busy for sample in level.samples for reading in sample.devices} == {10.0, 90.0}
    assert [one.busy_mean for one in level.devices] == [10.0]


def test_an_engine_that_falls_silent(bench: Any) -> None:
    ran = bench(Plan(levels=(1,), warmup=0, rounds=1),
                page(10, 1.0, faults=[{"kind": "hang", "at": 4}]),
                values=Values({"engine": "scripted", "stall_seconds": 30}))
    assert ran.levels[0].problem.code == "benchmark.silent"


def test_cancelling_keeps_finished_rounds(bench: Any) -> None:
    def during(runner: Runner, event: object) -> None:
        if isinstance(event, RoundFinished) and event.round.number == 2:
            runner._loop.call_later(0.2, runner.cancel)
    ran = bench(Plan(levels=(1, 2), cold=False, warmup=0, rounds=5), during=during)
    assert ran.ended is Ended.INTERRUPTED
    [level] = ran.levels
    assert (level.ended, len(level.rounds)) == (Ended.INTERRUPTED, 2)
    assert level.output_tps is not None
    assert isinstance(ran.events[-1], LevelFinished)
    assert len(ran.of(Stopping)) == 1
    assert ran.source.open == 0  # no bitmap is left


def test_a_time_cap(bench: Any) -> None:
    whole = seconds(50, 0.4, 100)
    ran = bench(Plan(levels=(1, 2), cold=False, warmup=0, rounds=5, time_cap=3.5 * whole))
    assert ran.ended is Ended.TIME_CAP
    assert [len(level.rounds) for level in ran.levels] == [3]


def test_raised_until_it_brings_little(bench: Any) -> None:
    # Six places: at eight at once nothing is won any more.
    ran = bench(Plan(levels=(1,), cold=False, warmup=0, rounds=1, requests=Requests(count=24),
                     gain=5.0),
                script={"budget": 6, "pages": [page(10, 1.0, cost=1)]})
    assert [level.concurrency for level in ran.levels] == [1, 2, 4, 8, 16]


def test_raising_stops_at_the_most(bench: Any) -> None:
    ran = bench(Plan(levels=(1,), cold=False, warmup=0, rounds=1, requests=Requests(count=20),
                     gain=5.0, most=10))
    assert [level.concurrency for level in ran.levels] == [1, 2, 4, 8, 10]


def test_pages_are_drawn_a_few_ahead(bench: Any) -> None:
    ran = bench(Plan(levels=(2,), cold=False, warmup=0, rounds=1, requests=Requests(count=20)),
                drawing=0.1)
    assert ran.source.most_open == 2 + 2
    figures = ran.levels[0].rounds[0]
    assert figures.seconds == approx(10 * seconds(50, 0.4, 100))
    assert figures.starved == 0


def test_drawing_that_is_too_slow_shows(bench: Any) -> None:
    ran = bench(Plan(levels=(1,), cold=False, warmup=0, rounds=1, requests=Requests(count=20)),
                page(1, 1.0), drawing=4.5)
    figures = ran.levels[0].rounds[0]
    # Three are drawn side by side: the first ahead, then as places become free.
    assert figures.starved > 0.1 * figures.seconds
    assert figures.ttft.p50 == approx(1.0)  # not counted against the engine


def test_a_steady_state_needs_four_times_the_pages(bench: Any) -> None:
    ran = bench(Plan(levels=(4,), cold=False, warmup=0, rounds=1, requests=Requests(count=15)))
    assert ran.levels[0].rounds[0].steady is None


@pytest.mark.parametrize("wrong", [
    {"levels": ()}, {"levels": (0,)}, {"levels": (300,)}, {"rounds": 0}, {"warmup": -1},
    {"strategies": ()}, {"gain": 0.0}, {"gain": float("nan")}, {"time_cap": -1.0},
    {"time_cap": float("nan")}, {"time_cap": float("inf")}, {"gain": 5.0, "most": 0},
    {"gain": 5.0, "most": 300}, {"gain": 5.0, "levels": (8,), "most": 4}])
def test_plans_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadPlan):
        Plan(**wrong)
