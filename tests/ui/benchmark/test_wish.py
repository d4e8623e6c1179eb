"""The form as data, what it will take, and what the figures say. No window."""

from __future__ import annotations

import argparse
import re

import pytest

from desktop.benchmark.errors import BadPlan
from desktop.benchmark.history import LevelCompared
from desktop.benchmark.plan import COMPARED, CONTINUOUS, Plan, Requests, Strategy
from desktop.cli.bench import add_arguments, plan_of
from desktop.settings import Values
from desktop.ui.benchmark import preview
from desktop.ui.benchmark.columns import columns_of
from desktop.ui.benchmark.comparing import difference
from desktop.ui.benchmark.controls import in_window
from desktop.ui.benchmark.figures import Figure, Quantiles, RoundRow, Row, Shown
from desktop.ui.benchmark.page import remarks_of
from desktop.ui.benchmark.target import target_words
from desktop.ui.benchmark.wish import COMPARE, ONE_BY_ONE, Wish
from tests.support.data import ROOT
from tests.ui.benchmark.driving import DOCUMENT


def test_the_usual_form_is_the_recipes_plan() -> None:
    assert Wish().plan() == Plan()


def test_every_field_reaches_the_plan() -> None:
    plan = Wish(levels="2,4", raising=True, warmup=1, rounds=3, amount=4, keep_engine=True,
                cold=False, unique=True, ahead=True, minutes=2, ttft=500, e2el=9000).plan()
    assert (plan.levels, plan.gain, plan.warmup, plan.rounds) == ((2, 4), 5.0, 1, 3)
    assert plan.requests == Requests(times=4)
    assert (plan.keep_engine, plan.cold, plan.unique, plan.ahead) == (True, False, True, True)
    assert plan.time_cap == 120
    assert dict(plan.goodput.limits) == {"ttft": 500, "e2el": 9000}
    assert Wish(amount=7, times=False).plan().requests == Requests(count=7)


def test_strategies() -> None:
    assert Wish(strategy=COMPARE).plan().strategies == COMPARED
    assert Wish(strategy=COMPARE, batch=8).plan().strategies[1] == Strategy("batch", 8)
    alone = Wish(strategy=ONE_BY_ONE, levels="nonsense", raising=True)
    assert alone.plan().strategies == (Strategy("sequential"),)
    assert alone.plan().gain is None
    assert Wish().plan().strategies == (CONTINUOUS,)


@pytest.mark.parametrize("levels", ["", "0", "1,x", "100000"])
def test_levels_that_are_none(levels: str) -> None:
    with pytest.raises(BadPlan):
        Wish(levels=levels).plan()


def test_it_is_remembered_and_damage_is_no_harm() -> None:
    wish = Wish(pages="chosen", paths=("/a b/ü.pdf",), levels="1, 3", ttft=12)
    assert Wish.of(wish.kept()) == wish
    for damaged in (None, "", "{", '{"rounds": "x"}', '{"rounds": 0}', '{"amount": -1}'):
        assert Wish.of(damaged) == Wish()


def test_the_preview_says_pages_and_time() -> None:
    plan = Wish(levels="1, 4", warmup=1, rounds=2).plan()
    unknown = preview.text(plan, preview.Known())
    assert "20 pages" in unknown
    assert "known once" in unknown
    assert "paused" in unknown
    known = preview.text(plan, preview.Known({1: 1.0, 4: 4.0}, start=1.0))
    assert "about 10 s" in known  # 4 rounds of a second at each level, two starts
    assert "At least 4 pages" in preview.text(
        Wish(levels="1", raising=True, warmup=1, rounds=2).plan(), preview.Known())
    assert "after 2 min" in preview.text(Wish(minutes=2).plan(), preview.Known())


def test_the_settings_in_use() -> None:
    said = target_words(Values({"engine": "vllm", "crop": "off", "ngram_size": 33}))
    assert "Crop mode: Off" in said
    assert "Memory utilization: 0.85" in said
    assert "1 more changed" in said
    assert "Crop" not in target_words(Values({"engine": "embedded"}))


def row(concurrency: int, speed: float, sd: float = 0.0, **more: object) -> Row:
    return Row("continuous", concurrency, "complete", output=Figure(speed, sd),
               pages=Figure(speed / 100, sd / 100), **more)  # type: ignore[arg-type]


def test_figures_in_words() -> None:
    assert Figure(2431.2, 26.6).text == "2,431 ± 27"
    assert Figure(0.8349, 0.2674).text == "0.835 ± 0.267"
    assert Figure(12.34, None).text == "12.3"
    assert Figure().text == "–"
    assert Quantiles(0.27, 1.5, 12.0).text == "0.270 / 1.50 / 12.0"
    assert Quantiles(0.005, 0.01, 0.0123).milliseconds == "5.00 / 10.0 / 12.3"


def test_the_knee_and_what_is_no_part_of_it() -> None:
    shown = Shown((row(1, 100), row(8, 700), row(16, 720),
                   Row("batch:4", 4, "complete", output=Figure(9999))))
    assert shown.knee == 8
    assert shown.reached == 8
    assert shown.best == 720
    rising = Shown((row(1, 100), row(8, 700)))
    assert (rising.knee, rising.reached) == (8, None)
    running = shown.with_row(4, Row("continuous", 32, "", output=Figure(5000)))
    assert running.knee == 8  # it is not whole yet
    assert len(running.rows) == 5
    assert Shown((row(1, 100),)).knee is None


def test_remarks() -> None:
    rounds = tuple(RoundRow("measured", n, 1.0, None, 1.0, 1.0, None, None, None, None, None, 0, 0,
                            1.0) for n in (1, 2))
    assert row(8, 100, 5).remark == ""
    assert "scatter by 12 %" in row(8, 100, 12).remark
    cut = Row("continuous", 8, "interrupted", rounds=rounds)
    assert cut.remark == "stopped after 2 rounds"
    assert Row("continuous", 8, "failed", error="It died.").remark == "failed"
    assert "slowed down" in row(8, 100, slowed=("power",)).remark
    assert Row("continuous", 8, doing="round 2").remark == "round 2"


def test_remarks_name_controls_where_a_command_line_has_flags() -> None:
    said = ("Pages repeat, and a cache may help: with --unique it cannot.",
            "2 at once: --draw ahead leaves drawing out.", "--unique-looking is none.")
    shown = [text for _tone, text in remarks_of(Shown(document={**DOCUMENT, "warnings": said}))]
    assert shown == [
        "Pages repeat, and a cache may help: with “change each copy of a page by a trace” it "
        "cannot.", "2 at once: “draw the pages before the level” leaves drawing out.", said[2]]


@pytest.mark.parametrize(("flag", "what"), [(("--unique",), {"unique": True}),
                                            (("--draw", "ahead"), {"ahead": True})])
def test_every_flag_of_a_warning_has_its_control(flag: tuple[str, ...],
                                                 what: dict[str, bool]) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert plan_of(parser.parse_args(flag)) == Plan(**what)
    assert Wish(**what).plan() == Plan(**what)
    assert in_window(" ".join(flag)).startswith("“")
    sources = "".join(path.read_text("utf-8") for path in (
        ROOT / "desktop/benchmark/warnings.py", ROOT / "desktop/benchmark/runner.py"))
    assert re.findall(r"--[a-z]+", in_window(sources)) == []


def test_a_difference_says_which_way_and_whether_it_is_more_than_chance() -> None:
    def said(speed: float | None, firm: bool = True) -> str:
        nothing = (None, None)
        return difference(LevelCompared("continuous", 8, nothing, nothing, nothing, speed, firm))

    assert said(1.25) == "25 % faster"
    assert said(0.8) == "20 % slower"
    assert said(2.5) == "2.50 times as fast"
    assert said(1.03, False) == "3 % faster, within the scatter"
    assert said(1.001, False) == "as fast, within the scatter"
    assert said(None) == "–"


def test_columns_are_those_that_have_something_to_say() -> None:
    def keys(*rows: Row) -> set[str]:
        return {column.key for column in columns_of(Shown(rows))}

    assert {"output", "tpot", "itl"} <= keys(row(1, 100))
    without = keys(Row("continuous", 1, "complete", pages=Figure(1.0)))
    assert not {"output", "tpot", "itl", "total"} & without
    assert "chars" in without
    assert "goodput" not in without
    assert "goodput" in keys(row(1, 100, goodput=0.5))
    assert "steady" in keys(row(1, 100, steady=90.0))
