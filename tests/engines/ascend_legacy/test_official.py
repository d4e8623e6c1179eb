"""The official code in a process: found, made ready, given our values, also in vLLM's further
processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from desktop.engines.ascend import preparation
from desktop.engines.ascend_legacy import arguments, loading, official, stack
from desktop.engines.ascend_legacy.failures import (
    CodeFailed,
    NotOfficialCode,
    OfficialCodeMissing,
)
from desktop.settings import Values
from tests.support import legacy_vllm
from tests.support.data import ROOT

SITE = Path(str(loading.__file__)).parent / "site"


def test_it_is_found_where_it_usually_is(tmp_path: Path, code: Path) -> None:
    with pytest.raises(OfficialCodeMissing) as caught:
        official.located("", tmp_path)
    assert f"{tmp_path}/deepseek_ocr2_npu" in caught.value.problem().message
    assert "verso prepare-npu" in caught.value.problem().hint
    checkout = tmp_path / "DeepSeek-OCR-2/DeepSeek-OCR2-master/DeepSeek-OCR2-vllm"
    legacy_vllm.official_tree(checkout)
    assert official.located("", tmp_path) == checkout.resolve()
    made = tmp_path / "deepseek_ocr2_npu"
    preparation.prepare(code, made).write()
    assert official.located("", tmp_path) == made.resolve()
    assert official.located(str(code), tmp_path) == code.resolve()


def test_another_folder_is_not_taken_for_it(tmp_path: Path, code: Path) -> None:
    (tmp_path / "config.py").write_text("")
    with pytest.raises(NotOfficialCode) as caught:
        official.located(str(tmp_path))
    assert "process/image_process.py" in caught.value.problem().message
    with pytest.raises(OfficialCodeMissing):
        official.located(str(code / "nowhere"))


def test_an_npu_gets_a_prepared_copy_a_gpu_the_code_itself(tmp_path: Path, code: Path) -> None:
    to = tmp_path / "copy"
    assert official.made_ready(code, npu=False, to=to) == code
    assert not to.exists()
    for _ in range(2):  # also over one that somebody touched
        assert official.made_ready(code, npu=True, to=to) == to
        assert preparation.shortcomings(to) == []
        (to / "config.py").write_text("broken")
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]
    assert official.made_ready(to, npu=True, to=tmp_path / "again") == to


def test_the_recipes_own_conversion_is_taken_as_it_is(tmp_path: Path, code: Path) -> None:
    folder = legacy_vllm.official_tree(tmp_path / "converted")
    script = folder / "run_dpsk_ocr2_image.py"
    script.write_text(script.read_text().replace("import torch\n", "import torch\nimport "
                                                 "deepseek_ocr2_npu\n"))
    assert official.made_ready(folder, npu=True, to=tmp_path / "copy") == folder


ASKED = """
import json, sys
from vllm.plugins import load_general_plugins
load_general_plugins()
from vllm.model_executor.models.registry import ModelRegistry
from vllm.model_executor.layers import fused_moe
print(json.dumps({
    "models": list(ModelRegistry.get_supported_archs()),
    "replaced": hasattr(fused_moe.fused_moe, "verso_replaces"),
    "model_path": getattr(sys.modules.get("config"), "MODEL_PATH", "")}))
"""


def process(script: str, *arguments: str, wanted: object = None) -> Any:
    """The JSON that SCRIPT prints last in a process as vLLM starts them, which is to load what
    WANTED says."""
    search = [legacy_vllm.NPU, legacy_vllm.PATH, legacy_vllm.TORCH, ROOT, SITE]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, search))}
    if wanted is not None:
        environ[official.WANTED] = json.dumps(wanted)
    ran = subprocess.run([sys.executable, "-c", script, *arguments], env=environ,
                         capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_a_further_process_of_vllm_gets_the_model_too(tmp_path: Path, code: Path) -> None:
    ready = official.made_ready(code, npu=True, to=tmp_path / "copy")
    wanted = official.order(ready, "/models/ocr-2", "<image>\nFree OCR.", npu=True)
    assert process(ASKED, wanted=wanted) == {
        "models": ["DeepseekOCR2ForCausalLM"], "replaced": True, "model_path": "/models/ocr-2"}
    assert process(ASKED) == {"models": [], "replaced": False, "model_path": ""}


TRIED = """
import json, sys
from desktop.engines.ascend_legacy import official
from desktop.errors import VersoError
try:
    official.load(json.loads(sys.argv[1]))
    official.load(json.loads(sys.argv[1]))
    print("{}")
except VersoError as error:
    print(json.dumps(error.problem()._asdict()))
"""


def load_problem(folder: Path, *, npu: bool = False) -> dict[str, Any]:
    """What is wrong with loading the code in FOLDER."""
    wanted = official.order(folder, "/models/ocr-2", "<image>\n", npu=npu)
    found: dict[str, Any] = process(TRIED, json.dumps(wanted))
    return found


def test_what_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    plain = "import math\n"
    good = legacy_vllm.official_tree(tmp_path / "good", sam_vary_sdpa=plain)
    assert load_problem(good) == {}
    found = load_problem(legacy_vllm.official_tree(
        tmp_path / "addict", sam_vary_sdpa="import addict_that_is_missing\n"))
    assert found["code"] == "legacy.package"
    assert f"{sys.executable} -m pip install addict_that_is_missing" in found["hint"]
    found = load_problem(legacy_vllm.official_tree(
        tmp_path / "config", sam_vary_sdpa=plain,
        config=legacy_vllm.CONFIG.replace("CROP_MODE = False\n", "")))
    assert found["code"] == "legacy.code"
    assert "CROP_MODE" in found["message"]
    found = load_problem(legacy_vllm.official_tree(
        tmp_path / "broken", sam_vary_sdpa="raise RuntimeError('libhccl.so')\n"))
    assert found["code"] == "legacy.code"
    assert "libhccl.so" in found["message"]


def test_an_npu_without_its_experts_does_not_start(tmp_path: Path) -> None:
    script = "import sys\nsys.modules['vllm_ascend.ops.fused_moe'] = sys\n" + TRIED
    folder = legacy_vllm.official_tree(tmp_path / "code", sam_vary_sdpa="import math\n")
    wanted = official.order(folder, "/models/ocr-2", "<image>\n", npu=True)
    found = process(script, json.dumps(wanted))
    assert found["code"] == "legacy.experts"
    assert "select_experts" in found["message"]


def test_a_method_speaks_with_another_prompt_and_is_left_as_it_was() -> None:
    space: dict[str, Any] = {"PROMPT": "theirs"}
    exec("class Processor:\n"
         "    size = 3\n"
         "    def tokenize(self, images, *, cropping=True):\n"
         "        return PROMPT, self.size, images, cropping\n"
         "    def other(self):\n"
         "        return 1\n", space)
    processor = space["Processor"]()
    ours = official.speaking(processor.tokenize, "ours")
    assert ours([1]) == ("ours", 3, [1], True)
    assert processor.tokenize([1]) == ("theirs", 3, [1], True)
    with pytest.raises(CodeFailed):
        official.speaking(processor.other, "ours")


def test_what_a_gpu_may_choose_and_an_npu_may_not() -> None:
    chosen = Values({"eager": False, "swap_space": 4, "dtype": "float16", "tensor_parallel": 2,
                     "concurrency": 160, "quantization": "awq"}).as_dict()
    npu, gpu = (arguments.build(chosen, npu=npu) for npu in (True, False))
    assert (npu.values["enforce_eager"], gpu.values["enforce_eager"]) == (True, False)
    for built in (npu, gpu):
        assert built.values["dtype"] == "bfloat16"
        assert any("bfloat16" in note for note in built.notes)
        assert built.values["swap_space"] == 4
        assert built.values["tensor_parallel_size"] == 2
        assert built.values["max_num_seqs"] == 160
        assert built.values["quantization"] == "awq"


@pytest.mark.parametrize("found", [
    stack.Stack("0.8.5.post1", "0.8.5rc1", "2.5.1", "2.5.1", "4.51.3"),
    stack.Stack("0.8.5.post1+empty", "0.8.5rc1"), stack.Stack("0.8.5", "?"),
    stack.Stack("0.8.5+cu118", transformers="4.53.0")])
def test_the_stacks_it_is_for(found: stack.Stack) -> None:
    stack.check(found)
    assert found.npu == bool(found.ascend)


def test_torchs_two_sentences_are_one_cause() -> None:
    said = "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0)"
    assert loading.telling(said) == ("RuntimeError: NPU out of memory: tried to allocate 2.00 GiB "
                                     "(NPU 0)")
