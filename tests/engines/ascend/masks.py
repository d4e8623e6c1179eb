"""Run under the interpreter with real vLLM: is the mask of the plugin put into the real visual
decoders of older vLLM, beside real vllm-ascend?

    python masks.py VLLM:ASCEND …

VLLM and ASCEND are folders with the packages vllm and vllm_ascend; ASCEND may be empty. Prints one
JSON document: for each pair why the mask was left as it is (empty: it was not), whether it is
right, and whether it was made in vLLM's loop.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "desktop" / "engines" / "plugin" / "site")]

import torch  # noqa: E402
import vllm.model_executor.models as models  # noqa: E402
from verso_vllm_plugin import NotHere, mask  # noqa: E402
from vllm.model_executor import custom_op  # noqa: E402

NAME = "vllm.model_executor.models.deepencoder2"


FILE = "vllm/model_executor/models/deepencoder2.py"


def load(file: Path) -> Any:
    """FILE in place of the module of that name that is installed."""
    for registered in vars(custom_op).values():  # each name may be registered once
        if isinstance(registered, dict):
            registered.pop("qwen2_decoder", None)
    spec = importlib.util.spec_from_file_location(NAME, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
    models.deepencoder2 = module
    return module


def check(vllm: str, ascend: str) -> dict[str, Any]:
    module = load(Path(vllm, FILE))
    try:
        sys.path.append(ascend or vllm)
        mask.apply()
        left = ""
    except NotHere as reason:
        left = str(reason)
    finally:
        sys.path.pop()
    decoder = module.build_qwen2_decoder_as_encoder(
        decoder_layer=1, hidden_dimension=32, num_attention_heads=2, num_key_value_heads=2,
        intermediate_size=32)
    inner = decoder.model.model
    types = torch.tensor([[0, 0, 0, 1, 1, 1]] * 2)
    made = type(inner)._create_custom_4d_mask(inner, 6, torch.float32, "cpu", 2, types)
    return {"left": left, "right": torch.equal(
                made, mask.attention_mask(types, torch.float32, "cpu")),
            "loop": type(inner)._create_custom_4d_mask is not mask._replacement}


if __name__ == "__main__":
    print(json.dumps({"pairs": [check(*pair.split(":")) for pair in sys.argv[1:]]}))
