from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from desktop import paths
from desktop.settings import SETTINGS, Values, store
from desktop.settings.store import Store


@pytest.fixture
def kept(tmp_path: Path) -> Store:
    return Store(tmp_path / "settings.json")


def codes(kept: Store) -> list[str]:
    return [problem.code for problem in kept.load().problems]


def aside(kept: Store) -> list[Path]:
    return sorted(kept.path.parent.glob("settings.aside-*.json"))


def write(kept: Store, content: object) -> None:
    kept.path.write_text(content if isinstance(content, str) else json.dumps(content))


def test_no_file_is_the_defaults_without_a_word(kept: Store) -> None:
    assert kept.load() == (Values(), ())
    assert not kept.path.exists()


def test_default_place_is_the_configuration_folder() -> None:
    Store().save(Values({"dpi": 200}))
    assert (paths.config_dir() / "settings.json").is_file()
    assert Store().load().values["dpi"] == 200


def test_only_changes_are_written_and_come_back(kept: Store) -> None:
    values = Values({"dpi": 200, "furniture": True, "text_layer": "never"})
    kept.save(values)
    assert json.loads(kept.path.read_text()) == {
        "version": store.VERSION,
        "settings": {"dpi": 200, "furniture": True, "text_layer": "never"},
    }
    assert kept.load() == (values, ())
    kept.save(Values())
    assert json.loads(kept.path.read_text())["settings"] == {}


def test_undeclared_keys_are_reported_and_kept(kept: Store) -> None:
    write(kept, {"version": 1, "settings": {"from_the_future": [1, 2], "dpi": 96}})
    assert kept.load().values == Values({"dpi": 96})
    assert codes(kept) == ["settings.unknown"]
    kept.save(Values({"dpi": 300}))
    assert json.loads(kept.path.read_text())["settings"] == {"from_the_future": [1, 2], "dpi": 300}
    assert aside(kept) == []


def test_invalid_values_give_way_and_a_copy_is_kept(kept: Store) -> None:
    original = {"version": 1, "settings": {"dpi": 9999, "crop": 7, "furniture": True}}
    write(kept, original)
    loaded = kept.load()
    assert loaded.values == Values({"furniture": True})
    assert [p.code for p in loaded.problems] == ["settings.invalid", "settings.invalid"]
    kept.load()
    kept.save(loaded.values)
    [copy] = aside(kept)
    assert json.loads(copy.read_text()) == original
    assert codes(kept) == []


@pytest.mark.parametrize("content", [
    "", "{", "[]", "null", '"text"', "[" * 100_000, '{"settings": {}}', '{"version": 1}',
    '{"version": true, "settings": {}}', '{"version": "1", "settings": {}}',
    '{"version": 0, "settings": {}}', '{"version": 1, "settings": []}',
], ids=lambda c: c[:20])
def test_a_broken_file_is_set_aside_once(kept: Store, content: str) -> None:
    write(kept, content)
    assert codes(kept) == ["settings.broken"]
    assert codes(kept) == []
    [copy] = aside(kept)
    assert copy.read_text() == content
    assert kept.load().values == Values()


def test_bytes_that_are_no_text_are_set_aside(kept: Store) -> None:
    kept.path.write_bytes(b"\xff\xfe\x00")
    assert codes(kept) == ["settings.broken"]
    assert aside(kept)[0].read_bytes() == b"\xff\xfe\x00"


def test_a_newer_file_is_understood_as_far_as_possible_and_copied(kept: Store) -> None:
    original = {"version": store.VERSION + 1, "settings": {"dpi": 96}}
    write(kept, original)
    loaded = kept.load()
    assert loaded.values == Values({"dpi": 96})
    assert [p.code for p in loaded.problems] == ["settings.newer"]
    assert aside(kept)[0].name in loaded.problems[0].hint
    assert json.loads(aside(kept)[0].read_text()) == original


def test_migrations_run_in_order(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def renamed(stored: dict[str, object]) -> dict[str, object]:
        return {("resolution" if key == "dots" else key): v for key, v in stored.items()}

    def renamed_again(stored: dict[str, object]) -> dict[str, object]:
        return {("dpi" if key == "resolution" else key): v for key, v in stored.items()}

    write(kept, {"version": 1, "settings": {"dots": 96}})
    monkeypatch.setattr(store, "VERSION", 3)
    monkeypatch.setattr(store, "MIGRATIONS", {1: renamed, 2: renamed_again})
    assert kept.load() == (Values({"dpi": 96}), ())


def test_every_older_version_has_a_migration() -> None:
    assert set(store.MIGRATIONS) == set(range(1, store.VERSION))


def test_a_folder_in_its_place_is_reported(kept: Store) -> None:
    kept.path.mkdir()
    assert codes(kept) == ["settings.unreadable"]
    with pytest.raises(store.SettingsUnwritable):
        kept.save(Values())
    assert sorted(p.name for p in kept.path.parent.iterdir()) == ["settings.json"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_forbidden_file_is_reported(kept: Store) -> None:
    write(kept, {"version": 1, "settings": {}})
    kept.path.chmod(0)
    assert codes(kept) == ["settings.unreadable"]


def test_readers_never_see_half_a_file(kept: Store) -> None:
    first, second = Values({"dpi": 96}), Values({s.key: s.default for s in SETTINGS})
    kept.save(first)
    stop = threading.Event()
    seen: list[tuple[object, ...]] = []

    def read() -> None:
        while not stop.is_set():
            values, problems = kept.load()
            if problems or values not in (first, second):
                seen.append((values.changed(), problems))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(50):
        kept.save(second)
        kept.save(first)
    stop.set()
    reader.join()
    assert seen == []
    assert [p.name for p in kept.path.parent.iterdir()] == ["settings.json"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner,
                                                                max_size=2), max_leaves=4)


@hypothesis_settings(max_examples=80, deadline=None,
                     suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from([s.key for s in SETTINGS]) | st.text(max_size=5),
                       json_values, max_size=5))
def test_anything_in_the_file_gives_valid_values(kept: Store, content: dict[str, object]) -> None:
    write(kept, {"version": 1, "settings": content})
    values, _ = kept.load()
    assert Values(values.as_dict()) == values
    kept.save(values)
    assert kept.load().values == values
