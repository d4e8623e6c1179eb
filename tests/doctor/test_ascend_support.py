"""The support table, and how what is installed is judged by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from desktop.engines.ascend import support
from desktop.engines.ascend.support import Installed, Level, Model

HEALTHY = {
    "current": Installed("0.18.0", "0.18.0+empty", "3.11.14", "8.5.1", "2.9.0+cpu",
                         "2.9.0.post1+git4c901a4", "4.57.6", "25.5.1"),
    "legacy": Installed("0.8.5rc1", "0.8.5.post1+empty", "3.10.17", "8.1.RC1", "2.5.1",
                        "2.5.1", "4.51.3", "24.1.rc3"),
    "newest": Installed("0.23.0.post1", "0.23.0+empty", "3.12.4", "9.1.0", "2.10.0",
                        "2.10.0.post4", "4.57.6", "26.0.rc1"),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_pairs_that_were_released_together_are_good(name: str) -> None:
    verdicts = support.judge(HEALTHY[name])
    assert [each.what for each in verdicts if each.level is not Level.GOOD] == []
    assert {each.what for each in verdicts} >= {
        "vllm-ascend", "model", "vllm", "python", "torch", "torch-npu", "cann", "moe", "driver"}
    assert not any(each.why or each.fix for each in verdicts)


@pytest.mark.parametrize(("change", "what", "level", "words"), [
    ({"vllm": "0.19.0"}, "vllm", Level.PROBLEM, "vllm==0.18.0"),
    ({"vllm": ""}, "vllm", Level.PROBLEM, "vllm==0.18.0"),
    ({"python": "3.12.1"}, "python", Level.PROBLEM, "3.10 – 3.11"),
    ({"python": "3.9.18"}, "python", Level.PROBLEM, "3.10 – 3.11"),
    ({"torch": ""}, "torch", Level.PROBLEM, "torch==2.9.0"),
    ({"torch": "2.8.0", "torch_npu": "2.8.0.post2"}, "torch", Level.PROBLEM, "torch==2.9.0"),
    ({"torch_npu": "2.8.0"}, "torch-npu", Level.PROBLEM, "torch-npu==2.9.0"),
    ({"torch_npu": ""}, "torch-npu", Level.PROBLEM, "torch-npu==2.9.0"),
    ({"torch": "2.9.1"}, "torch-npu", Level.PROBLEM, "pip install torch==2.9.0"),
    ({"transformers": "5.5.4"}, "transformers", Level.PROBLEM, "<5"),
    ({"cann": "8.2.RC1"}, "cann", Level.PROBLEM, "8.5.1"),
    ({"cann": "8.5.0"}, "cann", Level.WARNING, "8.5.1"),
    ({"cann": "9.0.0"}, "cann", Level.WARNING, "8.5.1"),
    ({"ascend": "0.13.0", "vllm": "0.13.0"}, "model", Level.PROBLEM, "0.18.0"),
    ({"ascend": "0.7.3"}, "vllm-ascend", Level.PROBLEM, "0.18.0"),
    ({"ascend": "0.99.0"}, "vllm-ascend", Level.WARNING, "0.18.0"),
    ({"ascend": ""}, "vllm-ascend", Level.PROBLEM, "0.18.0"),
])
def test_what_does_not_go_together(change: dict[str, str], what: str, level: Level,
                                   words: str) -> None:
    found = [each for each in support.judge(replace(HEALTHY["current"], **change))
             if each.what == what and each.level is level]
    assert len(found) == 1
    assert found[0].why
    assert words in found[0].fix


def test_nothing_at_all_is_one_sentence() -> None:
    verdicts = support.judge(Installed(python="3.11.7"))
    said = [each for each in verdicts if each.why]
    assert len(said) == 1
    assert "vllm-ascend, torch-npu" in said[0].why
    assert [each.what for each in verdicts if each.level is Level.PROBLEM] == [
        "vllm-ascend", "torch-npu"]


def test_a_newer_cann_is_good_where_the_release_says_so() -> None:
    newer = replace(HEALTHY["legacy"], cann="8.2.RC1")
    assert all(each.level is Level.GOOD for each in support.judge(newer))


def test_a_repaired_release_of_vllm_is_the_release() -> None:
    """The table of vllm-ascend itself has v0.10.1 and v0.10.1.1 in one row."""
    for version, level in (("0.10.1", Level.GOOD), ("0.10.1.1", Level.GOOD),
                           ("0.10.2", Level.PROBLEM)):
        said = support.judge(Installed(ascend="0.10.1rc1", vllm=version))
        assert [each.level for each in said if each.what == "vllm"] == [level]


def test_what_is_repaired_is_no_fault() -> None:
    for transformers in ("4.57.6", "5.5.4", "5.14.1"):
        found = support.judge(replace(HEALTHY["newest"], transformers=transformers))
        assert [each for each in found if each.level is not Level.GOOD] == []


def test_rows_are_found_by_release() -> None:
    for version, expected in (("0.18.0", "0.18.0"), ("v0.18.0rc1", "0.18.0rc1"),
                              ("0.18.0+git1", "0.18.0"), ("0.23.0.post1", "0.23.0"),
                              ("0.8.5rc1.dev3", "0.8.5rc1")):
        row = support.row(version)
        assert row is not None
        assert row.ascend == expected
    assert support.row("0.12.3") is None
    assert support.row("main") is None
    assert support.row("") is None


def test_the_patch_of_the_experts_is_for_the_old_ones() -> None:
    needed = {row.ascend for row in support.ROWS if row.moe_patch}
    assert "0.8.5rc1" in needed
    assert "0.10.0rc1" in needed
    assert not needed & {"0.10.1rc1", "0.11.0", "0.18.0", "0.23.0"}
    verdict, = [each for each in support.judge(HEALTHY["legacy"]) if each.what == "moe"]
    assert verdict.found == "needed"


def test_the_table_is_in_order_and_each_release_is_once() -> None:
    names = [row.ascend for row in support.ROWS]
    assert len(names) == len(set(names))
    order = [support._release(row.ascend) for row in support.ROWS]
    assert order == sorted(order)
    assert {row.ascend for row in support.ROWS if row.model is Model.OFFICIAL} == {
        support.OLDEST}
    assert support.row(support.BEST) is not None
    # vLLM has the model from 0.16 on
    for row in support.ROWS:
        has = support._release(row.vllm) >= (0, 16, 0)
        assert has == (row.model in (Model.VLLM, Model.REPAIRED)), row.ascend


def test_versions_of_cann_in_order() -> None:
    ordered = ["8.0.0", "8.1.RC1", "8.2.RC1", "8.2.RC2", "8.3.RC1", "8.5.0", "8.5.1", "9.0.0"]
    assert sorted(ordered, key=support.cann_key) == ordered
    assert support.cann_key("8.2.RC1") < support.cann_key("8.2.0")
    assert support.cann_key("unknown") == ()
    assert support.cann_key("8.5.0.alpha001") == support.cann_key("8.5.0")
