"""`packaging/ascend/start`, a server: what docker is told on hosts of several kinds, and what is
said where it cannot be."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from desktop.engines import plugin
from desktop.engines.ascend import loading
from desktop.engines.vllm import arguments
from desktop.settings import Values
from tests.packaging.ascend import BASE, CONTROL, HERE, Machine, values

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux scripts")


def test_a_server_on_one_npu(machine: Machine) -> None:
    told = machine.told()
    assert told[0] == "run"
    assert values(told, "--device") == [f"/dev/{name}" for name in (*CONTROL, "davinci0")]
    assert "--privileged" not in told
    assert "--net=host" in told
    assert "--shm-size=16g" in told
    assert values(told, "-v") == [
        "/usr/local/Ascend/driver:/usr/local/Ascend/driver:ro",
        "/usr/local/dcmi:/usr/local/dcmi:ro",
        "/usr/local/bin/npu-smi:/usr/local/bin/npu-smi:ro",
        "/etc/ascend_install.info:/etc/ascend_install.info:ro",
        f"{machine.data}:/data:ro",
        f"{HERE}/inside:/opt/verso-start/inside:ro",
        f"{plugin.folder()}:/opt/verso-plugin:ro"]
    assert values(told, "--entrypoint") == ["/bin/bash"]
    begin = told.index(BASE)
    assert told[begin + 1:begin + 5] == [
        "/opt/verso-start/inside", "vllm", "serve", "/data/models/DeepSeek-OCR-2"]
    assert values(told, "--host") == ["127.0.0.1"]
    assert values(told, "--tensor-parallel-size") == ["1"]
    assert values(told, "--gpu-memory-utilization") == ["0.85"]
    assert "--enforce-eager" in told
    assert "-t" not in told


@pytest.mark.parametrize(("asked", "nodes"), [
    ((), [0]), (("--npu", "4"), [4]), (("--npu", "1,6"), [1, 6]),
    (("--npu", "3", "--npu", "5"), [3, 5]), (("--npu", "all"), [*range(8)])])
def test_the_chosen_npus_and_no_others(
        asked: tuple[str, ...], nodes: list[int], tmp_path: Path) -> None:
    told = Machine(tmp_path, tuple(range(8))).told(*asked)
    given = values(told, "--device")
    assert given == [f"/dev/{name}" for name in CONTROL] + [f"/dev/davinci{n}" for n in nodes]
    assert values(told, "--tensor-parallel-size") == [str(len(nodes))]
    # They are counted from 0 inside: no numbers of the host's.
    assert not [each for each in values(told, "-e") if each.startswith("ASCEND_RT_VISIBLE")]


def test_more_than_ten_npus_in_their_order(tmp_path: Path) -> None:
    machine = Machine(tmp_path, (2, 10, 1, 0))
    machine.file("/dev/davinci_something")
    told = machine.told("--npu", "all")
    assert values(told, "--device")[3:] == [f"/dev/davinci{n}" for n in (0, 1, 2, 10)]
    said = machine.start("--npu", "7")
    assert said.returncode == 1
    assert "no NPU 7 here; there are: 0 1 2 10" in said.stderr


def test_with_privilege_as_the_recipe_has_it(tmp_path: Path) -> None:
    told = Machine(tmp_path, (0, 1, 2)).told("--privileged", "--npu", "2", "--shm-size", "512g")
    assert "--privileged" in told
    assert values(told, "--device") == [f"/dev/{name}" for name in CONTROL]
    assert "ASCEND_RT_VISIBLE_DEVICES=2" in values(told, "-e")
    assert "--shm-size=512g" in told


def test_only_what_the_host_has_is_mounted(machine: Machine) -> None:
    for gone in ("usr/local/dcmi/libdcmi.so", "usr/local/bin/npu-smi", "etc/ascend_install.info"):
        (machine.root / gone).unlink()
    (machine.root / "usr/local/dcmi").rmdir()
    told = machine.told()
    assert values(told, "-v")[0] == "/usr/local/Ascend/driver:/usr/local/Ascend/driver:ro"
    assert not [each for each in values(told, "-v")
                if "dcmi" in each or "npu-smi" in each or "install.info" in each]
    ran = machine.start()
    assert ran.returncode == 0
    assert "npu-smi is not found" in ran.stderr
    machine.file("/usr/local/sbin/npu-smi")
    assert "/usr/local/sbin/npu-smi:/usr/local/sbin/npu-smi:ro" in values(machine.told(), "-v")
    assert "npu-smi" not in machine.start().stderr


def test_a_driver_in_another_place(machine: Machine) -> None:
    machine.file("/etc/ascend_install.info", "UserName=x\nDriver_Install_Path_Param=/opt/npu\n")
    machine.file("/opt/npu/driver/lib64/libc_sec.so")
    assert values(machine.told(), "-v")[0] == "/opt/npu/driver:/usr/local/Ascend/driver:ro"


@pytest.mark.parametrize(("gone", "words"), [
    (("dev/davinci0",), "no node /dev/davinciN"),
    (("dev/devmm_svm",), "control nodes are missing: /dev/devmm_svm"),
    (("dev/davinci_manager", "dev/hisi_hdc"), "missing: /dev/davinci_manager /dev/hisi_hdc"),
    (("usr/local/Ascend/driver",), "driver is not found"),
])
def test_what_a_container_cannot_do_without(
        machine: Machine, gone: tuple[str, ...], words: str) -> None:
    for name in gone:
        path = machine.root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for more in ((), ("--dry-run",), ("--privileged",)):
        ran = machine.start(*more)
        assert ran.returncode == 1
        assert words in ran.stderr
        assert len(ran.stderr.strip().splitlines()) >= 2  # and what to do
        assert not machine.calls.exists()


def test_podman(machine: Machine) -> None:
    machine.docker("podman")
    told = machine.told("--docker", "podman")
    # As root the nodes may be used anyway.
    assert ("keep-groups" in values(told, "--group-add")) == (os.getuid() != 0)
    (machine.bin / "id").unlink()
    machine.docker("id", "echo 1000\n")
    assert values(machine.told("--docker", "podman"), "--group-add") == ["keep-groups"]
    assert values(machine.told(), "--group-add") == []
    (machine.bin / "docker").unlink()
    assert machine.told()[0] == "run"  # podman, as docker is not there
    assert values(machine.told(VERSO_DOCKER="podman"), "--group-add") == ["keep-groups"]
    (machine.bin / "podman").unlink()
    ran = machine.start()
    assert ran.returncode == 1
    assert "neither docker nor podman" in ran.stderr


@pytest.mark.parametrize("graphs", [(), ("--graphs",)])
def test_the_server_is_given_what_the_engine_gives(machine: Machine,
                                                   graphs: tuple[str, ...]) -> None:
    told = machine.told(*graphs)
    assert [json.loads(each) for each in values(told, "--additional-config")] == [
        loading.ADDITIONAL]
    assert values(told, "--max-num-batched-tokens") == [str(loading.BATCHED)]
    assert values(told, "--max-num-seqs") == [str(arguments.SEQUENCES)]
    assert values(told, "--gpu-memory-utilization") == [f"{Values()['memory_utilization']:g}"]
    assert values(told, "--max-model-len") == [str(Values()["max_model_len"])]
    assert ("--enforce-eager" in told) is (not graphs)


@pytest.mark.parametrize(("image", "ahead"), [
    ("", False), ("quay.io/ascend/vllm-ascend:v0.17.0rc1", False),
    ("quay.io/ascend/vllm-ascend:v0.19.1rc1", True), ("mine:5000/vllm-ascend:v0.23.0", True),
    ("quay.io/ascend/vllm-ascend:main", True), ("mine:5000/vllm-ascend", True)])
def test_steps_are_scheduled_ahead_where_the_ngram_sees_them(machine: Machine, image: str,
                                                             ahead: bool) -> None:
    told = machine.told(*(("--image", image) if image else ()))
    assert ("--no-async-scheduling" in told) is not ahead


def test_the_command_is_printed_and_can_be_pasted(machine: Machine) -> None:
    ran = machine.start("--dry-run", "--graphs", "serve", "--max-num-seqs", "64")
    assert ran.returncode == 0
    assert not machine.calls.exists()
    printed, = ran.stdout.splitlines()
    pasted = subprocess.run(["bash", "-c", printed], env=machine.env, check=False)
    assert pasted.returncode == 0
    assert machine.calls.read_text().splitlines() == machine.told(
        "--graphs", "serve", "--max-num-seqs", "64")
    assert shlex.split(printed)[-2:] == ["--max-num-seqs", "64"]
    (machine.bin / "docker").unlink()  # on a machine without it, too
    assert machine.start("--dry-run").returncode == 0


def test_who_may_use_the_server(machine: Machine) -> None:
    assert "everybody" not in machine.start().stderr
    open_ = machine.start("--host", "0.0.0.0", "--port", "9000")
    assert "everybody who reaches port 9000" in open_.stderr
    secret = "sk-very-secret-4711"
    told = machine.told("--host", "0.0.0.0", VLLM_API_KEY=secret)
    assert "VLLM_API_KEY" in values(told, "-e")  # by name: docker takes the value itself
    assert secret not in "\n".join(told)
    ran = machine.start("--host", "0.0.0.0", "--dry-run", VLLM_API_KEY=secret)
    assert "everybody" not in ran.stderr
    assert secret not in ran.stdout + ran.stderr


def test_the_model(machine: Machine) -> None:
    (machine.data / "models/DeepSeek-OCR-2/config.json").unlink()
    ran = machine.start()
    assert ran.returncode == 1
    assert "there is no model in" in ran.stderr
    assert "verso models download" in ran.stderr
    (machine.data / "other").mkdir()
    ran = machine.start("--model", "/data/other")
    assert ran.returncode == 1
    assert f"there is no model in {machine.data}/other" in ran.stderr
    (machine.data / "other/config.json").write_text("{}")
    for name in ("/data/other", "deepseek-ai/DeepSeek-OCR-2"):  # the second one is a model hub's
        told = machine.told("--model", name)
        assert told[told.index("serve") + 1] == name
    ran = machine.start("--model", str(machine.data / "other"))
    assert ran.returncode == 1
    assert "the container sees no" in ran.stderr
    assert "/data/…" in ran.stderr
    # What Verso downloaded, where nothing else is named.
    ran = machine.start(data=False)
    assert ran.returncode == 1
    models = machine.home / ".local/share/verso/models"
    (models / "DeepSeek-OCR-2").mkdir(parents=True)
    (models / "DeepSeek-OCR-2/config.json").write_text("{}")
    assert f"{models}:/data/models:ro" in values(machine.told(data=False), "-v")
    assert machine.start("--data", "/nowhere", data=False).returncode == 1


@pytest.mark.parametrize("words", [
    ("--frob",), ("frob",), ("--npu",), ("--npu", "x"), ("--npu", "1;2"), ("--port", "eight"),
    ("--utilization", "2"), ("--utilization", "0.0"), ("--port", "99999"), ("--port", "0"),
    ("--npu", "0,0"), ("--npu", "0", "--npu", "0"), ("--npu", "00"), ("--shm-size", "much"),
    ("serve", "--host", "0.0.0.0"), ("serve", "--max-num-seqs", "8", "--port=9000")])
def test_a_call_that_is_wrong(machine: Machine, words: tuple[str, ...]) -> None:
    ran = machine.start(*words)
    assert ran.returncode == 2
    assert "--help" in ran.stderr
    assert not machine.calls.exists()


def test_the_older_stack_has_no_server(machine: Machine) -> None:
    ran = machine.start("--legacy", "serve")
    assert ran.returncode == 1
    assert "--legacy build" in ran.stderr


def test_every_option_is_explained() -> None:
    script = (HERE / "start").read_text("utf-8")
    explained = subprocess.run([HERE / "start", "--help"], capture_output=True, text=True,
                               timeout=60, check=True).stdout
    for option in re.findall(r"^        (--[a-z-]+)\)", script, re.MULTILINE):
        assert re.search(rf"^  {option}\b", explained, re.MULTILINE), option
    assert all(len(line) <= 100 for line in explained.splitlines())
