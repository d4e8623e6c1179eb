"""`packaging/ascend/start`, Verso inside: its commands, its window, and the image for them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from desktop.engines.ascend.support import BEST, OLDEST
from tests.packaging.ascend import BASE, HERE, Machine, values
from tests.support.data import ROOT

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux scripts")


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


def test_documents_that_are_not_there(machine: Machine) -> None:
    ran = machine.start("--documents", "/nowhere", "verso", "doctor")
    assert ran.returncode == 1
    assert ran.stderr == "start: there is no folder /nowhere (--documents).\n"


def test_the_window_on_this_display(machine: Machine, socket_folder: Path) -> None:
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
        server.bind(str(socket_folder / "wayland-1"))
        told = machine.told("window", DISPLAY=":9", WAYLAND_DISPLAY="wayland-1",
                            XDG_RUNTIME_DIR=str(socket_folder))
    assert f"{socket_folder}/wayland-1:/tmp/verso-display/wayland-0" in values(told, "-v")
    assert "QT_QPA_PLATFORM=wayland" in values(told, "-e")
    assert "DISPLAY" not in values(told, "-e")
    told = machine.told("window", DISPLAY=":9", WAYLAND_DISPLAY="gone",
                        XDG_RUNTIME_DIR=str(socket_folder))
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
    assert values(told, "--build-arg") == [f"BASE={BASE}", "STACK=current"]
    assert values(told, "--file") == [str(HERE / "Dockerfile")]
    assert values(told, "--tag") == [f"verso-ascend:v{BEST}"]
    assert told[-1] == str(ROOT)
    told = machine.told("--legacy", "build", "--build-arg", "PIP_INDEX_URL=https://mirror/simple")
    assert f"BASE=quay.io/ascend/vllm-ascend:v{OLDEST}" in values(told, "--build-arg")
    assert "PIP_INDEX_URL=https://mirror/simple" in values(told, "--build-arg")
    for image, tag in (("mirror:5000/vllm-ascend", "latest"), ("vllm-ascend", "latest"),
                       ("mirror:5000/ascend/vllm-ascend:v0.23.0", "v0.23.0"),
                       (f"{BASE}@sha256:12ab", "12ab")):
        assert values(machine.told("--image", image, "build"), "--tag") == [f"verso-ascend:{tag}"]
    for node in (machine.root / "dev").iterdir():
        node.unlink()  # it can be built where there is no NPU
    assert machine.told("--image", "quay.io/ascend/vllm-ascend:v0.23.0", "build")[-1] == str(ROOT)
