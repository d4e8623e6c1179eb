"""GPUs and their parts, as the driver tells of them and as CUDA would leave them.

There is no GPU here: the driver is a stand-in, made of the functions of NVML that are asked; that
those are what the real binding has is a test of its own.
"""

# ruff: noqa: N802 - NVML's names

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from desktop.engines.vllm import devices, loading
from desktop.engines.vllm.failures import (
    NoSuchDevice,
    OnePartOnly,
    PartNotTaken,
    TooFewDevices,
)
from desktop.engines.vllm.output import OutputTail
from desktop.settings import InvalidSetting, Values, setting

GB = 10**9


@dataclass
class Card:
    """A GPU or a part of one, as the stand-in knows it."""

    uuid: str
    name: str
    total: int = 80 * GB
    free: int = 79 * GB
    told: bool = True
    """Whether its memory and users may be asked for."""
    divided: bool | None = None
    """None: it has no such mode."""
    parts: list[Card | None] = field(default_factory=list)
    """None: a place where nobody made one."""
    pids: tuple[int, ...] = ()


class Nvml(ModuleType):
    """The driver's library with CARDS."""

    class NVMLError(Exception):
        """As NVML's."""

    NVML_DEVICE_MIG_DISABLE = 0
    NVML_DEVICE_MIG_ENABLE = 1

    def __init__(self, *cards: Card) -> None:
        super().__init__("pynvml")
        self.cards = cards
        self.open = 0

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        return self.cards[index]

    def nvmlDeviceGetMigMode(self, device: Card) -> list[int]:
        if device.divided is None:
            raise self.NVMLError("Not Supported")
        return [int(device.divided), int(device.divided)]

    def nvmlDeviceGetMaxMigDeviceCount(self, device: Card) -> int:
        return max(7, len(device.parts))

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: Card, index: int) -> Card:
        part = device.parts[index] if index < len(device.parts) else None
        if part is None:
            raise self.NVMLError("Not Found")
        return part

    def nvmlDeviceGetMemoryInfo(self, handle: Card) -> SimpleNamespace:
        if not handle.told:
            raise self.NVMLError("Insufficient Permissions")
        return SimpleNamespace(total=handle.total, free=handle.free)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Card) -> list[SimpleNamespace]:
        if not handle.told:
            raise self.NVMLError("Insufficient Permissions")
        return [SimpleNamespace(pid=pid, usedGpuMemory=GB) for pid in handle.pids]

    def nvmlDeviceGetUUID(self, handle: Card) -> str:
        return handle.uuid

    def nvmlDeviceGetName(self, handle: Card) -> bytes:
        return handle.name.encode()


H200 = Card("GPU-5f00-a", "NVIDIA H200", 141 * GB, 140 * GB, divided=False)
OTHER = Card("GPU-5f00-b", "NVIDIA H200", 141 * GB, 90 * GB, divided=False, pids=(os.getpid(),))
SMALL = Card("MIG-11aa", "NVIDIA A100 MIG 1g.10gb", 10 * GB, 9 * GB)
LARGE = Card("MIG-22bb", "NVIDIA A100 MIG 3g.40gb", 40 * GB, 39 * GB)
DIVIDED = Card("GPU-7e00", "NVIDIA A100", divided=True, parts=[None, SMALL, LARGE])

Driver = Callable[..., tuple[devices.Device, ...]]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """``driver(CARD, …)``: what is found with these."""
    def install(*cards: Card) -> tuple[devices.Device, ...]:
        nvml = Nvml(*cards)
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        found = devices.devices()
        assert nvml.open == 0
        return found

    for name in (devices.VISIBLE, "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return install


def values(**changed: object) -> dict[str, object]:
    return Values({"engine": "vllm", **changed}).as_dict()


def names(found: tuple[devices.Device, ...]) -> list[str]:
    return [device.uuid for device in found]


def test_what_is_asked_of_the_driver_is_what_the_real_binding_has(engine_python: Path) -> None:
    [file] = engine_python.parents[1].glob("lib/python3*/site-packages/vllm/third_party/pynvml.py")
    tree = ast.parse(file.read_text("utf-8"))
    real = {node.name: len(node.args.args) - len(node.args.defaults) for node in tree.body
            if isinstance(node, ast.FunctionDef)}
    constants = {target.id: node.value for node in tree.body if isinstance(node, ast.Assign)
                 for target in node.targets if isinstance(target, ast.Name)}
    ours = {name: function.__code__.co_argcount - 1 for name, function in vars(Nvml).items()
            if name.startswith("nvml")}
    assert {name: real.get(name) for name in ours} == ours
    for name in ("NVML_DEVICE_MIG_DISABLE", "NVML_DEVICE_MIG_ENABLE"):
        assert ast.literal_eval(constants[name]) == getattr(Nvml, name)
    assert "NVMLError" in {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


def test_gpus_with_their_memory_and_users(driver: Driver) -> None:
    first, second = driver(H200, OTHER)
    assert (first.number, first.uuid, first.name) == (0, "GPU-5f00-a", "NVIDIA H200")
    assert (second.total, second.free) == (141 * GB, 90 * GB)
    assert [(user.pid, user.bytes) for user in second.users] == [(os.getpid(), GB)]


def test_parts_stand_behind_their_gpu_with_memory_of_their_own(driver: Driver) -> None:
    found = driver(H200, DIVIDED)
    assert names(found) == ["GPU-5f00-a", "GPU-7e00", "MIG-11aa", "MIG-22bb"]
    assert [device.number for device in found] == [0, 1, 1, 1]
    assert [device.total // GB for device in found] == [141, 80, 10, 40]
    assert [device.part_of for device in found] == ["", "", "GPU-7e00", "GPU-7e00"]


def test_a_gpu_that_may_not_be_asked(driver: Driver) -> None:
    """As in a container that is given one of its parts."""
    hidden = Card("GPU-7e00", "NVIDIA A100", told=False, divided=True, parts=[None, SMALL])
    whole, part = driver(hidden)
    assert (whole.total, whole.users) == (0, ())
    assert part.free == 9 * GB
    assert names(devices.to_use((whole, part), None, values())) == ["MIG-11aa"]


@pytest.mark.parametrize(("visible", "left"), [
    (None, ["GPU-5f00-a", "GPU-5f00-b"]), ("1,0", ["GPU-5f00-b", "GPU-5f00-a"]),
    ("GPU-5f00-b", ["GPU-5f00-b"]), ("GPU-5f00-b,0", ["GPU-5f00-b", "GPU-5f00-a"]),
    ("GPU-5f", []), ("0,GPU-5f00-a", []), ("0,0", []), ("0,MIG-11aa,1", ["GPU-5f00-a"]),
    ("01", ["GPU-5f00-b"]), ("", []), ("-1", [])])
def test_what_cuda_leaves(driver: Driver, visible: str | None, left: list[str]) -> None:
    assert names(devices.chosen(driver(H200, OTHER), visible)) == left


@pytest.mark.parametrize(("visible", "left"), [
    (None, ["MIG-11aa"]),  # the first part, and then no GPU beside it
    ("0", ["GPU-5f00-a"]), ("1", ["MIG-11aa"]), ("0,1", ["MIG-11aa"]),
    ("GPU-7e00", ["MIG-11aa"]), ("MIG-22bb", ["MIG-22bb"]), ("MIG-2", ["MIG-22bb"]),
    ("MIG-22bb,MIG-11aa", ["MIG-22bb"]), ("MIG-33", [])])
def test_what_cuda_leaves_of_a_gpu_in_parts(driver: Driver, visible: str | None,
                                            left: list[str]) -> None:
    assert names(devices.chosen(driver(H200, DIVIDED), visible)) == left


def test_a_divided_gpu_without_parts_is_none(driver: Driver) -> None:
    bare = Card("GPU-7e00", "NVIDIA A100", divided=True)
    assert names(devices.chosen(driver(bare, H200), None)) == ["GPU-5f00-a"]


@pytest.mark.parametrize(("asked", "reason"), [
    ("0,7", "There is no device 7."), ("GPU-9999", "There is no device GPU-9999."),
    ("MIG-33cc", "There is no device MIG-33cc."),
    ("GPU-5f00", "Several devices have names that begin with GPU-5f00."),
    ("1,GPU-5f00-b", "The device GPU-5f00-b is named twice.")])
def test_devices_that_are_not_there(driver: Driver, asked: str, reason: str) -> None:
    found = driver(H200, OTHER, DIVIDED)
    with pytest.raises(NoSuchDevice) as caught:
        devices.to_use(found, asked, values(devices=asked))
    problem = caught.value.problem()
    assert problem.code == "vllm.device"
    assert problem.message == (
        f"{reason} This machine shows: 0 (NVIDIA H200), 1 (NVIDIA H200), 2 (NVIDIA A100), "
        "MIG-11aa, MIG-22bb.")
    assert "nvidia-smi -L" in problem.hint


def test_more_than_one_device_is_not_to_be_had_beside_a_part(driver: Driver) -> None:
    found = driver(H200, DIVIDED)
    with pytest.raises(OnePartOnly) as caught:
        devices.to_use(found, "MIG-11aa,MIG-22bb", values(tensor_parallel=2))
    assert "need 2 devices" in caught.value.problem().message
    assert "1g.10gb" in caught.value.problem().message
    with pytest.raises(TooFewDevices):
        devices.to_use(found, "0", values(tensor_parallel=2))


@pytest.mark.parametrize(("visible", "spelled"), [
    ("GPU-5f00-b, 0", "1,0"), ("MIG-2", "MIG-22bb"), ("2", "2"), ("GPU-7e00", "2"),
    ("0,GPU-dead", "0,GPU-dead"), ("GPU-5f", "GPU-5f")])
def test_names_are_spelled_so_that_every_vllm_reads_them(driver: Driver, visible: str,
                                                         spelled: str) -> None:
    assert devices.spelled(driver(H200, OTHER, DIVIDED), visible) == spelled


class Platform:
    """vLLM's platform, of a version that reads names or one that does not."""

    def __init__(self, *, reads_names: bool) -> None:
        self._reads_names = reads_names

    def get_device_name(self, device_id: int = 0) -> str:
        visible = os.environ[devices.VISIBLE].split(",")[device_id]
        return visible if self._reads_names else f"GPU {int(visible)}"


def vllm_with(monkeypatch: pytest.MonkeyPatch, platform: Platform) -> None:
    module = ModuleType("vllm.platforms")
    module.current_platform = platform  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
    monkeypatch.setitem(sys.modules, "vllm.platforms", module)


def named(asked: str) -> str:
    """``CUDA_VISIBLE_DEVICES`` as vLLM finds it."""
    chosen = values(devices=asked)
    loading._prepare_environment(chosen, loading.versions.Decision({}, (), ()))
    loading._name_devices(chosen, "0.20.1")
    return os.environ[devices.VISIBLE]


def test_a_gpu_by_name_reaches_vllm_as_nvidia_smi_counts(
        driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver(H200, OTHER)
    vllm_with(monkeypatch, Platform(reads_names=False))
    assert named("GPU-5f00-b") == "1"
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    with pytest.raises(NoSuchDevice):
        named("GPU-1")


def test_a_name_in_the_variable_itself(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver(H200, OTHER)
    monkeypatch.setenv(devices.VISIBLE, "GPU-5f00-b")
    assert named("") == "1"


def test_a_part_reaches_a_vllm_that_reads_names(driver: Driver,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    driver(H200, DIVIDED)
    vllm_with(monkeypatch, Platform(reads_names=True))
    assert named("MIG-22") == "MIG-22bb"
    loader = loading.Loader({}, OutputTail(), lambda _step, _share: None)
    assert [device.total for device in loader._usable(values(devices="MIG-22"), {})] == [40 * GB]


def test_a_vllm_that_takes_names_for_numbers_says_so(driver: Driver,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    driver(DIVIDED)
    vllm_with(monkeypatch, Platform(reads_names=False))
    with pytest.raises(PartNotTaken) as caught:
        named("MIG-22bb")
    problem = caught.value.problem()
    assert "vLLM 0.20.1" in problem.message
    assert "device=MIG-22bb" in problem.hint
    assert "ValueError" in problem.detail


@pytest.mark.parametrize("value", ["", "0", "0, 1", "GPU-5f00a1-b", "MIG-GPU-5f00a1/7/0",
                                   "GPU-5f00,1", " 2 "])
def test_values_of_the_setting(value: str) -> None:
    assert setting("devices").parse(value) == value


@pytest.mark.parametrize("value", ["cuda:0", "0 1", "0;1", "-1", "0,0", "0,", "all", "0-3",
                                   "GPU-", "GPU-a b", "npu"])
def test_values_that_the_setting_refuses(value: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        setting("devices").parse(value)
    assert "separated by commas" in caught.value.problem().hint


def test_what_an_engine_has_taken_of_its_devices() -> None:
    def cards(*free: int) -> tuple[devices.Device, ...]:
        return tuple(devices.Device(number, f"GPU-{number}", "Test 1000", 80 * GB, each * GB)
                     for number, each in enumerate(free))

    # Others gave memory back on the second one; the third one is not the engine's.
    assert devices.memory(cards(70, 20), cards(10, 30, 5)) == (60 * GB, 160 * GB, 40 * GB)
    assert devices.memory((), cards(10)) == (0, 0, 0)
    assert devices.titled("Test 1000", 1) == "Test 1000"
    assert devices.titled("Test 1000", 2) == "2 × Test 1000"
