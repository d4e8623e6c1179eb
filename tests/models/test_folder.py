"""The folder that the model comes to: what is in it already, and who may write there."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import msgspec
import pytest

from desktop.engines.model.weights import check
from desktop.models import manifest
from desktop.models.download import Finished
from tests.models.conftest import Fetch
from tests.models.driving import Begin, is_whole, until
from tests.models.hub import COMMIT, SHARD, Hub, weights


# --- what is there already
def test_a_model_that_is_there_is_not_fetched_again(hub: Hub, fetch: Fetch) -> None:
    fetch()
    hub.requests = []
    ran = fetch(offline=True)
    assert isinstance(ran.outcome, Finished)
    assert ran.outcome.already
    assert not hub.requests


def test_verify_mends_only_what_is_damaged(hub: Hub, fetch: Fetch) -> None:
    folder = fetch().folder
    with open(folder / SHARD, "r+b") as file:
        file.seek(2_000_000)
        file.write(b"x" * 10)
    assert check(folder).complete, "not seen from names, sizes and headers"
    assert fetch().folder == folder
    hub.requests = []
    ran = fetch(verify=True)
    assert is_whole(ran.folder, hub)
    assert {each.path.rpartition("/")[2] for each in hub.of("hub", "/resolve/")} == {SHARD}
    hub.requests = []
    assert fetch(verify=True, offline=True).folder == folder
    assert not hub.requests


def test_another_revision_takes_the_place_of_one_only_when_it_is_whole(
        hub: Hub, fetch: Fetch) -> None:
    folder = fetch().folder
    held = manifest.read(folder)
    assert held is not None
    manifest.write(folder, msgspec.structs.replace(held, revision="b" * 40))
    before = (folder / SHARD).read_bytes()
    hub.files[SHARD], hub.requests = weights(seed=2), []
    hub.wrong = -1
    assert fetch(revision="main").code == "model.checksum"
    assert check(folder).complete, "the one that was there can be used"
    assert (folder / SHARD).read_bytes() == before
    hub.wrong = 0
    assert fetch(revision="main").folder == folder
    assert is_whole(folder, hub)
    found = manifest.read(folder)
    assert found is not None
    assert found.revision == COMMIT
    fetched = {each.path.rpartition("/")[2] for each in hub.of("hub", "/resolve/")}
    assert fetched == {SHARD}, "what both have in common is not fetched again"


def test_a_file_that_was_lost_is_fetched_alone(hub: Hub, fetch: Fetch) -> None:
    folder = fetch().folder
    (folder / "tokenizer.json").unlink()
    hub.requests = []
    assert is_whole(fetch().folder, hub)
    assert {each.path.rpartition("/")[2] for each in hub.of("hub", "/resolve/")} == {
        "tokenizer.json"}


def test_a_folder_with_other_files_is_left_alone(hub: Hub, fetch: Fetch, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("Anna")
    assert fetch(folder=tmp_path / "letters").code == "model.folder_taken"
    assert os.listdir(tmp_path / "letters") == ["dear.txt"]
    assert not hub.requests


def test_an_empty_folder_is_taken(hub: Hub, fetch: Fetch, tmp_path: Path) -> None:
    (tmp_path / "own" / "empty").mkdir(parents=True)
    assert is_whole(fetch(folder=tmp_path / "own" / "empty").folder, hub)


def test_two_at_once_into_one_folder(hub: Hub, begin: Begin, fetch: Fetch) -> None:
    hub.hold = threading.Event()
    first, _events = begin()
    until(lambda: hub.sent > 100_000)
    assert fetch().code == "model.busy"
    hub.hold.set()
    assert first.wait(120)
    assert isinstance(first.outcome, Finished)


def test_a_folder_that_cannot_be_made(fetch: Fetch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert fetch(folder=tmp_path / "file" / "below").code == "model.folder"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="this system has no /proc")
def test_one_that_nobody_may_write_is_noticed_before_the_hub_is_asked(
        hub: Hub, fetch: Fetch) -> None:
    """Not even root may make a folder there."""
    assert fetch(folder=Path("/proc/verso/models/DeepSeek-OCR-2")).code == "model.folder"
    assert hub.requests == []


def test_trying_whether_a_folder_can_be_made_leaves_nothing(hub: Hub, fetch: Fetch,
                                                            tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    ran = fetch(folder=tmp_path / "a" / "b" / "model", hub_address="http://127.0.0.1:1")
    assert ran.code == "model.connection"
    assert set(tmp_path.iterdir()) == before
