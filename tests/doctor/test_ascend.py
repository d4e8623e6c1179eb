"""The Ascend side of the doctor: whole machines, what is judged, and how it is told."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest

from desktop.client.interpreter import Report as Interpreter
from desktop.doctor import ascend, ascend_host, ascend_text, diagnosis, text
from desktop.doctor.gpus import Gpus
from desktop.doctor.machine import Machine
from desktop.settings import Values
from tests.cli.conftest import Verso, verso
from tests.doctor.ascend_tree import CURRENT, GIB, IDLE, LEGACY, SAMPLES, codes, healthy
from tests.doctor.test_doctor import schema
from tests.engines.ascend import trees

__all__ = ["verso"]  # a fixture


pytestmark = pytest.mark.usefixtures("no_hurry")
MACHINE = platform.machine()


# --- whole machines


@pytest.mark.parametrize(("cann", "versions", "python"), [
    ("8.5.1", CURRENT, "3.11.14"),
    ("8.1.RC1", LEGACY, "3.10.17"),
    ("9.1.0", {**CURRENT, "vllm": "0.23.0+empty", "vllm-ascend": "0.23.0.post1",
                       "torch": "2.10.0+cpu", "torch-npu": "2.10.0.post4"}, "3.12.9"),
])
def test_nothing_is_wrong_on_a_whole_machine(
        tmp_path: Path, cann: str, versions: dict[str, str], python: str) -> None:
    tree = healthy(tmp_path, cann, versions)
    tree.python = python
    report = tree.look()
    assert report.problems == ()
    assert report.warnings == ()
    assert report.well
    assert report.chosen == (0,)
    toolkit = report.host.environment.places.toolkit
    assert toolkit is not None
    assert toolkit.version == cann
    assert report.host.driver_version == "24.1.rc3"
    assert report.host.nodes.numbers == (0, 1)
    assert report.host.environment.places.atb.endswith("cxx_abi_1")
    assert all(library.path for library in report.host.libraries)


@pytest.mark.parametrize("table", ["910b-26.0", "910c-25.2"])
def test_nothing_is_wrong_with_other_drivers(tmp_path: Path, table: str) -> None:
    tree = healthy(tmp_path)
    tree.smi((SAMPLES / f"{table}.txt").read_text("utf-8"),
             mapping="map-910b" if table == "910b-26.0" else "map-910c")
    # the first is free in one recording, the third in the other
    report = tree.look(devices="0" if table == "910b-26.0" else "2")
    assert report.problems == ()


def test_libraries_that_the_loader_knows_by_itself(tmp_path: Path) -> None:
    tree = healthy(tmp_path)
    tree.environment["LD_LIBRARY_PATH"] = ""
    assert codes(tree.look()) == {"ascend.not_set"}
    tree.file("/etc/ld.so.conf.d/ascend.conf", "# of the driver\n"
              "/usr/local/Ascend/driver/lib64/driver\n/usr/local/Ascend/cann/lib64\n"
              "/usr/local/Ascend/nnal/atb/latest/atb/cxx_abi_1/lib\n")
    assert codes(tree.look()) == set()


def test_a_machine_where_set_env_was_not_run(tmp_path: Path) -> None:
    """What can be found needs no variables: only they themselves are named."""
    tree = healthy(tmp_path)
    tree.environment = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere"}
    report = tree.look()
    assert report.problems == ()
    warning, = report.warnings
    assert warning.code == "ascend.not_set"
    for name in ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "ATB_HOME_PATH", "LD_LIBRARY_PATH"):
        assert name in warning.message
    assert 'eval "$(verso doctor --print-env)"' in warning.hint
    warning, = tree.look(engine_interpreter="/opt/its place/python").warnings
    assert ("eval \"$(verso doctor --print-env --engine-interpreter '/opt/its place/python')\""
            in warning.hint)


@pytest.mark.parametrize("settings", [
    {"tensor_parallel": 3}, {"devices": "0", "tensor_parallel": 2}, {"pipeline_parallel": 3},
    {"devices": "0", "data_parallel": 2}])
def test_fewer_npus_than_the_settings_need(tmp_path: Path, settings: dict[str, object]) -> None:
    found = [problem for problem in healthy(tmp_path).look(engine="ascend", **settings).problems
             if problem.code != "ascend.memory"]  # of the second one, which somebody uses
    assert [problem.code for problem in found] == ["vllm.devices"]


def test_where_was_looked_for_a_library(tmp_path: Path) -> None:
    tree = healthy(tmp_path)
    tree.drop("/usr/local/Ascend/cann/lib64/libhccl.so")
    said, = tree.look().problems
    assert "/usr/local/Ascend/driver/lib64/driver" in said.message
    assert "/usr/local/Ascend/cann/lib64" in said.message


def test_nodes_that_may_not_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may open everything, so the kernel's answer is given here in its stead."""
    tree = healthy(tmp_path)
    monkeypatch.setattr("os.access",
                        lambda path, mode: Path(path).name != "davinci1")
    report = tree.look()
    said, = [each for each in report.problems if each.code == "ascend.forbidden"]
    assert "/dev/davinci1" in said.message
    assert "/dev/davinci0" not in said.message
    assert "usermod -aG" in said.hint


def test_the_chosen_npu_is_the_one_that_is_judged(tmp_path: Path) -> None:
    tree = healthy(tmp_path)
    assert tree.look(devices="0").well
    full = tree.look(devices="1")
    said, = full.problems
    assert said.code == "ascend.memory"
    assert "python 41711" in said.message
    assert full.chosen == (1,)
    assert "to 0." not in said.hint  # what is left does not hold the model
    gone = tree.look(devices="7")
    assert [each.code for each in gone.problems] == ["ascend.no_such_npu"]
    assert "0, 1" in gone.problems[0].message
    both = tree.look(tensor_parallel=2)
    assert both.chosen == (0, 1)
    assert [each.code for each in both.problems] == ["ascend.memory"]
    tree.environment["ASCEND_RT_VISIBLE_DEVICES"] = "0,0"
    assert [each.code for each in tree.look().problems] == ["vllm.devices"]
    tree.environment["ASCEND_RT_VISIBLE_DEVICES"] = "1"
    assert tree.look().chosen == (1,)
    assert tree.look(devices="0").chosen == (0,)
    # 6,575 of 65,536 MB are free
    assert not tree.look(devices="1", memory_utilization=0.11).well
    assert tree.look(devices="1", memory_utilization=0.10).well
    tree.smi(IDLE.replace("58961/ 65536", "35000/ 65536"))
    said, = tree.look(devices="1").problems
    assert said.hint.endswith("(--memory-utilization) to 0.45.")
    assert said.fix == (("memory_utilization", 0.45),)
    assert tree.look(devices="1", **dict(said.fix)).well
    tree.smi(IDLE.replace("58961/ 65536", "5000 / 65536"))
    assert tree.look(devices="1").well


def test_an_npu_that_is_not_used_may_be_ill(tmp_path: Path) -> None:
    tree = healthy(tmp_path)
    ill = IDLE.replace("| 1     910B3               | OK   ", "| 1     910B3               | Alarm")
    assert ill != IDLE
    tree.smi(ill)
    report = tree.look()
    assert report.well
    assert [each.code for each in report.warnings] == ["ascend.unhealthy"]
    assert "npu-smi info -t health -i 1 -c 0" in report.warnings[0].hint


@pytest.mark.parametrize("health", ["Warning", "UNKNOWN", "NA"])
def test_a_warning_of_the_card_does_not_stop_it(tmp_path: Path, health: str) -> None:
    tree = healthy(tmp_path)
    tree.smi(IDLE.replace("OK     ", f"{health:7}", 1))
    report = tree.look()
    assert report.well
    assert [each.code for each in report.warnings] == ["ascend.unhealthy"]


def test_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = healthy(tmp_path)
    assert tree.look().host.shared_memory > 0
    monkeypatch.setattr(ascend_host, "_shared", lambda looker: 64 << 20)
    said, = tree.look().warnings
    assert said.code == "ascend.shared_memory"
    assert "64 MB" in said.message
    assert "--shm-size" in said.hint


def test_a_model_that_is_there_needs_no_room(tmp_path: Path) -> None:
    tree = healthy(tmp_path)
    tree.disk = GIB
    machine = Machine("", "", "", 1, 512 * GIB, 0, 0, (), Gpus())
    assert codes(tree.look()) == {"ascend.disk"}
    found = ascend.look(Values(), machine, environ=tree.environment, root=str(tree.root),
                        weights_complete=True)
    assert "ascend.disk" not in codes(found)


# --- what torch-npu links to


def test_libraries_that_torch_npu_lacks(tmp_path: Path) -> None:
    """A real library that is linked to another one, which is then taken away."""
    compiler = shutil.which("gcc")
    if compiler is None or shutil.which("ldd") is None:
        pytest.skip("needs gcc and ldd")
    tree = healthy(tmp_path / "machine")
    site = tmp_path / "env/lib/python3.11/site-packages/torch_npu"
    (site / "lib").mkdir(parents=True)
    (tmp_path / "empty.c").write_text("int f(void) { return 0; }\n")
    toolkit = tree.root / "usr/local/Ascend/cann/lib64"
    subprocess.run([compiler, "-shared", "-o", toolkit / "libge_runner.so",
                    tmp_path / "empty.c"], check=True)
    subprocess.run([compiler, "-shared", "-Wl,--no-as-needed", "-o",
                    site / "lib/libtorch_npu.so", tmp_path / "empty.c", f"-L{toolkit}",
                    "-lge_runner"], check=True)
    tree.prefix = str(tmp_path / "env")
    assert tree.look().problems == ()
    (toolkit / "libge_runner.so").unlink()
    said, = tree.look().problems
    assert said.code == "ascend.torch_library"
    assert "libge_runner.so" in said.message


def test_what_ldd_says() -> None:
    said = ("\tlinux-vdso.so.1 (0x00007ffe)\n\tlibhccl.so => not found\n"
            "\tlibtorch.so => not found\n\tlibc10.so => not found\n"
            "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n"
            "\tlibhccl.so => not found\n\tlibgraph.so => not found\n")
    assert ascend_host.parse_ldd(said) == ("libhccl.so", "libgraph.so")
    assert ascend_host.parse_ldd("\tnot a dynamic executable\n") == ()


def test_the_version_of_older_drivers(tmp_path: Path) -> None:
    tree = healthy(tmp_path)
    tree.file("/usr/local/Ascend/driver/version.info", "Version=23.0.6\nascendhal_version=7.35\n")
    assert tree.look().host.driver_version == "23.0.6"
    tree.drop("/usr/local/Ascend/driver/version.info")  # a container with its libraries only
    report = tree.look()
    assert (report.well, report.host.driver_version) == (True, "")
    assert report.as_dict()["driver"]["version"] == "24.1.rc3"  # as npu-smi says


# --- shown where there is something of Ascend, or it is asked for


def test_what_counts_as_something_of_ascend(tmp_path: Path) -> None:
    def there(**environment: str) -> bool:
        return ascend.present((), {"HOME": "/nowhere", **environment}, str(tmp_path))

    assert not there(PATH="/usr/bin")
    tool = tmp_path / "tools/npu-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    assert not there(PATH=str(tool.parent))  # nothing that could be run
    tool.chmod(0o755)
    assert there(PATH=str(tool.parent))
    assert not there()
    trees.toolkit(tmp_path / "elsewhere/cann", "8.5.1", MACHINE)
    assert there(ASCEND_HOME_PATH=str(tmp_path / "elsewhere/cann"))
    node = tmp_path / "dev/davinci3"
    node.parent.mkdir()
    node.write_text("")
    assert there()
    node.rename(tmp_path / "dev/null")
    assert not there()
    assert ascend.present([Interpreter("p", versions={"torch-npu": "2.9.0"})], {}, str(tmp_path))
    assert not ascend.present([Interpreter("p", versions={"torch": "2.9.0"})], {}, str(tmp_path))


def test_the_report_as_text_and_as_json(tmp_path: Path) -> None:
    tree = healthy(tmp_path)
    tree.drop("/dev/hisi_hdc")
    report = tree.look(devices="1")
    shown = "\n".join(ascend_text.lines(report))
    for words in ("davinci0, davinci1", f"24.1.rc3, {tmp_path}/usr/local/Ascend/driver",
                  f"8.5.1, {tmp_path}/usr/local/Ascend/cann",
                  "1: 910B3, OK, 6.4 GB free of 64.0 GB",
                  "87 % busy – the one to be used", "used by python 41711: 54.3 GB",
                  "used by process 41890: 132 MB", "✓ 0.18.0", "✗ The control nodes hisi_hdc",
                  "--device /dev/hisi_hdc"):
        assert words in " ".join(shown.split()), words
    machine = Machine("Linux", "3.11", "/usr/bin/python", 2, GIB, GIB, 0, (), Gpus())
    found = diagnosis.Diagnosis(machine, (), "ascend", (), report)
    jsonschema.validate(found.as_dict(), schema())
    assert not found.can_start
    plain = found.as_dict()["ascend"]
    assert plain["npus"][1]["chosen"] is True
    assert plain["npus"][1]["processes"][0] == {
        "pid": 41711, "name": "python", "memory": 55602 << 20}
    assert plain["nodes"]["missing"] == ["hisi_hdc"]
    assert list(text.lines(found))[-1] == "No engine can start here."


def test_a_machine_without_npus_says_nothing_of_them(verso: Verso, verso_home: Path) -> None:
    if ascend.present():
        pytest.skip("there is something of Ascend on this machine")
    ran = verso("doctor")
    assert ran.status == 0
    assert "ASCEND" not in ran.out
    ran = verso("doctor", "--json", "--engine", "ascend-legacy")
    assert ran.status == 1
    jsonschema.validate(ran.summary, schema())
    assert {each["code"] for each in ran.summary["ascend"]["problems"]} >= {
        "ascend.no_device", "ascend.environment.toolkit", "ascend.environment.driver",
        "ascend.version"}
