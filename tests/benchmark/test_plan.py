"""What is to be measured."""

from __future__ import annotations

import pytest

from desktop.benchmark.command import command_line
from desktop.benchmark.errors import BadPlan
from desktop.benchmark.plan import COMPARED, Goodput, Plan, Requests, Strategy
from desktop.settings import Values


def test_the_defaults_are_the_recipes() -> None:
    plan = Plan()
    assert (plan.levels, plan.warmup, plan.rounds) == ((1, 8, 16), 2, 5)
    assert [level.requests for level in plan.stated()] == [1, 8, 16]
    assert plan.expected_requests() == 8 * (1 + 8 + 16)


@pytest.mark.parametrize(("text", "at_eight"), [("64", 64), ("4x", 32), ("0.5x", 4), ("1.5×", 12)])
def test_requests(text: str, at_eight: int) -> None:
    assert Requests.parse(text).of(8) == at_eight


@pytest.mark.parametrize("text", ["", "0", "x", "-1", "4 y", "0x"])
def test_requests_that_are_none(text: str) -> None:
    with pytest.raises(BadPlan):
        Requests.parse(text)


@pytest.mark.parametrize("text", ["", "batch", "batch:0", "batch:x", "parallel", "sequential:2"])
def test_strategies_that_are_none(text: str) -> None:
    with pytest.raises(BadPlan):
        Strategy.parse(text)


def test_strategies_that_are_compared_read_the_same_pages() -> None:
    levels = Plan(levels=(8,), strategies=COMPARED, requests=Requests(times=2)).stated()
    assert [(str(level.strategy), level.concurrency, level.requests) for level in levels] == [
        ("sequential", 1, 16), ("batch:4", 4, 16), ("continuous", 8, 16)]


def test_expected_seconds_from_what_was_measured_before() -> None:
    plan = Plan(levels=(1, 4, 16), cold=False, warmup=0, rounds=1, requests=Requests(count=10))
    known = {2: 1.0, 8: 4.0}
    # at 1: half of that at 2; at 4: between; at 16: that of 8
    assert plan.expected_seconds(known) == pytest.approx(10 / 0.5 + 10 / 2.0 + 10 / 4.0)
    assert plan.expected_seconds(known, start=5) == pytest.approx(27.5 + 15)
    assert plan.expected_seconds({}) is None
    capped = Plan(levels=(1, 4, 16), cold=False, warmup=0, rounds=1,
                  requests=Requests(count=10), time_cap=9)
    assert capped.expected_seconds(known) == 9


def test_levels_there_may_be_when_they_are_raised() -> None:
    assert [level.concurrency for level in Plan(levels=(3,), gain=5, most=50).possible()] == [
        3, 6, 12, 24, 48, 50]


def test_goodput_keys_are_those_of_vllm() -> None:
    assert Goodput.parse(["ttft:500", "tpot:50", "e2el:9000"]).limits == {
        "ttft": 500, "tpot": 50, "e2el": 9000}
    for wrong in ("ttft", "speed:3", "ttft:-1", "tpot:nan", "e2el:inf"):
        with pytest.raises(BadPlan):
            Goodput.parse([wrong])


def test_the_command_line_says_only_what_is_not_usual_and_no_secret() -> None:
    assert command_line(Plan(), [], Values(), {}) == "verso bench"
    values = Values({"engine": "vllm", "proxy": "http://me:word@proxy:3128", "text_layer": "never",
                     "theme": "dark", "concurrency": 9, "eager": True})
    words = command_line(Plan(levels=(1,), gain=5, unique=True), ["/a b/c.pdf"], values,
                         {"max-num-seqs": "9"})
    assert words == ("verso bench --image '/a b/c.pdf' --raise 5 --unique --engine vllm "
                     "--eager on --proxy 'http://…@proxy:3128' --engine-arg max-num-seqs=9")
