"""Where a model is looked for, and which source is meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from desktop.models.errors import BadAddress, ModelMissing
from desktop.models.places import MODEL, download_folder, find, locate, places
from desktop.models.source import Source, source_of
from desktop.settings import Values
from tests.models.conftest import MemoryKeyring
from tests.models.hub import SHARD, model_files

NOTHING = Values()
REPOSITORY = "models--deepseek-ai--DeepSeek-OCR-2"


def put(folder: Path, age: float = 0.0) -> Path:
    """A whole model in FOLDER."""
    folder.mkdir(parents=True)
    for name, content in model_files(100).items():
        if "/" not in name:
            (folder / name).write_bytes(content)
    os.utime(folder, (1e9 - age, 1e9 - age))
    return folder


def test_none() -> None:
    assert find(NOTHING) is None
    assert list(places()) == []
    with pytest.raises(ModelMissing) as raised:
        locate(NOTHING)
    assert "verso models download" in raised.value.problem().hint


def test_what_a_person_chose_counts_as_it_is(tmp_path: Path) -> None:
    put(download_folder())
    found = find(Values({"model": str(tmp_path / "nothing here")}))
    assert found is not None
    assert (found.folder, found.origin) == (tmp_path / "nothing here", "chosen")


def test_a_folder_is_where_a_person_is_not_where_the_engine_works(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert locate(Values({"model": "models/ocr"})) == tmp_path / "models" / "ocr"
    assert locate(Values({"model": "~/ocr"})) == tmp_path / "home" / "ocr"


def test_what_verso_downloaded_goes_before_the_caches(tmp_path: Path) -> None:
    hub = put(tmp_path / "hf" / REPOSITORY / "snapshots" / "c1")
    environment = {"HF_HUB_CACHE": str(tmp_path / "hf")}
    found = find(NOTHING, environment=environment)
    assert found is not None
    assert (found.folder, found.origin) == (hub, "huggingface")
    own = put(download_folder())
    found = find(NOTHING, environment=environment)
    assert found is not None
    assert (found.folder, found.origin) == (own, "verso")
    assert [place.folder for place in places(environment=environment)] == [own, hub]
    (own / SHARD).unlink()
    found = find(NOTHING, environment=environment)
    assert found is not None
    assert found.folder == hub, "the own one is not complete"


@pytest.mark.parametrize(("variable", "value", "folder"), [
    ("HF_HUB_CACHE", "{tmp}/a", "a"), ("HUGGINGFACE_HUB_CACHE", "{tmp}/b", "b"),
    ("HF_HOME", "{tmp}/c", "c/hub"), ("XDG_CACHE_HOME", "{tmp}/d", "d/huggingface/hub"),
    ("HF_HOME", "~/e", "home/e/hub"), ("", "", "home/.cache/huggingface/hub")])
def test_caches_of_hugging_face(variable: str, value: str, folder: str, tmp_path: Path) -> None:
    there = put(tmp_path / folder / REPOSITORY / "snapshots" / "c1")
    assert [place.folder for place in places(
        environment={variable: value.format(tmp=tmp_path)})] == [there]


def test_the_newest_snapshot_first(tmp_path: Path) -> None:
    repository = tmp_path / REPOSITORY
    folders = [put(repository / "snapshots" / name, age) for name, age in (
        ("c1", 30), ("c2", 10), ("c3", 20))]
    environment = {"HF_HUB_CACHE": str(tmp_path)}
    found = [place.folder for place in places(environment=environment)]
    assert found == [folders[1], folders[2], folders[0]]
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("c3")
    assert next(iter(places(environment=environment))).folder == folders[2]


@pytest.mark.parametrize("folder", [
    "models/deepseek-ai--DeepSeek-OCR-2/snapshots/master", "models/deepseek-ai/DeepSeek-OCR-2",
    "hub/models/deepseek-ai/DeepSeek-OCR-2", "hub/deepseek-ai/DeepSeek-OCR-2",
    "deepseek-ai/DeepSeek-OCR-2"])
def test_caches_of_modelscope(folder: str, tmp_path: Path) -> None:
    there = put(tmp_path / "ms" / folder)
    found = find(NOTHING, environment={"MODELSCOPE_CACHE": str(tmp_path / "ms")})
    assert found is not None
    assert (found.folder, found.origin) == (there, "modelscope")


def test_a_dot_in_a_name_as_older_caches_write_it(tmp_path: Path) -> None:
    there = put(tmp_path / "models" / "owner" / "Model-2___5")
    assert [place.folder for place in places(
        "owner/Model-2.5", environment={"MODELSCOPE_CACHE": str(tmp_path)})] == [there]


# --- sources
def test_the_settings_go_before_the_environment() -> None:
    environment = {"HF_ENDPOINT": "https://one/", "HF_TOKEN": " t "}
    source = source_of(NOTHING, environment=environment)
    assert (source.hub, source.address, source.token) == ("huggingface", "https://one", "t")
    assert source.model == MODEL
    mirror = source_of(Values({"hub_address": "hf-mirror.com"}), environment=environment)
    assert (mirror.address, mirror.host) == ("https://hf-mirror.com", "hf-mirror.com")
    scope = source_of(Values({"hub": "modelscope"}), environment={
        **environment, "MODELSCOPE_API_TOKEN": "ms"})
    assert (scope.address, scope.token) == ("https://www.modelscope.cn", "ms")


@pytest.mark.parametrize("address", ["ftp://host", "https://", "https://h?x=1", "https://a b",
                                     "https://me:secret@host", "file:///etc"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(BadAddress) as raised:
        source_of(Values({"hub_address": address}), environment={})
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(("address", "may"), [
    ("https://mirror.example", True), ("http://mirror.example", False),
    ("http://127.0.0.1:8000", True), ("http://[::1]:8000", True), ("http://localhost", True),
    ("http://127.0.0.1.example", False)])
def test_a_token_travels_only_encrypted(address: str, may: bool) -> None:
    assert Source("huggingface", address).may_carry_token() is may


def test_secrets_of_a_source_are_not_shown() -> None:
    shown = repr(Source("huggingface", "https://h", proxy="http://u:pw@p", token="tok"))
    assert "pw" not in shown
    assert "tok" not in shown


def test_socks_proxies_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    assert not source_of(NOTHING).client().is_closed


def test_a_keyring_holds_a_token_for_each_address(ring: MemoryKeyring) -> None:
    from desktop.models import tokens

    one, two = (Source("huggingface", f"https://{name}") for name in ("one", "two"))
    tokens.store(one, "abc")
    assert (tokens.stored(one), tokens.stored(two)) == ("abc", "")
    tokens.store(one, "")
    tokens.store(one, "")
    assert tokens.stored(one) == ""


def test_a_token_that_no_header_can_carry_is_refused_unseen(ring: MemoryKeyring) -> None:
    from desktop.models import tokens
    from desktop.models.errors import BadToken
    from desktop.models.hubs import token_headers

    source = Source("modelscope", "https://one")
    for token in ("two words", "brök", "line\nbreak"):
        with pytest.raises(BadToken) as caught:
            tokens.store(source, token)
        assert token not in repr(caught.value.problem())
        with pytest.raises(BadToken):  # as it may come from the environment
            token_headers(source, token)
    assert ring.held == {}
