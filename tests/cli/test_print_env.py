"""``verso doctor --print-env``, with a pretended vllm-ascend on a pretended CANN."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from desktop.settings import Values
from desktop.settings.store import Store
from tests.cli.conftest import ROOT, Verso, command
from tests.engines.ascend import trees
from tests.support import environments, processes, programs

PARTS = {"vllm-ascend": "vllm_ascend", "vllm": "vllm", "torch-npu": "torch_npu"}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("ASCEND", "ATB_", "VLLM_", "HCCL_", "PYTORCH_NPU", "LD_LIBRARY")):
            monkeypatch.delenv(name)


@pytest.fixture
def interpreter(tmp_path: Path) -> Path:
    """An environment with the packages of vllm-ascend 0.18.0, none of which can be imported."""
    folder = environments.make(tmp_path / "engine")
    site = next((folder / "lib").glob("python*/site-packages"))
    for distribution, module in PARTS.items():
        environments.pretend(site, distribution, module, "0.18.0", "raise ImportError('no NPU')\n")
    environments.pretend(site, "torch", "torch", "2.9.0", "raise ImportError('no NPU')\n")
    trees.torch(site / "torch", 0)
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's own CANN 8.5.1 and 8.2.RC1, with driver and NNAL, below their home."""
    machine = platform.machine()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    base = tmp_path / "home/Ascend"
    for version in ("8.5.1", "9.0.0"):
        trees.toolkit(base / f"cann-{version}", version, machine)
    (base / "cann").symlink_to("cann-9.0.0")
    trees.driver(base)
    trees.nnal(base, "8.5.1")
    return base


def test_a_shell_takes_in_what_is_printed(verso: Verso, interpreter: Path, home: Path) -> None:
    ran = verso("doctor", "--print-env", "--engine-interpreter", interpreter)
    assert ran.status == 0, ran.err
    assert ran.err == ""
    # The toolkit that goes with vllm-ascend 0.18.0, not the newer one that the link names; ATB in
    # the form that torch has.
    assert f"export ASCEND_HOME_PATH={home}/cann-8.5.1" in ran.out.splitlines()
    assert f"export ATB_HOME_PATH={home}/nnal/atb/latest/atb/cxx_abi_0" in ran.out.splitlines()
    assert "vllm-ascend 0.18.0" in ran.out
    shell = shutil.which("sh")
    assert shell is not None
    printed = subprocess.run(
        [shell, "-c", f"{ran.out}\nprintenv VLLM_ASCEND_ENABLE_NZ TASK_QUEUE_ENABLE; "
         "printenv LD_LIBRARY_PATH | cut -d: -f1; printenv VLLM_USE_V1"],
        env={**os.environ, "VLLM_USE_V1": "0"}, capture_output=True, text=True)
    assert printed.stdout.split() == [
        "0", "1", f"{home}/nnal/atb/latest/atb/cxx_abi_0/lib", "0"]


def test_what_a_shell_has_left_of_an_older_stack_is_unset(
        verso: Verso, interpreter: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_USE_V1", "0")
    monkeypatch.setenv("ASCEND_TOOLKIT_HOME", "/gone")
    before = dict(os.environ)
    ran = verso("doctor", "--print-env", "--engine-interpreter", interpreter)
    assert ran.status == 0
    assert "unset VLLM_USE_V1" in ran.out.splitlines()
    assert "ASCEND_TOOLKIT_HOME" in ran.err
    assert "/gone" in ran.err
    assert dict(os.environ) == before


def test_what_is_missing_is_said_beside_it(verso: Verso, interpreter: Path, home: Path,
                                           tmp_path: Path) -> None:
    (home / "driver").rename(home / "driver-was")
    ran = verso("doctor", "--print-env", "--engine-interpreter", interpreter, "--json")
    document = json.loads(ran.out)
    if ran.status == 0:
        pytest.skip("this machine has the driver of an NPU")
    assert ran.status == 1
    assert [problem["code"] for problem in document["problems"]] == ["ascend.environment.driver"]
    assert str(home / "driver") in ran.err
    assert document["variables"]["ASCEND_HOME_PATH"] == f"{home}/cann-8.5.1"
    assert document["places"]["abi"] == 0
    assert document["stack"]["ascend"] == "0.18.0"


def test_an_interpreter_without_vllm_ascend(verso: Verso, home: Path, tmp_path: Path) -> None:
    folder = environments.make(tmp_path / "plain")
    ran = verso("doctor", "--print-env", "--engine-interpreter", folder)
    assert ran.status == 1
    assert "vllm-ascend" in ran.err
    assert f"export ASCEND_HOME_PATH={home}/cann" in ran.out.splitlines()
    assert "VLLM_" not in ran.out


@pytest.mark.parametrize("what", ["missing", "not a Python", "not a program"])
def test_no_interpreter(verso: Verso, tmp_path: Path, what: str) -> None:
    program = tmp_path / "python"
    if what != "missing":
        programs.write(program, "#!/bin/sh\necho I am something else >&2; exit 4\n")
        program.chmod(0o755 if what == "not a Python" else 0o644)
    ran = verso("doctor", "--print-env", "--engine-interpreter", program)
    assert ran.status == 1
    assert ran.out == ""
    assert str(program) in ran.err


def test_devices_of_the_settings(verso: Verso, interpreter: Path, home: Path) -> None:
    Store().save(Values({"devices": "2,3"}))
    ran = verso("doctor", "--print-env", "--engine-interpreter", interpreter)
    assert "export ASCEND_RT_VISIBLE_DEVICES=2,3" in ran.out.splitlines()
    ran = verso("doctor", "--print-env", "--engine-interpreter", interpreter, "--devices", "5")
    assert "export ASCEND_RT_VISIBLE_DEVICES=5" in ran.out.splitlines()


def test_in_a_process_of_its_own_without_qt(interpreter: Path, home: Path) -> None:
    ran = subprocess.run(
        command("doctor", "--print-env", "--engine-interpreter", interpreter), cwd=ROOT,
        env=processes.without_qt(), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "export TOKENIZERS_PARALLELISM=false" in ran.stdout.splitlines()
