"""The table of variables for each version of the stack."""

from __future__ import annotations

import pytest

from desktop.engines.ascend.switches import SWITCHES, choose, release

ALWAYS = {"TOKENIZERS_PARALLELISM": "false", "HCCL_WHITELIST_DISABLE": "1",
          "ASCEND_GLOBAL_LOG_LEVEL": "3", "ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE": "0",
          "ATB_OPSRUNNER_SETUP_CACHE_ENABLE": "1"}
RECIPE = {"VLLM_USE_V1": "0", "VLLM_ATTENTION_BACKEND": "NPU", "VLLM_USE_TRITON_FLASH_ATTN": "0"}
TUTORIAL = {"VLLM_ASCEND_ENABLE_NZ": "0", "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True",
            "TASK_QUEUE_ENABLE": "1"}
LEFT = {"VLLM_ATTENTION_BACKEND", "VLLM_USE_TRITON_FLASH_ATTN", "VLLM_USE_V1"}


@pytest.mark.parametrize(("ascend", "vllm", "extra", "removed"), [
    ("", "", {}, set()),
    ("", "0.8.5", {"VLLM_USE_V1": "0"}, set()),  # the official code on a GPU
    ("", "0.32.0", {}, set()),
    ("0.8.5rc1", "0.8.5.post1", RECIPE, set()),
    ("0.8.5rc1", "", RECIPE, set()),
    ("0.9.1", "0.9.1", {"VLLM_USE_V1": "1"}, {"VLLM_ATTENTION_BACKEND"}),
    ("0.10.0rc1", "0.10.0", {"VLLM_USE_V1": "1"}, {"VLLM_ATTENTION_BACKEND"}),
    ("0.11.0", "0.11.0", {"VLLM_USE_V1": "1"}, {"VLLM_ATTENTION_BACKEND"}),
    ("0.13.0", "0.13.0", {}, {"VLLM_ATTENTION_BACKEND", "VLLM_USE_V1"}),
    ("0.13.1.dev18+g2e5f72f92", "0.13.0+empty", {}, {"VLLM_ATTENTION_BACKEND", "VLLM_USE_V1"}),
    ("0.16.0rc1", "0.16.0", TUTORIAL, LEFT),
    ("0.18.0", "0.18.0", TUTORIAL, LEFT),
    ("0.23.0.post1", "0.23.0", TUTORIAL, LEFT),
    ("?", "?", TUTORIAL, LEFT),
])
def test_versions(ascend: str, vllm: str, extra: dict[str, str], removed: set[str]) -> None:
    assert choose(ascend, vllm) == ({**ALWAYS, **extra}, ())
    left = dict.fromkeys(LEFT, "old")
    kept = dict.fromkeys({"VLLM_USE_TRITON_FLASH_ATTN"} & set(extra), "old")
    assert choose(ascend, vllm, left) == ({**ALWAYS, **extra, **kept}, tuple(
        name for name in dict.fromkeys(switch.name for switch in SWITCHES if switch.value is None)
        if name in removed))


def test_what_the_engine_does_not_run_without_is_set_over_a_person_s_value() -> None:
    chosen, _removed = choose("0.8.5rc1", "0.8.5", {"VLLM_USE_V1": "1",
                                                    "ASCEND_GLOBAL_LOG_LEVEL": "0"})
    assert chosen["VLLM_USE_V1"] == "0"
    assert chosen["ASCEND_GLOBAL_LOG_LEVEL"] == "0"


def test_no_two_rows_decide_about_one_variable_at_once() -> None:
    versions = ("0.7.3", "0.8.5rc1", "0.9.1", "0.11.0", "0.12.0rc1", "0.15.0", "0.16.0", "1.0",
                "dev")
    for version in versions:
        set_, removed = choose(version, version, dict.fromkeys(LEFT | set(TUTORIAL), "x"))
        assert not set(set_) & set(removed)
        assert len(removed) == len(set(removed))


def test_every_row_says_why() -> None:
    for switch in SWITCHES:
        assert switch.why
        assert not switch.before or switch.since < switch.before


@pytest.mark.parametrize(("version", "numbers"), [
    ("0.8.5rc1", (0, 8, 5)), ("v0.16.0rc1", (0, 16, 0)), ("0.23.0.post1", (0, 23, 0)),
    ("dev", ()), ("", ()),
])
def test_release(version: str, numbers: tuple[int, ...]) -> None:
    assert release(version) == numbers
