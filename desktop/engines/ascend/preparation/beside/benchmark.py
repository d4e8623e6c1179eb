"""How fast the model reads on this NPU, at one or several numbers of pages at once.

    python benchmark.py --image page.png --concurrent 1,8,16

The engine is started once. For each number the same batch is read: once cold, WARMUP times
unmeasured, ROUNDS times measured. A figure is the tokens of all pages of a batch over the seconds
that the engine took for it; preparing images is not in it. Stands on its own, Python 3.9.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

IMAGES = (".jpg", ".jpeg", ".png")
COLUMNS = ("pages at once", "cold, out tok/s", "warm, out tok/s", "warm, all tok/s", "seconds")


def main(words: list[str] | None = None) -> int:
    """Measure as WORDS say (default: the command line); the exit status."""
    options = parse(words)
    # First of all: it starts Python again where the libraries of the NPU would not be found.
    importlib.import_module("verso_npu_environment").ensure()
    os.environ["VLLM_USE_V1"] = "0"
    importlib.import_module("verso_npu_patch")  # applies itself
    config = importlib.import_module("config")
    images = pages(options.image)
    begin = time.perf_counter()
    engine = start(config, options.gpu_mem)
    print(f"engine started in {time.perf_counter() - begin:.1f} s", flush=True)
    rows, failed = [], False
    for count in options.concurrent:
        try:
            rows.append(measure(engine, config, images, count, options))
        except Exception as error:  # noqa: BLE001 - the other numbers may still work
            failed = True
            print(f"{count} pages at once: {type(error).__name__}: {error}",
                  file=sys.stderr)
        else:
            print(line(rows[-1]), flush=True)
    text = table(rows)
    print("\n" + text, end="")
    Path(options.output).write_text(text, encoding="utf-8")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 1 if failed or not rows else 0


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """The options in WORDS."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--image", required=True, type=Path,
                        help="an image, or a folder of images that are taken in turn")
    parser.add_argument("--concurrent", default="1,8,16", type=numbers, metavar="N,N,…",
                        help="numbers of pages at once (default: 1,8,16)")
    parser.add_argument("--max-tokens", type=positive, default=8192,
                        help="most tokens of a page's output (default: 8192)")
    parser.add_argument("--gpu-mem", type=float, default=0.85,
                        help="share of the device's memory (default: 0.85)")
    parser.add_argument("--warmup", type=int, default=2,
                        help="unmeasured batches before the measured ones (default: 2)")
    parser.add_argument("--rounds", type=positive, default=5,
                        help="measured batches (default: 5)")
    parser.add_argument("--output", default="benchmark_results.txt",
                        help="file for the table (default: benchmark_results.txt)")
    parser.add_argument("--json", help="file for every figure, also of single rounds")
    return parser.parse_args(words)


def positive(text: str) -> int:
    """A whole number from 1."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def numbers(text: str) -> list[int]:
    """Whole numbers from 1, separated by commas."""
    return [positive(part) for part in text.split(",")]


def pages(path: Path) -> list[Any]:
    """The images at PATH, upright, RGB. Raises SystemExit when there are none."""
    from PIL import Image, ImageOps

    files = [path] if path.is_file() else sorted(
        file for file in path.glob("*") if file.suffix.lower() in IMAGES)
    if not files:
        raise SystemExit(f"no image at {path}")
    found = []
    for file in files:
        with Image.open(file) as image:
            found.append(ImageOps.exif_transpose(image).convert("RGB"))
    return found


def start(config: Any, utilization: float) -> Any:
    """The engine with the settings of config.py."""
    vllm = importlib.import_module("vllm")
    registry = importlib.import_module("vllm.model_executor.models.registry")
    model = importlib.import_module("deepseek_ocr2").DeepseekOCR2ForCausalLM
    registry.ModelRegistry.register_model("DeepseekOCR2ForCausalLM", model)
    return vllm.LLM(
        model=config.MODEL_PATH, hf_overrides={"architectures": ["DeepseekOCR2ForCausalLM"]},
        dtype="bfloat16", trust_remote_code=True, max_model_len=config.MAX_MODEL_LEN,
        enforce_eager=config.ENFORCE_EAGER, tensor_parallel_size=config.TENSOR_PARALLEL_SIZE,
        gpu_memory_utilization=utilization, swap_space=config.SWAP_SPACE,
        disable_mm_preprocessor_cache=config.DISABLE_MM_PREPROCESSOR_CACHE)


def measure(engine: Any, config: Any, images: list[Any], count: int,
            options: argparse.Namespace) -> dict[str, Any]:
    """The figures for COUNT pages at once, as a dictionary."""
    processor = importlib.import_module("process.image_process").DeepseekOCR2Processor()
    sampling = importlib.import_module("vllm").SamplingParams(
        temperature=0.0, max_tokens=options.max_tokens)
    prepared = {}
    requests = []
    for number in range(count):
        which = number % len(images)
        if which not in prepared:
            prepared[which] = processor.tokenize_with_images(
                images=[images[which]], bos=True, eos=True, cropping=config.CROP_MODE)
        requests.append({"prompt": config.PROMPT, "multi_modal_data": {"image": prepared[which]}})
    cold = batch(engine, requests, sampling)
    for _ in range(options.warmup):
        batch(engine, requests, sampling)
    rounds = [batch(engine, requests, sampling) for _ in range(options.rounds)]
    return {"concurrent": count, "cold": cold, "rounds": rounds,
            "out_per_second": statistics.mean(one["out_per_second"] for one in rounds),
            "all_per_second": statistics.mean(one["all_per_second"] for one in rounds),
            "seconds": statistics.mean(one["seconds"] for one in rounds)}


def batch(engine: Any, requests: list[Any], sampling: Any) -> dict[str, float]:
    """Read one batch; its tokens, seconds and speeds."""
    begin = time.perf_counter()
    answers = engine.generate(requests, sampling)
    seconds = time.perf_counter() - begin
    read = sum(len(answer.prompt_token_ids) for answer in answers)
    written = sum(len(answer.outputs[0].token_ids) for answer in answers)
    return {"seconds": seconds, "in": read, "out": written, "out_per_second": written / seconds,
            "all_per_second": (read + written) / seconds}


def line(row: dict[str, Any]) -> str:
    """ROW for the eye."""
    figures = (row["concurrent"], row["cold"]["out_per_second"], row["out_per_second"],
               row["all_per_second"], row["seconds"])
    return "  ".join(
        format(figure, ".2f" if isinstance(figure, float) else "d").rjust(len(COLUMNS[number]))
        for number, figure in enumerate(figures))


def table(rows: list[dict[str, Any]]) -> str:
    """ROWS with titles."""
    return "\n".join(["  ".join(COLUMNS), *map(line, rows)]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
