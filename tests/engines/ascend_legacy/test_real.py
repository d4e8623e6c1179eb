"""The real thing but for the device: vLLM 0.8.5.post1 from its source archive, its V0 engine, the
official code as `verso prepare-npu` prepares it, and vllm-ascend 0.8.5rc1's mixture of experts, on
a processor, with a model of random weights that recites what a test wants.

One engine serves most tests; then one kills it, one has an engine over two devices, and one an
engine as on a GPU.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from desktop.engines.ascend import preparation
from desktop.protocol.messages import EngineFailed, EngineReady
from desktop.settings import Values
from tests.accelerator.real import LARGE, SMALL, Reader, bench, bitmap
from tests.engines.ascend import trees
from tests.support import legacy_vllm, recipe_sources, tiny_vllm

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.usefixtures("real_sources")]

TEXT = ("<|ref|>title<|/ref|><|det|>[[51, 7, 949, 98]]<|/det|>\n# Größe\n\n"
        "<|ref|>table<|/ref|><|det|>[[51, 107, 949, 198]]<|/det|>\n"
        "<table><tr><td>a</td><td>b  c</td></tr></table>\n\n")
LOOP = "<|ref|>text<|/ref|><|det|>[[51, 107, 949, 198]]<|/det|>\n" + "round and round we go. " * 200


class Real(Reader):
    """The engine over the real stack."""

    def __init__(self, folder: Path, model: Path, code: Path, *search: Path, npu: bool = True,
                 **settings: Any) -> None:
        """SEARCH are more folders for its Python's path."""
        python = tiny_vllm.interpreter()
        assert python is not None
        self._script = folder / "recital.json"
        self.recite(text=TEXT)
        self.variables = legacy_vllm.real_environment(python, self._script, npu=npu)
        self.variables["PYTHONPATH"] = os.pathsep.join(
            [*map(str, search), self.variables["PYTHONPATH"]])
        super().__init__(
            "ascend-legacy", folder, Values({
                "engine": "ascend-legacy", "model": str(model), "official_code": str(code),
                "max_model_len": 4096, "ready_seconds": 1800, **settings}),
            interpreter=python, environment=self.variables)

    def recite(self, **script: Any) -> None:
        """What every page gets from now on."""
        fresh = self._script.with_suffix(".new")
        fresh.write_text(json.dumps(script), encoding="utf-8")
        fresh.replace(self._script)


@pytest.fixture(scope="module")
def official_code() -> Path:
    found = recipe_sources.fetched()
    if found is None:
        pytest.skip("needs the official code, and its host cannot be reached")
    return found


@pytest.fixture(scope="module")
def real_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The official code; where its host cannot be reached code of our own in its place."""
    return recipe_sources.fetched() or legacy_vllm.own_code(
        tmp_path_factory.mktemp("code") / "DeepSeek-OCR2-vllm")


@pytest.fixture(scope="module")
def real_model(tmp_path_factory: pytest.TempPathFactory, engine_python: Path) -> Path:
    return legacy_vllm.real_model(tmp_path_factory.mktemp("models") / "tiny-ocr-2")


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory, real_model: Path, real_code: Path,
           ) -> Iterator[Real]:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for kind in ("data", "config", "cache", "log"):
            patch.setenv(f"VERSO_{kind.upper()}_DIR", str(home / kind))
        running = Real(tmp_path_factory.mktemp("engine"), real_model, real_code)
        running.start()
        yield running
        running.close()


@pytest.fixture
def engine(started: Real) -> Real:
    """The one that serves many tests, ready, and with the usual text."""
    started.ready()
    started.recite(text=TEXT)
    return started


def test_what_it_got(engine: Real) -> None:
    ready = engine.ready()
    assert ready.versions["vllm"] == "0.8.5.post1+cpu"
    assert ready.versions["vllm-ascend"] == "0.8.5rc1"
    assert ready.eager
    assert ready.context == 4096
    assert ready.cache_tokens > 100_000
    assert "The mixture of experts is computed by vllm-ascend." in ready.notes


def test_text_arrives_as_it_is_written(engine: Real) -> None:
    end = engine.read()
    assert (end.finish, engine.text(end.page_id)) == ("complete", TEXT), end.problem
    assert len(engine.pieces(end.page_id)) > 1


def test_tokens_of_pages_and_prompts_are_counted_as_vllm_counts_them(engine: Real) -> None:
    small = engine.read(SMALL, prompt="free")
    large = engine.read(LARGE, prompt="free")
    off = engine.read(LARGE, prompt="free", crop="off")
    other = engine.read(SMALL, prompt="custom", custom_prompt="Free OCR. Free OCR.")
    words = small.prompt_tokens - 257
    assert 3 < words < 12
    assert large.prompt_tokens == 1121 + words
    assert off.prompt_tokens == small.prompt_tokens
    assert small.prompt_tokens < other.prompt_tokens < small.prompt_tokens + words


def test_limits_and_stop_strings(engine: Real) -> None:
    cut = engine.read(max_tokens=16)
    assert (cut.finish, cut.output_tokens, cut.limit) == ("length", 16, 16)
    stopped = engine.read(stop="Größe|never")
    assert stopped.finish == "complete"
    assert engine.text(stopped.page_id) == TEXT.partition("Größe")[0]


def test_a_page_longer_than_the_context(engine: Real) -> None:
    end = engine.read(SMALL, prompt="custom", custom_prompt="word and word " * 1500)
    assert (end.finish, end.problem.code) == ("failed", "engine.refused")
    assert "longer than the maximum model length" in end.problem.message
    assert engine.read().finish == "complete", "the engine did not live on"


def test_a_loop_ends_by_the_official_ngram(engine: Real) -> None:
    engine.recite(text=LOOP)
    end = engine.read(loop_guard=True)
    assert engine.restarts(end.page_id) == ["loop"]
    assert end.finish == "complete"
    assert 1 < engine.text(end.page_id).count("round and round") < 12


def test_pages_side_by_side_one_of_them_cancelled(engine: Real) -> None:
    engine.recite(text="a b c d e f g h " * 400)
    cancelled = engine.submit()
    engine.streaming(cancelled)
    others = [engine.submit(max_tokens=48) for _ in range(4)]
    engine.client.cancel(cancelled)
    assert engine.finished(cancelled).finish == "cancelled"
    for page in others:
        assert engine.finished(page).finish == "length"
        assert engine.text(page) == engine.text(others[0])
    complaints = ("never retrieved", "asynchronous generator", "never awaited")
    assert not [line for line in engine.recorder.log() if any(map(line.__contains__, complaints))]


class Target:
    """What `verso prepare-npu` makes, with the settings that a person writes into config.py."""

    def __init__(self, folder: Path, code: Path, model: Path, page: Path, engine: Real) -> None:
        self.out = folder / "out"
        self._folder = folder / "deepseek_ocr2_npu"
        self._environ = {**os.environ, **engine.variables, "HF_HUB_OFFLINE": "1"}
        preparation.prepare(code, self._folder).write()
        config = self._folder / "config.py"
        values = {"MODEL_PATH": model, "INPUT_PATH": page, "OUTPUT_PATH": self.out}
        lines = config.read_text("utf-8").splitlines()
        for number, line in enumerate(lines):
            name = line.partition(" = ")[0]
            if name in values:
                lines[number] = f"{name} = {str(values[name])!r}"
        config.write_text("\n".join(lines) + "\n", "utf-8")

    def run(self, *words: object) -> str:
        """Run one of its scripts, as a person does; what it prints."""
        ran = subprocess.run(
            [str(tiny_vllm.interpreter()), *map(str, words)], cwd=self._folder, env=self._environ,
            capture_output=True, text=True, timeout=900, check=False)
        assert ran.returncode == 0, ran.stderr[-4000:]
        return ran.stdout


def test_it_reads_what_the_image_script_reads(engine: Real, real_model: Path, official_code: Path,
                                              tmp_path: Path) -> None:
    """The first of the recipe's entry points, on the same page."""
    page = bitmap(engine.folder, SMALL)
    target = Target(tmp_path, official_code, real_model, page, engine)
    engine.recite(noise=40)
    target.run("run_dpsk_ocr2_image.py")
    theirs = (target.out / "result_ori.mmd").read_text("utf-8")
    assert len(theirs) > 40
    end = engine.read(SMALL, ngram="always", ngram_preset="image")
    assert (end.finish, end.output_tokens) == ("complete", 41)
    assert engine.text(end.page_id) == theirs


def test_the_batch_script_and_the_benchmark_run(engine: Real, real_model: Path,
                                                official_code: Path, tmp_path: Path) -> None:
    """They use vLLM's other class, LLM. (The PDF script does what the batch script does.)"""
    pages = tmp_path / "pages"
    pages.mkdir()
    for name in ("one.png", "two.jpg"):
        Image.open(bitmap(engine.folder, SMALL)).save(pages / name)
    target = Target(tmp_path, official_code, real_model, pages, engine)
    engine.recite(text="Two words, größer.")
    target.run("run_dpsk_ocr2_eval_batch.py")
    for name in ("one", "two"):  # The script puts no slash between folder and name.
        assert Path(f"{target.out}{name}.md").read_text("utf-8") == "Two words, größer."
    figures = tmp_path / "figures.json"
    target.run("benchmark.py", "--image", pages, "--concurrent", "1,2", "--max-tokens", 4,
               "--warmup", 0, "--rounds", 1, "--json", figures)
    rows = json.loads(figures.read_text())
    assert [row["rounds"][0]["out"] for row in rows] == [4, 8]


def test_it_dies_is_started_again_and_reads_the_page(engine: Real) -> None:
    before = len(engine.recorder.of(EngineReady))
    engine.recite(text=TEXT, die="NPU out of memory. Tried to allocate 2.00 GiB (NPU 0)", after=12)
    page = engine.submit()
    failed = engine.until(lambda: next(iter(engine.recorder.of(EngineFailed)), None))
    engine.recite(text=TEXT)
    assert (failed.problem.code, failed.fatal) == ("vllm.memory_ran_out", False)
    assert "2.00 GiB" in failed.problem.message
    engine.until(lambda: len(engine.recorder.of(EngineReady)) > before)
    engine.client.cancel(page)
    assert engine.read().finish == "complete"


def test_two_devices(real_model: Path, real_code: Path, tmp_path: Path, started: Real) -> None:
    """vLLM starts a process for the second, which gets the code through the plugin. When that
    process ends, nobody is told but who asks."""
    started.close()  # Memory for one at a time.
    engine = Real(tmp_path, real_model, real_code, tensor_parallel=2)
    engine.start()
    try:
        assert engine.ready().device.startswith("2 × ")
        end = engine.read()
        assert (end.finish, engine.text(end.page_id)) == ("complete", TEXT)
        [other] = engine.processes("multiprocessing.spawn")
        other.kill()
        failed = engine.until(lambda: next(iter(engine.recorder.of(EngineFailed)), None))
        assert (failed.problem.code, failed.fatal) == ("engine.died", False)
        # By whoever finds out first: vLLM where it uses the process, or we who ask for it.
        assert ("Worker processes are not running" in failed.problem.detail
                or "worker died" in failed.problem.detail)
    finally:
        engine.close()


@pytest.mark.parametrize("whose", ["official", "own"])
def test_without_an_npu_the_code_runs_as_it_is(
        whose: str, request: pytest.FixtureRequest, real_model: Path, tmp_path: Path,
        started: Real) -> None:
    code: Path = (request.getfixturevalue("official_code") if whose == "official" else
                  legacy_vllm.own_code(tmp_path / "own"))
    started.close()
    flash = tmp_path / "flash"
    flash.mkdir()
    (flash / "flash_attn.py").write_text("flash_attn_qkvpacked_func = None  # never called\n")
    engine = Real(tmp_path, real_model, code, flash, npu=False)
    engine.start()
    try:
        ready = engine.ready()
        assert "vllm-ascend" not in ready.versions
        assert not any("experts" in note for note in ready.notes)
        end = engine.read(LARGE)
        assert (end.finish, engine.text(end.page_id)) == ("complete", TEXT)
        assert any(line.startswith(f"official code: {code}") and "prepared" not in line
                   for line in engine.recorder.log())
    finally:
        engine.close()


def test_its_throughput_is_measured(real_model: Path, real_code: Path, tmp_path: Path,
                                    started: Real) -> None:
    """Through the whole application, which looks for CANN; here that is folders."""
    started.close()
    started.recite(noise=40)
    base = tmp_path / "home/Ascend"
    trees.toolkit(base / "ascend-toolkit/8.1.RC1", "8.1.RC1", platform.machine(), cfg=True)
    (base / "ascend-toolkit/latest").symlink_to("8.1.RC1")
    trees.driver(base)
    variables = {**started.variables, "HOME": str(tmp_path / "home")}
    found = bench(
        bitmap(tmp_path, SMALL), tmp_path, variables, "--engine", "ascend-legacy",
        "--concurrent", "2", "--requests", "4", "--warmup", "0", "--rounds", "1",
        "--engine-interpreter", str(tiny_vllm.interpreter()), "--model", real_model,
        "--official-code", real_code, "--max-model-len", 4096)
    [level] = found["levels"]
    assert level["failed"] == level["looped"] == 0
    assert level["cold"]["output_tps"] > 0
    assert level["ttft_ms"]["p50"] > 0
    assert level["tpot_ms"]["p50"] > 0
    [each] = level["rounds"]
    assert [one["output_tokens"] for one in each["requests"]] == [41] * 4
    assert found["engine"]["versions"]["vllm-ascend"] == "0.8.5rc1"
