"""A small tree laid out as the official vLLM code of DeepSeek-OCR-2 is, and stand-ins for what it
imports, so that prepared scripts can be run on any machine.

The tree is our own: it has the official names and places of what matters – imports, settings, the
engine's arguments – and prints what became of them instead of reading pages.
"""

from __future__ import annotations

from pathlib import Path

CONFIG = """\
BASE_SIZE = 1024
CROP_MODE = True
MODEL_PATH = 'some/model' # where it is
INPUT_PATH = '/in'
OUTPUT_PATH = '/out'
PROMPT = '<image>\\nFree OCR.'
"""

IMAGE = """\
import asyncio
import os

import torch
if torch.version.cuda == '11.8':
    os.environ["TRITON_PTXAS_PATH"] = "/usr/local/cuda-11.8/bin/ptxas"
os.environ['VLLM_USE_V1'] = '0'

from vllm import AsyncLLMEngine
from vllm.engine.arg_utils import AsyncEngineArgs
from deepseek_ocr2 import DeepseekOCR2ForCausalLM
from config import MODEL_PATH, PROMPT  # “full width”


async def stream():
    engine_args = AsyncEngineArgs(
        model=MODEL_PATH,
        enforce_eager=False,
        trust_remote_code=True,
        gpu_memory_utilization=0.75,
    )
    return engine_args


if __name__ == "__main__":
    from standin import report
    report(asyncio.run(stream()))
"""

BATCH = """\
import os
from tqdm import tqdm
import torch
os.environ['VLLM_USE_V1'] = '0'

from config import MODEL_PATH
from deepseek_ocr2 import DeepseekOCR2ForCausalLM
from vllm import LLM

llm = LLM(
    model=MODEL_PATH,
    enforce_eager=False,
    swap_space=0,
    gpu_memory_utilization={utilization},{more}
)

if __name__ == "__main__":
    from standin import report
    report(llm.options)
"""

FILES = {
    "config.py": CONFIG,
    "run_dpsk_ocr2_image.py": IMAGE,
    "run_dpsk_ocr2_pdf.py": BATCH.format(
        utilization=0.9, more="\n    disable_mm_preprocessor_cache=True"),
    "run_dpsk_ocr2_eval_batch.py": BATCH.format(utilization=0.7, more=""),
    "deepencoderv2/__init__.py": "",
    "deepencoderv2/sam_vary_sdpa.py": """\
import math
from flash_attn import flash_attn_qkvpacked_func

def attend(x):
    # flash_attn_qkvpacked_func(x)
    return math.sqrt(x)
""",
    "deepseek_ocr2.py": """\
from vllm.model_executor.layers.fused_moe import fused_moe
import deepencoderv2.sam_vary_sdpa

class DeepseekOCR2ForCausalLM:
    moe = staticmethod(fused_moe)
""",
    "process/__init__.py": "",
    "process/image_process.py": """\
class DeepseekOCR2Processor:
    def tokenize_with_images(self, images, bos, eos, cropping):
        return [[image.size for image in images], bos, eos, cropping]
""",
    "process/ngram_norepeat.py": "class NoRepeatNGramLogitsProcessor:\n    pass\n",
    "__pycache__/config.cpython-312.pyc": "stale",
}

STAND_INS = {
    "tqdm.py": "def tqdm(things, **options):\n    return things\n",
    "torch/__init__.py": "class version:\n    cuda = None\n",
    "torch_npu.py": "",
    "standin.py": """\
import json, os, sys
from deepseek_ocr2 import DeepseekOCR2ForCausalLM

def report(options):
    with open('/proc/self/environ', 'rb') as file:
        began = dict(part.split('=', 1) for part in file.read().decode().split('\\0') if part)
    print(json.dumps({
        'options': options, 'arguments': sys.argv[1:],
        'moe': DeepseekOCR2ForCausalLM.moe(hidden_states=Rows(), w1=0, w2=0, gating_output=0,
                                           topk=6, renormalize=False),
        'library_path_at_start': began.get('LD_LIBRARY_PATH', ''),
        'environ': dict(os.environ)}))

class Rows:
    shape = (3, 4)
""",
    "vllm/__init__.py": """\
import os
assert os.environ['VLLM_USE_V1'] == '0'

class AsyncLLMEngine:
    pass

class LLM:
    def __init__(self, **options):
        self.options = options

    def generate(self, requests, sampling):
        assert sampling == {'temperature': 0.0, 'max_tokens': 100}
        return [Answer(request) for request in requests]

class Answer:
    def __init__(self, request):
        sizes, bos, eos, crop = request['multi_modal_data']['image']
        assert request['prompt'].startswith('<image>') and bos and eos and crop
        self.prompt_token_ids = range(sizes[0][0])
        self.outputs = [self]
        self.token_ids = range(7)

def SamplingParams(**options):
    return options
""",
    "vllm/engine/__init__.py": "",
    "vllm/engine/arg_utils.py": "AsyncEngineArgs = dict\n",
    "vllm/model_executor/__init__.py": "",
    "vllm/model_executor/models/__init__.py": "",
    "vllm/model_executor/models/registry.py": """\
class ModelRegistry:
    @staticmethod
    def register_model(name, model):
        assert model.__name__ == name
""",
    "vllm/model_executor/layers/__init__.py": "",
    "vllm/model_executor/layers/fused_moe/__init__.py":
        "from vllm.model_executor.layers.fused_moe.fused_moe import fused_moe\n",
    "vllm/model_executor/layers/fused_moe/fused_moe.py": """\
def fused_moe(hidden_states, w1, w2, gating_output, topk, renormalize):
    return "vllm's"
""",
    "vllm_ascend/__init__.py": "",
    "vllm_ascend/ops/__init__.py": "",
    "vllm_ascend/ops/fused_moe.py": """\
def select_experts(hidden_states, router_logits, top_k, use_grouped_topk, renormalize,
                   topk_group=None, num_expert_group=None, custom_routing_function=None,
                   scoring_func='softmax', e_score_correction_bias=None):
    return 'weights', 'experts'

def fused_experts(hidden_states, w1, w2, topk_weights, topk_ids, top_k, expert_map=None):
    return "vllm-ascend's"
""",
}

CANN = ("lib64/libascendcl.so", "opp/built-in/op_impl/ai_core/tbe/impl/__init__.py",
        "python/site-packages/acl.py")
"""Files of a toolkit, which ASCEND_HOME_PATH can name."""


def lay(folder: Path, files: dict[str, str]) -> Path:
    """FILES in FOLDER, which is made."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
    return folder


def official(folder: Path, **instead: str | None) -> Path:
    """The tree in FOLDER; INSTEAD, by the stem of their names: other texts, None for no file."""
    stems = {Path(name).stem: name for name in FILES if not name.endswith("__init__.py")}
    other = {stems[stem]: text for stem, text in instead.items()}
    return lay(folder, {name: text for name, text in {**FILES, **other}.items()
                        if text is not None})
