"""Settings and --engine-arg pairs as arguments of vLLM's engine."""

from __future__ import annotations

import argparse
import json
from typing import Any

import pytest

from desktop.engines.model.sampling import PROCESSOR
from desktop.engines.vllm import arguments
from desktop.engines.vllm.failures import BadArgument, RefusedArgument, UnknownArgument
from desktop.settings import InvalidSetting, Values, setting

ALL = frozenset({
    "model", "dtype", "gpu_memory_utilization", "max_model_len", "max_num_seqs",
    "max_num_batched_tokens", "enable_chunked_prefill", "enable_prefix_caching", "enforce_eager",
    "tensor_parallel_size", "data_parallel_size", "pipeline_parallel_size", "quantization",
    "block_size", "speculative_config", "logits_processors", "limit_mm_per_prompt",
    "scheduling_policy", "disable_log_stats", "seed", "kv_cache_dtype", "hf_overrides",
    "cudagraph_capture_sizes", "async_scheduling"})


def build(known: frozenset[str] = ALL, *, cpu: bool = False, **changed: Any) -> Any:
    return arguments.build(Values({"model": "/m", **changed}).as_dict(), known, cpu=cpu)


def test_more_pages_than_it_is_ready_for_in_any_case_need_another_start() -> None:
    assert setting("concurrency").at_start_above == arguments.SEQUENCES
    assert build(concurrency=20).values["max_num_seqs"] == arguments.SEQUENCES
    assert build(concurrency=160).values["max_num_seqs"] == 160


@pytest.mark.parametrize("parallel", ["tensor_parallel", "pipeline_parallel", "data_parallel"])
def test_processes_that_share_a_processor_are_remarked_upon(parallel: str) -> None:
    [note] = build(cpu=True, **{parallel: 2}).notes
    assert "one processor" in note
    assert build(**{parallel: 2}).notes == build(cpu=True).notes == ()


def test_defaults() -> None:
    built = build()
    assert built.notes == ()
    assert built.values == {
        "model": "/m", "dtype": "auto", "gpu_memory_utilization": 0.85, "max_model_len": 8192,
        "max_num_seqs": 100, "max_num_batched_tokens": arguments.BATCHED,
        "enable_chunked_prefill": True, "enable_prefix_caching": False, "enforce_eager": False,
        "tensor_parallel_size": 1, "data_parallel_size": 1, "pipeline_parallel_size": 1,
        "limit_mm_per_prompt": {"image": 1}, "scheduling_policy": "priority",
        "disable_log_stats": True, "logits_processors": [PROCESSOR]}


def test_every_setting_arrives() -> None:
    values = build(
        dtype="float16", memory_utilization=0.5, max_model_len=4096, concurrency=200,
        batched_tokens=2048, prefix_caching=True, eager=True, tensor_parallel=2, data_parallel=3,
        pipeline_parallel=4, block_size=32, quantization="fp8", ngram="off").values
    assert values["dtype"] == "float16"
    assert values["gpu_memory_utilization"] == 0.5
    assert values["max_model_len"] == 4096
    assert values["max_num_seqs"] == 200
    assert values["max_num_batched_tokens"] == 2048
    assert values["enable_prefix_caching"]
    assert values["enforce_eager"]
    assert (values["tensor_parallel_size"], values["data_parallel_size"],
            values["pipeline_parallel_size"]) == (2, 3, 4)
    assert values["block_size"] == 32
    assert values["quantization"] == "fp8"
    assert "logits_processors" not in values


def test_without_chunked_prefill_a_step_holds_a_whole_context() -> None:
    values = build(chunked_prefill=False, batched_tokens=2048).values
    assert values["max_num_batched_tokens"] == 8192


def test_speculative_tokens_and_the_ngram_exclude_each_other() -> None:
    built = build(speculative=3)
    assert built.values["speculative_config"]["num_speculative_tokens"] == 3
    assert "logits_processors" not in built.values
    assert len(built.notes) == 1
    assert build(speculative=3, ngram="off").notes == ()
    assert not arguments.uses_ngram(Values({"speculative": 3}).as_dict())


def test_a_processor_takes_no_share_of_the_machine() -> None:
    values = build(cpu=True).values
    assert "gpu_memory_utilization" not in values
    assert values["max_num_batched_tokens"] == arguments.BATCHED_CPU


def test_what_a_version_lacks_is_left_out_and_told() -> None:
    built = build(ALL - {"scheduling_policy", "block_size", "disable_log_stats"}, block_size=16)
    assert not {"scheduling_policy", "block_size"} & set(built.values)
    assert len(built.notes) == 2
    assert "block_size" in built.notes[1]


def test_passed_through_are_the_engine_arguments() -> None:
    settings = {**Values().as_dict(), "seed": "3",
                "engine_args": {"seed": "3", "kv-cache-dtype": "fp8", "dtype": "half"}}
    assert arguments.passed_through(settings) == {
        "seed": "3", "kv_cache_dtype": "fp8", "dtype": "half"}
    assert arguments.passed_through(Values().as_dict()) == {}
    assert arguments.declared(settings)["dtype"] == "auto"


@pytest.mark.parametrize("key", ["mm_processor_kwargs", "mm-processor-kwargs", "crop_mode"])
def test_what_kills_the_engine_is_refused(key: str) -> None:
    with pytest.raises(RefusedArgument) as caught:
        arguments.passed_through({"engine_args": {key: '{"crop_mode": false}'}})
    assert "Crop mode" in caught.value.problem().hint


def test_settings_that_are_missing_have_their_defaults() -> None:
    values = arguments.declared({"max_model_len": 4096})
    assert (values["max_model_len"], values["tensor_parallel"]) == (4096, 1)
    with pytest.raises(InvalidSetting):
        arguments.declared({"tensor_parallel": "two"})


def test_what_is_passed_through_wins() -> None:
    assert arguments.merged(build().values, {"dtype": "half"})["dtype"] == "half"


def test_logits_processors_are_added_to_ours() -> None:
    ours = build().values
    for given in ("a:B", ["a:B"]):
        assert arguments.merged(ours, {"logits_processors": given})["logits_processors"] == [
            PROCESSOR, "a:B"]
    assert arguments.merged(ours, {"seed": 7})["seed"] == 7


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    """As vLLM makes them from its dataclasses."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kv-cache-dtype", choices=["auto", "fp8"], default="auto")
    parser.add_argument("--async-scheduling", action=argparse.BooleanOptionalAction)
    parser.add_argument("--hf-overrides", type=json.loads, default={})
    parser.add_argument("--cudagraph-capture-sizes", type=int, nargs="+")
    parser.add_argument("--logits-processors", type=str, nargs="+")
    parser.add_argument("--port", type=int)
    return parser


@pytest.mark.parametrize(("key", "text", "value"), [
    ("seed", "12", 12), ("kv_cache_dtype", "fp8", "fp8"), ("async_scheduling", "false", False),
    ("async_scheduling", "on", True), ("hf_overrides", '{"a": {"b": 1}}', {"a": {"b": 1}}),
    ("cudagraph_capture_sizes", "1,2,8", [1, 2, 8]),
    ("cudagraph_capture_sizes", "[1, 2]", [1, 2]), ("logits_processors", "a:B", ["a:B"]),
    ("disable_log_stats", "false", False), ("model", "null", None), ("model", "/m", "/m")])
def test_values_get_the_types_of_the_installed_version(
        parser: argparse.ArgumentParser, key: str, text: str, value: object) -> None:
    assert arguments.typed({key: text}, parser, ALL, "1.0") == {key: value}


@pytest.mark.parametrize(("key", "text"), [
    ("seed", "many"), ("kv_cache_dtype", "int3"), ("async_scheduling", "perhaps"),
    ("hf_overrides", "{"), ("cudagraph_capture_sizes", "1,x")])
def test_a_value_of_another_type_is_refused(
        parser: argparse.ArgumentParser, key: str, text: str) -> None:
    with pytest.raises(BadArgument) as caught:
        arguments.typed({key: text}, parser, ALL, "1.0")
    assert text[-1] in caught.value.problem().message
    assert key in caught.value.problem().message


@pytest.mark.parametrize(("key", "words"), [
    ("swap_space", "recomputes"), ("max_paddings", "pad"),
    ("disable_mm_preprocessor_cache", "mm_processor_cache_gb"), ("port", "server"),
    ("kv_cache_dtpye", "kv_cache_dtype"), ("tensor_parallel", "tensor_parallel_size"),
    ("nonsense", "vllm serve --help")])
def test_an_unknown_argument_is_named_with_a_way_out(
        parser: argparse.ArgumentParser, key: str, words: str) -> None:
    with pytest.raises(UnknownArgument) as caught:
        arguments.typed({key: "1"}, parser, ALL, "1.0")
    problem = caught.value.problem()
    assert key in problem.message
    assert words in problem.hint
