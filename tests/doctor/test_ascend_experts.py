"""The question about the MoE patch: put to real interpreters with stand-ins for the packages, of
whose signatures the contract tests say that they are those of the real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from desktop.client.interpreter import Report as Interpreter
from desktop.doctor import ascend, ascend_experts, engines
from desktop.engines.ascend.environment import Environment
from desktop.engines.ascend.places import Places
from desktop.engines.registry import EngineEntry
from desktop.settings import Values
from tests.doctor.ascend_tree import LEGACY, healthy
from tests.support import environments

NOTHING = Environment({"SEEN": "by the packages"}, ("NOT_SEEN",), Places(
    "x86_64", None, (), (), "", None, ()))
FUSED_MOE = "def fused_moe(hidden_states, w1, w2, gating_output, topk, renormalize): ...\n"
SELECT = ("def select_experts(hidden_states, router_logits, top_k, use_grouped_topk, renormalize, "
          "topk_group=None, num_expert_group=None, custom_routing_function=None, "
          "scoring_func='softmax', e_score_correction_bias=None, global_num_experts=-1): ...\n")
FUSED = ("def fused_experts(hidden_states, w1, w2, topk_weights, topk_ids, top_k, "
         "expert_map=None): ...\n")


def stack(folder: Path, *, moe: str = FUSED_MOE, ascend: str = SELECT + FUSED,
          versions: dict[str, str] | None = None, start: str = "") -> Path:
    """An environment with vLLM, vllm-ascend and torch-npu; START runs when one is imported."""
    site = environments.give(environments.make(folder), "msgspec", "PIL")
    names = {"vllm": "vllm", "vllm-ascend": "vllm_ascend", "torch-npu": "torch_npu",
             "torch": "torch"}
    for distribution, version in (versions or LEGACY).items():
        if distribution in names:
            environments.pretend(site, distribution, names[distribution], version, start)
    layers = site / "vllm/model_executor/layers"
    for part in (layers.parent, layers, layers / "fused_moe"):
        part.mkdir()
        (part / "__init__.py").write_text("")
    (layers / "fused_moe/__init__.py").write_text(
        "from .fused_moe import fused_moe\n" if moe else "")
    if moe:
        (layers / "fused_moe/fused_moe.py").write_text(moe)
    ops = site / "vllm_ascend/ops"
    ops.mkdir()
    (ops / "__init__.py").write_text("")
    (ops / "fused_moe.py").write_text(ascend)
    return folder / "bin/python"


@pytest.mark.parametrize(("changed", "state", "code"), [
    ({}, "needed", ""),
    ({"moe": ""}, "not-needed", ""),
    ({"ascend": ""}, "impossible", "ascend.experts"),
    ({"start": "raise ImportError('libascend_hal.so: cannot open (shared) object file')"},
     "unknown", "ascend.package"),
])
def test_what_the_packages_say(changed: dict[str, str], state: str, code: str,
                               tmp_path: Path) -> None:
    path = stack(tmp_path / "env", **changed)
    found = ascend_experts.look(str(path), NOTHING)
    assert (found.state, found.problem.code if found.problem else "") == (state, code)
    if code == "ascend.package":
        assert found.problem is not None
        assert "libascend_hal.so: cannot open (shared) object file" in found.problem.message
        # Where CANN is missing that is no news.
        assert ascend_experts.look(str(path), NOTHING, can_start=False).problem is None


def test_they_are_started_with_what_the_engine_gets(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOT_SEEN", "1")
    path = stack(tmp_path / "env", start=(
        "import os\nassert os.environ['SEEN'] == 'by the packages'\n"
        "assert 'NOT_SEEN' not in os.environ\n"))
    assert ascend_experts.look(str(path), NOTHING).state == "needed"


def test_no_answer(tmp_path: Path, no_process_left: object) -> None:
    path = stack(tmp_path / "env", start="import time\ntime.sleep(600)\n")
    found = ascend_experts.look(str(path), NOTHING, seconds=1)
    assert found.state == "unknown"
    assert found.problem is None
    assert found.warning is not None
    assert found.warning.code == "ascend.experts_unknown"
    assert "1 s" in found.warning.message
    path = stack(tmp_path / "dies", start="import os\nos.abort()\n")
    found = ascend_experts.look(str(path), NOTHING)
    assert found.warning is not None
    gone = ascend_experts.look(str(tmp_path / "gone"), NOTHING)
    assert gone.warning is not None
    assert "No such file" in gone.warning.message


def test_the_packages_count_and_not_the_table(tmp_path: Path) -> None:
    tree = healthy(tmp_path, "8.1.RC1", LEGACY)
    tree.python = "3.10.17"

    def row() -> str:
        verdict, = [each for each in tree.look().versions if each.what == "moe"]
        return verdict.found

    assert row() == "needed; Verso puts it in place"
    tree.experts = '{"state": "not-needed", "reason": ""}'
    assert row() == "not needed"
    tree.experts = '{"state": "already-applied", "reason": ""}'
    assert row() == "in place already"
    tree.experts = "junk"
    assert row() == "needed"  # what the table knows
    tree.versions.pop("torch-npu")
    assert tree.look().experts is None


# --- the engines for NPUs and their Pythons

CURRENT_ENGINE = EngineEntry("ascend", "Ascend NPU", "", "m:C", needs=("vllm", "vllm_ascend"))
LEGACY_ENGINE = EngineEntry("ascend-legacy", "Ascend NPU, older stack", "", "m:C",
                            needs=("vllm",), official=True)
VLLM = EngineEntry("vllm", "vLLM", "", "m:C", needs=("vllm",))


@pytest.mark.parametrize(("entry", "code"), [
    (CURRENT_ENGINE, "ascend.engine"), (LEGACY_ENGINE, ""), (VLLM, "doctor.for_npus")])
def test_a_python_goes_with_one_engine(entry: EngineEntry, code: str, tmp_path: Path) -> None:
    # What the packages do when they are imported here is no matter: there is no driver.
    path = stack(tmp_path / "env", start="raise ImportError('libascend_hal.so')")
    values = Values({"engine": "vllm", "engine_interpreter": str(path)})
    found = engines.examine(entry, values)
    told = _told(found)
    assert told == ([code] if code else [])


def test_a_vllm_that_is_not_the_official_codes_is_not_loaded(tmp_path: Path) -> None:
    site = environments.give(environments.make(tmp_path / "env"), "msgspec", "PIL")
    environments.pretend(site, "vllm", "vllm", "0.30.0", "raise SystemExit('was loaded')")
    found = engines.examine(LEGACY_ENGINE, Values({"engine_interpreter": str(tmp_path / "env")}))
    assert _told(found) == ["legacy.version"]
    assert found.interpreter is not None
    assert not found.interpreter.thorough


def _told(found: engines.Examination) -> list[str]:
    """What is wrong but for the model and the code, which are not there."""
    return [each.code for each in found.problems
            if not each.code.startswith(("model.", "legacy.no_code"))]


PLATFORM = """
class current_platform:
    device_type = {kind!r}
    is_unspecified = staticmethod(lambda: False)
"""


@pytest.mark.parametrize(("kind", "code"), [("npu", ""), ("cpu", "ascend.platform")])
def test_what_vllm_computes_on(kind: str, code: str, tmp_path: Path,
                               monkeypatch: pytest.MonkeyPatch) -> None:
    path = stack(tmp_path / "env")
    site = next((tmp_path / "env/lib").glob("python*/site-packages"))
    (site / "torch/__init__.py").write_text(
        "import os\nassert os.environ['ASCEND_HOME_PATH'].endswith('/cann')\n"
        "class cuda:\n    is_available = staticmethod(lambda: False)\n"
        "class version:\n    cuda = None\n")
    (site / "vllm/platforms.py").write_text(PLATFORM.format(kind=kind))
    monkeypatch.setattr("desktop.client.npu.start_environment", lambda asked, **_more: {
        "ASCEND_HOME_PATH": "/usr/local/Ascend/cann"})
    found = engines.examine(LEGACY_ENGINE, Values({"engine_interpreter": str(path)}))
    assert found.interpreter is not None
    assert found.interpreter.platform == kind
    told = _told(found)
    assert told == ([code] if code else [])


def test_the_engine_that_goes_with_a_release() -> None:
    assert ascend.engine_for("0.8.5rc1") == "ascend-legacy"
    assert ascend.engine_for("0.18.0") == "ascend"
    assert ascend.engine_for("0.23.0.post1") == "ascend"
    assert ascend.engine_for("0.13.0") == ""
    assert ascend.engine_for("0.99.0") == ""
    assert ascend.engine_for("") == ""


def test_the_chosen_engine_is_not_that_of_the_stack(tmp_path: Path) -> None:
    tree = healthy(tmp_path, "8.1.RC1", LEGACY)
    tree.python = "3.10.17"
    values = Values()
    report = Interpreter(str(tmp_path / "opt/engine/python"), tree.python, "/nowhere",
                         tree.versions)
    assert not list(ascend._engine(values, report))
    said, = ascend._engine(_Chosen("ascend"), report)  # type: ignore[arg-type]
    assert said.problem().code == "ascend.engine"
    assert "ascend-legacy" in said.problem().hint
    assert not list(ascend._engine(_Chosen("ascend-legacy"), report))  # type: ignore[arg-type]


class _Chosen(dict[str, str]):
    """Settings with an engine that may not be offered yet."""

    def __init__(self, engine: str) -> None:
        super().__init__(engine=engine)
