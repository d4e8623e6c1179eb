"""The plugin's repairs beside real vllm-ascend and vLLM: each decision over seven releases, and
each repair in a real engine core with the code that needs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from desktop.engines import plugin
from tests.support import ascend_sources, ascend_stand_in, tiny_vllm

sys.path.append(str(plugin.folder()))

from verso_vllm_plugin import NotHere, attention_type, installed

pytestmark = [pytest.mark.engines, pytest.mark.slow,
              pytest.mark.usefixtures("engine_python", "real_sources")]

HERE = Path(__file__).parent
LAYER_4 = """
class Qwen2DecoderLayer:
    def __init__(self, config, layer_idx):
        self.attention_type = config.layer_types[layer_idx]
"""
"""What transformers 4.57's has, and 5.4's has not any more."""
DECODERS = {"0.18.0": installed.ASCEND_DECODERS[1], "0.23.0.post1": installed.ASCEND_DECODERS[0]}


def interpreter() -> Path:
    python = tiny_vllm.interpreter()
    assert python is not None
    return python


def run(program: Path | str, script: str, *arguments: str, search: tuple[Path, ...] = (),
        **variables: str) -> subprocess.CompletedProcess[str]:
    """SCRIPT, run to its end, with what it and its processes wrote."""
    environment = {**os.environ, **tiny_vllm.environment(), **variables}
    environment["PYTHONPATH"] = os.pathsep.join([
        environment["PYTHONPATH"], *map(str, search), str(plugin.folder())])
    done = subprocess.run([str(program), str(HERE / script), *arguments], env=environment,
                          capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done


def printed(program: Path | str, script: str, *arguments: str) -> Any:
    """The JSON document that SCRIPT, which starts no process of its own, prints last."""
    lines = run(program, script, *arguments).stdout.splitlines()
    return json.loads(next(line for line in reversed(lines) if line.startswith("{")))


@pytest.mark.parametrize("version", ascend_sources.PAIRS)
def test_the_attention_type_is_given_where_it_is_missing(version: str, tmp_path: Path) -> None:
    folder = ascend_sources.roots(version)[0] / "vllm_ascend"
    real = next((interpreter().parents[1] / "lib").glob("python3*/site-packages")) / "transformers"
    four = tmp_path / "transformers"
    (four / "models/qwen2").mkdir(parents=True)
    (four / "models/qwen2/modeling_qwen2.py").write_text(LAYER_4)
    if version in DECODERS:
        assert attention_type.needed(folder, real) == DECODERS[version]
        with pytest.raises(NotHere, match="transformers' layers have"):
            attention_type.needed(folder, four)
    else:
        for transformers in (real, four):
            with pytest.raises(NotHere, match="no visual decoder of its own"):
                attention_type.needed(folder, transformers)


@pytest.mark.parametrize("version", ascend_sources.PAIRS)
def test_the_tokenizers_class_is_told_to_whom_it_may_concern(version: str) -> None:
    for kind in ("4", "5.5", "5.8"):
        found = printed(sys.executable, "registries.py", version, kind)
        newest = version == "0.23.0.post1"  # whose vLLM alone has a list
        assert found["vllm"] == ((kind == "5.5") if newest else None)
        assert found["transformers"] == (kind == "5.8" or (kind == "5.5" and not newest))
        assert bool(found["said"]) == (kind == "5.5")
        assert bool(found["left"]) == (kind != "5.5")


def test_the_mask_is_ours_unless_vllm_ascend_has_one() -> None:
    """0.13.0 stands for 0.16 and 0.17, which have no decoder of their own either."""
    pairs = [(vllm, ascend) for vllm in ("0.18.0", "0.23.0")
             for ascend in ("", "0.13.0", *DECODERS)]
    folder = ascend_sources.FETCHER.default_folder()
    found = printed(interpreter(), "masks.py", *(
        f"{ascend_sources.FETCHER.place(folder, 'vllm', vllm)}:"
        f"{ascend_sources.FETCHER.place(folder, 'vllm-ascend', ascend) if ascend else ''}"
        for vllm, ascend in pairs))
    for (vllm, ascend), made in zip(pairs, found["pairs"], strict=True):
        module = DECODERS.get(ascend)
        left = f"vllm-ascend makes the mask itself ({module})" if module else ""
        assert made == {"left": left, "right": True, "loop": bool(module)}, (vllm, ascend)


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory, real_sources: None) -> Path:
    """The visual decoder of the real vllm-ascend 0.23.0.post1, to be put on a path."""
    return ascend_stand_in.build(tmp_path_factory.mktemp("ascend"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model, whose tokenizer names the class that the published one names."""
    folder = tiny_vllm.build(tmp_path_factory.mktemp("model"))
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")),
                                "tokenizer_class": "LlamaTokenizerFast"}), "utf-8")
    return folder


def page(model: Path, stand_in: Path, **variables: str) -> tuple[Any, str]:
    file = model / "found.json"
    file.unlink(missing_ok=True)
    done = run(interpreter(), "core.py", str(model), str(file), search=(stand_in,), **{
        "VERSO_HEAD_SIZE": "1", ascend_stand_in.BREAK: "1", "VERSO_ATTENTION_TYPE": "1",
        "VERSO_TOKENIZER_CLASS": "1", **variables})
    return json.loads(file.read_text("utf-8")), done.stdout + done.stderr


def test_a_real_engine_core_reads_a_page_with_both_repairs(model: Path, stand_in: Path) -> None:
    found, said = page(model, stand_in)
    assert found == {"tokenizer": True, "page": 4}, said[-4000:]
    for process in ("EngineCore", "VllmWorker"):  # the process that computes is one of its own
        lines = [line for line in said.splitlines() if process in line]
        assert any("Verso: tokenizer class: deepseek_ocr2 added" in line for line in lines)
        assert any("Verso: attention type: AscendQwen2DecoderLayer" in line for line in lines)


def test_without_the_attention_type_it_dies(model: Path, stand_in: Path) -> None:
    found, said = page(model, stand_in, VERSO_ATTENTION_TYPE="0")
    assert "error" in found
    assert "'AscendQwen2DecoderLayer' object has no attribute 'attention_type'" in said


def test_without_the_tokenizers_class_words_run_together(model: Path, stand_in: Path) -> None:
    found, _ = page(model, stand_in, VERSO_TOKENIZER_CLASS="0")
    assert found == {"tokenizer": False, "page": 0}
