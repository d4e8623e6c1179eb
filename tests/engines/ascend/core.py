"""Run under the interpreter with real vLLM: a page in a real engine core, beside what stands in
for vllm-ascend.

    VERSO_ATTENTION_TYPE=1 VERSO_TOKENIZER_CLASS=1 python core.py MODEL FILE

Writes one JSON document to FILE: what became of the tokenizer and of the page. Not to its output,
where the engine's processes write too, as long as they live.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from PIL import Image

from tests.support import tiny_vllm

TEXT = "## Two words,  größer 世界"


async def main(model: str) -> dict[str, Any]:
    from vllm import SamplingParams
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.tokenizers import cached_tokenizer_from_config
    from vllm.v1.engine.async_llm import AsyncLLM

    wanted = AsyncEngineArgs(model=model, **tiny_vllm.ENGINE_ARGS)
    tokenizer = cached_tokenizer_from_config(wanted.create_model_config())
    back = tokenizer.decode(tokenizer.encode(TEXT, add_special_tokens=False))
    result: dict[str, Any] = {"tokenizer": back == TEXT, "page": 0}
    if not result["tokenizer"]:
        return result
    engine = AsyncLLM.from_engine_args(wanted)
    page = Image.effect_noise((500, 700), 90).convert("RGB")
    prompt = {"prompt": "<image>\nFree OCR.", "multi_modal_data": {"image": page}}
    parameters = SamplingParams(temperature=0.0, max_tokens=4, ignore_eos=True)
    async for output in engine.generate(prompt, parameters, "page"):
        result["page"] = len(output.outputs[0].token_ids)
    engine.shutdown()
    return result


if __name__ == "__main__":
    try:
        found = asyncio.run(main(sys.argv[1]))
    except Exception as error:  # noqa: BLE001 - told, with what the core wrote beside it
        found = {"error": f"{type(error).__name__}: {error}"}
    Path(sys.argv[2]).write_text(json.dumps(found), "utf-8")
