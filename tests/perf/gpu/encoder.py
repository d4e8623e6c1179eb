"""The vision encoder alone, at full size with random weights: what each step takes and changes.

    python tests/perf/gpu/encoder.py --out FILE [--profile]
"""

from __future__ import annotations

import argparse
import copy
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import load

sys.path.insert(0, str(load.ROOT / "desktop" / "engines" / "plugin" / "site"))


def model() -> Any:
    """The encoder as vLLM builds it, bfloat16 on the device."""
    import torch
    from vllm.config import VllmConfig, set_current_vllm_config

    with set_current_vllm_config(VllmConfig()):
        from vllm.model_executor.models.deepencoder import ImageEncoderViT
        from vllm.model_executor.models.deepencoder2 import build_qwen2_decoder_as_encoder

        torch.set_default_dtype(torch.bfloat16)
        with torch.device("cuda"):
            found = torch.nn.Module()
            found.sam_model = ImageEncoderViT(
                depth=12, embed_dim=768, img_size=1024, mlp_ratio=4,
                norm_layer=partial(torch.nn.LayerNorm, eps=1e-6), num_heads=12, patch_size=16,
                qkv_bias=True, use_rel_pos=True, global_attn_indexes=[2, 5, 8, 11],
                window_size=14, out_chans=256, last_conv_output=896)
            found.qwen2_model = build_qwen2_decoder_as_encoder()
            found.projector = torch.nn.Linear(896, 1280)
            found.view_seperator = torch.nn.Parameter(torch.randn(1280))
        torch.set_default_dtype(torch.float32)
    for parameter in found.parameters():
        torch.nn.init.normal_(parameter.data, std=0.02)
    return found


def median_ms(run: Callable[[], Any], times: int = 7) -> float:
    """Of TIMES runs, the device waited for each time."""
    import torch

    spans = []
    for _ in range(times + 1):
        torch.cuda.synchronize()
        started = time.perf_counter()
        run()
        torch.cuda.synchronize()
        spans.append(time.perf_counter() - started)
    return round(statistics.median(spans[1:]) * 1e3, 2)


def difference(one: Any, other: Any) -> dict[str, float]:
    """Relative distance of two results, and the largest difference."""
    one, other = one.float(), other.float()
    return {"relative": float((one - other).norm() / other.norm()),
            "largest": float((one - other).abs().max())}


def kernels(run: Callable[[], Any], most: int = 30) -> list[list[Any]]:
    """The kernels of RUN: name, milliseconds, count."""
    from torch.profiler import ProfilerActivity, profile

    run()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        run()
        import torch

        torch.cuda.synchronize()
    events = sorted(found.key_averages(), key=lambda e: -e.self_device_time_total)
    return [[e.key[:120], round(e.self_device_time_total / 1e3, 3), e.count]
            for e in events[:most] if e.self_device_time_total]


def main(args: argparse.Namespace) -> None:
    """All steps."""
    import torch
    from PIL import Image
    from verso_vllm_plugin import attention, graphs, mask, pages, resample
    from vllm.model_executor.models import deepencoder

    report = load.Report(args.out)
    encoder = model()
    files = load.page_files(args.pages)[:8]
    images = [Image.open(file).convert("RGB") for file in files]
    raw = [torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
           .view(image.height, image.width, 3).cuda() for image in images]
    values = pages._values(torch.bfloat16, torch.device("cuda"))
    with torch.inference_mode():
        tiles, whole = pages._blank(6, 768, values), pages._blank(1, 1024, values)
        report.put("pillow", resample.order().__name__)
        report.put("prepare_ms", median_ms(lambda: (
            pages.cut(raw[0], (2, 3), values, tiles), pages.view(raw[0], values, whole))))
        report.put("prepared_equal", equal(images[0], tiles, whole))
        inner = encoder.qwen2_model.model.model
        slow = type(inner)._create_custom_4d_mask
        types = [torch.cat([torch.zeros(b, n, dtype=torch.long),
                            torch.ones(b, n, dtype=torch.long)], 1)
                 for b, n in ((1, 256), (6, 144))]
        report.put("mask_equal", all(torch.equal(
            slow(inner, t.shape[1], torch.bfloat16, "cuda", t.shape[0], t),
            mask.attention_mask(t, torch.bfloat16, "cuda")) for t in types))
        one = lambda: (pages.features(encoder, tiles), pages.features(encoder, whole))  # noqa: E731
        report.put("page_stock_mask_ms", median_ms(one, 3))
        before = [t.clone() for t in one()]
        type(inner)._create_custom_4d_mask = mask._replacement
        report.put("page_fast_mask_ms", median_ms(one))
        report.put("fast_mask_difference", [difference(a, b) for a, b in
                                            zip(one(), before, strict=True)])
        exact = [pages.features(copy.deepcopy(encoder).float(), views.float())
                 for views in (tiles, whole)]
        report.put("stock_to_float32", [difference(a, b) for a, b in
                                        zip(one(), exact, strict=True)])
        report.put("parts_4_ms", parts(encoder))
        attention.install(deepencoder.RelPosAttention, deepencoder.get_rel_pos)
        report.put("page_attention_ms", median_ms(one))
        report.put("attention_to_float32", [difference(a, b) for a, b in
                                            zip(one(), exact, strict=True)])
        report.put("attention_to_stock", [difference(a, b) for a, b in
                                          zip(one(), before, strict=True)])
        del exact
        for count in (1, 2, 4, 8):
            big = torch.randn(count, 3, 1024, 1024, device="cuda", dtype=torch.bfloat16)
            small = torch.randn(6 * count, 3, 768, 768, device="cuda", dtype=torch.bfloat16)
            report.put(f"launched_{count}_ms_a_page", round(median_ms(lambda b=big, s=small: (
                pages.features(encoder, s), pages.features(encoder, b))) / count, 2))
        report.put("parts_4_attention_ms", parts(encoder))
        torch.cuda.reset_peak_memory_stats()
        made = graphs.Graphs(encoder, 8)
        for count in (1, 2, 4, 8):
            report.put(f"graphs_{count}_ms_a_page", round(median_ms(
                lambda c=count: pages.embeddings(encoder, raw[:c], made.encode, made.chunks))
                / count, 2))
        single = pages.embeddings(encoder, raw[:1], pages.features)[0]
        report.put("graph_difference", difference(pages.embeddings(
            encoder, raw[:1], made.encode, made.chunks)[0], single))
        report.put("batch_difference", difference(pages.embeddings(
            encoder, raw[:8], made.encode, made.chunks)[0], single))
        report.put("memory_mib", torch.cuda.max_memory_allocated() >> 20)
        if args.profile:
            big = torch.randn(4, 3, 1024, 1024, device="cuda", dtype=torch.bfloat16)
            small = torch.randn(24, 3, 768, 768, device="cuda", dtype=torch.bfloat16)
            report.put("kernels_4_pages", kernels(lambda: (
                pages.features(encoder, small), pages.features(encoder, big))))


def parts(encoder: Any) -> dict[str, float]:
    """SAM and the Qwen2 encoder on the views of four pages."""
    import torch

    found = {}
    for name, count, side in (("tiles", 24, 768), ("views", 4, 1024)):
        views = torch.randn(count, 3, side, side, device="cuda", dtype=torch.bfloat16)
        seen = encoder.sam_model(views)
        found[f"sam_{name}"] = median_ms(lambda v=views: encoder.sam_model(v))
        found[f"qwen2_{name}"] = median_ms(lambda s=seen: encoder.qwen2_model(s))
    return found


def equal(image: Any, tiles: Any, whole: Any) -> list[bool]:
    """Whether what the device made is what vLLM's processor makes."""
    import torch
    from PIL import ImageOps
    from vllm.transformers_utils.processors.deepseek_ocr import ImageTransform, dynamic_preprocess

    transform = ImageTransform()
    crops, _ = dynamic_preprocess(image, image_size=768)
    expected = torch.stack([transform(crop) for crop in crops]).to(torch.bfloat16)
    view = transform(ImageOps.pad(image, (1024, 1024), color=(127,) * 3)).to(torch.bfloat16)
    return [torch.equal(tiles.cpu(), expected), torch.equal(whole[0].cpu(), view)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pages", type=Path, default=Path("/tmp/verso-gpu/pages"))
    parser.add_argument("--profile", action="store_true")
    main(parser.parse_args())
