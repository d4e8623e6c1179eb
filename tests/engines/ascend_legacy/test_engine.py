"""The engine ``ascend-legacy`` in its worker: what vLLM is given, what comes of pages, what ends
them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from desktop.engines.ascend_legacy import loading, stack
from desktop.engines.model import prompts
from desktop.engines.vllm import preflight
from desktop.engines.vllm.failures import NoSuchDevice, OutOfMemory, TooFewDevices
from desktop.engines.vllm.output import OutputTail
from desktop.protocol.messages import EngineFailed
from desktop.settings import Values
from tests.accelerator.real import LARGE, SMALL, Reader
from tests.support import legacy_vllm, programs
from tests.support.data import ROOT
from tests.support.legacy_vllm import Recital

TEXT = ("<|ref|>title<|/ref|><|det|>[[51, 7, 949, 98]]<|/det|>\n# Größe\n\n"
        "<|ref|>text<|/ref|><|det|>[[51, 107, 949, 198]]<|/det|>\nOne line.\n\n")
LOOP = "<|ref|>text<|/ref|><|det|>[[51, 107, 949, 198]]<|/det|>\n" + "round and round we go. " * 200

Worker = Callable[..., Reader]


def test_an_npu_gets_what_the_recipe_gives_it(worker: Worker, tmp_path: Path, code: Path,
                                              model: Path) -> None:
    recital = Recital(tmp_path, text=TEXT)
    ready = worker(recital, memory_utilization=0.85).ready()
    [told] = recital.of("arguments")
    given = {key: value for key, value in told["given"].items() if value is not None}
    assert given == {
        "model": str(model), "hf_overrides": {"architectures": ["DeepseekOCR2ForCausalLM"]},
        "dtype": "bfloat16", "trust_remote_code": True, "max_model_len": 4096,
        "enforce_eager": True, "tensor_parallel_size": 1, "gpu_memory_utilization": 0.85,
        "swap_space": 0.0, "disable_mm_preprocessor_cache": True, "max_num_seqs": 100,
        "disable_log_requests": True, "disable_log_stats": True}
    assert (told["v1"], told["step_seconds"]) == ("0", "600")
    assert told["registered"] == ["DeepseekOCR2ForCausalLM"]
    assert told["replaced"], "vLLM's fused_moe is in force"
    assert told["constants"] == {"MODEL_PATH": str(model), "CROP_MODE": True,
                                 "PROMPT": prompts.completion({})}
    assert not told["config"].startswith(str(code)), "the official folder itself was run"
    assert "flash_attn" in (code / "deepencoderv2/sam_vary_sdpa.py").read_text()

    assert (ready.engine, ready.model, ready.device) == ("ascend-legacy", "ocr-2", "Ascend910B3")
    assert ready.eager
    assert (ready.context, ready.cache_tokens) == (4096, 4096 * 128)
    assert ready.capacity == 100
    assert (ready.memory_used, ready.memory_total, ready.memory_free) == (
        54 << 30, 64 << 30, 9 << 30)
    assert ready.versions == {"vllm": "0.8.5.post1", "vllm-ascend": "0.8.5rc1", "torch": "2.5.1",
                              "transformers": "4.51.3"}
    assert "The mixture of experts is computed by vllm-ascend." in ready.notes
    assert any("libatb.so" in note for note in ready.notes), "nothing of CANN is here"
    assert any("Max tokens" in note for note in ready.notes)


def test_a_page_is_read_as_the_official_code_reads_it(worker: Worker, tmp_path: Path) -> None:
    recital = Recital(tmp_path, text=TEXT)
    reader = worker(recital)
    reader.ready()
    end = reader.read(LARGE, priority=0)
    assert end.finish == "complete", end.problem
    assert reader.text(end.page_id) == TEXT
    assert len(reader.pieces(end.page_id)) > 1, "not streamed"
    [asked] = recital.pages
    assert (asked["kind"], asked["temperature"], asked["special"]) == ("DELTA", 0.0, False)
    assert asked["processors"] == []
    assert asked["size"] == list(LARGE)
    assert end.prompt_tokens == asked["length"]
    assert end.output_tokens == len(TEXT.replace("<|ref|>", ".").replace("<|/ref|>", ".").replace(
        "<|det|>", ".").replace("<|/det|>", ".")) + 1
    assert end.limit == asked["max_tokens"] <= 4096 - 1121 - 16


def test_each_page_has_its_own_prompt_and_settings(worker: Worker, tmp_path: Path) -> None:
    recital = Recital(tmp_path, text="plain")
    reader = worker(recital)
    reader.ready()
    ends = [reader.submit(SMALL, prompt="free"),
            reader.submit(LARGE, crop="off", ngram="always", ngram_preset="pdf"),
            reader.submit(SMALL, prompt="custom", custom_prompt="Read it.", stop="ai",
                          max_tokens=3)]
    assert [reader.finished(page).finish for page in ends] == ["complete", "complete", "length"]
    by_page = {asked["id"].partition("/")[0]: asked for asked in recital.pages}
    free, off, custom = (by_page[page] for page in ends)
    assert free["prompt"] == "<image>\nFree OCR."
    assert free["ids"][0] == 0
    assert "".join(chr(number - 10) for number in custom["ids"] if number > 9) == ""
    assert custom["prompt"] == "<image>\nRead it."
    # What the official processor put behind the image are the words of this page's prompt.
    assert free["length"] == 1 + 257 + len("\nFree OCR.")
    assert custom["length"] == 1 + 257 + len("\nRead it.")
    assert (custom["max_tokens"], custom["stop"]) == (3, ["ai"])
    assert max(off["size"]) == 768
    assert off["length"] == 1 + 257 + 1 + len(prompts.completion({})) - len(
        "<image>\n<|grounding|>") + 1
    assert off["processors"] == [["NoRepeatNGramLogitsProcessor", 20, 50, [8, 9]]]


def test_a_cancelled_page_is_aborted(worker: Worker, tmp_path: Path) -> None:
    recital = Recital(tmp_path, text="a" * 3000, delay=0.05)
    reader = worker(recital)
    reader.ready()
    page = reader.submit()
    reader.streaming(page)
    reader.client.cancel(page)
    assert reader.finished(page).finish == "cancelled"
    reader.until(lambda: recital.of("abort"))
    assert [found["id"].partition("/")[0] for found in recital.of("abort")] == [page]
    assert reader.read(SMALL, max_tokens=16).finish == "length"


def test_a_loop_is_noticed_aborted_and_read_again_with_the_ngram(worker: Worker,
                                                                 tmp_path: Path) -> None:
    recital = Recital(tmp_path, text=LOOP)
    reader = worker(recital)
    reader.ready()
    end = reader.read(SMALL, loop_guard=True)
    assert reader.restarts(end.page_id) == ["loop"]
    assert [found["id"].partition("/")[0] for found in recital.of("abort")] == [end.page_id]
    first, second = recital.pages
    assert first["processors"] == []
    assert second["processors"] == [["NoRepeatNGramLogitsProcessor", 20, 1024, [8, 9]]]
    # The processor forbids the second round's 20th token, and the recital ends there.
    assert end.finish == "complete"
    assert reader.text(end.page_id).count("round and round") == 2


@pytest.mark.logs_errors
def test_a_dead_engine_is_started_again_and_reads_the_page(worker: Worker, tmp_path: Path) -> None:
    recital = Recital(tmp_path, text=TEXT, after=20, die="NPU out of memory. Tried to allocate "
                      "2.00 GiB (NPU 0; 60.96 GiB total capacity)")
    reader = worker(recital)
    reader.ready()
    reader.submit()
    failed = reader.until(lambda: next(iter(reader.recorder.of(EngineFailed)), None))
    assert (failed.problem.code, failed.fatal) == ("vllm.memory_ran_out", False)
    assert "2.00 GiB" in failed.problem.message


def test_out_of_memory_at_the_start(worker: Worker, tmp_path: Path) -> None:
    recital = Recital(tmp_path, fail="NPU out of memory. Tried to allocate 20.00 MiB (NPU 0; 60.96 "
                      "GiB total capacity; 59.91 GiB already allocated)")
    refused = worker(recital).refusal()
    assert (refused.problem.code, refused.fatal) == ("vllm.memory", True)
    assert "20.00 MiB" in refused.problem.message
    assert "Memory utilization" in refused.problem.hint


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An npu-smi that shows two NPUs, of which another program holds the second."""
    tables = ROOT / "tests" / "doctor" / "npu_smi"
    program = tmp_path / "bin" / "npu-smi"
    programs.write(program, f"#!/bin/sh\n[ \"$2\" = -m ] && exec cat {tables}/map-910b.txt\n"
                   f"exec cat {tables}/910b-24.1.txt\n")
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)


def test_the_npu_that_is_used_is_looked_at_before(smi: None,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "RELEASE", 0.0)
    loader = loading.Loader({}, OutputTail(), lambda _step, _fraction: None)
    found = stack.Stack("0.8.5.post1", "0.8.5rc1")

    def looked_at(visible: str, **settings: object) -> list[int]:
        monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", visible)
        values = Values({"devices": visible, **settings}).as_dict()
        needed = preflight.Need(round(7e9), round(5e8))
        return [device.number for device in loader._devices(found, values, needed)]

    assert looked_at("0") == [0]
    with pytest.raises(OutOfMemory) as full:
        looked_at("1")
    assert "41711" in full.value.problem().hint
    with pytest.raises(NoSuchDevice):
        looked_at("2")
    with pytest.raises(TooFewDevices):
        looked_at("0", tensor_parallel=2)


def test_figures_of_the_npu(worker: Worker, tmp_path: Path, smi: None) -> None:
    ready = worker(Recital(tmp_path, text=TEXT)).ready()
    assert ready.device == "Ascend 910B3"
    assert (ready.memory_total, ready.memory_free) == (65536 << 20, (65536 - 3380) << 20)


def test_a_vllm_that_finds_no_device_says_so(worker: Worker, tmp_path: Path) -> None:
    none = tmp_path / "none"
    none.mkdir()
    (none / "sitecustomize.py").write_text(
        "import sys, types\n"
        "found = types.ModuleType('vllm.platforms')\n"
        "found.current_platform = types.SimpleNamespace(device_type='')\n"
        "sys.modules['vllm.platforms'] = found\n")
    refused = worker(Recital(tmp_path), none).refusal()
    assert refused.problem.code == "ascend.platform"
    refused = worker(Recital(tmp_path), none, npu=False).refusal()
    assert refused.problem.code == "vllm.no_device"


@pytest.mark.parametrize(("said", "expected", "words"), [
    ("libhccl.so: cannot open shared object file: No such file or directory", "ascend.library",
     "libhccl.so"),
    ("undefined symbol: _ZN3c10", "ascend.import", "undefined symbol")])
def test_an_npu_s_packages_that_cannot_be_loaded(worker: Worker, tmp_path: Path, said: str,
                                                 expected: str, words: str) -> None:
    """Not as a start that another context length would help."""
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import sys\n"
        "class Broken:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'vllm.platforms':\n"
        f"            raise ImportError({said!r})\n"
        "sys.meta_path.insert(0, Broken())\n")
    problem = worker(Recital(tmp_path), broken).refusal().problem
    assert (problem.code, words in problem.message) == (expected, True)
    assert "Context length" not in problem.hint
    # On a GPU it is vLLM's own matter.
    assert worker(Recital(tmp_path), broken, npu=False).refusal().problem.code == "vllm.start"


def test_another_failure_at_the_start_is_told(worker: Worker, tmp_path: Path) -> None:
    refused = worker(Recital(tmp_path, fail="aclInit failed, error code is 507008")).refusal()
    assert refused.problem.code == "vllm.start"
    assert "507008" in refused.problem.message


def test_pages_that_do_not_fit_are_refused_each_with_its_reason(worker: Worker,
                                                                tmp_path: Path) -> None:
    reader = worker(Recital(tmp_path, text="abc", ignored=100), max_model_len=1024)
    reader.ready()
    long, ignored = reader.read(LARGE), reader.read(SMALL)
    assert (long.finish, long.problem.code) == ("failed", "engine.context")
    assert (ignored.finish, ignored.problem.code) == ("failed", "engine.refused")
    assert "KV cache" in ignored.problem.message


def test_a_gpu_runs_the_official_code_as_it_is(worker: Worker, tmp_path: Path,
                                               code: Path) -> None:
    flash = tmp_path / "flash"
    flash.mkdir()
    (flash / "flash_attn.py").write_text("def flash_attn_qkvpacked_func(x):\n    return x\n")
    recital = Recital(tmp_path, text=TEXT)
    reader = worker(recital, flash, npu=False, swap_space=4, eager=False,
                    engine_args={"block_size": "256", "hf_token": "hf_not-for-the-log",
                                 "gpu-memory-utilization": "0.5"})
    ready = reader.ready()
    [told] = recital.of("arguments")
    assert told["config"] == str(code / "config.py")
    assert not told["replaced"], "the patch for an NPU was applied"
    assert (told["given"]["swap_space"], told["given"]["enforce_eager"]) == (4.0, False)
    assert (told["given"]["block_size"], told["given"]["gpu_memory_utilization"]) == (256, 0.5)
    assert told["given"]["hf_token"] == "hf_not-for-the-log"
    assert not any("hf_not-for-the-log" in line for line in reader.recorder.log())
    assert ready.device.startswith("NVIDIA")
    assert not ready.eager
    end = reader.read()
    assert (end.finish, reader.text(end.page_id)) == ("complete", TEXT)


def test_a_gpu_without_flash_attention_is_told_the_way_out(worker: Worker,
                                                           tmp_path: Path) -> None:
    refused = worker(Recital(tmp_path), npu=False).refusal()
    assert refused.problem.code == "legacy.package"
    assert "flash_attn" in refused.problem.message
    assert "verso prepare-npu" in refused.problem.hint


def test_without_the_official_code(worker: Worker, tmp_path: Path) -> None:
    refused = worker(Recital(tmp_path), official_code=str(tmp_path / "nowhere")).refusal()
    assert (refused.problem.code, refused.fatal) == ("legacy.no_code", True)
    assert "nowhere" in refused.problem.message
    assert "verso prepare-npu" in refused.problem.hint


def test_an_unknown_layout_is_refused(worker: Worker, tmp_path: Path) -> None:
    other = legacy_vllm.official_tree(tmp_path / "other", sam_vary_sdpa="import math\n")
    refused = worker(Recital(tmp_path), official_code=str(other)).refusal()
    assert refused.problem.code == "ascend.prepare.layout"
    assert "flash_attn" in refused.problem.message


@pytest.mark.parametrize(("package", "version", "npu", "words"), [
    ("vllm", "0.18.0", True, "“ascend”"), ("vllm", "0.18.0", False, "“vllm”"),
    ("vllm", "0.11.0", False, "0.8.5.post1"), ("vllm_ascend", "0.9.1", True, "0.8.5rc1"),
    ("transformers", "5.8.0", True, "transformers>="),
])
def test_another_stack_is_refused(worker: Worker, tmp_path: Path, package: str, version: str,
                                  npu: bool, words: str) -> None:
    info = tmp_path / "other" / f"{package}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {package.replace('_', '-')}\nVersion: {version}\n")
    refused = worker(Recital(tmp_path), info.parent, npu=npu).refusal()
    assert (refused.problem.code, refused.fatal) == ("legacy.version", True)
    assert version in refused.problem.message
    assert words in refused.problem.hint
