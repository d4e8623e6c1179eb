"""A document, from the command line through session, worker, engine and official code to the files
that are written."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from desktop.cli.main import main
from tests.engines.ascend import trees
from tests.support import environments, legacy_vllm
from tests.support.legacy_vllm import Recital

TEXT = ("<|ref|>title<|/ref|><|det|>[[51, 7, 949, 98]]<|/det|>\n# Größe\n\n"
        "<|ref|>text<|/ref|><|det|>[[51, 107, 949, 198]]<|/det|>\nOne line.\n\n"
        "<|ref|>table<|/ref|><|det|>[[51, 207, 949, 298]]<|/det|>\n"
        "<table><tr><td>a</td><td>b</td></tr></table>\n\n")


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An environment that has the older stack for an NPU."""
    site = environments.give(environments.make(tmp_path / "env"), "msgspec", "PIL")
    (site / "stack.pth").write_text("\n".join(
        map(str, (legacy_vllm.NPU, legacy_vllm.PATH, legacy_vllm.TORCH))))
    return tmp_path / "env"


def test_a_page_becomes_markdown_and_json(tmp_path: Path, python: Path, model: Path, code: Path,
                                          samples: Path, monkeypatch: pytest.MonkeyPatch,
                                          no_process_left: object) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    trees.toolkit(home / "Ascend/cann", "8.1.RC1", platform.machine())
    trees.driver(home / "Ascend")
    trees.nnal(home / "Ascend", "8.1.RC1")
    recital = Recital(tmp_path, text=TEXT)
    for name, value in recital.environment().items():
        if name != "PYTHONPATH":
            monkeypatch.setenv(name, value)
    page = next(samples.glob("*.png"))
    out = tmp_path / "out"
    status = main([str(word) for word in (
        "convert", page, "-o", out, "--engine", "ascend-legacy", "--engine-interpreter", python,
        "--model", model, "--official-code", code, "--swap-space", "2", "--devices", "1")])
    assert status == 0
    stem = page.stem
    text = (out / stem / f"{stem}.md").read_text()
    assert "# Größe" in text
    assert "One line." in text
    made = json.loads((out / stem / f"{stem}.json").read_text())
    assert made["engine"]["name"] == "ascend-legacy"
    [found] = made["pages"]
    assert found["status"] == "complete"
    assert [block["label"] for block in found["blocks"]] == ["title", "text", "table"]
    [told] = recital.of("arguments")
    assert told["given"]["swap_space"] == 2.0
    assert recital.of("shutdown")
