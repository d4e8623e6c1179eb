"""The worker of an engine on an NPU starts with what that needs, or it is said what is missing."""

from __future__ import annotations

import json
import os
import platform
import shutil
from pathlib import Path

import pytest

from desktop.client import npu
from desktop.client.client import EngineClient
from desktop.engines import registry
from desktop.errors import VersoError
from desktop.jobs.preparing import Prepared, prepare
from desktop.protocol.messages import EngineReady
from desktop.settings import Values
from tests.client.recorder import QUICK, Recorder
from tests.engines.ascend import trees
from tests.support import environments, legacy_vllm

STACKS = {"ascend": ("0.18.0", "0.18.0"), "ascend-legacy": ("0.8.5rc1", "0.8.5.post1")}
"""Engine → versions of vllm-ascend and vLLM."""

NOTED = """
import json, os, sys
if "desktop.worker" in getattr(sys, "orig_argv", ()):
    with open({file!r}, "w") as file:
        json.dump(dict(os.environ), file)
    from desktop.engines import registry
    registry.ENGINES = tuple(registry.EngineEntry(
        name, name, "", "desktop.engines.scripted:ScriptedEngine")
        for name in ("ascend", "ascend-legacy"))
"""


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A person's own CANN, driver and NNAL; no variable names anything of it. The folder."""
    for name in list(os.environ):
        if name.startswith(("ASCEND", "ATB_", "VLLM_", "HCCL_", "PYTORCH_NPU", "LD_LIBRARY")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    base = tmp_path / "home/Ascend"
    trees.toolkit(base / "cann-8.5.1", "8.5.1", platform.machine())
    (base / "cann").symlink_to("cann-8.5.1")
    trees.driver(base)
    trees.nnal(base, "8.5.1")
    legacy_vllm.official_tree(tmp_path / "home/deepseek_ocr2_npu")
    entries = tuple(registry.EngineEntry(
        name, name, "", "nowhere:Engine", needs=("vllm", "vllm_ascend", "torch_npu"), npu=True,
        official=name == "ascend-legacy")
        for name in STACKS)
    rest = tuple(entry for entry in registry.ENGINES if entry.name not in STACKS)
    monkeypatch.setattr(registry, "ENGINES", (*rest, *entries))
    return base


def interpreter(folder: Path, engine: str, noted: Path) -> Path:
    """An environment with the packages of the stack of ENGINE, none of which can be imported; its
    worker notes the variables it was started with in NOTED and plays a script."""
    site = environments.give(environments.make(folder), "msgspec", "PIL")
    ascend, vllm = STACKS[engine]
    for distribution, module, version in (
            ("vllm-ascend", "vllm_ascend", ascend), ("vllm", "vllm", vllm),
            ("torch-npu", "torch_npu", "2.9.0")):
        environments.pretend(site, distribution, module, version, "raise ImportError('no NPU')\n")
    (site / "sitecustomize.py").write_text(NOTED.format(file=str(noted)))
    return folder


def prepared(tmp_path: Path, engine: str, noted: Path, **more: object) -> Prepared:
    return prepare(Values({
        "engine": engine, "model": str(environments.model(tmp_path / "model")),
        "engine_interpreter": str(interpreter(tmp_path / "env", engine, noted)), **more}), {})


@pytest.mark.parametrize("engine", STACKS)
def test_the_worker_starts_with_it(tmp_path: Path, engine: str, machine: Path,
                                   monkeypatch: pytest.MonkeyPatch,
                                   no_process_left: object) -> None:
    monkeypatch.setenv("VLLM_ATTENTION_BACKEND", "FLASH_ATTN")
    monkeypatch.setenv("VERSO_SCRIPT", json.dumps({"pages": []}))
    noted = tmp_path / "noted.json"
    ready = prepared(tmp_path, engine, noted, devices="1, 3")
    heard = Recorder()
    client = EngineClient(heard, patience=QUICK)
    try:
        client.start(engine, ready.settings, interpreter=ready.interpreter,
                     environment=ready.environment)
        heard.wait(EngineReady)
    finally:
        client.close()
    variables = json.loads(noted.read_text())
    assert variables["ASCEND_HOME_PATH"] == f"{machine}/cann"
    libraries = variables["LD_LIBRARY_PATH"].split(":")
    assert f"{machine}/driver/lib64/driver" in libraries
    assert f"{machine}/cann/lib64" in libraries
    assert f"{machine}/cann/python/site-packages" in variables["PYTHONPATH"].split(":")
    assert variables["ASCEND_RT_VISIBLE_DEVICES"] == "1,3"
    if engine == "ascend":
        # What this stack does not know any more is taken out, not only left unset by us.
        assert "VLLM_ATTENTION_BACKEND" not in variables
        assert variables["PYTORCH_NPU_ALLOC_CONF"] == "expandable_segments:True"
    else:
        assert variables["VLLM_ATTENTION_BACKEND"] == "NPU"
        assert variables["VLLM_USE_V1"] == "0"
    assert os.environ["VLLM_ATTENTION_BACKEND"] == "FLASH_ATTN"  # ours stays
    assert "ASCEND_HOME_PATH" not in os.environ


def test_without_the_driver_no_engine_is_started(tmp_path: Path, machine: Path) -> None:
    shutil.rmtree(machine / "driver")
    with pytest.raises(VersoError) as caught:
        prepared(tmp_path, "ascend", tmp_path / "noted")
    assert caught.value.code == "ascend.environment.driver"
    assert caught.value.problem().hint


def test_the_official_code_is_looked_for_before_the_worker_starts(tmp_path: Path) -> None:
    named = legacy_vllm.official_tree(tmp_path / "checkout/DeepSeek-OCR2-master/DeepSeek-OCR2-vllm")
    home = (tmp_path / "home/deepseek_ocr2_npu").resolve()
    noted = tmp_path / "noted"
    found = prepared(tmp_path, "ascend-legacy", noted)
    assert found.settings["official_code"] == str(home)
    values = Values({"engine": "ascend-legacy", "model": str(tmp_path / "model"),
                     "engine_interpreter": str(tmp_path / "env")})
    found = prepare(values.with_(official_code=str(tmp_path / "checkout")), {})
    assert found.settings["official_code"] == str(named.resolve())
    shutil.rmtree(home)
    with pytest.raises(VersoError) as caught:
        prepare(values, {})
    assert caught.value.code == "legacy.no_code"
    assert str(home) in caught.value.problem().message


def test_an_interpreter_is_checked_in_the_environment_it_would_be_started_in(
        tmp_path: Path, machine: Path) -> None:
    folder = interpreter(tmp_path / "env", "ascend", tmp_path / "noted")
    site = next((folder / "lib").glob("python*/site-packages"))
    # torch is imported with torch-npu, which needs CANN's libraries
    environments.pretend(site, "torch", "torch", "2.9.0", (
        "import os\n"
        "if 'cann/lib64' not in os.environ.get('LD_LIBRARY_PATH', ''):\n"
        "    raise ImportError('libhccl.so: cannot open shared object file')\n"
        "class cuda:\n    is_available = staticmethod(lambda: False)\n"
        "class version:\n    cuda = None\n"))
    (site / "vllm/__init__.py").write_text("")
    (site / "vllm/platforms.py").write_text(
        "class current_platform:\n    device_type = 'npu'\n"
        "    is_unspecified = staticmethod(lambda: False)\n")
    entry = registry.entry("ascend")
    report = npu.examine(entry, str(folder))
    assert (report.problems, report.platform, report.thorough) == ((), "npu", True)
    # without CANN that is what is said, and nothing is imported
    shutil.rmtree(machine)
    report = npu.examine(entry, str(folder))
    assert [problem.code for problem in report.problems] == ["ascend.environment.toolkit"]
    assert not report.thorough


def test_other_engines_are_left_alone(tmp_path: Path) -> None:
    assert prepare(Values({"engine": "embedded"}), {}).environment == {}


def test_the_older_stack_without_an_npu_needs_no_toolkit(tmp_path: Path, machine: Path) -> None:
    """The official code also runs on vLLM 0.8.5 with an NVIDIA GPU."""
    shutil.rmtree(machine)
    site = environments.give(environments.make(tmp_path / "cuda"), "msgspec", "PIL")
    environments.pretend(site, "vllm", "vllm", "0.8.5.post1")
    entry = registry.EngineEntry("ascend-legacy", "", "", "nowhere:Engine", needs=("vllm",),
                                 npu=True, official=True)
    registry.ENGINES = (*(each for each in registry.ENGINES if each.name != entry.name), entry)
    found = prepare(Values({
        "engine": "ascend-legacy", "model": str(environments.model(tmp_path / "model")),
        "engine_interpreter": str(tmp_path / "cuda")}), {})
    assert found.environment == {}
