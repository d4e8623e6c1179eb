"""The engine ``ascend`` without an NPU: its arguments, its variables, the devices it looks at, and
what it refuses. From end to end it runs in ``tests/accelerator/test_ascend.py``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from desktop.engines import plugin
from desktop.engines.ascend import experts, npus, smi
from desktop.engines.ascend.failures import NoPlatform
from desktop.engines.ascend.loading import ADDITIONAL, AscendLoader, shows_tokens
from desktop.engines.model import weights
from desktop.engines.registry import entry
from desktop.engines.vllm import preflight, versions
from desktop.engines.vllm.devices import Device
from desktop.engines.vllm.failures import NoSuchDevice, OutOfMemory, TooFewDevices
from desktop.engines.vllm.output import OutputTail
from desktop.errors import VersoError
from desktop.settings import Values, setting
from tests.engines.ascend.test_contracts import fields
from tests.support import ascend_sources, processes, programs

SAMPLES = Path(__file__).resolve().parents[2] / "doctor" / "npu_smi"
KNOWN = frozenset({
    "model", "dtype", "max_model_len", "max_num_seqs", "max_num_batched_tokens",
    "enable_chunked_prefill", "enable_prefix_caching", "enforce_eager", "tensor_parallel_size",
    "data_parallel_size", "pipeline_parallel_size", "limit_mm_per_prompt", "scheduling_policy",
    "disable_log_stats", "gpu_memory_utilization", "quantization", "block_size",
    "speculative_config", "logits_processors", "additional_config"})
NOTHING = versions.Decision({}, (), ())


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables and the path as they are, whatever is done to them."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("ASCEND_RT_VISIBLE_DEVICES", raising=False)


def loader(**settings: object) -> AscendLoader:
    values = Values({"engine": "ascend", "model": "/model", **settings}).as_dict()
    return AscendLoader(values, OutputTail(), lambda _step, _share: None)


def built(known: frozenset[str] = KNOWN, **settings: object) -> dict[str, Any]:
    made = loader(**settings)
    return made.build(made.declared(), known, cpu=False).values


# --- arguments


def test_the_recipes_settings_with_the_tutorials_flags() -> None:
    values = built()
    assert values["enforce_eager"] is True
    assert values["gpu_memory_utilization"] == 0.85
    assert values["max_model_len"] == 8192
    assert values["max_num_batched_tokens"] == 8192
    assert values["enable_prefix_caching"] is False
    assert values["tensor_parallel_size"] == 1
    assert values["additional_config"] == ADDITIONAL
    assert values["additional_config"] is not ADDITIONAL
    assert "trust_remote_code" not in values


def test_settings_reach_it() -> None:
    values = built(npu_graphs=True, memory_utilization=0.7, tensor_parallel=2, max_model_len=4096,
                   batched_tokens=2048)
    assert values["enforce_eager"] is False
    assert values["gpu_memory_utilization"] == 0.7
    assert values["tensor_parallel_size"] == 2
    assert values["max_model_len"] == 4096
    assert values["max_num_batched_tokens"] == 2048
    # "eager" is of other engines
    assert built(eager=False)["enforce_eager"] is True


def test_a_vllm_without_additional_config_is_not_given_it() -> None:
    assert "additional_config" not in built(KNOWN - {"additional_config"})


def test_steps_are_not_scheduled_ahead_where_the_ngram_would_not_see_its_tokens(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = KNOWN | {"async_scheduling"}
    runner = tmp_path / "vllm_ascend/worker/model_runner_v1.py"
    runner.parent.mkdir(parents=True)
    (tmp_path / "vllm_ascend/__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "async_scheduling" not in built(known)  # another layout
    runner.write_text("NPUInputBatch(logitsprocs=build_logitsprocs())\n")
    assert built(known)["async_scheduling"] is False
    made = loader()
    assert any("n-gram" in note for note in made.build(made.declared(), known, cpu=False).notes)
    assert "async_scheduling" not in built(known, ngram="off")
    assert "async_scheduling" not in built()
    runner.write_text("NPUInputBatch(logitsprocs_need_output_token_ids=True)\n")
    assert "async_scheduling" not in built(known)


@pytest.mark.engines
@pytest.mark.usefixtures("real_sources")
def test_which_release_shows_the_ngram_its_tokens() -> None:
    found = {version: shows_tokens(ascend_sources.roots(version)[0] / "vllm_ascend")
             for version in ("0.18.0", "0.23.0.post1")}
    assert found == {"0.18.0": False, "0.23.0.post1": True}


@pytest.mark.engines
@pytest.mark.usefixtures("real_sources")
@pytest.mark.parametrize("version", ["0.18.0", "0.23.0.post1"])
def test_each_release_has_what_it_is_given(version: str) -> None:
    ascend, vllm = ascend_sources.roots(version)
    known = frozenset(fields(vllm / "vllm/engine/arg_utils.py", "EngineArgs"))
    values = built(known)
    assert set(values) == set(built())
    assert "mm_processor_cache_gb" in known
    options = (ascend / "vllm_ascend/ascend_config.py").read_text("utf-8")
    for name in ("enable_cpu_binding", "multistream_overlap_shared_expert",
                 "ascend_compilation_config"):
        assert name in values["additional_config"]
        assert f'additional_config.get("{name}"' in options
    assert "fuse_qknorm_rope: bool" in options


# --- variables


def test_what_a_gpu_alone_has_is_not_asked_of_the_plugin() -> None:
    asked = plugin.environment(loader().declared())
    assert asked[plugin.ATTENTION] == asked[plugin.PAGES] == asked[plugin.GRAPHS] == "0"
    assert asked[plugin.MASK] == asked[plugin.ATTENTION_TYPE] == asked[plugin.TOKENIZER_CLASS] \
        == "1"
    assert plugin.environment(loader(npu_graphs=True).declared())[plugin.GRAPHS] == "0"


def test_switches_of_other_versions_are_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop.engines.ascend.loading._version", lambda _name: "0.18.0")
    monkeypatch.setattr(versions, "installed", lambda: versions.Versions("0.18.0"))
    os.environ.update(VLLM_USE_V1="0", VLLM_ATTENTION_BACKEND="NPU", TASK_QUEUE_ENABLE="2")
    made = loader(devices="1, 3")
    made.prepare_environment(made.declared(), NOTHING)
    assert "VLLM_USE_V1" not in os.environ
    assert "VLLM_ATTENTION_BACKEND" not in os.environ
    assert os.environ["TASK_QUEUE_ENABLE"] == "2"  # a person's own
    assert os.environ["PYTORCH_NPU_ALLOC_CONF"] == "expandable_segments:True"
    assert os.environ["ASCEND_RT_VISIBLE_DEVICES"] == "1,3"
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


# --- the platform


def vllm_on(monkeypatch: pytest.MonkeyPatch, module: str, device: str) -> None:
    """A vLLM whose platform is of MODULE, for DEVICE."""
    kind = type("Platform", (), {
        "__module__": module, "device_type": device,
        "is_cpu": lambda self: device == "cpu", "is_unspecified": lambda self: not device})
    platforms = ModuleType("vllm.platforms")
    platforms.current_platform = kind()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
    monkeypatch.setitem(sys.modules, "vllm.platforms", platforms)


def test_it_runs_on_vllm_ascends_platform_only(monkeypatch: pytest.MonkeyPatch) -> None:
    vllm_on(monkeypatch, "vllm_ascend.platform", "npu")
    assert loader().platform(versions.Versions("0.18.0")) == (False, "npu")
    for module, device in (("vllm.platforms.cuda", "cuda"), ("vllm.platforms.cpu", "cpu"),
                           ("vllm.platforms.interface", "")):
        vllm_on(monkeypatch, module, device)
        with pytest.raises(NoPlatform) as caught:
            loader().platform(versions.Versions("0.18.0"))
        assert caught.value.code == "ascend.platform"
        assert "VLLM_PLUGINS" in caught.value.problem().hint


def broken(monkeypatch: pytest.MonkeyPatch, raised: Exception) -> None:
    """A vLLM whose platform cannot be found out because of what is RAISED."""
    class Platforms(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name == "current_platform":
                raise RuntimeError("Failed to load the backend extension: torch_npu.") from raised
            raise AttributeError(name)

    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
    monkeypatch.setitem(sys.modules, "vllm.platforms", Platforms("vllm.platforms"))


def test_a_library_that_is_not_found_is_named_with_the_folders(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/cann/lib64:/opt/driver")
    for library in ("libhccl.so", "libatb.so", "libascend_hal.so", "libc10.so.2"):
        broken(monkeypatch, ImportError(
            f"{library}: cannot open shared object file: No such file or directory"))
        with pytest.raises(VersoError) as caught:
            loader().platform(versions.Versions("0.18.0"))
        assert caught.value.code == "ascend.library"
        assert library in caught.value.problem().message
        assert "/opt/cann/lib64, /opt/driver" in caught.value.problem().message


def test_versions_that_do_not_go_together_are_told_as_such(
        monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, ImportError("cannot import name 'X' from 'vllm.config'"))
    with pytest.raises(VersoError) as caught:
        loader().platform(versions.Versions("0.18.0"))
    assert caught.value.code == "ascend.import"
    assert "cannot import name 'X'" in caught.value.problem().detail
    assert "verso doctor" in caught.value.problem().hint


# --- the devices


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """``tool(table, mapping, status)``: an npu-smi on the path that prints these samples."""
    def make(table: str, mapping: str = "", status: int = 0) -> None:
        programs.write(
            tmp_path / "bin/npu-smi",
            "#!/bin/sh\n"
            f"[ -z \"$ASCEND_RT_VISIBLE_DEVICES\" ] || exit 9\n"
            f"case \"$*\" in info) cat '{SAMPLES / table}' ;; 'info -m') "
            f"{f'cat {SAMPLES / mapping}' if mapping else 'exit 1'} ;; *) exit 2 ;; esac\n"
            f"exit {status}\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(smi, "PLACES", ())
    return make


def test_an_npu_smi_that_hangs_is_not_waited_for(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        no_process_left: Callable[[], list[str]]) -> None:
    """Nor one that does not even die, as inside a driver that is in trouble."""
    path = programs.write(tmp_path / "npu-smi", "#!/bin/sh\nsleep 60 & wait\n")
    monkeypatch.setattr(smi, "PLACES", (str(path),))
    monkeypatch.setattr(smi, "SECONDS", 0.5)
    environ = {**os.environ, "PATH": "/usr/bin:/bin"}
    assert npus.by_smi(environ) == ()
    assert processes.left_running(os.environ[processes.MARK]) == []
    with monkeypatch.context() as immortal:
        immortal.setattr(os, "killpg", lambda _group, _signal: None)
        assert npus.by_smi(environ) == ()
        assert no_process_left()
    for process in processes.descendants(os.environ[processes.MARK]):
        process.kill()


def test_npus_as_npu_smi_shows_them(tool: Any) -> None:
    tool("910b-24.1.txt", "map-910b.txt")
    os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "1"  # npu-smi is not to be told
    first, second = npus.devices()
    assert (first.number, first.name, first.total) == (0, "Ascend 910B3", 65536 << 20)
    assert first.free == (65536 - 3380) << 20
    assert second.users[0].pid == 41711
    assert second.users[0].bytes == 55602 << 20


def test_two_chips_on_a_card_have_the_numbers_of_programs(tool: Any) -> None:
    tool("910c-25.2.txt", "map-910c.txt")
    found = npus.devices()
    assert [device.number for device in found] == list(range(len(found)))
    assert len({device.uuid for device in found}) == len(found)


def test_where_npu_smi_says_nothing_torch_npu_is_asked(tool: Any, tmp_path: Path) -> None:
    tool("refused.txt", status=1)
    assert npus.by_smi(os.environ) == ()
    site = tmp_path / "site"
    site.mkdir()
    (site / "torch_npu.py").write_text("")
    (site / "torch.py").write_text(
        "import os\n"
        "class npu:\n"
        "    device_count = staticmethod(lambda: 2)\n"
        "    get_device_name = staticmethod(lambda number: 'Ascend910B3')\n"
        "    mem_get_info = staticmethod(lambda number: (60 << 30, 64 << 30))\n"
        "assert 'ASCEND_RT_VISIBLE_DEVICES' not in os.environ\n")
    os.environ.update(PYTHONPATH=str(site), ASCEND_RT_VISIBLE_DEVICES="1")
    first, second = npus.devices()
    assert (second.number, second.name) == (1, "Ascend910B3")
    assert (first.total, first.free) == (64 << 30, 60 << 30)


def test_where_nobody_tells_nothing_is_known(tool: Any, tmp_path: Path) -> None:
    tool("refused.txt", status=1)
    (tmp_path / "torch.py").write_text("raise ImportError('libhccl.so')\n")
    os.environ["PYTHONPATH"] = str(tmp_path)
    assert npus.devices() == ()


def some(monkeypatch: pytest.MonkeyPatch, *free: float) -> None:
    """NPUs of 64 GB, FREE of which nobody holds."""
    found = tuple(Device(number, f"NPU-{number}-0", "Ascend 910B3", 64 * 10**9,
                         round(each * 10**9)) for number, each in enumerate(free))
    monkeypatch.setattr(npus, "devices", lambda: found)


def test_the_npus_that_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    some(monkeypatch, 60, 60, 60)
    made = loader(devices="2,0", tensor_parallel=2)
    values = made.declared()
    made.prepare_environment(values, NOTHING)
    made.name_devices(values, versions.Versions("0.18.0"))
    assert [device.number for device in made._usable(values, {})] == [2, 0]
    with pytest.raises(TooFewDevices):
        loader(devices="2,0", tensor_parallel=4)._usable(
            loader(devices="2,0", tensor_parallel=4).declared(), {})
    os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "7"
    with pytest.raises(NoSuchDevice):
        made.name_devices(values, versions.Versions("0.18.0"))


def test_an_npu_that_others_fill_is_refused_with_the_share_that_fits(
        monkeypatch: pytest.MonkeyPatch) -> None:
    some(monkeypatch, 30)
    monkeypatch.setattr(preflight, "RELEASE", 0.0)
    made = loader()
    values = made.declared()
    needed = preflight.need(values, weights.Weights(True, (), 7 * 10**9, ""))
    with pytest.raises(OutOfMemory) as caught:
        made._room(values, {}, needed, 1)
    problem = caught.value.problem()
    assert "Ascend 910B3" in problem.message
    assert "npu-smi" in problem.hint
    assert dict(problem.fix) == {"memory_utilization": 0.45}


# --- words


def test_the_settings_speak_of_npus_while_the_engine_is_chosen() -> None:
    for key in ("devices", "memory_utilization", "tensor_parallel"):
        assert "NPU" in setting(key).worded("ascend").help
        assert "NPU" not in setting(key).worded("vllm").help.replace("npu-smi", "")
        assert setting(key).worded("vllm") is setting(key)
        assert setting(key).restarts("ascend", "a", "b")
    assert setting("npu_graphs").applies_to("ascend")
    for key in ("eager", "fast_attention", "raw_pages", "encoder_graphs", "engine_cores"):
        assert not setting(key).applies_to("ascend")


def test_the_warnings_of_the_moe_patch_have_codes_and_ways_out(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experts, "_installed", lambda _module: False)
    found = experts.missing()
    assert [error.code for error in found] == [
        "ascend.experts.torch_npu", "ascend.experts.vllm_ascend", "ascend.experts.vllm"]
    assert all(error.problem().hint for error in found)
    assert len({error.problem().message for error in found}) == 3
    monkeypatch.setattr(experts, "_installed", lambda module: module != "vllm_ascend")
    assert [error.code for error in experts.missing()] == ["ascend.experts.vllm_ascend"]


def test_its_entry() -> None:
    found = entry("ascend")
    assert found.npu
    assert not found.official
    assert found.needs == ("vllm", "vllm_ascend", "torch_npu")
    assert found.create().name == "ascend"
