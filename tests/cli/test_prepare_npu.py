"""``verso prepare-npu``."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from desktop.cli import prepare_npu
from desktop.engines.ascend.preparation import layout, packages
from tests.cli.conftest import Verso
from tests.support import official_code, programs


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a checkout where it is looked for."""
    folder = tmp_path / "here"
    official_code.official(folder / "DeepSeek-OCR-2" / layout.INNER)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def python(tmp_path: Path) -> str:
    """An interpreter whose pip has everything but one package."""
    program = tmp_path / "python"
    return str(programs.write(program, "#!/bin/sh\nfor last; do :; done\n"
                              "[ $last = img2pdf ] && { echo 'ERROR: no wheel' >&2; exit 1; }\n"
                              f"echo $last >> {tmp_path / 'installed'}\n"))


def test_the_one_step(verso: Verso, here: Path, python: str, tmp_path: Path) -> None:
    ran = verso("prepare-npu", "--engine-interpreter", python)
    assert ran.status == 0, ran.err
    made = here / "deepseek_ocr2_npu"
    assert "enforce_eager=True" in (made / layout.IMAGE).read_text()
    for name in prepare_npu.ENTRIES:
        assert (made / name).is_file()
        assert f"{python} {name}" in ran.out
    assert (tmp_path / "installed").read_text().split() == list(packages.PACKAGES[:-1])
    assert ran.complaints == ["verso: img2pdf could not be installed: no wheel"]
    assert f"{python} -m pip install" in ran.err
    beside, = [line for line in ran.out.splitlines() if line.startswith("Put beside them: ")]
    for name in beside.removeprefix("Put beside them: ").split(", "):
        assert (made / name).is_file()
    assert "verso_npu.json" in beside


def test_what_keeps_all_packages_off_is_said_once(verso: Verso, here: Path,
                                                  tmp_path: Path) -> None:
    python = programs.write(tmp_path / "python",
                            '#!/bin/sh\necho "$0: No module named pip" >&2\nexit 1\n')
    ran = verso("prepare-npu", "--engine-interpreter", python, "--index-url", "http://i/simple")
    assert ran.status == 0
    complaint, = ran.complaints
    assert complaint.startswith(
        f"verso: {', '.join(packages.PACKAGES)} could not be installed: this Python has no pip")
    assert packages.by_hand(str(python), "http://i/simple", packages.PACKAGES) in ran.err
    assert (here / "deepseek_ocr2_npu" / layout.IMAGE).is_file()


def test_a_target_that_cannot_be_written(verso: Verso, here: Path) -> None:
    (here / "file").touch()
    ran = verso("prepare-npu", "DeepSeek-OCR-2", "file/below", "--no-install")
    assert ran.status == 1
    complaint, = ran.complaints
    assert "file/below cannot be written: File exists. Check" in complaint


def test_dry_run(verso: Verso, here: Path, python: str, tmp_path: Path) -> None:
    before = sorted(here.rglob("*"))
    ran = verso("prepare-npu", "--dry-run", "--engine-interpreter", python)
    assert ran.status == 0
    assert "run_dpsk_ocr2_image.py:18 +         enforce_eager=True,\n" in ran.out
    assert "config.py:6 + DEVICE = 'npu'\n" in ran.out
    assert "verso_npu_patch.py" in ran.out
    assert "einops, addict" in ran.out
    assert sorted(here.rglob("*")) == before
    assert not (tmp_path / "installed").exists()


def test_twice_and_by_name(verso: Verso, here: Path) -> None:
    words = ("prepare-npu", "DeepSeek-OCR-2", "out", "--no-install")
    assert verso(*words).status == 0
    first = (here / "out" / "verso_npu.json").read_bytes()
    (here / "out" / "config.py").write_text("MODEL_PATH = 1\n")
    ran = verso(*words, "--dry-run")
    assert "Changed by hand" in ran.out
    assert "config.py" in ran.out.splitlines()[-1]
    ran = verso(*words)
    assert ran.status == 0
    assert "out.before-1" in ran.out
    assert (here / "out" / "verso_npu.json").read_bytes() == first
    assert (here / "out.before-1" / "config.py").read_text() == "MODEL_PATH = 1\n"


def test_an_unknown_layout(verso: Verso, here: Path, python: str, tmp_path: Path) -> None:
    folder = here / "DeepSeek-OCR-2" / layout.INNER
    (folder / layout.SAM).write_text("import math\n")
    (folder / layout.PDF).unlink()
    ran = verso("prepare-npu", "--engine-interpreter", python)
    assert ran.status == 1
    assert "  deepencoderv2/sam_vary_sdpa.py: from flash_attn import …\n" in ran.err
    assert "  run_dpsk_ocr2_pdf.py\n" in ran.err
    assert not (here / "deepseek_ocr2_npu").exists()
    assert not (tmp_path / "installed").exists()  # refused before anything is done


def test_a_source_that_is_not_there(verso: Verso, here: Path, monkeypatch: pytest.MonkeyPatch,
                                    tmp_path: Path) -> None:
    ran = verso("prepare-npu", "mistyped", "--no-install")
    assert ran.status == 1
    assert ran.complaints[0].startswith("verso: There is no folder mistyped.")
    if shutil.which("git") is None:
        pytest.skip("no git here")
    origin = here / "DeepSeek-OCR-2"
    origin.rename(tmp_path / "origin")
    ran = verso("prepare-npu", "--dry-run")
    assert ran.status == 0
    assert layout.ADDRESS in ran.out
    assert not origin.exists()
    # Fetched from here instead of from where the code is published.
    for words in (["init", "-q"], ["add", "-A"],
                  ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x"]):
        subprocess.run(["git", *words], cwd=tmp_path / "origin", check=True)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{(tmp_path / 'origin').as_uri()}.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", layout.ADDRESS)
    ran = verso("prepare-npu", "--no-install")
    assert ran.status == 0, ran.err
    assert "Commit " in ran.out
    assert (here / "deepseek_ocr2_npu" / "verso_npu_environment.py").is_file()
