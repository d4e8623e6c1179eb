"""Prepared scripts and the benchmark, run in processes of their own over stand-ins; in Python 3.9
as well where there is one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from desktop.engines.ascend import preparation
from desktop.engines.ascend.preparation import layout
from tests.support import official_code, pythons

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="NPUs are driven from Linux")

OLD = pythons.python39()
PYTHONS = [pytest.param(sys.executable, id="this"), pytest.param(
    OLD, id="3.9", marks=pytest.mark.skipif(OLD is None, reason="no Python 3.9 here"))]


class Place:
    """A prepared folder, the stand-ins, a CANN toolkit, and an environment that leads to them."""

    def __init__(self, folder: Path) -> None:
        source = official_code.official(folder / "source")
        self.target = folder / "a folder" / "npu"
        preparation.prepare(source, self.target).write()
        self.stand_ins = official_code.lay(folder / "site", official_code.STAND_INS)
        self.cann = official_code.lay(folder / "cann", dict.fromkeys(official_code.CANN, ""))
        self.environ = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(self.stand_ins),
            "ASCEND_HOME_PATH": str(self.cann), "LD_LIBRARY_PATH": "/given",
            "LANG": "C.UTF-8"}

    def run(self, python: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run it in the prepared folder."""
        return subprocess.run([python, *words], cwd=self.target, env=self.environ, text=True,
                              capture_output=True, check=False)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("script", layout.SCRIPTS)
def test_a_script_runs_on_its_own(place: Place, python: str, script: str) -> None:
    ran = place.run(python, script, "an argument", "--flag")
    assert ran.returncode == 0, ran.stderr
    said: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    assert said["arguments"] == ["an argument", "--flag"]
    assert said["moe"] == "vllm-ascend's"
    # The process was started anew with it: changing it later would not reach the loader.
    paths = said["library_path_at_start"].split(":")
    assert str(place.cann / "lib64") in paths
    assert paths[-1] == "/given"
    assert said["environ"]["ASCEND_OPP_PATH"] == str(place.cann / "opp")
    assert said["environ"]["VLLM_USE_V1"] == "0"
    options = said["options"]
    assert (options["enforce_eager"], options["gpu_memory_utilization"],
            options["swap_space"]) == (True, 0.85, 0)
    assert options.get("disable_mm_preprocessor_cache") == (
        None if script == layout.BATCH else True)


def test_without_the_patch_the_script_would_use_vllms_function(place: Place) -> None:
    path = place.target / layout.PDF
    path.write_text(path.read_text().replace("import verso_npu_patch\n", ""))
    said = json.loads(place.run(sys.executable, layout.PDF).stdout.splitlines()[-1])
    assert said["moe"] == "vllm's"


def test_without_cann_the_script_says_so_and_goes_on(place: Place) -> None:
    del place.environ["ASCEND_HOME_PATH"]
    if any(Path(name).exists() for name in ("/usr/local/Ascend", "/opt/Ascend")):
        pytest.skip("there is a CANN here")
    ran = place.run(sys.executable, layout.BATCH)
    assert ran.returncode == 0, ran.stderr
    assert "verso_npu: not found or not right: toolkit; looked at " in ran.stderr
    said = json.loads(ran.stdout.splitlines()[-1])
    assert said["library_path_at_start"] == "/given"
    assert said["environ"]["TOKENIZERS_PARALLELISM"] == "false"


def test_the_environment_script_sets_the_shell(place: Place) -> None:
    place.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{place.environ['PATH']}"
    ran = place.run("bash", "-c", "cd /; . \"$1/set_env.sh\"; set | grep -c '^verso_npu'; env", "x",
                    str(place.target))
    lines = ran.stdout.splitlines()
    assert lines[0] == "0"  # nothing of its own is left behind
    assert f"ASCEND_TOOLKIT_HOME={place.cann}" in lines
    assert "HCCL_WHITELIST_DISABLE=1" in lines
    [path] = [line for line in lines if line.startswith("LD_LIBRARY_PATH=")]
    assert path.endswith("/given")
    assert f"{place.cann}/lib64" in path


def test_the_environment_script_says_when_it_fails(place: Place) -> None:
    (place.target / "verso_npu" / "environment.py").write_text("raise SystemExit('broken')\n")
    ran = place.run("bash", "-c", ". ./set_env.sh; echo \"$? $LD_LIBRARY_PATH\"")
    assert ran.stdout == "1 /given\n"
    assert ran.stderr == "broken\nset_env.sh: nothing was set; the lines above say why.\n"
    place.environ["PATH"] = str(place.target)  # no Python at all
    ran = place.run(str(shutil.which("bash")), "-c", ". ./set_env.sh; echo $?")
    assert ran.stdout == "1\n"
    assert "there is no python on the PATH" in ran.stderr


@pytest.mark.parametrize("python", PYTHONS)
def test_the_benchmark(place: Place, tmp_path: Path, python: str) -> None:
    if python == OLD:
        # Pillow of another Python cannot be imported there.
        official_code.lay(place.stand_ins, {"PIL/__init__.py": "", "PIL/Image.py": """\
import contextlib
def open(path):
    return contextlib.closing(Picture())
class Picture:
    size = (40, 30)
    def convert(self, mode):
        assert mode == 'RGB'
        return self
    def close(self):
        pass
""", "PIL/ImageOps.py": "def exif_transpose(image):\n    return image\n"})
    images = tmp_path / "images"
    images.mkdir()
    for name in ("a.png", "b.JPG"):
        Image.new("RGB", (40, 30)).save(images / name)
    (images / "notes.txt").write_text("")
    ran = place.run(python, "benchmark.py", "--image", str(images), "--concurrent", "1,3",
                    "--warmup", "0", "--rounds", "2", "--max-tokens", "100",
                    "--json", str(tmp_path / "all.json"))
    assert ran.returncode == 0, ran.stderr
    rows = json.loads((tmp_path / "all.json").read_text())
    assert [row["concurrent"] for row in rows] == [1, 3]
    for row in rows:
        assert len(row["rounds"]) == 2
        for one in (row["cold"], *row["rounds"]):
            assert (one["in"], one["out"]) == (40 * row["concurrent"], 7 * row["concurrent"])
            assert one["out_per_second"] == pytest.approx(one["out"] / one["seconds"])
        assert row["out_per_second"] == pytest.approx(
            sum(one["out_per_second"] for one in row["rounds"]) / 2)
    table = (place.target / "benchmark_results.txt").read_text()
    assert table in ran.stdout
    assert len(table.splitlines()) == 3


@pytest.mark.parametrize("words", [
    (), ("--image", "nowhere.png"), ("--image", ".", "--concurrent", "0")])
def test_wrong_calls_of_the_benchmark(place: Place, words: tuple[str, ...]) -> None:
    ran = place.run(sys.executable, "benchmark.py", *words)
    assert ran.returncode in (1, 2)
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_where_the_environment_script_is(place: Place, shell: str) -> None:
    """bash knows it, also where CDPATH leads elsewhere; others have to be in its folder."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    take_in = '. "$1/set_env.sh"; echo "$? $ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE"'
    place.environ["CDPATH"] = str(place.target.parent)
    for folder in (".", "../npu"):
        ran = place.run(shell, "-c", take_in, shell, folder)
        assert ran.stdout == "0 0\n"
        assert "set_env.sh:" not in ran.stderr
    ran = subprocess.run([shell, "-c", take_in, shell, place.target], cwd="/", text=True,
                         env=place.environ, capture_output=True, check=False)
    if shell == "bash":
        assert ran.stdout == "0 0\n"
    else:
        assert ran.stdout == "1 \n"
        assert ran.stderr == (
            "set_env.sh: this shell does not say where the file is: cd to its folder first.\n")
