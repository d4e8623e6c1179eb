"""The whole examination of a machine with NPUs, by the command: nothing is wrong where nothing is,
and one fault keeps the engine from starting."""

from __future__ import annotations

import functools
from pathlib import Path

import jsonschema
import pytest

from desktop.client import npu
from desktop.doctor import ascend
from desktop.engines.ascend.preparation import prepare
from desktop.settings import Values
from desktop.settings.store import Store
from tests.cli.conftest import Verso, verso
from tests.doctor.ascend_tree import CURRENT, LEGACY, Tree, healthy
from tests.doctor.test_ascend_experts import FUSED, FUSED_MOE, SELECT
from tests.doctor.test_doctor import schema
from tests.support import environments, official_code

__all__ = ["verso"]  # a fixture

MODULES = {"vllm": "vllm", "vllm-ascend": "vllm_ascend", "torch": "torch",
           "torch-npu": "torch_npu", "transformers": "transformers"}
TORCH = """
import os
assert os.environ["ASCEND_HOME_PATH"], "without CANN's environment torch_npu cannot be loaded"
class cuda:
    is_available = staticmethod(lambda: False)
class version:
    cuda = None
"""
PLATFORMS = """
class current_platform:
    device_type = "npu"
    is_unspecified = staticmethod(lambda: False)
"""


def interpreter(folder: Path, versions: dict[str, str]) -> Path:
    """A Python with the stack VERSIONS, which loads in the environment of an NPU only."""
    site = environments.give(environments.make(folder), "msgspec", "PIL", "packaging")
    for name, module in MODULES.items():
        environments.pretend(site, name, module, versions[name],
                             TORCH if name == "torch" else "import torch\n"
                             if name.startswith("vllm") else "")
    (site / "vllm/platforms.py").write_text(PLATFORMS)
    layers = site / "vllm/model_executor/layers/fused_moe"
    layers.mkdir(parents=True)
    for package in (layers, layers.parent, layers.parent.parent):
        (package / "__init__.py").write_text("")
    if versions is LEGACY:
        (layers / "__init__.py").write_text("from .fused_moe import fused_moe\n")
        (layers / "fused_moe.py").write_text(FUSED_MOE)
    (site / "vllm_ascend/ops").mkdir()
    (site / "vllm_ascend/ops/__init__.py").write_text("")
    (site / "vllm_ascend/ops/fused_moe.py").write_text(SELECT + FUSED)
    return folder / "bin/python"


@pytest.fixture(params=["ascend", "ascend-legacy"])
def machine(request: pytest.FixtureRequest, tmp_path: Path, verso_home: Path,
            monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A whole machine with either stack, its settings made."""
    legacy = request.param == "ascend-legacy"
    versions = LEGACY if legacy else CURRENT
    tree = healthy(tmp_path / "machine", "8.1.RC1" if legacy else "8.5.1", versions)
    monkeypatch.setattr(ascend, "look", functools.partial(
        ascend.look, environ=tree.environment, root=str(tree.root)))
    monkeypatch.setattr(npu, "worker_environment", functools.partial(
        npu.worker_environment, root=str(tree.root)))
    official_code.official(tmp_path / "official")
    prepare(tmp_path / "official", tmp_path / "code").write()
    monkeypatch.chdir(tmp_path)
    Store().save(Values({
        "engine": request.param, "model": str(environments.model(tmp_path / "model")),
        "official_code": str(tmp_path / "code"),
        "engine_interpreter": str(interpreter(tmp_path / "env", versions))}))
    return tree


def test_nothing_is_wrong_and_then_one_thing(machine: Tree, verso: Verso) -> None:
    ran = verso("doctor", "--json")
    found = ran.summary
    jsonschema.validate(found, schema())
    chosen, = [each for each in found["engines"] if each["chosen"]]
    assert chosen["problems"] == []
    assert chosen["interpreter"]["device"] == "npu"
    assert found["ascend"]["problems"] == []
    warned = {each["code"] for each in found["ascend"]["warnings"]}
    # Of the machine that runs the test, not of the one that is pretended.
    assert warned <= {"ascend.host_memory", "ascend.disk", "ascend.shared_memory"}
    assert found["ascend"]["experts"]["state"] == (
        "needed" if chosen["name"] == "ascend-legacy" else "not-needed")
    if chosen["name"] == "ascend-legacy":
        assert found["prepared"]["problems"] == []
    assert found["can_start"] is True
    assert ran.status == 0

    machine.drop("/dev/devmm_svm")
    ran = verso("doctor", "--json")
    assert ran.status == 1
    found = ran.summary
    assert [each["code"] for each in found["ascend"]["problems"]] == ["ascend.no_control_node"]
    chosen, = [each for each in found["engines"] if each["chosen"]]
    assert chosen["problems"] == []
    assert chosen["can_start"] is False
    shown = verso("doctor").out
    assert "See above, under ASCEND." in shown
    assert "cannot start; these can: embedded" in " ".join(shown.split())


def test_what_is_judged_may_be_named_in_the_call(machine: Tree, verso: Verso) -> None:
    """As `verso convert` would be called: which NPUs, how many, how much of their memory."""
    def codes(*options: str) -> list[str]:
        return [each["code"] for each in verso("doctor", "--json", *options).summary["ascend"][
            "problems"]]

    assert codes("--devices", "99") == ["ascend.no_such_npu"]
    assert codes("--devices", "0", "--tensor-parallel", "1") == []
    assert set(codes("--memory-utilization", "0.98")) == {"ascend.memory"}
    for wrong in (("--devices", "x"), ("--tensor-parallel", "0"), ("--concurrency", "3")):
        ran = verso("doctor", *wrong)
        assert ran.status == 2
        assert wrong[0] in ran.err
