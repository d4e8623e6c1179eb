"""Figures from times."""

from __future__ import annotations

import random
import statistics

import numpy
import pytest

from desktop.benchmark import metrics
from desktop.benchmark.plan import Goodput, Level, Strategy
from desktop.benchmark.records import Timing


def timing(number: int, submitted: float, times: list[tuple[float, int]], ended: float,
           outcome: str = "complete") -> Timing:
    one = Timing(number, "p", submitted, submitted, ended, outcome, 10,
                 sum(tokens for _at, tokens in times))
    for at, tokens in times:
        one.times.append(at)
        one.tokens.append(tokens)
        one.characters.append(3 * tokens)
    return one


@pytest.mark.parametrize("count", [1, 2, 3, 10, 101])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 0.99, 1.0])
def test_percentiles_are_numpys(count: int, share: float) -> None:
    values = [random.Random(count).random() for _ in range(count)]
    assert metrics.percentile(sorted(values), share) == pytest.approx(
        float(numpy.percentile(values, 100 * share)))


def test_spread_is_that_of_a_sample() -> None:
    found = metrics.spread([1.0, 2.0, 4.0])
    assert found is not None
    assert found.mean == pytest.approx(7 / 3)
    assert found.sd == pytest.approx(statistics.stdev([1, 2, 4]))
    assert metrics.spread([3.0]).sd is None  # type: ignore[union-attr]
    assert metrics.spread([]) is None
    assert metrics.spread([1.0, None]) is None


def test_a_request_as_vllm_bench_serve_counts_it() -> None:
    one = metrics.request(timing(1, 5.0, [(5.5, 1), (5.6, 3), (6.0, 1)], 6.2))
    assert one.ttft == pytest.approx(0.5)
    assert one.tpot == pytest.approx((6.0 - 5.5) / 4)
    assert one.latency == pytest.approx(1.0)  # to the last token, not to the end
    assert list(metrics.gaps(timing(1, 0, [(1.0, 1), (1.5, 0), (3.0, 2)], 3.0))) == [2.0]


def test_a_page_of_one_token_has_no_tpot_and_is_good() -> None:
    one = metrics.request(timing(1, 0.0, [(0.5, 1)], 0.5))
    assert one.tpot is None
    assert metrics.good(one, Goodput({"tpot": 0.001, "ttft": 500}))
    assert not metrics.good(one, Goodput({"ttft": 499}))
    assert not metrics.good(one, Goodput({"e2el": 499}))


def test_the_steady_state_leaves_ramp_up_and_drain_out() -> None:
    # Two at once, eight pages of 1 s; the first two take 3 s: a slow start.
    begins = [0.0, 0.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.0]
    pages = [timing(number, begin, [(begin + length / 2, 5), (begin + length, 5)],
                    begin + length)
             for number, (begin, length) in enumerate(
                 zip(begins, [3.0] * 2 + [1.0] * 6, strict=True), 1)]
    figures, gaps = metrics.round_of(Level(2, requests=8), "measured", 1, 0.0, pages, Goodput())
    assert figures.seconds == 6.0
    assert figures.output_tps == pytest.approx(80 / 6)
    assert figures.steady is not None
    assert figures.steady.seconds == pytest.approx(2.0)  # from 3 to 5
    assert figures.steady.output_tps == pytest.approx(20)
    assert figures.steady.pages_per_s == pytest.approx(2)
    assert figures.steady.total_tps == pytest.approx(40)
    assert len(gaps) == 8
    batch = Level(2, Strategy("batch", 2), 8)
    assert metrics.steady(batch, pages, True, True) is None


def test_pages_that_are_not_read_make_no_steady_state() -> None:
    pages = [timing(number, number, [(number + 0.5, 5), (number + 1.0, 5)], number + 1.0)
             for number in range(8)]
    blank = [timing(9 + number, number, [], float(number), "blank") for number in range(8)]
    level = Level(1, requests=16)
    alone = metrics.steady(level, pages, True, True)
    assert alone is not None
    assert metrics.steady(level, [*pages, *blank], True, True) == alone
    assert metrics.steady(Level(3, requests=16), [*pages, *blank], True, True) is None


@pytest.mark.parametrize(("speeds", "known"), [
    ([], None), ([(1, 5.0)], None), ([(1, 10.0), (2, 19.0), (4, 30.0), (8, 31.0)], 4),
    ([(1, 10.0), (2, 20.0), (4, 40.0)], 4), ([(1, 10.0), (8, 9.0)], 1),
    ([(1, 10.0), (2, 8.0), (4, 20.0)], 4)])
def test_the_knee(speeds: list[tuple[int, float]], known: int | None) -> None:
    assert metrics.knee(speeds) == known


def test_nothing_counted_is_no_division_by_zero() -> None:
    figures, gaps = metrics.round_of(Level(1), "measured", 1, 0.0,
                                     [timing(1, 0.0, [], 0.0, "failed")], Goodput({"ttft": 1}))
    assert (figures.output_tps, figures.pages_per_s, figures.goodput) == (None, 0, 0)
    assert (figures.ttft, figures.latency, len(gaps)) == (None, None, 0)
