"""The patch on real sources of seven vllm-ascend and their vLLM, and what it computes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import ascend_sources, tiny_vllm

HERE = Path(__file__).parent
NEEDED = ("0.8.5rc1", "0.9.1", "0.10.0rc1")
"""The vllm-ascend whose vLLM has models that call ``fused_moe``."""

pytestmark = [pytest.mark.engines, pytest.mark.slow,
              pytest.mark.usefixtures("engine_python", "real_sources")]


def checked(*arguments: str) -> Any:
    """The JSON document that ``checks.py ARGUMENTS`` prints last."""
    python = tiny_vllm.interpreter()
    assert python is not None
    done = subprocess.run([str(python), str(HERE / "checks.py"), *arguments], env={**os.environ},
                          capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    lines = done.stdout.splitlines()
    return json.loads(next(line for line in reversed(lines) if line.startswith(("{", "["))))


@pytest.fixture(scope="module", params=ascend_sources.PAIRS)
def decided(request: pytest.FixtureRequest, engine_python: Path,
            real_sources: None) -> tuple[str, Any]:
    """(version of vllm-ascend, what the patch decided and did)"""
    return request.param, checked(request.param)


def test_it_is_applied_where_needed_and_elsewhere_not_needed(decided: tuple[str, Any]) -> None:
    version, found = decided
    needed = version in NEEDED
    assert found["examined"]["state"] == ("applied" if needed else "not-needed")
    assert found["applied"] == {**found["examined"], "reason": found["applied"]["reason"]}
    assert found["again"]["state"] == ("already-applied" if needed else "not-needed")
    assert found["changed"] == needed
    if not needed:
        assert found["applied"]["reason"].startswith("not needed")


def test_each_missing_package_has_its_own_diagnosis(decided: tuple[str, Any]) -> None:
    _, found = decided
    reasons = set()
    for package, diagnosis in (("torch_npu", "TorchNpuMissing"), ("vllm", "VllmMissing"),
                               ("vllm_ascend", "VllmAscendMissing")):
        outcome = found["without " + package]
        assert outcome["state"] == "not-applied"
        assert outcome["problems"] == outcome["warned"] == [diagnosis]
        reasons.add(outcome["reason"])
    assert len(reasons) == 3


def test_what_is_installed_but_broken_is_not_called_missing(decided: tuple[str, Any]) -> None:
    version, found = decided
    if version in NEEDED:
        assert found["broken"]["problems"] == ["ImportBroken"]
        assert "libhccl.so" in found["broken"]["reason"]
    assert "not installed" not in found["broken"]["reason"]


@pytest.mark.parametrize("decided", NEEDED, indirect=True)
def test_the_real_model_calls_ours_whenever_it_is_imported(decided: tuple[str, Any]) -> None:
    _, found = decided
    assert found["model calls ours"]
    assert found["package has ours"]
    assert found["submodule has ours"]
    assert found["leading arguments"]
    assert found["late"]["rebound"] == ["vllm.model_executor.models.deepseek"]
    assert found["late model calls ours"]


def test_each_operator_is_what_its_documentation_says() -> None:
    found = checked("operators")
    assert len(found) == 6
    assert all(found.values()), found


@pytest.mark.parametrize("version", NEEDED)
def test_it_computes_the_models_mixture_of_experts(version: str) -> None:
    found = checked(version, "numerics")
    assert found["cases"] == 160
    assert found["kinds"] == 8 * 2 * 2  # every k, renormalised or not, one token or more
    assert found["emptied"] > 20
    assert found["worst"] <= 1e-5
    assert found["layer"] <= 1e-5
    assert found["full size"] <= 1e-5
    assert found["wrong"] > 1e-2
    assert found["tokenless"] == [0, 8]
    assert [said.split()[-1] for said in found["refused"]] == [
        "use_fp8_w8a8", "activation", "w1_scale"]
    # Taken as it is, the model would add a tensor to a tuple.
    assert found["tuple"] == (version == "0.9.1")
