"""The plugin against real vLLM, under the interpreter that has it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from desktop.engines import plugin
from tests.support import tiny_vllm

HERE = Path(__file__).parent

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.usefixtures("engine_python")]

CHECKS = ("resampling", "containing", "views", "own mask", "mixed mask", "replacing", "attention",
          "together", "heads", "registering")


def run(script: str, *arguments: str, seconds: float, **variables: str) -> str:
    """What SCRIPT prints."""
    python = tiny_vllm.interpreter()
    assert python is not None
    environment = {**os.environ, **tiny_vllm.environment(), **variables}
    environment["PYTHONPATH"] += os.pathsep + str(plugin.folder())
    done = subprocess.run([str(python), str(HERE / script), *arguments], env=environment,
                          capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def checked(engine_python: Path) -> Any:
    """The results of ``checks.py``."""
    lines = run("checks.py", seconds=600).splitlines()
    return json.loads(next(line for line in reversed(lines) if line.startswith("{")))


@pytest.mark.parametrize("name", CHECKS)
def test_each_part_is_what_it_stands_in_for(checked: Any, name: str) -> None:
    if checked[name] == "no Triton":
        pytest.skip("the environment has no Triton to interpret the kernel")
    assert checked[name] is True, checked[name]


def test_pages_that_are_cut_in_the_engine_core_give_the_same_text(tmp_path: Path) -> None:
    model = tiny_vllm.build(tmp_path / "model")
    file = tmp_path / "found.json"
    run("raw_pages.py", str(model), str(tmp_path), str(file), seconds=900,
        VERSO_RAW_PAGES="force", VERSO_FAST_MASK="1", VERSO_HEAD_SIZE="1")
    result = json.loads(file.read_text("utf-8"))
    assert result["ways"] == ["raw", "rendered"]
    assert result["raw"] == result["rendered"]
    assert [page["prompt"] for page in result["raw"]] == [1123, 1123, 259, 1123, 835]
    # With prefix caching equal pixels have one name, others another.
    first, again, other = result["keys"]
    assert first == again != other
