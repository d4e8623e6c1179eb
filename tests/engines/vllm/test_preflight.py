"""What is looked at before the model is loaded: its files, the device's memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from desktop.engines.vllm import preflight
from desktop.engines.vllm.devices import Device, User, chosen
from desktop.engines.vllm.failures import ModelMissing, NotQuantized, NotTheModel, OutOfMemory
from desktop.engines.vllm.preflight import Need
from desktop.settings import InvalidSetting, Values, setting
from tests.support import environments

GB = 10**9
LANGUAGE = {"num_hidden_layers": 12, "num_attention_heads": 10, "num_key_value_heads": 10,
            "hidden_size": 1280}
"""As published with DeepSeek-OCR-2."""


def values(**changed: Any) -> dict[str, Any]:
    return dict(Values(changed).as_dict())


def gpu(total: float, free: float, *users: User, number: int = 0) -> Device:
    return Device(number, f"GPU-{number}aa", "Test 1000", round(total * GB), round(free * GB),
                  users)


def refused(need: Need, device: Device, **changed: Any) -> tuple[str, str]:
    with pytest.raises(OutOfMemory) as caught:
        preflight.memory(values(**changed), need, [device])
    problem = caught.value.problem()
    return problem.message, problem.hint


MODEL = Need(round(6.8 * GB), round(0.5 * GB))


def test_a_whole_model_passes(tmp_path: Path) -> None:
    folder = environments.model(tmp_path / "model")
    assert preflight.model_folder(values(model=str(folder)), {}).complete


@pytest.mark.parametrize("name", ["", "/nowhere/at/all"])
def test_no_folder(name: str) -> None:
    with pytest.raises(ModelMissing) as caught:
        preflight.model_folder(values(model=name), {})
    assert "verso models download" in caught.value.problem().hint


def test_missing_weights_are_named_unless_they_are_not_wanted(tmp_path: Path) -> None:
    folder = environments.model(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelMissing) as caught:
        preflight.model_folder(values(model=str(folder)), {})
    assert "model.safetensors" in caught.value.problem().message
    preflight.model_folder(values(model=str(folder)), {"load_format": "dummy"})
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelMissing):
        preflight.model_folder(values(model=str(folder)), {"load_format": "dummy"})


@pytest.mark.parametrize("name", ["awq", "gptq", "compressed-tensors"])
def test_a_format_that_the_files_do_not_have(name: str, tmp_path: Path) -> None:
    folder = environments.model(tmp_path / "model")
    asked = values(model=str(folder), quantization=name)
    with pytest.raises(NotQuantized) as caught:
        preflight.model_folder(asked, {})
    assert name in caught.value.problem().message
    assert caught.value.problem().fix == (("quantization", "none"),)
    for made_while_loading in ("fp8", "bitsandbytes"):
        preflight.model_folder(values(model=str(folder), quantization=made_while_loading), {})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(
        {**config, "quantization_config": {"quant_method": name}}))
    assert preflight.model_folder(asked, {}).complete


@pytest.mark.parametrize(("value", "good"), [
    (0, True), (16, True), (1024, True), (7, False), (24, False), (1040, False)])
def test_sizes_of_a_cache_block(value: int, good: bool) -> None:
    if good:
        assert setting("block_size").parse(value) == value
    else:
        with pytest.raises(InvalidSetting):
            setting("block_size").parse(value)


def test_another_model_is_refused(tmp_path: Path) -> None:
    folder = environments.model(tmp_path / "model")
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    with pytest.raises(NotTheModel) as caught:
        preflight.model_folder(values(model=str(folder)), {})
    assert "LlamaForCausalLM" in caught.value.problem().message
    preflight.model_folder(values(model=str(folder)), {"hf_overrides": {"architectures": ["x"]}})


def test_need_of_the_published_model(tmp_path: Path) -> None:
    folder = environments.model(tmp_path / "model")
    (folder / "config.json").write_text(json.dumps(
        {"architectures": ["DeepseekOCR2ForCausalLM"], "language_config": LANGUAGE}))
    # Two vectors of 1280 numbers of two bytes in each of twelve layers.
    assert preflight.cache_bytes(folder, 2) == 61440
    found = preflight.weights.check(folder)
    one = preflight.need(values(model=str(folder)), found)
    assert one.cache == 8192 * 61440
    assert one.weights == found.bytes
    two = preflight.need(values(model=str(folder), tensor_parallel=2, dtype="float32"), found)
    assert two.cache == one.cache
    assert two.weights == one.weights


@pytest.mark.parametrize(("quantization", "in_files", "share"), [
    ("fp8", False, 0.6), ("bitsandbytes", False, 0.45), ("awq", False, 1.0),
    ("compressed-tensors", True, 1.0), ("fp8", True, 1.0)])
def test_weights_that_are_small_in_the_files_are_not_taken_to_shrink_again(
        quantization: str, in_files: bool, share: float, tmp_path: Path) -> None:
    folder = environments.model(tmp_path / "model")
    config = {"architectures": ["DeepseekOCR2ForCausalLM"], "language_config": LANGUAGE}
    (folder / "config.json").write_text(json.dumps(
        {**config, "quantization_config": {"quant_method": "x"}} if in_files else config))
    found = preflight.weights.check(folder)
    needed = preflight.need(values(model=str(folder), quantization=quantization), found)
    assert needed.weights == round(found.bytes * share)


def test_a_configuration_that_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    for text in ("", "[]", '{"language_config": 3}', '{"num_attention_heads": 0}'):
        (tmp_path / "config.json").write_text(text)
        assert preflight.cache_bytes(tmp_path, 2) == 0
    assert preflight.cache_bytes(tmp_path / "none", 2) == 0


def test_memory_that_is_enough_passes() -> None:
    preflight.memory(values(), MODEL, [gpu(24, 23)])


def test_other_programs_on_the_device_are_named_and_a_share_that_fits() -> None:
    message, hint = refused(MODEL, gpu(24, 15, User(4711, "blender", 8 * GB),
                                       User(12, "Xorg", GB // 2)))
    assert "24.0 GB" in message
    assert "15.0 GB" in message
    assert "85%" in message
    assert "at most 0.61" in hint
    assert "blender 4711 (8.0 GB), Xorg 12 (0.5 GB)" in hint


def test_a_full_device_says_what_the_model_needs() -> None:
    _message, hint = refused(MODEL, gpu(24, 4))
    assert "10.3 GB" in hint
    assert "nvidia-smi" in hint


@pytest.mark.parametrize(("total", "changed", "words"), [
    (14, {"memory_utilization": 0.5}, "“Memory utilization” to 0.74"),
    (10.7, {}, "“Context length” to"),
    (8.5, {}, "“Quantization” to fp8"),
    (6, {}, "at least 11 GB")])
def test_a_small_device_gets_the_gentlest_settings_that_fit(
        total: float, changed: dict[str, Any], words: str) -> None:
    message, hint = refused(MODEL, gpu(total, total - 0.1), **changed)
    assert "10.3 GB" in message
    assert words in hint


@pytest.mark.parametrize(("total", "free", "share", "keys"), [
    (24, 15, 0.85, ["memory_utilization"]),
    (14, 13.9, 0.5, ["memory_utilization"]),
    (10.7, 10.6, 0.85, ["memory_utilization", "max_model_len"]),
    (8.5, 8.4, 0.85, ["quantization", "memory_utilization"])])
def test_what_is_advised_comes_as_values_and_passes(
        total: float, free: float, share: float, keys: list[str]) -> None:
    asked = values(memory_utilization=share)
    with pytest.raises(OutOfMemory) as caught:
        preflight.memory(asked, MODEL, [gpu(total, free)])
    problem = caught.value.problem()
    fix = dict(problem.fix)
    assert list(fix) == keys
    for value in fix.values():
        assert (f"{value:.2f}" if isinstance(value, float) else str(value)) in problem.hint
    # As the check before loading works it out from the changed settings.
    token = MODEL.cache / asked["max_model_len"]
    changed = {**asked, **fix}
    smaller = preflight.Need(
        round(MODEL.weights * preflight._SHARE_OF_WEIGHTS[changed["quantization"]]),
        round(changed["max_model_len"] * token))
    preflight.memory(changed, smaller, [gpu(total, free)])


def test_where_nothing_fits_there_are_no_values() -> None:
    for device, changed in ((gpu(24, 4), {}), (gpu(6, 5.9), {"memory_utilization": 0.5})):
        with pytest.raises(OutOfMemory) as caught:
            preflight.memory(values(**changed), MODEL, [device])
        assert caught.value.problem().fix == ()


def test_a_processor_needs_the_machines_memory() -> None:
    preflight.host_memory(MODEL, GB, 32 * GB, 20 * GB)
    preflight.host_memory(MODEL, GB, 0, 0)
    with pytest.raises(OutOfMemory) as caught:
        preflight.host_memory(MODEL, GB, 16 * GB, 9 * GB)
    message = caught.value.problem().message
    assert "10.8 GB" in message
    assert "9.0 of 16.0 GB" in message


def test_visible_devices_as_cuda_reads_them() -> None:
    found = [gpu(1, 1, number=number) for number in range(4)]

    def numbers(visible: str | None) -> list[int]:
        return [device.number for device in chosen(found, visible)]

    assert numbers(None) == [0, 1, 2, 3]
    assert numbers("2,0") == [2, 0]
    assert numbers("GPU-3") == [3]
    assert numbers("1,9,2") == [1]
    assert numbers("GPU-,1") == []  # whose beginning it is cannot be told
    assert numbers("1,GPU-1aa") == []
    assert numbers("") == numbers("-1") == []
