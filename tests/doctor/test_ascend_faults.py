"""The Ascend side of the doctor: each fault of a machine is named, and no other."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from desktop.doctor import ascend_text
from tests.doctor import row_checks
from tests.doctor.ascend_tree import GIB, IDLE, SAMPLES, Tree, codes, healthy
from tests.engines.ascend import trees

pytestmark = pytest.mark.usefixtures("no_hurry")
MACHINE = platform.machine()

Break = Callable[[Tree], object]


def _full(tree: Tree) -> None:
    tree.smi(IDLE.replace("3380 / 65536", "61000/ 65536").replace(
        "| No running processes found in NPU 0  ", "| 0   0 | 4711 | trainer | 57600 |\n| No  "))


def _remove(tree: Tree, folder: str, *variables: str) -> None:
    shutil.rmtree(tree.root / "usr/local/Ascend" / folder)
    for name in variables:
        del tree.environment[name]


def _of_other_processor(tree: Tree) -> None:
    """What would be left if the installer for the other kind had been run."""
    other = "x86_64" if MACHINE == "aarch64" else "aarch64"
    base = tree.root / "usr/local/Ascend"
    shutil.rmtree(base / "cann-8.5.1")
    trees.toolkit(base / "cann-8.5.1", "8.5.1", other)


FAULTS: dict[str, tuple[Break, str, str]] = {
    "no nodes": (lambda tree: tree.drop("/dev/davinci0", "/dev/davinci1"),
                 "ascend.no_device", "/dev/davinciN"),
    "no control node": (lambda tree: tree.drop("/dev/devmm_svm"),
                        "ascend.no_control_node", "devmm_svm"),
    "no npu-smi": (lambda tree: tree.drop("/usr/local/bin/npu-smi"),
                   "ascend.no_smi", "/usr/local/bin/npu-smi"),
    "error -8005": (lambda tree: tree.smi((SAMPLES / "refused.txt").read_text()),
                    "ascend.refused", "−8005"),
    "error -8020": (lambda tree: tree.smi((SAMPLES / "occupied.txt").read_text()),
                    "ascend.occupied", "−8020"),
    "library of npu-smi": (lambda tree: tree.smi((SAMPLES / "library.txt").read_text(), 127),
                           "ascend.smi_library", "libdrvdsmi_host.so"),
    "unhealthy": (lambda tree: tree.smi(IDLE.replace("OK ", "Critical ", 1)),
                  "ascend.unhealthy", "Critical"),
    "full": (_full, "ascend.memory", "trainer 4711 (56.2 GB)"),
    "310P": (lambda tree: tree.smi((SAMPLES / "310p-22.0.txt").read_text()),
             "ascend.chip", "310P3"),
    "first 910": (lambda tree: tree.smi((SAMPLES / "910a-21.0.txt").read_text()),
                  "ascend.chip", "910A"),
    "no driver": (lambda tree: shutil.rmtree(tree.root / "usr/local/Ascend/driver"),
                  "ascend.environment.driver", "/usr/local/Ascend/driver"),
    "no CANN": (lambda tree: _remove(
        tree, "cann-8.5.1", "ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH", "ASCEND_OPP_PATH"),
                "ascend.environment.toolkit", "/usr/local/Ascend/ascend-toolkit/latest"),
    "no libascend_hal": (
        lambda tree: tree.drop("/usr/local/Ascend/driver/lib64/driver/libascend_hal.so"),
        "ascend.environment.driver_library", "/usr/local/Ascend/driver/lib64"),
    "no libhccl": (lambda tree: tree.drop("/usr/local/Ascend/cann/lib64/libhccl.so"),
                   "ascend.toolkit_library", "libhccl.so"),
    "no libatb": (lambda tree: _remove(tree, "nnal", "ATB_HOME_PATH"),
                  "ascend.environment.atb", "libatb.so"),
    "no kernels": (lambda tree: shutil.rmtree(
        tree.root / "usr/local/Ascend/cann/opp/built-in/op_impl/ai_core/tbe/kernel"),
        "ascend.environment.kernels", "tbe/kernel"),
    "variable": (lambda tree: tree.environment.update(ASCEND_OPP_PATH="/opt/gone/opp"),
                 "ascend.environment.variable", "/opt/gone/opp"),
    "no vllm-ascend": (lambda tree: tree.versions.pop("vllm-ascend"),
                       "ascend.version", "vllm-ascend"),
    "wrong vLLM": (lambda tree: tree.versions.update(vllm="0.19.1"),
                   "ascend.version", "0.18.0"),
    "wrong CANN": (lambda tree: tree.file(
        f"/usr/local/Ascend/cann/{MACHINE}-linux/ascend_toolkit_install.info",
        "version=8.2.RC1\n"), "ascend.version", "8.2.RC1"),
    "wrong Python": (lambda tree: setattr(tree, "python", "3.13.1"),
                     "ascend.version", "3.13.1"),
    "wrong torch": (lambda tree: tree.versions.update({"torch": "2.8.0", "torch-npu": "2.8.0"}),
                    "ascend.version", "torch 2.8.0 does not go with vllm-ascend 0.18.0"),
    "no torch-npu": (lambda tree: tree.versions.pop("torch-npu"),
                     "ascend.version", "torch-npu is not installed"),
    "torch-npu for another torch": (lambda tree: tree.versions.update(torch="2.9.1"),
                                    "ascend.version", "torch 2.9.1 is installed"),
    "transformers 5": (lambda tree: tree.versions.update(transformers="5.5.4"),
                       "ascend.version", "transformers 4 only"),
    "a release without the model": (lambda tree: tree.versions.update(
        {"vllm": "0.13.0", "vllm-ascend": "0.13.0", "torch": "2.8.0",
         "torch-npu": "2.8.0.post2"}), "ascend.version", "no DeepSeek-OCR-2"),
    "a release nobody knows": (lambda tree: tree.versions.update(
        {"vllm": "0.99.0", "vllm-ascend": "0.99.0"}), "ascend.version", "0.99.0"),
    "npu-smi says something else": (lambda tree: tree.smi("nothing to see here"),
                                    "ascend.smi", "nothing to see here"),
    "npu-smi fails": (lambda tree: tree.smi("dcmi: no such file", 255),
                      "ascend.smi", "dcmi: no such file"),
    "toolkit of another processor": (lambda tree: _of_other_processor(tree),
                                     "ascend.environment.machine", "this machine is"),
    "toolkit without its Python": (lambda tree: shutil.rmtree(
        tree.root / "usr/local/Ascend/cann/python"),
        "ascend.environment.modules", "Python modules"),
    "experts that cannot run": (lambda tree: setattr(tree, "experts", json.dumps(
        {"state": "not-applied", "reason": "", "problems": [
            {"code": "no-replacement", "package": "vllm_ascend", "message": "no function"}]})),
        "ascend.experts", "fused_moe"),
    "vllm-ascend that cannot be imported": (lambda tree: setattr(tree, "experts", json.dumps(
        {"state": "not-applied", "reason": "", "problems": [
            {"code": "import-broken", "package": "vllm_ascend", "message":
             "vllm_ascend is installed but cannot be imported (ImportError: libopapi.so: no (such) "
             "file). If that names a library, …"}]})),
        "ascend.package", "vllm_ascend cannot be imported by"),
    "packages that say nothing": (lambda tree: setattr(tree, "experts", "Bus error"),
                                  "ascend.experts_unknown", "Bus error"),
    "little disk": (lambda tree: setattr(tree, "disk", 20 * GIB), "ascend.disk", "20.0 GB"),
    "little memory": (lambda tree: setattr(tree, "memory", 16 * GIB),
                      "ascend.host_memory", "16.0 GB"),
    "limit of the container": (lambda tree: setattr(tree, "limit", 8 * GIB),
                               "ascend.host_memory", "8.0 GB"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_named_and_no_other(name: str, tmp_path: Path) -> None:
    break_it, code, words = FAULTS[name]
    tree = healthy(tmp_path)
    break_it(tree)
    report = tree.look()
    named = [each for each in (*report.problems, *report.warnings) if each.code == code]
    assert len(named) >= 1
    assert any(words in each.message for each in named), named
    assert all(each.hint for each in named)
    # What follows from the fault may be told with it, nothing else is.
    follows = {"310P": {"ascend.unhealthy"},
               "no vllm-ascend": {"ascend.experts.vllm_ascend"},
               "no torch-npu": {"ascend.experts.torch_npu"}}.get(name, set())
    assert codes(report) <= {code} | follows
    assert follows <= codes(report)
    assert "Traceback" not in "\n".join(ascend_text.lines(report))
    row_checks.check(report)


# The idle NPU of each recording: its number for programs, and how health and memory stand there.
DRIVERS = {
    "910b-24.1": ("map-910b", 0, "0     910B3               | OK   ", "3380 / 65536"),
    "910b-26.0": ("map-910b", 0, "0     910B4               | OK   ", "2871 / 32768"),
    "910c-25.2": ("map-910c", 2, "1     Ascend910           | OK   ", "3130 / 65536"),
    "950": ("map-910b", 0, "0      | Ascend950DT | OK   ", "4024 / 131072"),
}


@pytest.mark.parametrize("driver", DRIVERS)
def test_faults_in_the_tables_of_each_driver(driver: str, tmp_path: Path) -> None:
    mapping, number, health, memory = DRIVERS[driver]
    table = (SAMPLES / f"{driver}.txt").read_text("utf-8")
    tree = healthy(tmp_path)

    def problems(said: str) -> list[tuple[str, str]]:
        assert said != table
        tree.smi(said, mapping=mapping)
        return [(each.code, each.message) for each in tree.look(devices=str(number)).problems]

    tree.smi(table, mapping=mapping)
    assert tree.look(devices=str(number)).problems == ()
    (code, message), = problems(table.replace(health, health.replace("OK   ", "Alarm"), 1))
    assert code == "ascend.unhealthy"
    assert f"NPU {number} " in message
    assert "Alarm" in message
    total = memory.partition(" / ")[2]
    (code, message), = problems(table.replace(memory, f"{int(total) // 2:<5}/ {total}", 1))
    assert code == "ascend.memory"
    assert f"NPU {number} " in message
    assert f"{int(total) // 2 / 1024:.1f} GB of {int(total) / 1024:.1f} GB free" in message
    # A table that is cut off in the middle: the NPU is not there, and nothing is made up.
    cut = problems(table[:table.index(health)])
    assert [code for code, _message in cut] in (["ascend.smi"], ["ascend.no_such_npu"])


def test_a_variable_that_names_another_toolkit_than_the_one_that_fits(tmp_path: Path) -> None:
    tree = healthy(tmp_path)
    base = tree.root / "usr/local/Ascend"
    older = trees.toolkit(base / "ascend-toolkit/8.1.RC1", "8.1.RC1", MACHINE, cfg=True)
    (older / "lib64/libhccl.so").write_text("")
    for name in ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH"):
        tree.environment[name] = str(older)
    said, = tree.look().problems
    assert said.code == "ascend.version"
    assert "ASCEND_TOOLKIT_HOME names this one" in said.hint
    assert f"8.5.1 is at {base}/cann" in said.hint
    for name in ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH"):  # as it says
        del tree.environment[name]
    assert tree.look().problems == ()


@pytest.mark.parametrize("name", ["ATB_HOME_PATH", "ASCEND_OPP_PATH"])
def test_a_variable_that_names_a_folder_of_something_else(tmp_path: Path, name: str) -> None:
    tree = healthy(tmp_path)
    tree.environment[name] = "/"
    said, = [*tree.look().problems, *tree.look().warnings]
    assert said.code == "ascend.environment.variable"
    assert said.message.startswith(f"{name} is set to /,")


def test_atb_in_the_other_form_only(tmp_path: Path) -> None:
    tree = healthy(tmp_path)
    site = tmp_path / "env/lib/python3.11/site-packages"
    trees.torch(site / "torch", 0)
    tree.prefix = str(tmp_path / "env")
    assert tree.look().well
    shutil.rmtree(tmp_path / "usr/local/Ascend/nnal/atb/8.5.1/atb/cxx_abi_0")
    said, = [each for each in (*tree.look().problems, *tree.look().warnings)
             if each.code == "ascend.environment.atb_abi"]
    assert "cxx_abi_0" in said.message
