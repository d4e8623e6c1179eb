"""The worker, the engine and the prepared code under Python 3.9, the oldest of the older stack."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from desktop.client.interpreter import examine
from desktop.protocol.messages import Hello
from tests.accelerator.real import Reader
from tests.support import processes, pythons
from tests.support.data import ROOT
from tests.support.legacy_vllm import Recital

OLDEST = (3, 9)
FOLDERS = ("worker", "protocol", "engines/ascend_legacy", "engines/ascend", "engines/model",
           "engines/vllm", "settings")
"""Of the package: what the worker imports for this engine."""


def test_everything_of_it_is_in_the_words_of_python_39() -> None:
    for folder in FOLDERS:
        for path in (ROOT / "desktop" / folder).rglob("*.py"):
            ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=OLDEST)


@pytest.fixture(scope="session")
def python39() -> Path:
    """An environment with Python 3.9, msgspec and Pillow, beside that with real vLLM."""
    base = pythons.python39()
    if base is None:
        pytest.skip("no Python 3.9 on this machine")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "verso-tests" / "python39"
    program = folder / "bin" / "python"
    has = [str(program), "-c", "import msgspec, PIL.Image"]
    with processes.alone(folder):
        if not program.exists() or subprocess.run(
                has, check=False, capture_output=True).returncode:
            subprocess.run([base, "-m", "venv", "--clear", str(folder)], check=True)
            subprocess.run([str(program), "-m", "pip", "install", "--quiet", "--no-input",
                            "--disable-pip-version-check", "msgspec", "Pillow"], check=True)
    return program


@pytest.mark.engines
def test_a_page_is_read_and_another_cancelled(worker: Callable[..., Reader], tmp_path: Path,
                                              python39: Path) -> None:
    recital = Recital(tmp_path, text="round and round we go. " * 200, delay=0.01)
    reader = worker(recital, interpreter=python39)
    assert reader.ready().device == "Ascend910B3"
    assert reader.recorder.of(Hello)[0].python.startswith("3.9.")
    end = reader.read(loop_guard=True)
    assert (end.finish, reader.restarts(end.page_id)) == ("complete", ["loop"])
    page = reader.submit()
    reader.streaming(page)
    reader.client.cancel(page)
    assert reader.finished(page).finish == "cancelled"


@pytest.mark.engines
def test_only_the_engine_with_the_official_code_takes_it(python39: Path) -> None:
    report = examine(str(python39), (), official=True)
    assert report.usable, report.problems
    [problem] = examine(str(python39), ()).problems
    assert problem.code == "interpreter.too_old"
    assert "3.10" in problem.message


def test_what_it_lacks_is_named_with_the_version_it_needs() -> None:
    report = examine(sys.executable, ("vllm",), official=True)
    assert "vllm==0.8.5.post1" in report.problems[0].hint or "vllm" in report.versions
