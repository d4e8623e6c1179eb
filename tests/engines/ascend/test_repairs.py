"""What the plugin repairs beside vllm-ascend: when, and when not. Against trees like those of the
releases; the releases themselves are in ``test_repairs_real.py``."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from desktop.engines import plugin

sys.path.append(str(plugin.folder()))

import verso_vllm_plugin
from verso_vllm_plugin import (
    NotHere,
    attention_type,
    installed,
    later,
    tokenizer_class,
)

DECODER = """
from transformers.models.qwen2.modeling_qwen2 import Qwen2DecoderLayer

class AscendCustomQwen2Decoder:
    def _create_optimized_custom_model(self, config):
        class Inner:
            def {mask}(self): pass
        return Inner()

class AscendQwen2Model:
    def forward(self, masks):
        return [masks[layer.attention_type] for layer in self.layers]

class AscendQwen2DecoderLayer(Qwen2DecoderLayer):
    def __init__(self, config, layer_idx):
        super().__init__(config, layer_idx)
        {own}
"""
TRANSFORMERS = """
class Qwen2DecoderLayer:
    def __init__(self, config, layer_idx):
        self.hidden_size = 1
        {own}
"""
SETS = "self.attention_type = config.layer_types[layer_idx]"


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    """For packages; forgotten afterwards."""
    before = dict(sys.modules), list(sys.meta_path), list(sys.path)
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - set(before[0]):
        if name.partition(".")[0] in ("vllm_ascend", "transformers"):
            del sys.modules[name]
    sys.meta_path[:], sys.path[:] = before[1:]
    importlib.invalidate_caches()


def package(folder: Path, module: str, text: str) -> Path:
    """MODULE with TEXT and the packages above it, under FOLDER; that of the topmost package."""
    place = folder.joinpath(*module.split("."))
    place.parent.mkdir(parents=True, exist_ok=True)
    above = place.parent
    while above != folder:
        (above / "__init__.py").touch()
        above = above.parent
    place.with_suffix(".py").write_text(text, encoding="utf-8")
    return folder / module.partition(".")[0]


def ascend(tree: Path, module: str = "vllm_ascend.ops.qwen2_decoder", *, own: str = "pass",
           mask: str = "_create_npu_optimized_mask") -> Path:
    return package(tree, module, DECODER.format(own=own, mask=mask))


def transformers(tree: Path, own: str = "pass") -> Path:
    return package(tree, "transformers.models.qwen2.modeling_qwen2", TRANSFORMERS.format(own=own))


@pytest.mark.parametrize("module", installed.ASCEND_DECODERS)
def test_layers_that_lack_the_attention_type_get_it_once_they_are_imported(
        tree: Path, module: str) -> None:
    ascend(tree, module)
    transformers(tree)
    said = attention_type.apply()
    assert module in said
    assert module not in sys.modules  # nothing is imported for it
    found = importlib.import_module(module)
    layer = found.AscendQwen2DecoderLayer(None, 0)
    assert layer.attention_type == "full_attention"
    model = found.AscendQwen2Model()
    model.layers = [layer]
    assert model.forward({"full_attention": "mask"}) == ["mask"]


def test_without_the_repair_they_fail(tree: Path) -> None:
    ascend(tree)
    transformers(tree)
    found = importlib.import_module("vllm_ascend.ops.qwen2_decoder")
    model = found.AscendQwen2Model()
    model.layers = [found.AscendQwen2DecoderLayer(None, 0)]
    with pytest.raises(AttributeError, match="attention_type"):
        model.forward({"full_attention": "mask"})
    # and one that has been imported already is repaired at once
    attention_type.apply()
    assert model.forward({"full_attention": "mask"}) == ["mask"]


@pytest.mark.parametrize(("made", "reason"), [
    ({"own": SETS}, "layers have attention_type"),
    ({"base": SETS}, "this transformers' layers have attention_type"),
    ({"module": "vllm_ascend.ops.other"}, "no visual decoder of its own"),
    ({"module": ""}, "there is no vllm-ascend"),
])
def test_others_are_left_as_they_are(tree: Path, made: dict[str, str], reason: str) -> None:
    module = made.get("module", "vllm_ascend.ops.qwen2_decoder")
    folder = ascend(tree, module, own=made.get("own", "pass")) if module else None
    base = transformers(tree, made.get("base", "pass"))
    with pytest.raises(NotHere, match=reason):
        attention_type.needed(folder, base)


def test_a_layer_that_is_not_asked_is_left_as_it_is(tree: Path) -> None:
    folder = ascend(tree)
    file = folder / "ops/qwen2_decoder.py"
    file.write_text(file.read_text().replace("layer.attention_type", "layer.kind"))
    with pytest.raises(NotHere, match="does not ask"):
        attention_type.needed(folder, transformers(tree))


def test_the_mask_is_vllm_ascends_where_it_makes_one(tree: Path) -> None:
    folder = ascend(tree)
    assert installed.own_mask(installed.ascend_decoder(folder)[1])
    ascend(tree, mask="forward")
    assert not installed.own_mask(installed.ascend_decoder(folder)[1])
    assert not installed.own_mask(installed.ascend_decoder(None)[1])


def test_what_is_done_later_is_done_once_and_harms_no_import(tree: Path) -> None:
    transformers(tree)
    name = "transformers.models.qwen2.modeling_qwen2"
    heard: list[types.ModuleType] = []
    later.when_imported(name, heard.append)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("transformers.models.qwen3")
    module = importlib.import_module(name)
    assert importlib.import_module(name) is module
    assert heard == [module]
    assert module.Qwen2DecoderLayer.__module__ == name
    assert module.__spec__ is not None


# --- the tokenizer's class


def modules(monkeypatch: pytest.MonkeyPatch, *, wrong: set[str] | None,
            listed: set[str] | None, five: bool = True) -> dict[str, str]:
    """transformers with the list WRONG (None: it has none) and vLLM with LISTED; the classes by
    kind of model."""
    def module(name: str, **content: Any) -> None:
        made = types.ModuleType(name)
        made.__path__ = []
        vars(made).update(content)
        monkeypatch.setitem(sys.modules, name, made)
        parent, _, last = name.rpartition(".")
        if parent:
            monkeypatch.setattr(sys.modules[parent], last, made, raising=False)

    names: dict[str, str] = {}
    for name in ("transformers", "transformers.models", "transformers.models.auto", "vllm",
                 "vllm.tokenizers"):
        module(name)
    module("transformers.models.auto.tokenization_auto", TOKENIZER_MAPPING_NAMES=names,
           **({} if wrong is None else {tokenizer_class.TRANSFORMERS_LIST: wrong}))
    if five:
        module("transformers.tokenization_utils_tokenizers",
               TokenizersBackend=type("TokenizersBackend", (), {}))
    module("vllm.tokenizers.registry",
           **({} if listed is None else {tokenizer_class.VLLM_LIST: listed}))
    return names


def test_vllm_is_told_of_the_wrong_class_where_it_listens(
        monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, listed = {"deepseek_vl_v2"}, {"step3_vl"}
    modules(monkeypatch, wrong=wrong, listed=listed)
    assert "vLLM's list" in tokenizer_class.apply()
    assert listed == {"step3_vl", "deepseek_ocr2"}
    assert wrong == {"deepseek_vl_v2"}
    with pytest.raises(NotHere):
        tokenizer_class.apply()


def test_else_transformers_is(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {"deepseek_vl_v2"}
    names = modules(monkeypatch, wrong=wrong, listed=None)
    assert "transformers' list" in tokenizer_class.apply()
    assert "deepseek_ocr2" in wrong
    assert names == {"deepseek_ocr2": "TokenizersBackend"}


@pytest.mark.parametrize(("wrong", "listed", "five"), [
    ({"deepseek_ocr2"}, set(), True),  # transformers 5.8
    (set(), {"deepseek_ocr2"}, True),  # a vLLM that knows
    (None, None, True),
    ({"deepseek_vl_v2"}, set(), False),  # transformers 4
])
def test_who_reads_it_rightly_is_left_as_it_is(
        monkeypatch: pytest.MonkeyPatch, wrong: set[str] | None, listed: set[str] | None,
        five: bool) -> None:
    before = set(wrong or ()), set(listed or ())
    names = modules(monkeypatch, wrong=wrong, listed=listed, five=five)
    with pytest.raises(NotHere):
        tokenizer_class.apply()
    assert (set(wrong or ()), set(listed or ())) == before
    assert names == {}


def test_the_log_says_what_was_done_and_what_not(
        tree: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "vllm.verso")
    modules(monkeypatch, wrong=set(), listed=set())
    monkeypatch.setattr(verso_vllm_plugin, "done", {})
    monkeypatch.setenv("VERSO_TOKENIZER_CLASS", "1")
    monkeypatch.setenv("VERSO_ATTENTION_TYPE", "1")
    verso_vllm_plugin.register()
    assert verso_vllm_plugin.done == {
        "tokenizer class": "", "attention type": "there is no vllm-ascend"}
    assert "tokenizer class: deepseek_ocr2 added" in caplog.text
    assert "attention type left as it is: there is no vllm-ascend" in caplog.text
