"""Whether a folder holds a whole model."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest

from desktop.engines.model.weights import architecture, check, is_inside
from tests.models.hub import SHARD, model_files, weights


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A whole model."""
    folder = tmp_path / "model"
    folder.mkdir()
    for name, content in model_files(5000).items():
        if "/" not in name:
            (folder / name).write_bytes(content)
    return folder


def test_a_whole_one(model: Path) -> None:
    found = check(model)
    assert found.complete
    assert (found.missing, found.damaged, found.words()) == ((), (), "")
    assert found.bytes == (model / SHARD).stat().st_size
    assert found.architecture == architecture(model) == "DeepseekOCR2ForCausalLM"


@pytest.mark.parametrize("name", ["config.json", SHARD, "tokenizer.json", "tokenizer_config.json",
                                  "processor_config.json"])
def test_a_file_is_missed(name: str, model: Path) -> None:
    (model / name).unlink()
    found = check(model)
    assert not found.complete
    assert found.missing == (name,)
    assert name in found.words()


def test_nothing_at_all(tmp_path: Path) -> None:
    for folder in (tmp_path / "none", tmp_path):
        found = check(folder)
        assert not found.complete
        assert set(found.missing) == {"config.json", "model.safetensors", "tokenizer.json",
                                      "tokenizer_config.json", "processor_config.json"}
        assert found.bytes == 0


@pytest.mark.parametrize("name", ["model.safetensors.index.json"])
def test_without_an_index_the_weight_files_themselves_count(name: str, model: Path) -> None:
    (model / name).unlink()
    assert check(model).complete
    (model / SHARD).rename(model / "model.safetensors")
    assert check(model).complete


@pytest.mark.parametrize(("other", "names"), [
    ("tokenizer.json", ("vocab.json", "merges.txt")), ("tokenizer.json", ("tokenizer.model",)),
    ("processor_config.json", ("preprocessor_config.json",))])
def test_other_kinds_of_tokenizer_and_processor(other: str, names: tuple[str, ...],
                                                model: Path) -> None:
    (model / other).unlink()
    for name in names:
        (model / name).write_text("{}")
    assert check(model).complete


def damage(model: Path, name: str) -> str:
    found = check(model)
    assert not found.complete
    assert found.missing == ()
    assert [each for each, _reason in found.damaged] == [name]
    return found.damaged[0][1]


def test_weights_that_were_cut(model: Path) -> None:
    size = (model / SHARD).stat().st_size
    for kept in (size - 1, 200, 40, 5, 0):
        os.truncate(model / SHARD, kept)
        assert damage(model, SHARD)
    with open(model / SHARD, "wb") as file:
        file.write(weights(5000) + b"more")
    assert str(size + 4) in damage(model, SHARD)


@pytest.mark.parametrize("content", [
    b"<html>sign in</html>" * 100, struct.pack("<Q", 10) + b"{notjson.." + b"x" * 90,
    struct.pack("<Q", 4) + b"[{}]" + b"x" * 90, struct.pack("<Q", 2) + b"[]",
    struct.pack("<Q", 12) + b'{"a": {}}   ', struct.pack("<Q", 1 << 60) + b"{}",
    struct.pack("<Q", 29) + b'{"a": {"data_offsets": "01"}}'])
def test_weights_that_are_none(content: bytes, model: Path) -> None:
    (model / SHARD).write_bytes(content)
    assert damage(model, SHARD)


def test_a_checkout_without_its_large_files(model: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 6785000000\n"
    (model / SHARD).write_text(pointer)
    assert "git lfs pull" in damage(model, SHARD)
    (model / SHARD).write_bytes(weights(5000))
    (model / "tokenizer.json").write_text(pointer)
    assert "git lfs pull" in damage(model, "tokenizer.json")


def test_a_shard_of_another_model(model: Path) -> None:
    (model / "model.safetensors.index.json").write_text(json.dumps(
        {"weight_map": {"model.embed": SHARD, "lm_head.weight": SHARD}}))
    assert "1 of the tensors" in damage(model, SHARD)


@pytest.mark.parametrize("index", ["{}", '{"weight_map": {}}', '{"weight_map": {"a": 1}}',
                                   '{"weight_map": {"a": "../x.safetensors"}}', "[", "[1]"])
def test_an_index_that_says_nothing_of_use(index: str, model: Path) -> None:
    (model / "model.safetensors.index.json").write_text(index)
    damage(model, "model.safetensors.index.json")


@pytest.mark.parametrize(("name", "content"), [
    ("config.json", "{"), ("config.json", "[]"), ("config.json", "[" * 100_000),
    ("tokenizer.json", ""), ("tokenizer.json", '{"model": {"voc'),
    ("tokenizer_config.json", "null"), ("processor_config.json", "<html>")])
def test_text_files_that_are_damaged(name: str, content: str, model: Path) -> None:
    (model / name).write_text(content)
    assert damage(model, name)


def test_links_into_a_cache_count_as_what_they_lead_to(model: Path, tmp_path: Path) -> None:
    blob = tmp_path / "blob"
    (model / SHARD).rename(blob)
    (model / SHARD).symlink_to(blob)
    assert check(model).complete
    blob.unlink()
    assert check(model).missing == (SHARD,)


def test_names_inside() -> None:
    assert all(map(is_inside, ("a.json", "a/b.json", "..a/b", "a b", "模型.json")))
    assert not any(map(is_inside, ("", "..", "../a", "a/..", "/a", "a/", "a\\b", "c:a", "./a",
                                   "a//b", "a\0b", "a/../b", ".")))
