"""The command line, in this process and in processes of its own (without Qt)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from desktop.cli.main import main
from tests.support import processes
from tests.support.data import ROOT

SHORT = {"text": "<|ref|>text<|/ref|><|det|>[[100, 100, 900, 200]]<|/det|>\nHello\n", "rate": 0}


@dataclass
class Ran:
    """How a call ended."""

    status: int
    out: str
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        """The JSON document on stdout."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def complaints(self) -> list[str]:
        """The lines that say what is wrong."""
        return [line for line in self.err.splitlines() if line.startswith("verso: ")]


Verso = Callable[..., Ran]


@pytest.fixture
def verso(capsys: pytest.CaptureFixture[str], no_process_left: object) -> Verso:
    """``verso("convert", …)`` in this process."""
    def run(*words: object) -> Ran:
        capsys.readouterr()
        status = main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Ran(status, out, err)

    return run


def command(*words: object) -> list[str]:
    """The command in a process of its own."""
    return [sys.executable, "-m", "desktop", *map(str, words)]


def start(*words: object, **options: Any) -> subprocess.Popen[str]:
    """Start the command in a process that cannot import Qt."""
    return subprocess.Popen(command(*words), cwd=ROOT, env=processes.without_qt(), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """``script(page, …, capacity=1)``: an ``--engine-arg`` for the scripted engine."""
    def make(*pages: dict[str, Any], **options: Any) -> str:
        text = json.dumps({"pages": pages or (SHORT,), **options})
        path = tmp_path / f"script-{abs(hash(text))}.json"
        path.write_text(text)
        return f"script={path}"

    return make


@pytest.fixture
def pdf(tmp_path: Path) -> Callable[..., Path]:
    """``pdf(pages, name)``: a small digital document."""
    import pymupdf

    def make(pages: int = 3, name: str = "made.pdf") -> Path:
        document = pymupdf.open()
        for number in range(1, pages + 1):
            document.new_page(width=200, height=280).insert_text((20, 40), f"Page {number}")
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        document.save(path)
        document.close()
        return path

    return make
