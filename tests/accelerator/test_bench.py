"""``verso bench`` with real vLLM: its tokens, its times, one engine for two levels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.accelerator import real
from tests.support import tiny_vllm

TOKENS = 40


@pytest.fixture(scope="module")
def measured(engine_python: Path, tiny_model: Path, real_home: Path) -> dict[str, Any]:
    folder = real_home / "bench"
    folder.mkdir()
    script = real.Script(folder)  # nothing is written: noise up to the limit of tokens
    page = real.bitmap(folder, real.SMALL)
    found = real.bench(
        page, folder, tiny_vllm.environment(script.file), "--concurrent", "1,2",
        "--requests", "8", "--warmup", "0", "--rounds", "2", "--keep-engine", "--unique",
        "--max-tokens", TOKENS, "--loop-guard", "off", "--engine", "vllm",
        "--engine-interpreter", engine_python, "--model", tiny_model,
        "--dtype", "float32", "--eager", "on", "--max-model-len", real.CONTEXT)
    real.figures.append("verso bench, tiny model: " + ", ".join(
        f"{level['concurrency']} at once {level['output_tps']:.0f} tok/s"
        for level in found["levels"]))
    return found


def test_tokens_are_those_of_the_engine(measured: dict[str, Any]) -> None:
    for level in measured["levels"]:
        for one in (request for each in level["rounds"] for request in each["requests"]):
            assert (one["outcome"], one["output_tokens"]) == ("length", TOKENS)
            assert 257 < one["prompt_tokens"] < 300
            assert 0 < one["outputs"] <= TOKENS
            assert 0 < one["ttft_ms"] < one["latency_ms"]
            assert one["tpot_ms"] * (TOKENS - 1) == pytest.approx(
                one["latency_ms"] - one["ttft_ms"], abs=0.1)


def test_rates_follow_from_tokens_and_seconds(measured: dict[str, Any]) -> None:
    for level in measured["levels"]:
        for each in level["rounds"]:
            assert each["output_tps"] == pytest.approx(8 * TOKENS / each["seconds"], rel=1e-3)
            assert each["pages_per_s"] == pytest.approx(8 / each["seconds"], rel=1e-2)
            # Little's law: pages in flight are their rate times their latency.
            in_flight = each["pages_per_s"] * each["latency_ms"]["mean"] / 1000
            assert in_flight <= level["concurrency"] * 1.02
            assert in_flight > 0.6 * level["concurrency"]
        assert level["steady"] is not None


def test_one_engine_is_cold_once_and_tells_what_it_got(measured: dict[str, Any]) -> None:
    first, second = measured["levels"]
    assert first["cold"]["output_tps"] > 0
    assert first["start_seconds"] > 1
    assert (second["cold"], second["start_seconds"]) == (None, None)
    assert "vllm" in measured["engine"]["versions"]
    assert measured["environment"]["caches"] == {"prefix": "off", "images": "off"}
    [cpu] = [one for one in first["devices"] if one["device"] == "cpu"]
    # The process that computes is a grandchild: it is counted.
    assert cpu["memory_max"] > 500 << 20
    assert cpu["busy_mean"] > 5
