"""``verso servers``."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import keyring
import keyring.backends.fail
import pytest

from desktop import keyrings
from desktop.cli.main import main
from desktop.engines.remote import keys
from tests.engines.remote.conftest import MemoryKeyring
from tests.engines.remote.fake_server import FakeServer, Refuse
from tests.support.data import ROOT

SECRET = "sk-verso-0123456789abcdef"


def test_a_good_server(steady: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["servers", steady.url]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "DeepSeek-OCR-2" in out
    assert "1132 tokens" in out
    assert out.count("✓") == 3


def test_what_is_wrong_is_said(serve: Callable[..., FakeServer],
                               capsys: pytest.CaptureFixture[str]) -> None:
    squashed, away = serve(), serve()
    squashed.squash = True
    away.stop()
    assert main(["servers", squashed.url, away.url]) == 1
    out = capsys.readouterr().out
    assert "squashes pages" in out
    assert f"{away.name} cannot be reached" in out


def test_json(serve: Callable[..., FakeServer], capsys: pytest.CaptureFixture[str]) -> None:
    good, locked = serve(), serve(key=SECRET)
    good.guard = False
    good.pause = 0.01
    assert main(["servers", "--json", good.url, locked.url]) == 1
    first, second = json.loads(capsys.readouterr().out)["servers"]
    assert first["good"]
    assert first["error"] is None
    assert (first["page_tokens"], first["ngram"]) == (1132, False)
    assert [found["code"] for found in first["findings"]] == ["probe.guard"]
    assert second["error"]["code"] == "remote.key_wanted"


@pytest.mark.parametrize(("words", "status", "code"), [
    ((), 2, "remote.no_servers"), (("ftp://x",), 2, "remote.address"),
    (("http://user:pw@gpu1",), 2, "remote.address"), (("gpu1:99999",), 2, "remote.address"),
    (("--delete", "gpu1"), 2, "cli.usage"), (("key",), 2, "cli.usage"),
    (("key", "gpu1", "gpu2"), 2, "cli.usage"), (("key", "ftp://x"), 2, "remote.address"),
    (("key", "gpu1"), 2, "remote.key_format")])
def test_a_wrong_call_is_status_2_and_one_line(
        words: tuple[str, ...], status: int, code: str, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert main(["servers", *words]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("verso: ")
    assert len(err.splitlines()) == 1
    assert main(["servers", "--json", *words]) == status
    assert json.loads(capsys.readouterr().out)["error"]["code"] == code


def test_what_is_wrong_with_the_settings_file_is_said(verso_home: Path, server: FakeServer,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    folder = verso_home / "config"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text("{")
    assert main(["servers", server.url]) == 0
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_those_of_the_settings(server: FakeServer, verso_home: Path,
                               capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["servers"]) == 2
    assert "No server is set" in capsys.readouterr().err
    folder = verso_home / "config"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text(json.dumps(
        {"version": 1, "settings": {"servers": server.url, "remote_model": "DeepSeek-OCR-2"}}))
    assert main(["servers"]) == 0
    assert server.url in capsys.readouterr().out


def test_a_key_comes_from_standard_input(ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(SECRET + "\n"))
    assert main(["servers", "key", "gpu1:8000"]) == 0
    assert ring.held == {(keyrings.SERVERS, "http://gpu1:8000/v1"): SECRET}
    assert main(["servers", "key", "gpu1:8000", "--delete"]) == 0
    assert ring.held == {}
    assert main(["servers", "key", "gpu1:8000", "--delete"]) == 0
    out, err = capsys.readouterr()
    assert "There was no key" in out
    assert SECRET not in out + err


def test_a_key_is_no_argument(ring: MemoryKeyring, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["servers", "key", "gpu1:8000", SECRET]) == 2
    assert ring.held == {}
    assert SECRET not in "".join(capsys.readouterr())
    assert main(["servers", "key"]) == 2


def test_no_keyring(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    keyring.set_keyring(keyring.backends.fail.Keyring())
    monkeypatch.setattr(sys, "stdin", io.StringIO(SECRET + "\n"))
    assert main(["servers", "key", "gpu1:8000"]) == 1
    assert "VERSO_API_KEY" in capsys.readouterr().err


@pytest.mark.usefixtures("no_process_left")
def test_a_conversion_leaves_no_trace_of_the_key(
        serve: Callable[..., FakeServer], samples: Path, tmp_path: Path, verso_home: Path) -> None:
    """From end to end, in processes of their own: files, journal, log, errors."""
    server = serve(key=SECRET)
    server.plan = [*[None] * 4, Refuse(400, "you sent {authorization}, you know")]  # type: ignore[list-item]
    result = subprocess.run(
        [sys.executable, "-m", "desktop", "convert", str(samples / "scan.png"),
         str(samples / "card.bmp"), "-o", str(tmp_path / "out"), "--engine", "remote",
         "--servers", server.url, "--json", "--debug"], cwd=ROOT,
        env={**os.environ, keys.VARIABLE: SECRET}, capture_output=True, text=True, timeout=120,
        check=False)
    assert result.returncode == 1, result.stderr
    documents = json.loads(result.stdout)["documents"]
    problems = [problem for document in documents for problem in document["problems"]]
    assert [problem["code"] for problem in problems] == ["remote.refused"]
    assert "you sent [key]" in problems[0]["message"] or "Bearer [key]" in problems[0]["message"]
    assert any("Read by a server." in file.read_text("utf-8")
               for file in (tmp_path / "out").rglob("*.md"))
    texts = [result.stdout, result.stderr]
    files = [file for folder in (tmp_path, verso_home) for file in folder.rglob("*")
             if file.is_file()]
    assert any("log" in file.parts for file in files)
    texts += [file.read_bytes().decode("latin-1") for file in files]
    assert not any(SECRET[:12] in text for text in texts)
