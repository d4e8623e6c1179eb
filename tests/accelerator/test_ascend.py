"""The engine ``ascend`` from end to end, as far as a machine without an NPU goes: real vLLM on the
processor, the visual decoder of the real vllm-ascend 0.23.0.post1, a CANN that is folders."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from desktop.client.client import EngineClient, Patience
from desktop.jobs.preparing import prepare
from desktop.protocol.messages import EngineFailed, EngineReady, LogLine, PageFinished, SubmitPage
from desktop.settings import Values
from tests.accelerator import real
from tests.client.recorder import Recorder
from tests.engines.ascend import trees
from tests.support import ascend_sources, ascend_stand_in, tiny_vllm

DEFECTIVE = "'AscendQwen2DecoderLayer' object has no attribute"


class Ascend:
    """The engine as the session starts it."""

    def __init__(self, folder: Path, model: Path, python: Path, **settings: object) -> None:
        self.heard = Recorder()
        self.folder = folder
        self.prepared = prepare(Values({
            "engine": "ascend", "model": str(model), "engine_interpreter": str(python),
            "dtype": "float32", "max_model_len": real.CONTEXT, "devices": "0",
            "ready_seconds": int(2 * real.LOAD), **settings}), {})
        self.client = EngineClient(self.heard, patience=Patience(hello=120, stop=15))
        self.client.start("ascend", self.prepared.settings,
                          interpreter=self.prepared.interpreter,
                          environment=self.prepared.environment)

    def log(self) -> list[str]:
        return [line.text for line in self.heard.of(LogLine)]

    def logged(self, found: Callable[[list[str]], object]) -> None:
        """Wait until FOUND says something true of the lines of the log. What the engine's
        processes wrote before it was ready may be read after that was told."""
        self.heard.until(lambda _events: found(self.log()))

    def ready(self) -> EngineReady:
        def found(_events: object) -> object:
            failed = self.heard.of(EngineFailed)
            assert not failed, "\n".join([*map(str, failed), *self.log()[-60:]])
            return next(iter(self.heard.of(EngineReady)), None)
        ready: EngineReady = self.heard.until(found, real.LOAD)
        return ready

    def read(self, size: tuple[int, int]) -> tuple[PageFinished, str]:
        page = f"{size[0]}x{size[1]}"
        self.client.submit(SubmitPage(
            page, str(real.bitmap(self.folder, size)), *size,
            settings={"crop": "auto", "max_tokens": 8192, "loop_guard": False, "ngram": "retry",
                      "prompt": "markdown"}))
        finished: PageFinished = self.heard.until(lambda _events: next(
            (event for event in self.heard.of(PageFinished) if event.page_id == page), None),
            real.READ)
        return finished, self.heard.text(page)


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory,
                 engine_python: Path) -> Iterator[tuple[Path, Path]]:
    """A person's CANN with driver and NNAL; vllm-ascend on the path; the tiny model with the
    tokenizer's class of the published one. A folder for the test, and the Python that has vLLM."""
    python = engine_python
    try:
        ascend_sources.ensure()
    except SystemExit as error:
        pytest.fail(str(error))
    folder = tmp_path_factory.mktemp("ascend")
    base = folder / "home/Ascend"
    trees.toolkit(base / "cann-9.1.0", "9.1.0", platform.machine())
    (base / "cann").symlink_to("cann-9.1.0")
    trees.driver(base)
    model = tiny_vllm.build(folder / "model")
    named = json.loads((model / "tokenizer_config.json").read_text("utf-8"))
    (model / "tokenizer_config.json").write_text(
        json.dumps({**named, "tokenizer_class": "LlamaTokenizerFast"}), "utf-8")
    ascend_stand_in.build(folder / "site")
    script = real.Script(folder)
    script.write(real.recording())
    with pytest.MonkeyPatch.context() as patch:
        for kind in ("data", "config", "cache", "log"):
            patch.setenv(f"VERSO_{kind.upper()}_DIR", str(folder / kind))
        for name in list(os.environ):
            if name.startswith(("ASCEND", "ATB_", "VLLM_", "HCCL_")):
                patch.delenv(name)
        variables = tiny_vllm.environment(script.file)
        variables["PYTHONPATH"] += os.pathsep + str(folder / "site")
        for name, value in {**variables, "HOME": str(folder / "home"),
                            ascend_stand_in.BREAK: "1", "VLLM_USE_V1": "0"}.items():
            patch.setenv(name, value)
        yield folder, python


@pytest.fixture(scope="module")
def engine(surroundings: tuple[Path, Path]) -> Iterator[Ascend]:
    folder, python = surroundings
    found = Ascend(folder, folder / "model", python)
    yield found
    found.client.close(20)


def test_it_starts_in_the_npus_environment_with_the_recipes_settings(engine: Ascend) -> None:
    ready = engine.ready()
    assert (ready.engine, ready.eager, ready.context) == ("ascend", True, real.CONTEXT)
    assert (ready.versions["vllm-ascend"], ready.versions["CANN"]) == ("0.23.0.post1", "9.1.0")
    assert engine.prepared.environment["ASCEND_RT_VISIBLE_DEVICES"] == "0"
    assert engine.prepared.environment["VLLM_USE_V1"] is None  # set by a shell for an older stack
    for argument in ("'enable_cpu_binding': True", "'fuse_qknorm_rope': False",
                     "'enforce_eager': True", "'max_num_batched_tokens': 8192",
                     "'mm_processor_cache_gb': 0", "'enable_prefix_caching': False"):
        engine.logged(lambda lines, argument=argument: argument in "\n".join(lines))
    # ATB is not there: a warning, and no more.
    assert any("libatb.so" in note for note in ready.notes)


def test_what_the_installed_versions_have_wrong_is_repaired_in_each_process(
        engine: Ascend) -> None:
    engine.ready()
    added = "Verso: tokenizer class: deepseek_ocr2 added"
    for process in ("EngineCore", "VllmWorker"):
        for repair in (added, "Verso: attention type: AscendQwen2DecoderLayer of"):
            engine.logged(lambda lines, process=process, repair=repair: any(
                process in line and repair in line for line in lines))
    engine.logged(lambda lines: any(
        added in line and "EngineCore" not in line and "VllmWorker" not in line
        for line in lines))
    assert not any(DEFECTIVE in line for line in engine.log())


def test_it_reads_pages(engine: Ascend) -> None:
    engine.ready()
    prompts = []
    for size in (real.LARGE, real.SMALL):
        finished, text = engine.read(size)
        assert finished.finish == "complete"
        assert text == real.recording()
        prompts.append(finished.prompt_tokens)
    assert prompts[0] - prompts[1] == 1121 - 257  # six tiles and a view, a view


def test_its_throughput_is_measured(engine: Ascend, surroundings: tuple[Path, Path],
                                    tmp_path: Path) -> None:
    engine.client.close(20)  # memory for one at a time
    folder, python = surroundings
    found = real.bench(
        real.bitmap(folder, real.SMALL), tmp_path, {}, "--engine", "ascend", "--concurrent", "2",
        "--requests", "4", "--warmup", "0", "--rounds", "1", "--engine-interpreter", python,
        "--model", folder / "model", "--dtype", "float32", "--max-model-len", real.CONTEXT,
        "--devices", "0")
    [level] = found["levels"]
    assert level["failed"] == level["looped"] == 0
    assert level["cold"]["output_tps"] > 0
    assert level["ttft_ms"]["p50"] > level["tpot_ms"]["p50"] > 0
    [each] = level["rounds"]
    assert {one["outcome"] for one in each["requests"]} == {"complete"}
    assert {one["output_tokens"] > 20 for one in each["requests"]} == {True}
    assert found["engine"]["versions"]["vllm-ascend"] == "0.23.0.post1"
