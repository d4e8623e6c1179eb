"""The image with Verso: its Dockerfile, what is installed into it, and that the scripts are
clean."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

from desktop.engines.registry import ENGINES
from tests.packaging.ascend import HERE, Image
from tests.support.data import ROOT

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux scripts")

SCRIPTS = ("start", "inside", "install")


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
