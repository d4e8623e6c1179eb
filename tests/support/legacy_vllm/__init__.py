"""vLLM 0.8.5 for tests of the engine ``ascend-legacy``, on a machine that has neither it nor a
device to run it on.

``path`` holds what stands for vLLM and transformers, ``npu`` what comes besides where there is an
NPU, ``torch`` what stands for torch where it is not installed. They are put on PYTHONPATH. A
recital (``path/verso_recital.py``) takes the model's place. ``official_tree`` writes code of our
own that is laid out as the official code is.

Where the environment with real vLLM is, the real vLLM 0.8.5 runs too, on a processor:
``real_environment``.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support import ascend_sources, official_code, processes, tiny_vllm

PATH = Path(__file__).with_name("path")
NPU = Path(__file__).with_name("npu")
TORCH = Path(__file__).with_name("torch")

CONFIG = """\
BASE_SIZE = 1024
IMAGE_SIZE = 768
CROP_MODE = False
MODEL_PATH = 'some/model'  # change it
INPUT_PATH = '/in'
OUTPUT_PATH = '/out'
PROMPT = '<image>\\nFree OCR.'

from transformers import AutoTokenizer

TOKENIZER = AutoTokenizer.from_pretrained(MODEL_PATH, trust_remote_code=True)
"""

PROCESSOR = """\
from config import CROP_MODE, PROMPT, TOKENIZER


class Row(list):
    def tolist(self):
        return [list(self)]


class DeepseekOCR2Processor:
    def __init__(self, tokenizer=TOKENIZER):
        self.tokenizer = tokenizer

    def tokenize_with_images(self, images, bos=True, eos=True, cropping=True):
        assert CROP_MODE and cropping and bos and eos
        conversation = PROMPT
        before, after = conversation.split('<image>')
        encode = self.tokenizer.encode
        wide, high = images[0].size
        views = 257 if max(wide, high) <= 768 else 257 + 144 * 6
        ids = [0, *encode(before, add_special_tokens=False), *[2] * views,
               *encode(after, add_special_tokens=False)]
        return [[Row(ids), None, None, None, None, [views], [images[0].size]]]
"""

NGRAM = """\
class NoRepeatNGramLogitsProcessor:
    def __init__(self, ngram_size, window_size=100, whitelist_token_ids=None):
        self.ngram_size, self.window_size = ngram_size, window_size
        self.whitelist_token_ids = whitelist_token_ids or set()

    def __call__(self, input_ids, scores):
        size = self.ngram_size
        if len(input_ids) < size:
            return scores
        ahead = list(input_ids[1 - size:])
        begin = max(0, len(input_ids) - self.window_size)
        banned = {input_ids[at + size - 1] for at in range(begin, len(input_ids) - size + 1)
                  if list(input_ids[at:at + size - 1]) == ahead}
        scores = scores.clone()
        for token in banned - self.whitelist_token_ids:
            if token < len(scores):
                scores[token] = -float('inf')
        return scores
"""

MODEL = """\
import process.image_process
import deepencoderv2.sam_vary_sdpa
from vllm.model_executor.layers.fused_moe import fused_moe


class DeepseekOCR2ForCausalLM:
    moe = fused_moe
"""


def official_tree(folder: Path, **instead: str | None) -> Path:
    """Code laid out as the official one, in FOLDER; INSTEAD as for ``official_code.official``."""
    return official_code.official(folder, **{
        "config": CONFIG, "image_process": PROCESSOR, "ngram_norepeat": NGRAM,
        "deepseek_ocr2": MODEL, **instead})


class Recital:
    """What the engine is told to write, and what it was given."""

    def __init__(self, folder: Path, **script: Any) -> None:
        """FOLDER is for its files; SCRIPT as ``path/verso_recital.py`` describes it."""
        self._script = folder / "recital.json"
        self._log = folder / "recital.log"
        self._script.write_text(json.dumps(script), encoding="utf-8")

    def environment(self, *before: Path, npu: bool = False) -> dict[str, str]:
        """Variables of a worker that has this stack; BEFORE are folders in front of it."""
        search: Iterable[object] = (*before, *((NPU,) if npu else ()), PATH, TORCH,
                                    os.environ.get("PYTHONPATH", ""))
        return {"PYTHONPATH": os.pathsep.join(filter(None, map(str, search))),
                "VERSO_RECITAL": str(self._script), "VERSO_RECITAL_LOG": str(self._log)}

    def of(self, event: str) -> list[dict[str, Any]]:
        """What was noted about EVENT: arguments, request, abort, shutdown."""
        if not self._log.exists():
            return []
        whole, _, _written = self._log.read_text(encoding="utf-8").rpartition("\n")
        lines = whole.splitlines()
        return [found for found in map(json.loads, lines) if found["event"] == event]

    @property
    def pages(self) -> list[dict[str, Any]]:
        """The requests but those of warming up."""
        return [found for found in self.of("request") if not found["id"].startswith("warm-up")]


# --- the real one, on a processor

REAL_PROCESSOR = """\
from config import CROP_MODE, PROMPT, TOKENIZER


class DeepseekOCR2Processor:
    def __init__(self):
        self.tokenizer = TOKENIZER

    def tokenize_with_images(self, images, bos=True, eos=True, cropping=True):
        assert CROP_MODE and cropping and bos and eos
        before, after = PROMPT.split('<image>')
        wide, high = images[0].size
        tokens = 257 if max(wide, high) <= 768 else 257 + 144 * 6
        encode, image = self.tokenizer.encode, self.tokenizer.vocab['<image>']
        ids = [self.tokenizer.bos_token_id, *encode(before, add_special_tokens=False),
               *[image] * tokens, *encode(after, add_special_tokens=False)]
        return [[ids, tokens]]
"""


def own_code(folder: Path) -> Path:
    """Code of our own in FOLDER, laid out as the official one, that the real vLLM 0.8.5 runs; for
    machines that cannot get the official."""
    model = Path(__file__).with_name("own") / "deepseek_ocr2.py"
    return official_tree(folder, image_process=REAL_PROCESSOR,
                         deepseek_ocr2=model.read_text(encoding="utf-8"))


REAL = Path(__file__).with_name("real")
PACKAGES = ("transformers==4.51.3", "tokenizers==0.21.4", "huggingface_hub==0.36.0",
            "addict==2.4.0", "easydict==1.14", "gguf==0.19.0")
"""What vLLM 0.8.5 and the official code import besides what the environment with real vLLM has, or
in other versions."""


def packages(python: Path) -> Path:
    """The folder with :data:`PACKAGES` for PYTHON, beside its environment; made where it is not
    there."""
    folder = python.parents[1].with_name("legacy-packages")
    mark = folder / "made"
    with processes.alone(folder):
        if not mark.exists() or mark.read_text() != "\n".join(PACKAGES):
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--no-input",
                            "--no-deps", "--disable-pip-version-check", "--upgrade", "--target",
                            str(folder), *PACKAGES], check=True)
            mark.write_text("\n".join(PACKAGES))
    return folder


def real_environment(python: Path, recital: Path, *, npu: bool = True) -> dict[str, str]:
    """Variables under which PYTHON, of the environment with real vLLM, has the real vLLM 0.8.5 from
    its sources, and for an NPU vllm-ascend 0.8.5rc1. RECITAL: see
    ``real/verso_real_recital.py``."""
    ascend, vllm = ascend_sources.roots("0.8.5rc1")
    search = [tiny_vllm.PATH, REAL, packages(python), vllm, *([ascend] if npu else []),
              ascend_sources.ROOT / "tests/engines/ascend/moe", os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, map(str, search))),
            "VERSO_RECITAL": str(recital), "VLLM_PLUGINS": "real-recital",
            "VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1", "VLLM_LOGGING_LEVEL": "WARNING"}


def real_model(folder: Path) -> Path:
    """The tiny model in FOLDER, with what the published one has and the official code needs: its
    tokenizer's class and its number format."""
    tiny_vllm.build(folder)
    for name, old, new in (
            ("tokenizer_config.json", "PreTrainedTokenizerFast", "LlamaTokenizerFast"),
            ("config.json", "float32", "bfloat16")):
        text = (folder / name).read_text(encoding="utf-8")
        (folder / name).write_text(text.replace(f'"{old}"', f'"{new}"'), encoding="utf-8")
    return folder
