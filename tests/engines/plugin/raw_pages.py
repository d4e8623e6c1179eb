"""Run under the interpreter with real vLLM: the same pages, as vLLM prepares them and raw.

    VERSO_RAW_PAGES=force python raw_pages.py MODEL FOLDER FILE

Writes one JSON document to FILE: for each page and each way the prompt's and the output's token
ids, and how the pages were prepared. Not to its output, where the engine's processes write too.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from PIL import Image

from desktop.engines.vllm.images import ImageFeed
from desktop.protocol.messages import SubmitPage
from tests.support import tiny_vllm

SIZES = ((1190, 1684), (1684, 1190), (700, 500), (1190, 1684), (1000, 1000))


def pages(folder: Path) -> list[SubmitPage]:
    """Noise, so that a wrong pixel shows."""
    found = []
    for number, size in enumerate(SIZES):
        path = folder / f"{number}.ppm"
        image = Image.effect_noise(size, 90).convert("RGB").transpose(Image.Transpose.ROTATE_180)
        image.save(path)
        found.append(SubmitPage(f"page{number}", str(path), *size))
    return found


async def main(model: str, folder: Path) -> dict[str, Any]:
    """Both ways through one engine. It computes one page after the other: in batches of other
    sizes sums are rounded otherwise, and which pages make a batch is a matter of time."""
    from vllm import SamplingParams
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    engine = AsyncLLM.from_engine_args(AsyncEngineArgs(
        model=model, **{**tiny_vllm.ENGINE_ARGS, "max_num_seqs": 1}))
    begin, image = engine.renderer.tokenizer.bos_token_id, engine.renderer.tokenizer.encode(
        "<image>", add_special_tokens=False)
    raw = ImageFeed(engine, {"image_workers": 2})
    rendered = ImageFeed(engine, {"image_workers": 2})
    rendered._plugin = None
    result: dict[str, Any] = {"ways": [raw.way, rendered.way]}

    async def read(feed: ImageFeed, page: SubmitPage) -> dict[str, Any]:
        prompt = await feed.prompt(page, [begin, *image, 5])
        parameters = SamplingParams(temperature=0.0, max_tokens=12, ignore_eos=True,
                                    skip_special_tokens=False)
        async for output in engine.generate(prompt, parameters, f"{feed.way}/{page.page_id}"):
            last = output
        return {"prompt": len(last.prompt_token_ids), "output": last.outputs[0].token_ids}

    drawn = pages(folder)
    for feed in (raw, rendered):
        result[feed.way] = await asyncio.gather(*(read(feed, page) for page in drawn))
    again = ImageFeed(engine, {"prefix_caching": True})
    result["keys"] = [again._pixels(drawn[0])[1], again._pixels(drawn[0])[1],
                      again._pixels(drawn[3])[1]]
    engine.shutdown()
    return result


if __name__ == "__main__":
    found = asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
    Path(sys.argv[3]).write_text(json.dumps(found, default=list), "utf-8")
