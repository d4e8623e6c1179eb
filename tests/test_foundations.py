"""The fixtures all tests lean on do catch what they are there for."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from desktop import paths
from tests.support import data, processes

ORPHAN = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
"""

FAILING = """
import logging
import subprocess
import sys

import pytest


def test_error():
    logging.getLogger("desktop.x").error("page %d is lost", 3)


@pytest.mark.logs_errors
def test_marked():
    logging.getLogger("desktop.x").error("as expected")


def test_left(no_process_left):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])


def test_waited_for(no_process_left):
    subprocess.Popen(["sleep", "0.5"])

"""


def test_every_test_has_folders_of_its_own(verso_home: Path) -> None:
    for folder in (paths.data_dir(), paths.config_dir(), paths.cache_dir(), paths.log_dir()):
        assert folder.is_relative_to(verso_home)
        assert list(folder.iterdir()) == []


def test_a_process_whose_parent_has_died_is_found(
    test_mark: str, no_process_left: Callable[[], list[str]],
) -> None:
    subprocess.run([sys.executable, "-c", ORPHAN], check=True)
    processes.until(lambda: processes.descendants(test_mark))
    [orphan] = processes.descendants(test_mark)
    assert len(no_process_left()) == 1
    assert str(orphan.pid) in no_process_left()[0]
    orphan.kill()
    assert processes.left_running(test_mark) == []


def test_another_tests_processes_are_not_counted(test_mark: str) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                             env={**os.environ, processes.MARK: "other"})
    try:
        assert processes.left_running(test_mark, 0) == []
    finally:
        other.kill()
        other.wait()


def test_children_of_a_process_without_qt_have_none_either() -> None:
    code = """
import subprocess, sys
child = subprocess.run([sys.executable, "-c", "import PySide6"], capture_output=True, text=True)
print(child.returncode, "Qt is blocked" in child.stderr)
"""
    assert processes.run_without_qt(code).stdout.split() == ["1", "True"]


def test_manifests_are_read_by_column(tmp_path: Path) -> None:
    (tmp_path / "manifest.tsv").write_text('file\twhy\na.pdf\tsays "so\nb.pdf\t\n', "utf-8")
    assert data.manifest(tmp_path) == [{"file": "a.pdf", "why": 'says "so'},
                                       {"file": "b.pdf", "why": ""}]


def test_the_corpus_is_where_the_variable_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VERSO_CORPUS", str(tmp_path))
    assert data.corpus_dir() is None
    (tmp_path / "corpus/dev").mkdir(parents=True)
    (tmp_path / "corpus/dev/manifest.tsv").touch()
    assert data.corpus_dir() == tmp_path / "corpus/dev"


def run_pytest(tmp_path: Path, *options: str) -> str:
    """The report of a run over FAILING with this project's configuration."""
    (tmp_path / "test_failing.py").write_text(FAILING)
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", data.ROOT / "pyproject.toml",
         "--rootdir", data.ROOT, "--confcutdir", data.ROOT, "-p", "tests.conftest",
         "-p", "no:cacheprovider", *options, tmp_path / "test_failing.py"],
        cwd=data.ROOT, env={**os.environ, "PYTHONPATH": str(data.ROOT), "VERSO_TEST_PATIENCE": "5"},
        capture_output=True, text=True, timeout=400, check=False)
    return result.stdout + result.stderr


def test_errors_in_the_log_and_processes_left_fail_a_test(tmp_path: Path) -> None:
    report = run_pytest(tmp_path, "-p", "no:pytest-qt", "--without-qt")
    assert "desktop.x (thread MainThread): page 3 is lost" in report
    assert "ERROR ::test_error" in report
    assert "ERROR ::test_left - AssertionError: still running" in report
    assert "as expected" not in report
    assert "4 passed, 2 errors" in report, report


def test_the_handler_is_gone_after_a_test() -> None:
    names = [type(handler).__name__ for handler in logging.getLogger().handlers]
    assert names.count("_Collector") == 1
