"""`packaging/ascend/inside`: the environment that a command gets in the container."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.ascend import HERE

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux scripts")


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
        [HERE / "inside", *command], capture_output=True, text=True, timeout=240, check=False,
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
