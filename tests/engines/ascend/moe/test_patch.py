"""The patch's decisions on stand-ins of vLLM and vllm-ascend, as other programs import it: a
module of its own, in a process of its own, on the oldest Python that it has to run on."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from desktop.engines.ascend import moe
from tests.support import pythons

OLDEST = (3, 9)

VLLM_FUNCTION = """
def fused_moe(hidden_states, w1, w2, gating_output, topk, renormalize, inplace=False,
              activation="silu", use_grouped_topk=False, num_expert_group=None, topk_group=None,
              custom_routing_function=None, use_fp8_w8a8=False, global_num_experts=-1,
              expert_map=None, w1_scale=None):
    raise RuntimeError("a kernel for GPUs")
"""

EXPORTED = "from vllm.model_executor.layers.fused_moe.fused_moe import fused_moe\n"

MODEL = "from vllm.model_executor.layers.fused_moe import fused_moe\n"

ASCEND = """
def select_experts(hidden_states, router_logits, top_k, use_grouped_topk, renormalize,
                   topk_group=None, num_expert_group=None, custom_routing_function=None,
                   scoring_func="softmax", e_score_correction_bias=None):
    assert scoring_func == "softmax"
    return ("weights", router_logits, top_k, renormalize), ("ids", top_k)

def fused_experts(hidden_states, w1, w2, topk_weights, topk_ids, top_k, expert_map=None):
    return [hidden_states.name, w1, w2, topk_weights, topk_ids, top_k, expert_map]
"""

PATCHED = """
import sys
import npu_patch
from vllm.model_executor.models.deepseek import fused_moe
import vllm.model_executor.layers.fused_moe as package

class States:
    name, shape = "states", (1, 8)

print(fused_moe(States(), "w1", "w2", "logits", 6, renormalize=True, inplace=True))
print(npu_patch.OUTCOME.state)
"""
SUMMED = "['states', 'w1', 'w2', ('weights', 'logits', 6, True), ('ids', 6), 6, None]"


def python() -> str:
    """An interpreter as old as the patch has to run on, where there is one; else this one."""
    assert OLDEST == (3, 9)
    return pythons.python39() or sys.executable


class Place:
    """A folder with the patch, and whatever packages a test puts beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "npu_patch.py").write_text(moe.on_import(), encoding="utf-8")

    def put(self, name: str, code: str = "") -> None:
        """The module NAME with CODE, and the packages it lies in."""
        *packages, last = name.split(".")
        folder = self.folder
        for package in packages:
            folder = folder / package
            folder.mkdir(exist_ok=True)
            (folder / "__init__.py").touch()
        (folder / f"{last}.py").write_text(code)

    def vllm(self, package: str = EXPORTED, submodule: str = VLLM_FUNCTION) -> None:
        self.put("vllm.model_executor.models.deepseek", MODEL)
        self.put("vllm.model_executor.layers.fused_moe.fused_moe", submodule)
        self.put("vllm.model_executor.layers.fused_moe.__init__", package)

    def npu(self, ascend: str | None = ASCEND) -> None:
        self.put("torch_npu")
        self.put("vllm_ascend.ops.__init__")
        if ascend is not None:
            self.put("vllm_ascend.ops.fused_moe", ascend)

    def run(self, code: str = "import npu_patch; print(npu_patch.OUTCOME.state)",
            *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python(), "-s", *options, "-c", f"import sys; sys.path[0] = ''\n{code}"],
            cwd=self.folder, capture_output=True, text=True, timeout=240, check=False)

    def outcome(self) -> dict[str, Any]:
        """What the patch, run as a script, says that it would do here."""
        shutil.copy(moe.script(), self.folder / "examine.py")
        done = subprocess.run([python(), "-s", "examine.py"], cwd=self.folder,
                              capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr
        said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return said


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def codes(outcome: dict[str, Any]) -> list[str]:
    return [problem["code"] for problem in outcome["problems"]]


def test_it_is_valid_on_the_oldest_python() -> None:
    ast.parse(moe.on_import(), feature_version=OLDEST)


def test_with_nothing_installed_importing_it_warns_three_times(place: Place) -> None:
    done = place.run()
    assert (done.returncode, done.stdout.strip()) == (0, "not-applied")
    for diagnosis in ("TorchNpuMissing", "VllmAscendMissing", "VllmMissing"):
        assert done.stderr.count(diagnosis) == 1
    assert codes(place.outcome()) == ["torch-npu-missing", "vllm-ascend-missing", "vllm-missing"]


def test_importing_it_never_fails_even_where_warnings_are_errors(place: Place) -> None:
    done = place.run("import npu_patch; print(npu_patch.OUTCOME.state)", "-W", "error")
    assert (done.returncode, done.stdout.strip()) == (0, "not-applied"), done.stderr


@pytest.mark.parametrize(("absent", "code"), [
    ("torch_npu", "torch-npu-missing"), ("vllm_ascend", "vllm-ascend-missing"),
    ("vllm", "vllm-missing")])
def test_what_is_missing_is_named(place: Place, absent: str, code: str) -> None:
    place.vllm()
    place.npu()
    for found in (place.folder / absent, place.folder / f"{absent}.py"):
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink(missing_ok=True)
    [problem] = place.outcome()["problems"]
    assert (problem["code"], problem["package"]) == (code, absent)
    assert "is not installed" in problem["message"]


def test_the_model_calls_vllm_ascends_functions(place: Place) -> None:
    place.vllm()
    place.npu()
    assert place.outcome()["state"] == "applied"
    done = place.run(PATCHED)
    assert done.stdout.splitlines() == [SUMMED, "applied"], done.stderr
    assert done.stderr == ""


def test_without_the_patch_the_stand_in_of_vllm_fails(place: Place) -> None:
    place.vllm()
    place.npu()
    done = place.run(PATCHED.replace("import npu_patch\n", "").replace("npu_patch", "sys"))
    assert "a kernel for GPUs" in done.stderr


def test_states_are_taken_out_of_a_tuple(place: Place) -> None:
    place.vllm()
    place.npu(ASCEND.replace("top_k, expert_map]", "top_k, expert_map], [3], 0"))
    assert place.run(PATCHED).stdout.splitlines() == [SUMMED, "applied"]


def test_a_model_that_was_imported_before_has_it_too(place: Place) -> None:
    place.vllm()
    place.npu()
    done = place.run("import vllm.model_executor.models.deepseek\n" + PATCHED)
    assert done.stdout.splitlines() == [SUMMED, "applied"]


def test_importing_the_submodule_later_does_not_undo_it(place: Place) -> None:
    # Without Triton the package does not export the function: its name is the submodule's.
    place.vllm(package="")
    place.npu()
    later = "import vllm.model_executor.layers.fused_moe.fused_moe\n"
    done = place.run(PATCHED.replace("import npu_patch\n", "import npu_patch\n" + later))
    assert done.stdout.splitlines() == [SUMMED, "applied"], done.stderr


def test_a_submodule_that_needs_triton_is_read_not_imported(place: Place) -> None:
    place.vllm(package="", submodule="import triton_is_not_here\n" + VLLM_FUNCTION)
    place.npu()
    done = place.run(PATCHED)
    assert done.stdout.splitlines() == [SUMMED, "applied"], done.stderr


@pytest.mark.parametrize("submodule", ["", "import triton_is_not_here\n"])
def test_a_vllm_without_the_function_does_not_need_it(place: Place, submodule: str) -> None:
    place.vllm(package="", submodule=submodule)
    place.npu(None)
    outcome = place.outcome()
    assert outcome["state"] == "not-needed"
    assert outcome["problems"] == []
    assert place.run().stderr == ""


@pytest.mark.parametrize("ascend", [
    None, "", ASCEND.replace("top_k, use_grouped_topk,", "top_k,"),
    ASCEND.replace("top_k, expert_map=None)", "top_k, expert_map, comm)")])
def test_functions_that_are_not_there_or_take_something_else(
        place: Place, ascend: str | None) -> None:
    place.vllm()
    place.npu(ascend)
    assert codes(place.outcome()) == ["no-replacement"]
    done = place.run()
    assert done.stdout.strip() == "not-applied"
    assert "NoReplacement" in done.stderr
    assert "not installed" not in done.stderr


def test_a_library_that_cannot_be_loaded_is_not_a_missing_package(place: Place) -> None:
    place.vllm()
    place.npu("raise ImportError('libhccl.so: cannot open shared object file')")
    [problem] = place.outcome()["problems"]
    assert (problem["code"], problem["package"]) == ("import-broken", "vllm_ascend")
    assert "libhccl.so" in problem["message"]
    assert "not installed" not in problem["message"]
    place.npu()
    place.vllm(package="import libcudart_is_not_here")
    [problem] = place.outcome()["problems"]
    assert (problem["code"], problem["package"]) == ("import-broken", "vllm")


def test_vllm_stays_as_it_was_where_it_is_only_examined(place: Place) -> None:
    place.vllm()
    place.npu()
    shutil.copy(moe.script(), place.folder / "examine.py")
    done = place.run("import examine; print(examine.examine().state)\n"
                     + PATCHED.replace("import npu_patch\n", "").replace("npu_patch", "examine"))
    assert done.stdout.startswith("applied\n")
    assert "a kernel for GPUs" in done.stderr


@pytest.mark.parametrize("option", [
    "use_fp8_w8a8=True", "activation='gelu'", "w1_scale=1.0"])
def test_what_the_npu_cannot_do_is_refused(place: Place, option: str) -> None:
    place.vllm()
    place.npu()
    done = place.run(PATCHED.replace("inplace=True", option))
    assert f"NotImplementedError: fused_moe on an NPU cannot do {option.partition('=')[0]}" in (
        done.stderr)


def test_it_can_be_applied_twice(place: Place) -> None:
    place.vllm()
    place.npu()
    done = place.run("import npu_patch\n" + PATCHED + "print(npu_patch.apply().state)")
    assert done.stdout.splitlines() == [SUMMED, "applied", "already-applied"]
