"""Containers for Ascend NPUs: the start script on machines of several kinds, with a docker that
writes down what it is told; what runs inside; what the image is made from."""

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
import tomllib

from desktop.engines import plugin
from desktop.engines.ascend.support import BEST, OLDEST
from desktop.engines.registry import ENGINES
from desktop.settings.store import Store
from tests.support import ascend_sources
from tests.support.data import ROOT

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux scripts")

HERE = ROOT / "packaging/ascend"
SCRIPTS = ("start", "inside", "install")
CONTROL = ("davinci_manager", "devmm_svm", "hisi_hdc")
TOOLS = ("bash", "sh", "sed", "tail", "head", "sort", "uname", "dirname", "basename", "cat", "id",
         "mkdir", "cp", "env", "mktemp", "rm", "chmod", "getconf", "tr", "git")
IMAGE = f"quay.io/ascend/vllm-ascend:v{BEST}"


class Machine:
    """A host with NPUs below ``root``, and a docker that writes its arguments down."""

    def __init__(self, folder: Path, npus: tuple[int, ...] = (0,)) -> None:
        self.root = folder / "machine"
        self.bin = folder / "bin"
        self.calls = folder / "calls"
        self.home = folder / "home"
        for made in (self.root / "dev", self.bin, self.home):
            made.mkdir(parents=True)
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool) or f"/usr/bin/{tool}")
        self.docker("docker")
        for number in npus:
            self.file(f"/dev/davinci{number}")
        for name in CONTROL:
            self.file(f"/dev/{name}")
        for name in ("lib64/driver/libascend_hal.so", "version.info"):
            self.file(f"/usr/local/Ascend/driver/{name}")
        self.file("/usr/local/dcmi/libdcmi.so")
        self.file("/usr/local/bin/npu-smi")
        self.file("/etc/ascend_install.info", "Driver_Install_Path_Param=/usr/local/Ascend\n")
        self.data = folder / "the data"  # a space: paths must be quoted
        (self.data / "models/DeepSeek-OCR-2").mkdir(parents=True)
        (self.data / "models/DeepSeek-OCR-2/config.json").write_text("{}")
        self.env = {"PATH": str(self.bin), "HOME": str(self.home), "CALLS": str(self.calls),
                    "VERSO_TEST_MACHINE": str(self.root)}

    def docker(self, name: str, script: str = "") -> None:
        tool = self.bin / name
        tool.write_text("#!/bin/sh\n" + (script or (
            'for word; do printf "%s\\n" "$word"; done > "$CALLS"\n')))
        tool.chmod(0o755)

    def file(self, path: str, text: str = "") -> Path:
        made = self.root / path.lstrip("/")
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(text)
        return made

    def start(self, *words: str, data: bool = True,
              **env: str) -> subprocess.CompletedProcess[str]:
        options = ["--data", str(self.data)] if data else []
        return subprocess.run(
            [HERE / "start", *options, *words], env={**self.env, **env}, cwd=self.home,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)

    def told(self, *words: str, data: bool = True, **env: str) -> list[str]:
        """What docker was called with."""
        self.calls.unlink(missing_ok=True)
        ran = self.start(*words, data=data, **env)
        assert ran.returncode == 0, ran.stderr
        return self.calls.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def values(told: list[str], option: str) -> list[str]:
    """What follows each OPTION."""
    return [told[place + 1] for place, word in enumerate(told) if word == option]


# --- what docker is told


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
    begin = told.index(IMAGE)
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
    told = machine.told("--model", "/data/other")
    assert told[told.index("serve") + 1] == "/data/other"
    # What Verso downloaded, where nothing else is named.
    ran = machine.start(data=False)
    assert ran.returncode == 1
    models = machine.home / ".local/share/verso/models"
    (models / "DeepSeek-OCR-2").mkdir(parents=True)
    (models / "DeepSeek-OCR-2/config.json").write_text("{}")
    assert f"{models}:/data/models:ro" in values(machine.told(data=False), "-v")
    assert machine.start("--data", "/nowhere", data=False).returncode == 1


# --- Verso inside


def test_commands_of_verso(machine: Machine) -> None:
    told = machine.told("verso", "convert", "a b.pdf", "-o", "out")
    begin = told.index(f"verso-ascend:v{BEST}")
    assert told[begin + 1:] == ["/opt/verso-start/inside", "verso", "convert", "a b.pdf", "-o",
                                "out"]
    assert f"{machine.home}:/documents" in values(told, "-v")
    assert "verso-current:/verso" in values(told, "-v")
    assert f"{machine.data}:/data" in values(told, "-v")  # a model can be fetched there
    told = machine.told("--legacy", "shell")
    assert told[told.index(f"verso-ascend:v{OLDEST}") + 1:] == [
        "/opt/verso-start/inside", "bash", "-i"]
    assert "verso-legacy:/verso" in values(told, "-v")
    machine.docker("docker", 'case "$1" in image) exit 1;; esac\n')
    ran = machine.start("shell")
    assert ran.returncode == 1
    assert "start build" in ran.stderr
    assert "--legacy build" in machine.start("--legacy", "shell").stderr


def test_the_window_on_this_display(machine: Machine, tmp_path: Path) -> None:
    ran = machine.start("window")
    assert ran.returncode == 1
    assert "there is no display" in ran.stderr
    assert "serve" in ran.stderr
    told = machine.told("window", DISPLAY=":9")
    assert "DISPLAY" in values(told, "-e")
    assert not [each for each in values(told, "-e") if each.startswith("XAUTHORITY")]
    cookie = machine.home / ".Xauthority"
    cookie.write_text("x")
    told = machine.told("window", DISPLAY="localhost:10.0")
    assert f"{cookie}:/tmp/verso-xauthority:ro" in values(told, "-v")
    assert "XAUTHORITY=/tmp/verso-xauthority" in values(told, "-e")
    # Wayland goes before X11 where its socket is there.
    import socket
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "wayland-1"))
        told = machine.told("window", DISPLAY=":9", WAYLAND_DISPLAY="wayland-1",
                            XDG_RUNTIME_DIR=str(tmp_path))
    assert f"{tmp_path}/wayland-1:/tmp/verso-display/wayland-0" in values(told, "-v")
    assert "QT_QPA_PLATFORM=wayland" in values(told, "-e")
    assert "DISPLAY" not in values(told, "-e")
    told = machine.told("window", DISPLAY=":9", WAYLAND_DISPLAY="gone",
                        XDG_RUNTIME_DIR=str(tmp_path))
    assert "DISPLAY" in values(told, "-e")


def test_files_for_the_window(machine: Machine, tmp_path: Path) -> None:
    (machine.home / "sub").mkdir()
    told = machine.told("window", "sub/a b.pdf", str(machine.home / "c.pdf"), DISPLAY=":9")
    assert told[-3:] == ["verso", "/documents/sub/a b.pdf", "/documents/c.pdf"]
    ran = machine.start("window", str(tmp_path / "elsewhere.pdf"), DISPLAY=":9")
    assert ran.returncode == 1
    assert "--documents" in ran.stderr
    told = machine.told("--documents", str(tmp_path), "window", str(tmp_path / "x.pdf"),
                        DISPLAY=":9")
    assert told[-1] == "/documents/x.pdf"


def test_the_image_is_built(machine: Machine) -> None:
    told = machine.told("build")
    assert told[0] == "build"
    assert values(told, "--build-arg") == [f"BASE={IMAGE}", "STACK=current"]
    assert values(told, "--file") == [str(HERE / "Dockerfile")]
    assert values(told, "--tag") == [f"verso-ascend:v{BEST}"]
    assert told[-1] == str(ROOT)
    told = machine.told("--legacy", "build", "--build-arg", "PIP_INDEX_URL=https://mirror/simple")
    assert f"BASE=quay.io/ascend/vllm-ascend:v{OLDEST}" in values(told, "--build-arg")
    assert "PIP_INDEX_URL=https://mirror/simple" in values(told, "--build-arg")
    for node in (machine.root / "dev").iterdir():
        node.unlink()  # it can be built where there is no NPU
    assert machine.told("--image", "quay.io/ascend/vllm-ascend:v0.23.0", "build")[-1] == str(ROOT)


@pytest.mark.parametrize("words", [
    ("--frob",), ("frob",), ("--npu",), ("--npu", "x"), ("--npu", "1;2"), ("--port", "eight"),
    ("--utilization", "2")])
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


# --- what is used of the engines


def test_the_images_are_those_of_the_table() -> None:
    script = (HERE / "start").read_text("utf-8")
    assert set(re.findall(r"base:=quay\.io/ascend/vllm-ascend:v(\S+?)}", script)) == {BEST, OLDEST}
    docker = (HERE / "Dockerfile").read_text("utf-8")
    assert f"ARG BASE=quay.io/ascend/vllm-ascend:v{BEST}\n" in docker


def test_the_server_is_given_switches_that_the_plugin_knows() -> None:
    script = (HERE / "start").read_text("utf-8")
    given = set(re.findall(r"-e (VERSO_\w+)=1", script))
    assert given == {plugin.ATTENTION_TYPE, plugin.TOKENIZER_CLASS, plugin.HEAD_SIZE, plugin.MASK}


@pytest.mark.engines
@pytest.mark.parametrize("version", [BEST, "0.23.0.post1"])
def test_the_server_takes_what_it_is_given(machine: Machine, version: str) -> None:
    """Every flag, key and variable is known to the real sources of vLLM and vllm-ascend."""
    ascend_sources.ensure()
    ascend, vllm = ascend_sources.roots(version)
    flags = "".join((vllm / "vllm" / name).read_text("utf-8") for name in (
        "engine/arg_utils.py", "entrypoints/openai/cli_args.py"))
    config = (ascend / "vllm_ascend/ascend_config.py").read_text("utf-8")
    for told in (machine.told(), machine.told("--graphs")):
        command = told[told.index("serve"):]
        for flag in (word for word in command if word.startswith("--")):
            name = flag.removeprefix("--").removeprefix("no-")
            assert f'"--{name}"' in flags or re.search(
                rf"^    {name}: ", flags, re.MULTILINE), flag
        for settings in values(command, "--additional-config"):
            keys = json.loads(settings)
            for key in (*keys, *keys["ascend_compilation_config"]):
                assert re.search(rf"\b{key}\b", config), key
        assert "VLLM_ASCEND_ENABLE_NZ=0" in values(told, "-e")
        processor, = values(command, "--logits-processors")
        module, _colon, name = processor.partition(":")
        source = (vllm / (module.replace(".", "/") + ".py")).read_text("utf-8")
        assert f"class {name}" in source
    assert '"VLLM_ASCEND_ENABLE_NZ"' in (ascend / "vllm_ascend/envs.py").read_text("utf-8")


# --- inside


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An image's file system: CANN, ATB and the mounted driver, as far as they matter."""
    root = tmp_path / "image"
    for path, text in (
            ("ascend-toolkit/set_env.sh", "export ASCEND_HOME_PATH=/cann\n"
             "export LD_LIBRARY_PATH=/cann/lib64:$LD_LIBRARY_PATH\n"),
            ("nnal/atb/set_env.sh", "export ATB_HOME_PATH=/atb\nfalse\n"),
            ("driver/lib64/driver/libascend_hal.so", ""),
            ("driver/lib64/common/libc_sec.so", "")):
        made = root / "usr/local/Ascend" / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(text)
    return root


def inside(image: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HERE / "inside", *command], capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": os.environ["PATH"], "VERSO_TEST_MACHINE": str(image)})


def test_the_environment_inside(image: Path) -> None:
    (image / "opt/verso-plugin").mkdir(parents=True)
    ran = inside(image, sys.executable, "-c",
                 "import json, os; print(json.dumps(dict(os.environ)))")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["ASCEND_HOME_PATH"] == "/cann"
    assert found["ATB_HOME_PATH"] == "/atb"
    driver = f"{image}/usr/local/Ascend/driver/lib64"
    assert {f"{driver}/driver", f"{driver}/common", "/cann/lib64"} <= set(
        found["LD_LIBRARY_PATH"].split(":"))
    assert found["PYTHONPATH"] == f"{image}/opt/verso-plugin"


def test_a_missing_atb_only_warns(image: Path) -> None:
    shutil.rmtree(image / "usr/local/Ascend/nnal")
    ran = inside(image, "echo", "it", "goes on")
    assert ran.returncode == 0
    assert ran.stdout == "it goes on\n"
    warning, = ran.stderr.splitlines()
    assert "warning: the ATB operators (NNAL) are not in this image" in warning
    shutil.rmtree(image / "usr/local/Ascend/ascend-toolkit")
    ran = inside(image, "echo", "still")
    assert ran.stdout == "still\n"
    assert "CANN is not in this image" in ran.stderr
    assert inside(image, "sh", "-c", "exit 7").returncode == 7


# --- the image


def instructions() -> list[tuple[str, str]]:
    """(INSTRUCTION, rest) of the Dockerfile, continued lines joined."""
    text = re.sub(r"\\\n", " ", (HERE / "Dockerfile").read_text("utf-8"))
    lines = [line.strip() for line in text.splitlines()]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines
            if line and not line.startswith("#")]


def test_the_dockerfile_is_well_formed() -> None:
    found = instructions()
    known = {"ARG", "FROM", "SHELL", "COPY", "RUN", "ENV", "VOLUME", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert {name for name, _rest in found} <= known
    assert [name for name, _rest in found][:2] == ["ARG", "FROM"]
    declared = {rest.partition("=")[0] for name, rest in found if name == "ARG"}
    for _name, rest in found:
        assert set(re.findall(r"\$\{(\w+)", rest)) <= declared
    for name, rest in found:
        if name in ("SHELL", "VOLUME", "ENTRYPOINT", "CMD"):
            assert all(isinstance(each, str) for each in json.loads(rest))
    # What is written to a volume after it was declared is lost.
    names = [name for name, _rest in found]
    assert names.index("VOLUME") > max(i for i, name in enumerate(names) if name == "RUN")
    assert dict(found)["ENTRYPOINT"] == '["/opt/verso/packaging/ascend/inside"]'


def test_what_is_copied_is_there_and_enough_to_install_from() -> None:
    ignored = (HERE / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    assert "*" in ignored
    copied = set()
    for name, rest in instructions():
        if name == "COPY":
            *sources, target = rest.split()
            assert target.startswith("/opt/verso/")
            copied |= set(sources)
    assert copied == let_in
    assert all((ROOT / each).exists() for each in copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["packages"], *wheel["force-include"], *wheel["shared-data"],
              project["project"]["readme"], *project["project"]["license-files"]}
    assert {each.partition("/")[0] for each in needed} <= copied


class Image:
    """A system in which ``install`` runs with stand-ins for Python and apt."""

    def __init__(self, folder: Path, version: str = "3.11", machine: str = "x86_64",
                 glibc: str = "2.35") -> None:
        self.root = folder / "system"
        self.bin = folder / "bin"
        self.calls = folder / "calls"
        for made in (self.bin, self.root / "usr/local/bin", self.root / "opt",
                     self.root / "var/lib/apt/lists"):
            made.mkdir(parents=True)
        for tool in TOOLS:
            if tool not in ("uname", "getconf"):
                (self.bin / tool).symlink_to(shutil.which(tool) or f"/usr/bin/{tool}")
        new = tuple(map(int, version.split("."))) >= (3, 11)
        self.tool("python3", f"""
echo "python3 $*" >> "$CALLS"
case "$*" in
  "-c import msgspec, PIL") exit "${{NO_MSGSPEC:-0}}" ;;
  "-c import "*version_info*) exit {0 if new else 1} ;;
  "-m venv "*) mkdir -p "$3/bin"; cp "$ENVIRONMENT" "$3/bin/python"; cp "$VERSO" "$3/bin/verso" ;;
  "-m uv python find "*) echo "$MANAGED" ;;
esac
""")
        self.managed = folder / "managed"
        self.managed.write_text(
            '#!/bin/sh\necho "managed $*" >> "$CALLS"\nmkdir -p "$3/bin"\n'
            'cp "$ENVIRONMENT" "$3/bin/python"; cp "$VERSO" "$3/bin/verso"\n')
        self.environment = folder / "environment"
        self.environment.write_text(f"""#!/bin/sh
echo "python $*" >> "$CALLS"
[ "$1" != - ] || exec {sys.executable} "$@"
for word; do case "$word" in */tmp.*) cat "$word" > "$CALLS.list" ;; esac; done
""")
        self.verso = folder / "verso"
        self.verso.write_text('#!/bin/sh\necho "verso $* in $PWD, PYTHONPATH=$PYTHONPATH" '
                              '>> "$CALLS"\n')
        for made in (self.environment, self.verso, self.managed):
            made.chmod(0o755)
        self.tool("uname", f'case "$*" in -m) echo {machine};; *) echo Linux;; esac\n')
        self.tool("getconf", f"echo glibc {glibc}\n")
        self.tool("apt-get", 'echo "apt-get $*" >> "$CALLS"\n')
        self.tool("apt-cache", "exit 1\n")
        self.tool("id", "echo 0\n")
        self.tool("ldconfig", "exit 0\n")
        self.env = {"PATH": str(self.bin), "CALLS": str(self.calls), "HOME": str(folder),
                    "ENVIRONMENT": str(self.environment), "VERSO": str(self.verso),
                    "MANAGED": str(self.managed),
                    "PYTHONPATH": "/cann/site-packages", "VERSO_TEST_MACHINE": str(self.root),
                    "TMPDIR": "/tmp"}

    def tool(self, name: str, text: str) -> None:
        (self.bin / name).write_text("#!/bin/sh\n" + text)
        (self.bin / name).chmod(0o755)

    def install(self, stack: str, **env: str) -> list[str]:
        ran = subprocess.run([HERE / "install", stack], env={**self.env, **env},
                             capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == 0, ran.stderr
        return self.calls.read_text().splitlines()

    def settings(self) -> dict[str, object]:
        """What Verso makes of the settings in the image."""
        loaded = Store(self.root / "verso/config/settings.json").load()
        assert [each for each in loaded.problems if "ascend" not in each.message] == []
        return loaded.values.changed()


def test_the_current_image(tmp_path: Path) -> None:
    image = Image(tmp_path)
    calls = image.install("current")
    venv = image.root / "opt/verso-venv"
    assert f"python3 -m venv {venv}" in calls
    assert any(call.startswith("python -m pip install") and call.endswith(str(ROOT))
               for call in calls)
    apt, = [call for call in calls if "apt-get" in call and " install " in call]
    assert "libxcb-cursor0" in apt
    assert "libwayland-client0" in apt
    assert "fonts-noto-cjk" in apt
    assert not [call for call in calls if "msgspec pillow" in call]
    launcher = image.root / "usr/local/bin/verso"
    subprocess.run([launcher, "--version"], env=image.env, check=True)
    assert image.calls.read_text().splitlines()[-1].startswith("verso --version")
    assert image.calls.read_text().rstrip().endswith("PYTHONPATH=")
    settings = image.settings()
    assert settings["model"] == "/data/models/DeepSeek-OCR-2"
    assert settings["engine_interpreter"] == str(image.bin / "python3")
    if any(entry.name == "ascend" for entry in ENGINES):
        assert settings["engine"] == "ascend"


def test_the_older_image_has_a_python_that_is_too_old_for_verso(tmp_path: Path) -> None:
    image = Image(tmp_path, "3.10")
    calls = image.install("legacy", NO_MSGSPEC="1")
    assert "python3 -m uv python install --managed-python 3.12" in calls
    assert f"managed -m venv {image.root}/opt/verso-venv" in calls
    assert not [call for call in calls if call.startswith("python3 -m venv")]
    assert "python3 -m pip install --no-cache-dir msgspec pillow" in calls
    prepared, = [call for call in calls if call.startswith("verso prepare-npu")]
    assert f"--engine-interpreter {image.bin}/python3 in {image.root}/opt," in prepared
    settings = image.settings()
    assert settings["engine"] == "ascend-legacy"
    assert settings["official_code"] == f"{image.root}/opt/deepseek_ocr2_npu"


def test_without_a_window_where_qt_cannot_be_had(tmp_path: Path) -> None:
    image = Image(tmp_path, machine="aarch64")
    calls = image.install("current")
    assert not [call for call in calls if "apt-get" in call]
    assert any("--no-deps" in call for call in calls)
    listed = (tmp_path / "calls.list").read_text().splitlines()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    left_out = [each for each in project["dependencies"] if each not in listed]
    assert sorted(re.split(r"\W", each)[0].lower() for each in left_out) == ["pyside6", "qasync"]
    newer = tmp_path / "newer"
    newer.mkdir()
    assert [call for call in Image(newer, machine="aarch64", glibc="2.39").install("current")
            if "apt-get" in call]


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_scripts_are_clean(name: str) -> None:
    assert os.access(HERE / name, os.X_OK)
    assert subprocess.run(["bash", "-n", HERE / name], check=False).returncode == 0
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    ran = subprocess.run(["shellcheck", "-x", HERE / name], cwd=ROOT, capture_output=True,
                         text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout
