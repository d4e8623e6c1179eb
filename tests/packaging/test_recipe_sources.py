"""The official code and the recipe for the tests: fetched whole from their host, or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.data import ROOT
from tests.support.recipe_sources import FETCHER

COMMIT = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
          "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_GLOBAL": os.devnull}


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", folder, *words], env={**os.environ, **COMMIT}, check=True,
                          capture_output=True, text=True).stdout.strip()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the part that is wanted and another one."""
    folder = tmp_path / "host"
    for name in ("wanted/code.py", "other/big.bin"):
        path = folder / name
        path.parent.mkdir(parents=True)
        path.write_text(name)
    git(folder.parent, "init", "-q", "host")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(folder, "config", "uploadpack.allowFilter", "true")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    monkeypatch.setattr(FETCHER, "WANTED", {
        "Code": (folder.as_uri(), git(folder, "rev-parse", "HEAD"), "wanted")})
    return folder


def test_the_part_that_is_wanted_comes_once(host: Path, tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    FETCHER.fetch(tmp_path / "here")
    assert (tmp_path / "here/Code/wanted/code.py").read_text() == "wanted/code.py"
    assert not (tmp_path / "here/Code/other").exists()
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["Code"]
    monkeypatch.setattr(FETCHER, "_git", lambda *_words: pytest.fail("fetched"))
    FETCHER.fetch(tmp_path / "here")


def test_a_host_that_does_not_answer_is_another_thing_than_a_commit_that_is_gone(
        host: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address, commit, part = FETCHER.WANTED["Code"]
    monkeypatch.setattr(FETCHER, "WANTED", {"Code": ("http://127.0.0.1:9/x.git", commit, part)})
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(FETCHER.Unreachable):
        FETCHER.fetch(tmp_path / "here")
    monkeypatch.setattr(FETCHER, "WANTED", {"Code": (address, "1" * 40, part)})
    with pytest.raises(SystemExit) as caught:
        FETCHER.fetch(tmp_path / "here")
    assert not isinstance(caught.value, FETCHER.Unreachable)
    assert list((tmp_path / "here").iterdir()) == []


def test_the_status_says_that_the_host_does_not_answer(tmp_path: Path) -> None:
    """Through a proxy where nothing listens, on any machine."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.lower().endswith("_proxy")}
    ran = subprocess.run(
        [sys.executable, ROOT / "packaging/recipe_sources.py", tmp_path / "here"],
        env={**environment, "https_proxy": "http://127.0.0.1:9"}, check=False,
        capture_output=True, text=True)
    assert ran.returncode == FETCHER.UNREACHABLE
    assert "unable to access" in ran.stderr
