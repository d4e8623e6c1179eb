"""Downloads from a hub that behaves, and from one that does not."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from email.utils import formatdate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from desktop.engines.model.weights import check
from desktop.models import download as downloads
from desktop.models import manifest, source, web
from desktop.models.download import Cancelled, Download, Failed, Progress
from desktop.models.web import Pace
from tests.models.conftest import PIECE, QUICK, Fetch, LogFile
from tests.models.driving import NEEDED, Begin, is_whole, until
from tests.models.hub import COMMIT, MODEL, SHARD, Hub, model_files


@pytest.mark.parametrize("kind", ["huggingface", "modelscope"])
def test_the_model_comes_whole_from_either_hub(kind: str, hub: Hub, fetch: Fetch) -> None:
    ran = fetch(kind)
    assert is_whole(ran.folder, hub)
    assert check(ran.folder).complete
    held = manifest.read(ran.folder)
    assert held is not None
    assert (held.model, held.hub, held.address) == (MODEL, kind, hub.address)
    assert held.revision == (COMMIT if kind == "huggingface" else "master")
    assert {file.name: file.sha256 for file in held.files} == {
        name: hashlib.sha256(hub.files[name]).hexdigest() for name in NEEDED}
    manifest.verify(ran.folder, held)


def test_only_what_an_engine_needs_is_asked_for(hub: Hub, fetch: Fetch) -> None:
    fetch()
    asked = {each.path.rpartition("/")[2] for each in hub.of("hub", "/resolve/")}
    assert asked == NEEDED - {"empty.txt"}


def test_a_large_file_comes_over_several_connections(hub: Hub, fetch: Fetch) -> None:
    hub.bytes_per_second = 2_000_000
    ran = fetch()
    assert is_whole(ran.folder, hub)
    assert hub.most_active > 1
    assert hub.sent_in_all() == len(hub.files[SHARD])
    steps = [each.step for each in ran.progress]
    assert steps.index("asking") < steps.index("fetching")
    done = [each.bytes_done for each in ran.progress if each.step == "fetching"]
    assert done == sorted(done)
    assert any(0 < each.bytes_done < each.bytes and each.speed > 0 for each in ran.progress)
    assert ran.progress[-1].files == len(NEEDED)


def test_a_branch_becomes_the_commit_it_stands_for(hub: Hub, fetch: Fetch) -> None:
    held = manifest.read(fetch(revision="main").folder)
    assert held is not None
    assert held.revision == COMMIT


def test_every_page_of_a_list_is_read_from_the_mirror(hub: Hub, fetch: Fetch) -> None:
    hub.page = 4
    assert is_whole(fetch().folder, hub)
    assert len(hub.of("hub", "/tree/")) == 4


# --- interruptions
def test_a_cut_connection_is_taken_up_where_it_broke(hub: Hub, fetch: Fetch) -> None:
    hub.cut_after, hub.cuts, hub.bytes_per_second = 300_000, 3, 3_000_000
    assert is_whole(fetch().folder, hub)
    starts = [int(each.range[6:].split("-")[0]) for each in hub.of("cdn")]
    assert any(start % PIECE for start in starts), "nothing was taken up in the middle"
    assert hub.sent_in_all() < len(hub.files[SHARD]) + 3 * 300_000


def test_a_server_that_always_breaks_off_is_given_up_when_nothing_is_gained(
        hub: Hub, fetch: Fetch, log_file: LogFile) -> None:
    hub.ranges, hub.cut_after = False, 100_000
    assert fetch().code == "model.connection"
    assert log_file.text.count("; again in 0.") >= QUICK.tries - 1


def test_one_that_breaks_off_again_and_again_but_gains_is_not_given_up(
        hub: Hub, fetch: Fetch) -> None:
    hub.cut_after, hub.bytes_per_second = 150_000, 3_000_000
    assert is_whole(fetch(pace=Pace(first=0.01, longest=0.02, tries=3)).folder, hub)


def test_a_server_that_ignores_ranges_sends_the_whole_file(hub: Hub, fetch: Fetch) -> None:
    hub.ranges, hub.cut_after, hub.cuts = False, 1_000_000, 2
    assert is_whole(fetch().folder, hub)


def test_nothing_listens_at_the_address(tmp_path: Path, fetch: Fetch) -> None:
    ran = fetch(hub_address="http://127.0.0.1:1")
    assert ran.code == "model.connection"
    assert isinstance(ran.outcome, Failed)
    assert "127.0.0.1:1" in ran.outcome.problem.message


def test_cancelling_ends_it_while_the_server_is_silent_and_the_next_goes_on(
        hub: Hub, begin: Begin, fetch: Fetch) -> None:
    hub.hold = threading.Event()
    download, events = begin()
    until(lambda: hub.sent > 1_000_000)
    until(lambda: any(isinstance(each, Progress) and each.bytes_done > 900_000 for each in events))
    download.cancel()
    assert download.wait(120)
    assert isinstance(download.outcome, Cancelled)
    assert not hub.hold.is_set()
    assert not download.folder.exists()
    hub.hold.set()
    before, hub.sent, hub.requests = hub.sent_in_all(), 0, []
    assert is_whole(fetch().folder, hub)
    assert hub.sent < len(hub.files[SHARD]) - before // 2
    assert {each.path.rpartition("/")[2] for each in hub.of("hub", "/resolve/")} == {SHARD}


def test_cancelled_before_it_began(hub: Hub, tmp_path: Path) -> None:
    from desktop.models.source import source_of
    from desktop.settings import Values

    download = Download(source_of(Values({"hub_address": hub.address}), environment={}),
                        tmp_path / "m", lambda _event: None)
    download.cancel()
    download.start()
    assert download.wait(120)
    assert isinstance(download.outcome, Cancelled)
    assert not hub.requests


def half(hub: Hub, begin: Begin) -> int:
    """Begin, stop half way; bytes of the large file that are recorded."""
    hub.hold = threading.Event()
    download, events = begin()
    until(lambda: any(isinstance(each, Progress) and each.bytes_done > 900_000 for each in events))
    download.cancel()
    assert download.wait(120)
    hub.hold.set()
    hub.sent_in_all()
    hub.hold = None
    hub.requests = []
    return max(each.bytes_done for each in events if isinstance(each, Progress))


def test_a_file_that_changed_on_the_server_is_fetched_anew(
        hub: Hub, begin: Begin, fetch: Fetch) -> None:
    half(hub, begin)
    hub.etag, hub.sent = "two", 0
    assert is_whole(fetch().folder, hub)
    assert hub.of("cdn")[0].headers["if-range"] == '"one"'
    assert hub.sent_in_all() >= len(hub.files[SHARD])


def test_new_weights_under_the_same_name_replace_what_had_come(
        hub: Hub, begin: Begin, fetch: Fetch) -> None:
    half(hub, begin)
    hub.files, hub.etag = model_files(seed=2), ""
    assert is_whole(fetch().folder, hub)


def test_servers_that_name_one_file_differently_do_not_make_it_start_for_ever(
        hub: Hub, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(range(1000))
    monkeypatch.setattr(type(hub), "etag", property(lambda _self: str(next(names)),
                                                    lambda _self, _value: None))
    assert is_whole(fetch().folder, hub)


def test_416_begins_the_file_anew(hub: Hub, begin: Begin, fetch: Fetch) -> None:
    half(hub, begin)
    hub.cdn_busy = [(416, {"Content-Range": "bytes */7"})]
    assert is_whole(fetch().folder, hub)


def test_416_without_end_is_an_error(hub: Hub, fetch: Fetch) -> None:
    hub.cdn_busy = [(416, {})] * 1000
    assert fetch().code == "model.bad_answer"


# --- wrong content
def test_a_wrong_checksum_is_fetched_once_more(hub: Hub, fetch: Fetch) -> None:
    hub.wrong = 1
    assert is_whole(fetch().folder, hub)
    assert hub.sent_in_all() == 2 * len(hub.files[SHARD])


def test_a_checksum_that_is_wrong_twice_is_an_error_and_leaves_no_model(
        hub: Hub, begin: Begin, fetch: Fetch, tmp_path: Path) -> None:
    hub.wrong = -1
    ran = fetch()
    assert ran.code == "model.checksum"
    assert not (tmp_path / "models" / "DeepSeek-OCR-2").exists()
    partial = tmp_path / "models" / ".DeepSeek-OCR-2.partial"
    assert not [name for name in os.listdir(partial) if name.startswith(SHARD)]
    hub.wrong = 0
    assert is_whole(fetch().folder, hub)


def test_a_small_file_is_compared_with_its_git_checksum(hub: Hub, fetch: Fetch) -> None:
    right = hub.files["config.json"]
    listed: list[dict[str, Any]] = []
    for name, content in hub.files.items():
        entry: dict[str, Any] = {"type": "file", "path": name, "size": len(content),
                                 "oid": hashlib.sha1(b"blob %d\0" % len(content) + content,
                                                     usedforsecurity=False).hexdigest()}
        if name == SHARD:
            entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content)}
        listed.append(entry)
    hub.listed = listed
    hub.files["config.json"] = right.replace(b"OCR2", b"OCR3")
    ran = fetch()
    assert ran.code == "model.checksum"
    assert isinstance(ran.outcome, Failed)
    assert "config.json" in ran.outcome.problem.message


@pytest.mark.parametrize("name", [
    "../config.json", "/etc/x.json", "a/../../b.json", "..\\x.json", ""])
@pytest.mark.parametrize("kind", ["huggingface", "modelscope"])
def test_a_file_that_would_lie_elsewhere_is_refused(
        kind: str, name: str, hub: Hub, fetch: Fetch, tmp_path: Path) -> None:
    entry = {"type": "file", "path": name, "size": 2, "oid": "0" * 40} \
        if kind == "huggingface" else {"Type": "blob", "Path": name, "Size": 2, "Sha256": ""}
    hub.listed = [entry]
    assert fetch(kind).code == "model.unsafe_name"
    assert not list(tmp_path.rglob("*.json"))


def test_a_hub_cannot_write_versos_own_list(hub: Hub, fetch: Fetch) -> None:
    hub.files[manifest.NAME] = b"{}"
    held = manifest.read(fetch().folder)
    assert held is not None
    assert manifest.NAME not in {file.name for file in held.files}


def test_a_model_that_lacks_a_part_on_the_hub_does_not_appear(
        hub: Hub, fetch: Fetch, tmp_path: Path) -> None:
    del hub.files["processor_config.json"]
    ran = fetch()
    assert ran.code == "model.incomplete"
    assert isinstance(ran.outcome, Failed)
    assert "processor_config.json" in ran.outcome.problem.message
    assert not (tmp_path / "models" / "DeepSeek-OCR-2").exists()


# --- answers
@pytest.mark.parametrize(("status", "headers", "code"), [
    (404, {}, "model.unknown"),
    (403, {}, "model.access_denied"),
    (401, {"X-Error-Code": "GatedRepo"}, "model.access_denied"),
    (400, {}, "model.bad_answer"),
    (407, {}, "model.bad_proxy"),
    (302, {"Location": "ftp://elsewhere/"}, "model.bad_answer"),
])
def test_refusals(status: int, headers: dict[str, str], code: str, hub: Hub,
                  fetch: Fetch) -> None:
    hub.busy = [(status, headers)]
    assert fetch().code == code


@pytest.mark.parametrize("kind", ["huggingface", "modelscope"])
def test_an_answer_that_is_no_list_is_said(kind: str, hub: Hub, fetch: Fetch) -> None:
    hub.busy = [(200, {"Content-Type": "text/html"})]
    assert fetch(kind).code == "model.bad_answer"
    hub.listed = []
    assert fetch(kind).code == "model.bad_answer"


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_hub_is_asked_again(status: int, hub: Hub, fetch: Fetch) -> None:
    hub.busy = [(status, {})] * 2
    assert is_whole(fetch().folder, hub)


def test_a_server_that_falls_silent_is_asked_again(
        hub: Hub, begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "SILENCE_SECONDS", 1.0)
    hub.hold = threading.Event()
    download, events = begin(pace=Pace(first=0.05, longest=0.5, tries=1000))
    until(lambda: any(isinstance(each, Progress) and each.trouble for each in events))
    hub.hold.set()
    assert download.wait(120)
    assert is_whole(download.folder, hub)
    starts = [int(each.range[6:].split("-")[0]) for each in hub.of("cdn")]
    assert any(start % PIECE for start in starts), "nothing was taken up in the middle"


NOW = 1_800_000_000.0


@pytest.mark.parametrize("after", ["1", formatdate(NOW + 1, usegmt=True)], ids=["seconds", "date"])
def test_a_hub_that_says_how_long_to_wait_is_obeyed(
        after: str, hub: Hub, fetch: Fetch, log_file: LogFile,
        monkeypatch: pytest.MonkeyPatch) -> None:
    # A date has no fractions of a second: by this clock it is exactly one until then.
    monkeypatch.setattr(web, "time", SimpleNamespace(time=lambda: NOW))
    hub.busy = [(429, {"Retry-After": after})]
    begun = time.monotonic()
    assert is_whole(fetch().folder, hub)
    assert time.monotonic() - begun > 0.9
    assert "HTTP 429; again in 1.0 s" in log_file.text


def test_while_nothing_comes_it_is_told_why_and_until_when(
        monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(downloads, "time", SimpleNamespace(monotonic=lambda: now))
    meter = downloads._Meter()
    meter.waits(8.0, "HTTP 429")
    now = 103.0
    assert (meter.progress().trouble, meter.progress().retry_in) == ("HTTP 429", 5.0)
    meter._kept = 1  # something came all the same
    assert (meter.progress().trouble, meter.progress().retry_in) == ("", 0.0)
    meter.waits(8.0, "HTTP 429")
    now = 112.0
    assert (meter.progress().trouble, meter.progress().retry_in) == ("", 0.0)


def test_a_hub_that_asks_for_an_hour_is_not_waited_for(hub: Hub, fetch: Fetch) -> None:
    hub.busy = [(429, {"Retry-After": "3600"})]
    assert fetch().code == "model.connection"


def test_an_expired_address_is_signed_anew(hub: Hub, fetch: Fetch) -> None:
    hub.cdn_busy = [(403, {}), (401, {})]
    assert is_whole(fetch().folder, hub)
