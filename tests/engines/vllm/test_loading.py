"""What is prepared before vLLM is imported, and what its failures are told as."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from desktop.engines import plugin
from desktop.engines.base import EngineDied
from desktop.engines.model import variables, weights
from desktop.engines.model.steps import Steps
from desktop.engines.vllm import devices, loading, preflight, versions
from desktop.engines.vllm.failures import (
    NoSuchDevice,
    OutOfMemory,
    StartFailed,
    TooFewDevices,
    WrongTorchvision,
)
from desktop.engines.vllm.loading import Loader
from desktop.engines.vllm.output import OutputTail
from desktop.settings import Values

NOTHING = versions.Decision({}, (), ())


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a start changes for the whole process is put back."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("VLLM_PLUGINS", "CUDA_VISIBLE_DEVICES", "VLLM_USE_V2_MODEL_RUNNER"):
        os.environ.pop(name, None)


def values(**changed: Any) -> dict[str, Any]:
    return dict(Values(changed).as_dict())


def test_the_plugin_reaches_every_process_once() -> None:
    os.environ["PYTHONPATH"] = "/their/own"
    sys.path[:] = [path for path in sys.path if path != str(plugin.folder())]
    for _round in range(2):
        loading._prepare_environment(values(), NOTHING)
    folder = str(plugin.folder())
    assert os.environ["PYTHONPATH"] == os.pathsep.join(["/their/own", folder])
    assert sys.path.count(folder) == 1
    assert os.environ[plugin.MASK] == "1"
    assert "VLLM_PLUGINS" not in os.environ


def test_the_plugin_is_loaded_where_a_person_names_plugins() -> None:
    os.environ["VLLM_PLUGINS"] = "theirs"
    for _round in range(2):
        loading._prepare_environment(values(), NOTHING)
    assert os.environ["VLLM_PLUGINS"] == "theirs,verso"


def test_nothing_goes_to_the_network_and_processes_are_spawned() -> None:
    loading._prepare_environment(values(), NOTHING)
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert os.environ["VLLM_NO_USAGE_STATS"] == "1"
    assert os.environ["VLLM_WORKER_MULTIPROC_METHOD"] == "spawn"


def test_what_a_version_needs_is_set_unless_a_person_has() -> None:
    needs = versions.Decision({"VLLM_USE_V2_MODEL_RUNNER": "0"}, (), ())
    loading._prepare_environment(values(), needs)
    assert os.environ["VLLM_USE_V2_MODEL_RUNNER"] == "0"
    os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "1"
    loading._prepare_environment(values(), needs)
    assert os.environ["VLLM_USE_V2_MODEL_RUNNER"] == "1"


def some_gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    found = tuple(devices.Device(number, f"GPU-{number}", "Test 1000", 24 * 10**9, 23 * 10**9)
                  for number in range(count))
    monkeypatch.setattr(devices, "devices", lambda: found)


def numbers(found: tuple[devices.Device, ...]) -> list[int]:
    return [device.number for device in found]


def usable(wanted: dict[str, Any], typed: dict[str, Any]) -> tuple[devices.Device, ...]:
    return Loader({}, OutputTail(), lambda _step, _share: None)._usable(wanted, typed)


def test_the_devices_that_will_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    some_gpus(monkeypatch, 4)
    assert numbers(usable(values(), {})) == [0]
    assert numbers(usable(values(tensor_parallel=2, data_parallel=2), {})) == [0, 1, 2, 3]
    assert numbers(usable(values(), {"tensor_parallel_size": 3})) == [0, 1, 2]
    assert numbers(usable(values(), {"data_parallel_size": 2})) == [0, 1]
    chosen = values(devices="3, 1", tensor_parallel=2)
    loading._prepare_environment(chosen, NOTHING)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3,1"
    assert numbers(usable(chosen, {})) == [3, 1]


def test_devices_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    some_gpus(monkeypatch, 2)
    with pytest.raises(TooFewDevices) as few:
        usable(values(tensor_parallel=2, pipeline_parallel=2), {})
    assert "4 devices; 2 can be used" in few.value.problem().message
    wrong = values(devices="0,5")
    loading._prepare_environment(wrong, NOTHING)
    with pytest.raises(NoSuchDevice) as missing:
        usable(wrong, {})
    assert "no device 5" in missing.value.problem().message


def explained(error: Exception, *lines: str) -> Any:
    output = OutputTail()
    for line in lines:
        output._keep(line.encode())
    return Loader({}, output, lambda _step, _share: None)._explained(error)


@pytest.mark.parametrize("line", [
    "RuntimeError: operator torchvision::nms does not exist",
    "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA major "
    "versions."])
def test_a_torchvision_of_another_torch_is_named(line: str) -> None:
    problem = explained(RuntimeError("Engine core initialization failed."), line).problem()
    assert problem.code == "vllm.torchvision"
    assert "torchvision that goes with this torch" in problem.hint
    kind, _colon, words = line.partition(": ")
    assert explained(RuntimeError(words)).problem().code == "vllm.torchvision"
    assert kind == "RuntimeError"


def test_a_failure_has_its_root_cause_and_what_was_written() -> None:
    error = explained(
        RuntimeError("Engine core initialization failed. See root cause above."),
        "(EngineCore pid=7) ERROR 11-30 16:22:54 [core.py:1] KeyError: 'model.layers.0.weight'")
    assert isinstance(error, StartFailed)
    problem = error.problem()
    assert "KeyError: 'model.layers.0.weight'" in problem.message
    assert "EngineCore pid=7" in problem.detail
    assert "See root cause above" in problem.detail


def test_a_failure_for_want_of_memory_has_a_way_out() -> None:
    error = explained(RuntimeError("Engine core initialization failed."),
                      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    assert isinstance(error, OutOfMemory)
    assert "Quantization" in error.problem().hint


def test_a_process_that_somebody_killed_is_worth_another_try() -> None:
    said = "Engine core initialization failed. See root cause above. Failed core proc(s): %s"
    assert isinstance(explained(RuntimeError(said % ("{'EngineCore_DP0': -9}"))), EngineDied)
    assert isinstance(explained(RuntimeError(said % ("{'EngineCore_DP0': -8}"))), StartFailed)


def test_a_vllm_that_cannot_be_imported_is_not_tried_again(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a torchvision that is not of torch's version; what is not there at all is the
    worker's to say."""
    def broken(_found: object) -> object:
        raise RuntimeError("operator torchvision::nms does not exist")

    def absent(_found: object) -> object:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    loader = Loader({}, OutputTail(), lambda _step, _share: None)
    monkeypatch.setattr(versions, "installed", lambda: broken(None))
    with pytest.raises(WrongTorchvision) as caught:
        loader.load()
    assert "operator torchvision::nms does not exist" in caught.value.problem().detail
    monkeypatch.setattr(versions, "installed", lambda: absent(None))
    with pytest.raises(ModuleNotFoundError):
        loader.load()


def test_memory_that_an_ended_engine_still_holds_is_waited_for(
        monkeypatch: pytest.MonkeyPatch) -> None:
    left = [3.0, 3.0, 23.0]

    def found() -> tuple[devices.Device, ...]:
        free = round((left.pop(0) if len(left) > 1 else left[0]) * 1e9)
        return (devices.Device(0, "GPU-0", "Test 1000", 24 * 10**9, free),)

    monkeypatch.setattr(devices, "devices", found)
    monkeypatch.setattr(preflight.time, "sleep", lambda _seconds: None)
    told: list[str] = []
    loader = Loader({}, OutputTail(), lambda step, _share: told.append(step))
    model = weights.Weights(True, (), 7 * 10**9, "")
    needed = preflight.need(values(), model)
    [device] = loader._room(values(), {}, needed, 1)
    assert device.free == 23 * 10**9
    assert told == ["Waiting for the device's memory"] * 2
    left[:] = [3.0]
    monkeypatch.setattr(preflight, "RELEASE", 0.0)
    with pytest.raises(OutOfMemory):
        loader._room(values(), {}, needed, 1)


class Engine:
    def __init__(self) -> None:
        self.ended = False

    def shutdown(self) -> None:
        self.ended = True


def several(monkeypatch: pytest.MonkeyPatch, made: list[Engine], most: int) -> Loader:
    """A loader that can start MOST engines, which are put into MADE."""
    def engine(_given: object) -> Engine:
        if len(made) == most:
            raise RuntimeError("No available memory for the cache blocks.")
        made.append(Engine())
        return made[-1]

    monkeypatch.setattr(loading, "_engine", engine)
    return Loader({}, OutputTail(), lambda _step, _share: None)


def test_fewer_engine_cores_will_do_where_nobody_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Engine] = []
    notes: list[str] = []
    assert several(monkeypatch, made, 1)._engines({}, 2, notes, chosen=False) == made
    assert len(made) == 1
    assert not made[0].ended
    [note] = notes
    assert "Engine core 2 could not be started" in note


@pytest.mark.parametrize(("most", "chosen"), [(1, True), (0, False)])
def test_a_start_that_fails_leaves_no_engine_core(monkeypatch: pytest.MonkeyPatch, most: int,
                                                  chosen: bool) -> None:
    made: list[Engine] = []
    with pytest.raises(RuntimeError):
        several(monkeypatch, made, most)._engines({}, 2, [], chosen=chosen)
    assert [engine.ended for engine in made] == [True] * most


def test_a_failure_in_this_process_is_told_by_itself() -> None:
    problem = explained(ValueError("block_size must be 16\nmore")).problem()
    assert "ValueError: block_size must be 16" in problem.message


def test_steps_of_loading_are_told() -> None:
    told: list[tuple[str, float]] = []
    steps = Steps(lambda step, share: told.append((step, share)), loading.STEPS)
    for line in (
            "(EngineCore pid=8046) INFO 12-01 00:33:39 [core.py:133] Initializing a V1 LLM engine "
            "(v0.32.0) with config: model='/m'",
            "(Worker pid=6066) INFO [cpu_model_runner.py:68] Starting to load model /tmp/tiny...",
            "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:00<00:00]",
            "WARNING [vllm.py:1703] Enforce eager set, disabling torch.compile, CUDAGraphs",
            "INFO [backends.py:1] Dynamo bytecode transform time: 3.2 s",
            "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  25%|██▌  | 10/40"):
        steps(line)
    assert told == [("Starting the engine's processes", -1.0),
                    ("Loading the weights", -1.0), ("Loading the weights", 0.5),
                    ("Compiling", -1.0), ("Capturing graphs", 0.25)]


def test_a_token_that_is_passed_through_is_not_logged() -> None:
    given = {"hf_token": "hf_secret", "model": "/m", "max_num_batched_tokens": 16384,
             "tokenizer": "/t"}
    assert variables.discreet(given) == {**given, "hf_token": "…"}
    assert variables.discreet({"hf_token": None}) == {"hf_token": None}
