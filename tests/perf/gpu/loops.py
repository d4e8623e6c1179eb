"""AsyncLLM driven directly: as documented (``stock``), or with our plugin and settings and images
given ready (``bare``).

    python tests/perf/gpu/loops.py stock|bare --model DIR --out FILE --levels '256@64,100*2'
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import load

from desktop.protocol.messages import SubmitPage

PROMPT = "<image>\n<|grounding|>Convert the document to markdown."
NGRAM = {"ngram_size": 20, "window_size": 50, "whitelist_token_ids": [128821, 128822]}
PROCESSOR = "vllm.model_executor.models.deepseek_ocr:NGramPerReqLogitsProcessor"


def arguments(args: argparse.Namespace) -> dict[str, Any]:
    """What AsyncEngineArgs gets; memory, context and the like are equal for both."""
    values: dict[str, Any] = {
        "model": str(args.model), "load_format": "dummy", "dtype": "bfloat16", "seed": 0,
        "max_model_len": 8192, "gpu_memory_utilization": 0.85, "max_num_seqs": 100,
        "limit_mm_per_prompt": {"image": 1}, "enable_prefix_caching": False,
        "mm_processor_cache_gb": 0, "max_num_batched_tokens": args.batched,
        "attention_backend": "FLASH_ATTN",
    }
    if args.what == "stock":
        values.update(renderer_num_workers=8, logits_processors=[PROCESSOR])
    elif args.processor:
        values["logits_processors"] = [PROCESSOR]
    if args.engines > 1:
        values["gpu_memory_utilization"] = round(0.85 / args.engines, 2)
    for pair in args.arg:
        key, _, value = pair.partition("=")
        values[key] = json.loads(value) if value[:1] in "{[" or value.isdigit() else {
            "true": True, "false": False}.get(value, value)
    return values


class Loop:
    """One engine and its requests."""

    def __init__(self, args: argparse.Namespace) -> None:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        self._args = args
        self.arguments = arguments(args)
        self.engines = [AsyncLLM.from_engine_args(AsyncEngineArgs(**self.arguments))
                        for _ in range(args.engines)]
        self.engine = self.engines[0]
        self._busy = [0] * args.engines
        self._files = load.page_files(args.pages)
        self._ready: list[Any] = []
        self._images: list[Any] = []
        self.given: list[Any] = []
        self.ngram = args.what == "stock"
        """Whether requests ask for the n-gram processor."""
        self.repeat = 0
        """So many images in turn, known as the same; 0: each request's is another."""

    @property
    def is_ready(self) -> bool:
        """Whether prompts are finished beforehand."""
        return bool(self._ready)

    async def prepare(self) -> None:
        """What each way is given: opened images, or finished prompts."""
        from PIL import Image

        if self._args.what == "stock":
            for file in self._files:
                with Image.open(file) as image:
                    self._images.append(image.convert("RGB"))
            return
        from desktop.engines.vllm.images import ImageFeed

        tokenizer = self.engine.renderer.tokenizer
        tokens = [tokenizer.bos_token_id, *tokenizer.encode(PROMPT, add_special_tokens=False)]
        feed = ImageFeed(self.engine, {})
        load.say("pages are", feed.way)
        self._ready = [await feed.prompt(SubmitPage(
            str(number), str(file), *load.SIZE), tokens) for number, file in enumerate(self._files)]

    async def one(self, number: int, record: load.Request, length: int, tag: str = "") -> None:
        """One request of LENGTH output tokens."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        if self.given:
            prompt = self.given[number]
        elif self._ready:
            image = number % (self.repeat or len(self._ready))
            prompt = dict(self._ready[image])
            # As for any other page: the encoder's result must not be found again.
            prompt["mm_hashes"] = {"image": [f"again-{image}" if self.repeat else f"{tag}{number}"]}
        else:
            prompt = {"prompt": PROMPT, "multi_modal_data":
                      {"image": self._images[number % len(self._images)]}}
            prompt = (await self.engine.renderer.render_cmpl_async([prompt]))[0]
        parameters = SamplingParams(
            temperature=0.0, max_tokens=length, ignore_eos=True, skip_special_tokens=False,
            extra_args=NGRAM if self.ngram else None,
            output_kind=RequestOutputKind.DELTA)
        chosen = self._busy.index(min(self._busy))
        self._busy[chosen] += 1
        async for result in self.engines[chosen].generate(prompt, parameters, f"{tag}{number}"):
            if not record.first:
                record.first = time.perf_counter()
                record.prompt = len(result.prompt_token_ids)
            record.output += len(result.outputs[0].token_ids)
            record.deltas += 1
            record.finish = result.outputs[0].finish_reason or ""
        self._busy[chosen] -= 1


async def main(args: argparse.Namespace) -> None:
    """Start, warm up, measure, end."""
    report = load.Report(args.out)
    machine = load.Machine()
    started = time.monotonic()
    loop = Loop(args)
    report.put("arguments", loop.arguments)
    report.put("start_s", round(time.monotonic() - started, 1))
    await loop.prepare()
    for count in (1, 8):
        await asyncio.gather(*(loop.one(number, load.Request(0.0), 32, f"warm{count}-")
                               for number in range(count)))
    report.put("warm_s", round(time.monotonic() - started, 1))
    for level in load.Level.parse(args.levels):
        if time.monotonic() - started > args.budget:
            load.say("no time left for", level)
            break
        key = str(level)
        while key in report.values:
            key += " again"
        async def one(number: int, record: load.Request, level: load.Level = level,
                      key: str = key) -> None:
            await loop.one(number, record, level.length, f"{key}-")
        if args.profile and key == args.profile:
            report.put("profile", await profiled(loop, level, machine, one))
        report.put(key, await load.closed_loop(level, machine, one))
    if args.pdf:
        report.put("official_order", await official_order(loop, args.pdf, args.pdf_length))
    loop.ngram = True
    for level in load.Level.parse(args.ngram_levels) if args.ngram_levels else ():
        async def watched(number: int, record: load.Request, level: load.Level = level) -> None:
            await loop.one(number, record, level.length, f"ngram-{level}-")
        report.put(f"ngram {level}", await load.closed_loop(level, machine, watched))
    loop.ngram = args.what == "stock"
    if args.decode_alone and loop.is_ready:
        # With few images in turn the encoder's results are found again: what is left is decoding.
        loop.repeat = 6
        for level in load.Level.parse(args.decode_alone):
            async def again(number: int, record: load.Request, level: load.Level = level) -> None:
                await loop.one(number, record, level.length, f"again-{level}-")
            report.put(f"decode_alone {level}", await load.closed_loop(level, machine, again))
    for engine in loop.engines:
        engine.shutdown()


async def official_order(loop: Loop, pdf: Path, length: int) -> dict[str, Any]:
    """As the model's own script for PDFs does it: all pages drawn, then all prepared, then all
    generated."""
    import io

    import pymupdf
    from PIL import Image

    started = time.perf_counter()
    images = []
    with pymupdf.open(pdf) as document:
        for page in document:
            drawn = page.get_pixmap(matrix=pymupdf.Matrix(2, 2), alpha=False)
            images.append(Image.open(io.BytesIO(drawn.tobytes("png"))).convert("RGB"))
    rasterised = time.perf_counter()
    prompts = await asyncio.gather(*(loop.engine.renderer.render_cmpl_async(
        [{"prompt": PROMPT, "multi_modal_data": {"image": image}}]) for image in images))
    prepared = time.perf_counter()
    output = 0
    loop.given = [prompt[0] for prompt in prompts]

    async def one(number: int) -> None:
        nonlocal output
        record = load.Request(time.perf_counter())
        await loop.one(number, record, length, "pdf-")
        output += record.output

    await asyncio.gather(*(one(number) for number in range(len(images))))
    ended = time.perf_counter()
    return {"pages": len(images), "length": length, "output_tokens": output,
            "rasterise_s": round(rasterised - started, 2),
            "prepare_s": round(prepared - rasterised, 2),
            "generate_s": round(ended - prepared, 2),
            "pages_s": round(len(images) / (ended - started), 3)}


async def profiled(loop: Loop, level: load.Level, machine: load.Machine, one: Any) -> Any:
    """LEVEL while the plugin of ``site`` samples vLLM's processes."""
    target = os.environ.get("VERSO_SAMPLE", "/tmp/verso-sample")
    Path(target + ".go").touch()
    result = await load.closed_loop(level, machine, one)
    Path(target + ".go").unlink()
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["stock", "bare"])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--pages", type=Path, default=Path("/tmp/verso-gpu/pages"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--levels", default="256@64*2")
    parser.add_argument("--batched", type=int, default=8192)
    parser.add_argument("--processor", type=int, default=0, help="declare the n-gram processor")
    parser.add_argument("--engines", type=int, default=1, help="that share the device")
    parser.add_argument("--arg", action="append", default=[])
    parser.add_argument("--budget", type=float, default=300)
    parser.add_argument("--profile", default="")
    parser.add_argument("--pdf", type=Path)
    parser.add_argument("--pdf-length", type=int, default=256)
    parser.add_argument("--ngram-levels", default="", metavar="LEVELS",
                        help="once more, with the n-gram processor asked for")
    parser.add_argument("--decode-alone", default="", metavar="LEVELS")
    asyncio.run(main(parser.parse_args()))
