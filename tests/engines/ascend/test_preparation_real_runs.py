"""The official scripts themselves, prepared and run to their end: over stand-ins for torch, vLLM
and vllm-ascend, and with the model's code replaced by one line; images, PDF and files are real."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pymupdf
import pytest
from PIL import Image

from desktop.engines.ascend import preparation
from desktop.engines.ascend.preparation import layout
from tests.support import official_code, recipe_sources

TEXT = ("<|ref|>title<|/ref|><|det|>[[10, 10, 500, 90]]<|/det|>\\n# Head\\n\\n"
        "<|ref|>image<|/ref|><|det|>[[10, 100, 500, 900]]<|/det|>\\n")
VLLM = f"""\
import json, os, sys
assert os.environ['VLLM_USE_V1'] == '0'
assert {{'verso_npu_patch', 'torch'}} <= set(sys.modules)
TEXT = "{TEXT}"

def note(options):
    from vllm.model_executor.layers.fused_moe import fused_moe
    assert fused_moe.verso_replaces
    options = {{name: value for name, value in options.items() if not callable(value)}}
    with open(os.environ['NOTES'], 'w') as file:
        json.dump(options, file)

class Answer:
    def __init__(self, text):
        self.outputs, self.text = [self], text

class LLM:
    def __init__(self, **options):
        note(options)

    def generate(self, requests, sampling_params):
        assert sampling_params['temperature'] == 0.0
        assert all(request['multi_modal_data']['image'] for request in requests)
        return [Answer(TEXT + '<｜end▁of▁sentence｜>') for request in requests]

class AsyncLLMEngine:
    @classmethod
    def from_engine_args(cls, options):
        note(options)
        return cls()

    async def generate(self, request, sampling, name):
        for end in (5, len(TEXT)):
            yield Answer(TEXT[:end])

def SamplingParams(**options):
    return options
"""


@pytest.fixture(params=["as published", "line ends of Windows"])
def ready(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A prepared folder; ``site`` and ``out`` beside it."""
    official = recipe_sources.official()
    if official is None:
        pytest.skip("needs the official code: run packaging/recipe_sources.py")
    pytest.importorskip("fitz")
    if request.param == "line ends of Windows":  # as git may check it out
        official = Path(shutil.copytree(official, tmp_path / "windows"))
        for file in official.rglob("*.py"):
            file.write_bytes(re.sub(rb"\r?\n", b"\r\n", file.read_bytes()))
    made = tmp_path / "npu"
    preparation.prepare(official, made).write()
    (tmp_path / "site").mkdir()
    stand_ins = {name: text for name, text in official_code.STAND_INS.items()
                 if name not in ("tqdm.py", "standin.py")}
    official_code.lay(tmp_path / "site", {
        **stand_ins, "vllm/__init__.py": VLLM,
        "transformers.py": "class AutoTokenizer:\n"
                           "    def from_pretrained(name, trust_remote_code):\n"
                           "        return name\n",
        "img2pdf.py": "def convert(images):\n    return b'%PDF' + b''.join(images)\n"})
    official_code.lay(made, {
        "deepseek_ocr2.py": "from vllm.model_executor.layers.fused_moe import fused_moe\n"
                            "class DeepseekOCR2ForCausalLM:\n    pass\n",
        "process/image_process.py": official_code.FILES["process/image_process.py"],
        "process/ngram_norepeat.py": "class NoRepeatNGramLogitsProcessor:\n"
                                     "    def __init__(self, **options):\n        pass\n"})
    return made


def run(ready: Path, script: str, given: Path) -> tuple[Path, str]:
    out = ready.parent / "out"
    config = (ready / "config.py").read_bytes().decode("utf-8").replace("\r\n", "\n")
    for name, value in (("MODEL_PATH", "/data/model"), ("INPUT_PATH", given),
                        ("OUTPUT_PATH", f"{out}/")):
        config, count = re.subn(rf"^{name} = .*$", f"{name} = {str(value)!r}", config,
                                flags=re.MULTILINE)
        assert count == 1
    (ready / "config.py").write_text(config, "utf-8")
    notes = ready.parent / "notes.json"
    ran = subprocess.run(
        [sys.executable, script], cwd=ready, text=True, capture_output=True, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(ready.parent), "LANG": "C.UTF-8",
             "PYTHONPATH": str(ready.parent / "site"), "NOTES": str(notes)})
    assert ran.returncode == 0, ran.stderr[-3000:]
    return out, notes.read_text()


def test_image(ready: Path, tmp_path: Path) -> None:
    Image.new("RGB", (300, 200), "white").save(tmp_path / "page.png")
    out, notes = run(ready, layout.IMAGE, tmp_path / "page.png")
    assert (out / "result.mmd").read_text() == "\n# Head\n\n![](images/0.jpg)\n\n"
    assert Image.open(out / "images" / "0.jpg").size == (147, 160)
    assert (out / "result_with_boxes.jpg").is_file()
    assert '"disable_mm_preprocessor_cache": true' in notes
    assert '"swap_space": 0' in notes


def test_pdf(ready: Path, tmp_path: Path) -> None:
    with pymupdf.open() as document:
        document.new_page(width=200, height=300)
        document.new_page(width=200, height=300)
        document.save(tmp_path / "two.pdf")
    out, notes = run(ready, layout.PDF, tmp_path / "two.pdf")
    assert (out / "two.mmd").read_text().count("<--- Page Split --->") == 2
    assert sorted(path.name for path in (out / "images").iterdir()) == ["0_0.jpg", "1_0.jpg"]
    assert '"enforce_eager": true' in notes
    assert '"gpu_memory_utilization": 0.85' in notes


def test_batch(ready: Path, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    for name in ("a.png", "b.jpg"):
        Image.new("RGB", (300, 200), "white").save(tmp_path / "images" / name)
    out, notes = run(ready, layout.BATCH, tmp_path / "images")
    assert sorted(path.name for path in out.iterdir()) == ["a.md", "b.md"]
    assert "# Head" in (out / "a.md").read_text()
    assert '"gpu_memory_utilization": 0.85' in notes
