"""The command in a process of its own: killed, interrupted, out of room; and what it prints."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from desktop import keyrings
from desktop.cli.main import main
from desktop.models import disk, manifest, transfer
from desktop.models.download import Download, Event, Failed, Progress
from desktop.models.places import download_folder, models_dir
from tests.models.conftest import Fetch, MemoryKeyring
from tests.models.hub import SHARD, Hub, model_files
from tests.models.test_download import is_whole, until
from tests.support import processes
from tests.support.data import ROOT

LARGE = 30_000_000


def start(hub: Hub) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "desktop", "models", "download", "--json",
         "--hub-address", hub.address], cwd=ROOT, env=processes.without_qt(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def recorded() -> int:
    """Bytes of the weights that are recorded as here."""
    record = models_dir() / ".DeepSeek-OCR-2.partial" / f"{SHARD}.part.json"
    try:
        return sum(stop - start for start, stop in json.loads(record.read_text())["done"])
    except FileNotFoundError:
        return 0


def test_killed_in_the_middle_it_goes_on(
        hub: Hub, no_process_left: Callable[[], list[str]]) -> None:
    hub.files, hub.hold = model_files(LARGE), threading.Event()
    running = start(hub)
    until(lambda: recorded() > LARGE // 3)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    kept = recorded()
    assert not download_folder().exists()
    hub.hold.set()
    hub.sent_in_all()
    hub.requests, hub.sent = [], 0
    out, err = (again := start(hub)).communicate(timeout=300)
    assert again.returncode == 0, err
    assert json.loads(out)["folder"] == str(download_folder())
    assert is_whole(download_folder(), hub)
    # A block or two went to the one that was killed.
    assert hub.sent < len(hub.files[SHARD]) - kept + 500_000
    assert kept > LARGE // 3
    assert hub.of("cdn")[0].range.startswith("bytes=")
    assert {each.path.rpartition("/")[2] for each in hub.of("hub", "/resolve/")} == {SHARD}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_ends_at_once_and_says_how_to_go_on(
        number: signal.Signals, hub: Hub, no_process_left: Callable[[], list[str]]) -> None:
    hub.files, hub.hold = model_files(LARGE), threading.Event()
    running = start(hub)
    until(lambda: recorded() > 1_000_000)
    running.send_signal(number)
    out, err = running.communicate(timeout=120)
    assert not hub.hold.is_set()
    assert running.returncode == 130
    assert "goes on where it was" in err
    assert "Traceback" not in err
    assert out == ""
    assert recorded() > 1_000_000


# --- room
@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 80 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", str(folder)],
                             capture_output=True, check=False) if shutil.which("mount") else None
    if mounted is None or mounted.returncode:
        pytest.skip("a small file system can be mounted by root only")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_disk_that_is_too_small_is_said_before_anything_is_fetched(
        hub: Hub, fetch: Fetch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=disk.MARGIN + 2_999_999)
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _folder: usage)
    ran = fetch()
    assert ran.code == "model.disk_full"
    assert isinstance(ran.outcome, Failed)
    assert "70.1 MB are needed" in ran.outcome.problem.message
    assert not hub.of("hub", "/resolve/")


def test_what_came_already_is_not_counted_again(
        hub: Hub, begin: Callable[..., tuple[Download, list[Event]]], fetch: Fetch,
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.hold = threading.Event()
    download, events = begin()
    until(lambda: any(isinstance(each, Progress) and each.bytes_done > 900_000 for each in events))
    download.cancel()
    assert download.wait(120)
    hub.hold.set()
    usage = shutil.disk_usage(tmp_path)._replace(free=disk.MARGIN + 2_200_000)
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _folder: usage)
    assert is_whole(fetch().folder, hub)


def test_a_disk_that_fills_meanwhile(
        hub: Hub, begin: Callable[..., tuple[Download, list[Event]]], fetch: Fetch,
        small_disk: Path) -> None:
    hub.hold = threading.Event()
    download, _events = begin(folder=small_disk / "m" / "model")
    record = small_disk / "m" / ".model.partial" / f"{SHARD}.part.json"
    until(lambda: record.exists() and json.loads(record.read_text())["done"])
    filler = small_disk / "filler"
    with open(filler, "wb", buffering=0) as file:
        while disk.free_bytes(small_disk):
            file.write(b"x" * min(65536, disk.free_bytes(small_disk)))
    hub.hold.set()
    assert download.wait(120)
    assert isinstance(download.outcome, Failed)
    assert download.outcome.problem.code == "model.disk_full"
    assert str(small_disk) in download.outcome.problem.message
    filler.unlink()
    hub.sent_in_all()
    hub.sent = 0
    assert is_whole(fetch(folder=small_disk / "m" / "model").folder, hub)
    assert hub.sent < len(hub.files[SHARD]), "what had come was thrown away"


def test_a_file_system_that_takes_no_large_files(
        hub: Hub, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    def refuse(self: object, offset: int, data: bytes) -> None:
        raise OSError(errno.EFBIG, "File too large")

    monkeypatch.setattr(transfer.Part, "write", refuse)
    assert fetch().code == "model.file_too_large"


# --- the command
def verso(*words: str) -> int:
    return main(["models", *words])


def test_download_list_check_and_find_again(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert verso("list") == 0
    assert "verso models download" in capsys.readouterr().out
    assert verso("check") == 1
    assert "verso models download" in capsys.readouterr().err
    assert verso("download", "--hub", "modelscope", "--hub-address", hub.address) == 0
    said = capsys.readouterr()
    assert str(download_folder()) in said.out
    assert "list of files" in said.err
    assert verso("download", "--offline", "on") == 0
    assert "Already there" in capsys.readouterr().out
    assert verso("check") == 0
    assert "every checksum right" in capsys.readouterr().out
    assert verso("list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["used"] == str(download_folder())
    assert listed["models"] == [{
        "folder": str(download_folder()), "origin": "verso", "complete": True,
        "architecture": "DeepseekOCR2ForCausalLM", "bytes": len(hub.files[SHARD]),
        "missing": [], "damaged": [], "revision": "master"}]


def test_a_folder_of_ones_own_choice(hub: Hub, tmp_path: Path,
                                     capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "with space" / "model"
    assert verso("download", "--hub-address", hub.address, "--folder", str(folder)) == 0
    assert f"--model '{folder}'" in capsys.readouterr().out  # to be typed as it is
    assert verso("check", str(folder)) == 0
    with open(folder / SHARD, "r+b") as file:
        file.seek(1_000_000)
        file.write(b"12345")
    assert verso("check", "--quick", str(folder)) == 0
    capsys.readouterr()
    assert verso("check", str(folder), "--json") == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["error"]["code"] == "model.damaged"
    assert SHARD in said.err
    for nothing in (tmp_path / "none", folder / SHARD):
        assert verso("check", str(nothing)) == 1
        assert "there is no such folder" in capsys.readouterr().err
    os.truncate(folder / SHARD, 100)
    assert verso("check", str(folder)) == 1
    assert "100 of" in capsys.readouterr().err


def test_errors_are_typed_in_json(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert verso("download", "--offline", "on", "--json") == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["error"]["code"] == "model.offline"
    assert said.err.splitlines()[-1].startswith("verso: ")


@pytest.mark.parametrize("words", [
    ["fetch"], [], ["download", "x"], ["download", "--hub", "elsewhere"],
    ["list", "--offline", "7"], ["download", "--hub-address", "ftp://x"], ["list", "--forget"],
    ["check", "--verify"], ["download", "--quick"], ["check", "--folder", "/x"],
    ["token", "--revision", "main"]])
def test_wrong_calls(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert verso(*words) == 2
    assert capsys.readouterr().err.startswith("verso: ")


def test_a_token_is_read_from_stdin_and_kept(
        ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO("hf_abc\n"))
    assert verso("token") == 0
    assert ring.held == {(keyrings.HUBS, "huggingface.co"): "hf_abc"}
    assert "hf_abc" not in "".join(capsys.readouterr())
    assert verso("token", "--forget") == 0
    assert ring.held == {}
    ring.broken = True
    monkeypatch.setattr(sys, "stdin", io.StringIO("hf_abc\n"))
    assert verso("token") == 1
    assert "HF_TOKEN" in capsys.readouterr().err


def test_the_list_of_a_model_that_names_files_elsewhere_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / manifest.NAME).write_text(json.dumps({
        "version": 1, "model": "m", "hub": "h", "address": "a", "revision": "r",
        "files": [{"name": "../x", "size": 1, "sha256": ""}]}))
    assert manifest.read(tmp_path) is None
