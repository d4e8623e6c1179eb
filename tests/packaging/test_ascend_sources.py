"""The sources for the contract tests: what is kept of an archive, and that nothing is fetched
twice."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from tests.support.ascend_sources import FETCHER


def archive(path: Path, *names: str) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 4
            tar.addfile(info, io.BytesIO(b"x=1\n"))
    return path


def test_only_the_packages_python_files_are_kept(tmp_path: Path) -> None:
    made = archive(tmp_path / "vllm-1.tar.gz", "vllm-1/setup.py", "vllm-1/vllm/__init__.py",
                   "vllm-1/vllm/ops/kernel.cu", "vllm-1/vllm/ops/moe.py", "vllm-1/tests/vllm/a.py")
    FETCHER._unpack(made, "vllm", tmp_path / "out")
    kept = [str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.py")]
    assert sorted(kept) == ["vllm/__init__.py", "vllm/ops/moe.py"]
    assert not list((tmp_path / "out").rglob("*.cu"))


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    made = archive(tmp_path / "other-1.tar.gz", "other-1/other/__init__.py")
    with pytest.raises(SystemExit, match=r"other-1\.tar\.gz has no Python files of vllm"):
        FETCHER._unpack(made, "vllm", tmp_path / "out")


def test_no_path_leads_out_of_the_folder(tmp_path: Path) -> None:
    made = archive(tmp_path / "vllm-1.tar.gz", "vllm-1/vllm/../../../out.py")
    with pytest.raises(tarfile.OutsideDestinationError):
        FETCHER._unpack(made, "vllm", tmp_path / "a" / "b")
    assert not (tmp_path / "out.py").exists()


def test_what_is_complete_is_not_fetched_again(tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FETCHER, "_run", lambda *command, path=None: pytest.fail("fetched"))
    for distribution, version, _ in FETCHER.wanted():
        FETCHER.place(tmp_path, distribution, version).mkdir()
    FETCHER.fetch(tmp_path)
    assert FETCHER.missing(tmp_path) == []
    FETCHER.place(tmp_path, "vllm", "0.9.1").rmdir()
    assert FETCHER.missing(tmp_path) == ["vllm==0.9.1"]


def test_the_folder_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERSO_ASCEND_SOURCES", str(tmp_path))
    assert FETCHER.default_folder() == tmp_path
    monkeypatch.delenv("VERSO_ASCEND_SOURCES")
    monkeypatch.setenv("VERSO_ENGINES_ENV", str(tmp_path / "venv"))
    assert FETCHER.default_folder() == tmp_path / "ascend-sources"
