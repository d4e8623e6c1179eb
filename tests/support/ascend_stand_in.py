"""A vllm-ascend that can be installed anywhere: its real visual decoder on a processor.

What is real: ``ops/qwen2_decoder.py`` of vllm-ascend 0.23.0.post1 (from
``packaging/ascend_sources.py``), put into vLLM the way ``register_ascend_customop`` of the same
release does it. What stands in: torch_npu, of which that module calls two operators, and the
platform, which is vLLM's own for processors under vllm-ascend's name.
"""

from __future__ import annotations

from pathlib import Path

from tests.support import ascend_sources

VERSION = "0.23.0.post1"
DECODER = "vllm_ascend/ops/qwen2_decoder.py"
BREAK = "VERSO_STAND_IN_TOKENIZER"
"""1: transformers forgets what it knows of the model's tokenizer, as before 5.8."""

_ASCEND = f'''
import os


def register():
    """Before any other plugin, in every process."""
    if os.environ.get({BREAK!r}) == "1":
        from transformers.models.auto import tokenization_auto

        tokenization_auto.MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS.discard("deepseek_ocr2")
        tokenization_auto.TOKENIZER_MAPPING_NAMES.pop("deepseek_ocr2", None)
    return "vllm_ascend.platform.NPUPlatform"


def register_model():
    """As NPUWorker does by register_ascend_customop, in every process."""
    from vllm.model_executor.custom_op import PluggableLayer, op_registry_oot

    if "CustomQwen2Decoder" not in op_registry_oot:
        from vllm_ascend.ops.qwen2_decoder import AscendCustomQwen2Decoder

        PluggableLayer.register_oot(
            _decorated_layer_cls=AscendCustomQwen2Decoder, name="CustomQwen2Decoder")
'''

_PLATFORM = '''
from vllm.platforms.cpu import CpuPlatform


class NPUPlatform(CpuPlatform):
    @classmethod
    def get_device_name(cls, device_id=0):
        return "910B3 (stand-in)"
'''

_TORCH_NPU = '''
"""Two operators as op-plugin's documentation describes them (docs/zh/custom_APIs/torch_npu)."""
import torch

__version__ = "2.10.0.post4"


def npu_rotary_mul(input, r1, r2):
    """Rotary embedding, halves: input, r1 (cosines) and r2 (sines) of shape (…, size)."""
    first, second = input.chunk(2, dim=-1)
    return input * r1 + torch.cat((-second, first), dim=-1) * r2


def npu_rms_norm(input, gamma, epsilon=1e-6):
    """Root mean square norm over the last axis: the result and the reciprocal of the root."""
    wide = input.to(torch.float32)
    reciprocal = torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
    return (wide * reciprocal).to(input.dtype) * gamma, reciprocal
'''


def build(folder: Path) -> Path:
    """Write it into FOLDER, which goes on PYTHONPATH; FOLDER. The sources must be there
    (``ascend_sources.ensure``)."""
    real = ascend_sources.roots(VERSION)[0]
    _write(folder / "vllm_ascend/__init__.py", _ASCEND)
    _write(folder / "vllm_ascend/platform.py", _PLATFORM)
    _write(folder / "vllm_ascend/ops/__init__.py", "")
    _write(folder / DECODER, (real / DECODER).read_text(encoding="utf-8"))
    _write(folder / "torch_npu/__init__.py", _TORCH_NPU)
    _info(folder, "vllm_ascend", VERSION,
          "[vllm.platform_plugins]\nascend = vllm_ascend:register\n"
          "[vllm.general_plugins]\nascend_model = vllm_ascend:register_model\n")
    _info(folder, "torch_npu", "2.10.0.post4")
    return folder


def _info(folder: Path, module: str, version: str, points: str = "") -> None:
    info = folder / f"{module}-{version}.dist-info"
    _write(info / "METADATA", f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\n"
                              f"Version: {version}\n")
    _write(info / "RECORD", f"{module}/__init__.py,,\n")
    _write(info / "entry_points.txt", points)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
