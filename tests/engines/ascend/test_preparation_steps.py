"""Fetching the official code with git, and installing with an interpreter's pip."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from desktop.engines.ascend.preparation import layout, official, packages
from desktop.engines.ascend.preparation.errors import SourceMissing, SourceNotFetched
from tests.support import official_code, programs

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="no git here")


def repository(folder: Path) -> str:
    """A repository laid out as the official one; its address."""
    official_code.official(folder / layout.INNER)
    for words in (["init", "--quiet"], ["add", "--all"],
                  ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "x"]):
        # Whatever the person's own configuration asks for.
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, env={
            **os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"})
    return folder.as_uri()


def test_what_source_names(tmp_path: Path) -> None:
    inner = official_code.official(tmp_path / "checkout" / layout.INNER)
    assert official.located(inner) == inner
    assert official.located(tmp_path / "checkout") == inner
    assert official.located(tmp_path / "nothing") is None
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceMissing):
        official.located(tmp_path / "file")


def test_where_a_checkout_must_come_to() -> None:
    assert official.checkout(official.DEFAULT_SOURCE) == Path("DeepSeek-OCR-2")
    assert official.checkout(Path("/a/b") / layout.INNER) == Path("/a/b")
    for mistyped in (Path("Deepseek"), Path(layout.INNER), Path("a") / layout.INNER / "c"):
        with pytest.raises(SourceMissing):
            official.checkout(mistyped)


@needs_git
def test_fetching(tmp_path: Path) -> None:
    address = repository(tmp_path / "origin")
    folder = tmp_path / "new" / "DeepSeek-OCR-2"
    commit = official.fetch(folder, address=address)
    assert len(commit) == 40
    found = official.located(folder / layout.INNER)
    assert found is not None
    assert (found / layout.IMAGE).read_text() == official_code.IMAGE
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    (tmp_path / "empty").mkdir()
    assert official.fetch(tmp_path / "empty", address=address) == commit


@needs_git
def test_what_cannot_be_fetched_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "DeepSeek-OCR-2"
    with pytest.raises(SourceNotFetched, match="fatal: ") as raised:
        official.fetch(folder, address=(tmp_path / "nowhere").as_uri())
    assert "git clone" in raised.value.problem().hint
    assert list(folder.parent.iterdir()) == []
    full = official_code.lay(tmp_path / "full", {"a": ""})
    with pytest.raises(SourceNotFetched, match="does not hold it"):
        official.fetch(full, address=repository(tmp_path / "origin"))
    assert [path.name for path in full.iterdir()] == ["a"]
    with pytest.raises(SourceNotFetched):
        official.fetch(full / "a", address=(tmp_path / "origin").as_uri())


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceNotFetched, match="git is not installed"):
        official.fetch(tmp_path / "x")


@pytest.fixture
def python(tmp_path: Path) -> str:
    """An interpreter that notes how pip is called and fails for one package."""
    program = tmp_path / "python"
    return str(programs.write(program, f"""#!{sys.executable}
import os, sys
with open({str(tmp_path / "calls")!r}, "a") as file:
    print(*sys.argv[1:], os.environ.get("https_proxy"), file=file)
if sys.argv[-1] == "triton-ascend":
    print("WARNING: something\\nERROR: Could not find a version that satisfies triton-ascend\\n"
          "ERROR: No matching distribution found for triton-ascend\\nnote: x", file=sys.stderr)
    sys.exit(1)
"""))


def test_each_package_is_tried_and_one_that_fails_does_not_stop_the_others(
        python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("https_proxy", raising=False)
    told: list[str] = []
    failed = packages.install(python, proxy="http://proxy:3128", tell=told.append)
    assert told == ["einops", "addict", "easydict", "triton-ascend", "PyMuPDF", "img2pdf"]
    assert (tmp_path / "calls").read_text().splitlines() == [
        "-m pip install --quiet --disable-pip-version-check --no-input --index-url "
        f"https://mirrors.huaweicloud.com/repository/pypi/simple {package} http://proxy:3128"
        for package in told]
    assert failed == [packages.Failed(
        "triton-ascend", "No matching distribution found for triton-ascend")]
    assert packages.by_hand(python, packages.INDEX, ["triton-ascend"]) == (
        f"{python} -m pip install --index-url {packages.INDEX} triton-ascend")


def test_the_index_is_ones_own_choice(python: str, tmp_path: Path) -> None:
    packages.install(python, index="http://localhost/simple")
    assert (tmp_path / "calls").read_text().count("--index-url http://localhost/simple ") == 6


def test_an_index_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real pip; nothing listens on the port, which is ours."""
    for name in list(os.environ):
        if name.startswith("PIP_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setattr(packages, "PACKAGES", ("verso-no-such-package",))
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        [failed] = packages.install(
            sys.executable, index=f"http://127.0.0.1:{bound.getsockname()[1]}/simple")
    assert failed.package == "verso-no-such-package"
    assert failed.reason.startswith("the package index does not answer (")


def test_an_interpreter_without_pip_or_that_is_none(tmp_path: Path) -> None:
    failed = packages.install(str(tmp_path / "nothing"))
    assert [one.package for one in failed] == list(packages.PACKAGES)
    assert "No such file" in failed[0].reason
    quiet = programs.write(tmp_path / "quiet", "#!/bin/sh\nexit 3\n")
    assert packages.install(str(quiet))[0].reason
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True,
                   env={**os.environ, "PYTHONNOUSERSITE": "1"})
    python = str(tmp_path / "venv" / "bin" / "python")
    failed = packages.install(python)
    assert len(failed) == len(packages.PACKAGES)
    # What is advised is a command that helps.
    assert {one.reason for one in failed} == {
        f"this Python has no pip; with {python} -m ensurepip it may get one."}
