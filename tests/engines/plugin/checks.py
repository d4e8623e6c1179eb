"""Run under the interpreter with real vLLM: the plugin's parts against what they stand in for.

    python checks.py  →  one JSON document: name → True, or what differs

On a processor; the kernel of ``attention`` runs in Triton's interpreter where Triton is there.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "desktop" / "engines" / "plugin" / "site")]
os.environ["TRITON_INTERPRET"] = "1"

import torch  # noqa: E402 - after the variable that it reads
import verso_vllm_plugin  # noqa: E402
from PIL import Image, ImageOps  # noqa: E402
from verso_vllm_plugin import NotHere, head_size, mask, pages, resample  # noqa: E402

SIZES = ((1190, 1684), (1684, 1190), (1000, 1000), (700, 500), (800, 300), (768, 1000),
         (1001, 2003), (2003, 1001), (769, 33))


def noise(width: int, height: int) -> Image.Image:
    """Pixels of which none is like its neighbour."""
    channels = [Image.effect_noise((width, height), spread) for spread in (40, 80, 120)]
    return Image.merge("RGB", channels)


def tensor(image: Image.Image) -> torch.Tensor:
    """IMAGE as the engine core gets it."""
    return torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).view(
        image.height, image.width, 3)


def resampling() -> bool:
    """Every size of page, to tiles and to the view, is Pillow's to the bit."""
    for width, height in SIZES:
        width, height = width // 8, height // 8  # the rule is the same, the time is not
        image = noise(width, height)
        for size in ((192, 288), (96, 192), (90, 128), (width, 12), (128, 3)):
            expected = tensor(image.resize(size))
            if not torch.equal(resample.resized(tensor(image), *size), expected):
                raise AssertionError(f"{width} × {height} → {size}")
    return True


def containing() -> bool:
    """The size of a page in its view is Pillow's."""
    for width, height in (*SIZES, (3, 1000), (1000, 3), (1024, 1024), (500, 499)):
        expected = ImageOps.contain(Image.new("RGB", (width, height)), (1024, 1024)).size
        if resample.contained(width, height, 1024) != expected:
            raise AssertionError(f"{width} × {height}")
    return True


def views() -> bool:
    """Tiles and view are those of vLLM's own processor to the bit: a small page as it is, others
    and other number formats an eighth as large (on a GPU, ``tests/perf/gpu/encoder.py`` compares
    an A4 page)."""
    same_views((700, 500), torch.bfloat16)
    tile, whole = pages.TILE, pages.VIEW
    pages.TILE, pages.VIEW = tile // 8, whole // 8
    try:
        for width, height in SIZES:
            for dtype in (torch.bfloat16, torch.float16, torch.float32):
                same_views((width // 8, height // 8), dtype)
    finally:
        pages.TILE, pages.VIEW = tile, whole
    return True


def same_views(size: tuple[int, int], dtype: torch.dtype) -> None:
    """Raises AssertionError where ours are not the processor's."""
    from vllm.transformers_utils.processors.deepseek_ocr import (
        ImageTransform,
        dynamic_preprocess,
    )

    transform, image = ImageTransform(), noise(*size)
    values = pages._values(dtype, torch.device("cpu"))
    whole = torch.empty(1, 3, pages.VIEW, pages.VIEW, dtype=dtype)
    pages.view(tensor(image), values, whole)
    padded = ImageOps.pad(image, (pages.VIEW, pages.VIEW), color=(127, 127, 127))
    if not torch.equal(whole[0], transform(padded).to(dtype)):
        raise AssertionError(f"view of {size}")
    across, down = pages.grid(*size)
    if across * down == 0:
        return
    crops, ratio = dynamic_preprocess(image, image_size=pages.TILE)
    if tuple(ratio) != (across, down):
        raise AssertionError(f"grid of {size}: {ratio}")
    tiles = torch.empty(across * down, 3, pages.TILE, pages.TILE, dtype=dtype)
    pages.cut(tensor(image), (across, down), values, tiles)
    if not torch.equal(tiles, torch.stack([transform(crop) for crop in crops]).to(dtype)):
        raise AssertionError(f"tiles of {size}")


def own_mask() -> bool:
    """The mask is that of vLLM's own function, whatever its version makes it with."""
    from vllm.model_executor.models import deepencoder2

    decoder = deepencoder2.build_qwen2_decoder_as_encoder(
        decoder_layer=1, hidden_dimension=32, num_attention_heads=2, num_key_value_heads=2,
        intermediate_size=32)
    inner = decoder.model.model
    for images, queries in ((1, 256), (6, 144), (2, 3)):
        token_types = torch.cat([torch.zeros(images, queries, dtype=torch.long),
                                 torch.ones(images, queries, dtype=torch.long)], 1)
        given = {"sequence_length": 2 * queries, "dtype": torch.bfloat16, "device": "cpu",
                 "batch_size": images, "token_type_ids": token_types}
        method = inner._create_custom_4d_mask
        names = method.__code__.co_varnames[1:method.__code__.co_argcount]
        expected = method(**{name: given[name] for name in names})
        ours = mask.attention_mask(token_types, torch.bfloat16, "cpu")
        if not torch.equal(ours, expected.expand_as(ours)):
            raise AssertionError(f"{images} × {queries}")
    return True


def looped(token_types: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The rule of the mask, said position by position."""
    images, length = token_types.shape
    found = torch.full((images, 1, length, length), torch.finfo(dtype).min, dtype=dtype)
    for image in range(images):
        for at in range(length):
            for other in range(length):
                kind, seen = int(token_types[image, at]), int(token_types[image, other])
                if (kind in (0, 1) and seen == 0) or (kind == seen == 1 and other <= at):
                    found[image, 0, at, other] = 0.0
    return found


def mixed_mask() -> bool:
    """Images whose queries stand anywhere, and positions that belong to neither kind."""
    generator = torch.Generator().manual_seed(3)
    for _ in range(5):
        token_types = torch.randint(0, 3, (3, 17), generator=generator)
        for dtype in (torch.float32, torch.bfloat16):
            if not torch.equal(mask.attention_mask(token_types, dtype, "cpu"),
                               looped(token_types, dtype)):
                raise AssertionError(str(token_types))
    return True


LOOP = '''
import torch  # noqa: E402 - after the variable that it reads
class Inner:
    def _create_custom_4d_mask(self, sequence_length, dtype, device, batch_size, token_type_ids):
        text_positions = token_type_ids[0]
        for i, position in enumerate(text_positions):
            pass
        return "slow"
class CustomQwen2Decoder:
    def _create_custom_model(self, base, config):
        return type("Own", (Inner,), {})()
'''


def replacing(folder: Path) -> bool:
    """A vLLM that has the loop gets the new mask, kept for the next call; one without is left
    as it is. Before, the loop answers."""
    import vllm.model_executor.models as models

    file = folder / "looping_deepencoder2.py"
    file.write_text(LOOP, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("looping_deepencoder2", file)
    assert spec is not None
    assert spec.loader is not None
    stand_in = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stand_in)
    real = sys.modules["vllm.model_executor.models.deepencoder2"]
    token_types = torch.tensor([[0, 0, 1, 1]])
    call = (4, torch.float32, "cpu", 1, token_types)
    try:
        sys.modules["vllm.model_executor.models.deepencoder2"] = stand_in
        models.deepencoder2 = stand_in
        before = stand_in.CustomQwen2Decoder()._create_custom_model(object, None)
        if before._create_custom_4d_mask(*call) != "slow":
            raise AssertionError("the stand-in does not loop")
        mask.apply()
        model = stand_in.CustomQwen2Decoder()._create_custom_model(object, None)
        first, second = (model._create_custom_4d_mask(*call) for _ in range(2))
        if not torch.equal(first, looped(token_types, torch.float32)) or first is not second:
            raise AssertionError("not replaced, or not kept")
        other = torch.tensor([[0, 1, 0, 1]])
        if not torch.equal(model._create_custom_4d_mask(4, torch.float32, "cpu", 1, other),
                           looped(other, torch.float32)):
            raise AssertionError("another pattern gets a kept mask")
    finally:
        sys.modules["vllm.model_executor.models.deepencoder2"] = models.deepencoder2 = real
    if not mask.loops(real):
        try:
            mask.apply()
        except NotHere:
            return True
        raise AssertionError("replaced where there is no loop")
    return True


def attention() -> Any:
    """The kernel against vLLM's own attention with relative positions."""
    if importlib.util.find_spec("triton") is None:
        return "no Triton"
    from verso_vllm_plugin import attention as ours
    from vllm.model_executor.models.deepencoder import RelPosAttention, get_rel_pos

    torch.manual_seed(1)
    for rows, columns, table in ((14, 14, 14), (6, 20, None), (12, 12, 16)):
        size = (table, table) if table else (rows, columns)
        module = RelPosAttention(128, num_heads=2, use_rel_pos=True, input_size=size)
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter.data, std=0.3)
        module.proj = torch.nn.Identity()
        x = torch.randn(2, rows, columns, 128)
        with torch.inference_mode():
            expected = module(x)
            tables = ours._tables(module, rows, columns, get_rel_pos)
            qkv = module.qkv(x).view(2, rows * columns, 384)
            half = [t.to(torch.float16) for t in (qkv, *tables)]
            got = ours.attended(half[0], half[1], half[2], rows, columns, 2)
        error = (got.float().view_as(expected) - expected).norm() / expected.norm()
        if not error < 3e-3:  # float16 against float32
            raise AssertionError(f"{rows} × {columns}: {float(error)}")
    return True


def together() -> bool:
    """Pages of different sizes encoded together, in chunks, are each as alone."""
    torch.manual_seed(2)
    tile, whole = pages.TILE, pages.VIEW
    pages.TILE, pages.VIEW = tile // 8, whole // 8
    try:
        return as_alone()
    finally:
        pages.TILE, pages.VIEW = tile, whole


def as_alone() -> bool:
    """See :func:`together`."""
    model = types.SimpleNamespace(
        sam_model=torch.nn.Conv2d(3, 4, 24, 24), view_seperator=torch.randn(5),
        qwen2_model=lambda x: x.flatten(2).transpose(1, 2), projector=torch.nn.Linear(4, 5))
    drawn = [tensor(noise(width // 8, height // 8)) for width, height in SIZES[:6]]
    with torch.inference_mode():
        for most in (1, 2, 4):
            found = pages.embeddings(model, drawn, chunks=pages.Chunks(most))
            for page, embedding in zip(drawn, found, strict=True):
                alone = pages.embeddings(model, [page])[0]
                across, down = pages.grid(page.shape[1], page.shape[0])
                if embedding.shape != (across * down * 16 + 25 + 1, 5) or not torch.allclose(
                        embedding, alone, atol=1e-5):
                    raise AssertionError(f"{tuple(page.shape)} in chunks of {most}")
    return True


def heads() -> bool:
    """A head size of 0 is computed, any other is left."""
    from vllm.transformers_utils import model_arch_config_convertor as convertor

    base = convertor.ModelArchConfigConvertorBase
    stock = base.get_head_size
    try:
        for said, expected in ((0, 128), (64, 64), (None, 128)):
            base.get_head_size = lambda self, said=said: said
            head_size.apply()
            one = object.__new__(base)
            one.get_hidden_size = lambda: 1280
            one.get_total_num_attention_heads = lambda: 10
            if one.get_head_size() != expected:
                raise AssertionError(f"{said} → {one.get_head_size()}")
    finally:
        base.get_head_size = stock
    return True


def registering() -> bool:
    """Nothing without the variables; each repair once; a failure leaves vLLM as it was."""
    verso_vllm_plugin.register()
    if verso_vllm_plugin.done:
        raise AssertionError(str(verso_vllm_plugin.done))
    os.environ.update(VERSO_RAW_PAGES="1", VERSO_ENCODER_GRAPHS="x", VERSO_HEAD_SIZE="1")
    verso_vllm_plugin.register()
    verso_vllm_plugin.register()
    done = verso_vllm_plugin.done
    if not verso_vllm_plugin.in_force("head size"):
        raise AssertionError("head size")
    if "CUDA" not in done["raw pages"] or "raw pages" not in done["encoder graphs"]:
        raise AssertionError(str(done))
    return set(done) == {"head size", "raw pages", "encoder graphs"}


def main() -> None:
    """Run all, each on its own."""
    import tempfile

    torch.set_num_threads(1)
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        checks: list[tuple[str, Callable[[], Any]]] = [
            ("resampling", resampling), ("containing", containing), ("views", views),
            ("own mask", own_mask), ("mixed mask", mixed_mask),
            ("replacing", lambda: replacing(Path(folder))), ("attention", attention),
            ("together", together), ("heads", heads), ("registering", registering)]
        for name, check in checks:
            started = time.monotonic()
            try:
                results[name] = check()
            except Exception as error:  # noqa: BLE001 - reported as the check's result
                results[name] = f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-4)}"
            print(name, round(time.monotonic() - started, 1), file=sys.stderr, flush=True)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
