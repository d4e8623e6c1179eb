"""Pages that reach the model as they are, and are cut into its views on the device.

vLLM's processor makes float views of a page in the process that takes requests (27 MB for A4)
and sends them to the engine core, whose one thread copies them again for the device. Here a
request carries the page's own bytes under the key :data:`KEY`; the views are made by the same
arithmetic on the device (see ``resample``), and all pages of a step are encoded together,
without a question to the device in between.

vLLM's own input is still understood: its start-up measures the memory of the encoder with it.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, List, Sequence, Tuple

import torch

from verso_vllm_plugin import NotHere, log
from verso_vllm_plugin.resample import contained, order, resized

KEY = "verso_page"
"""The keyword argument: a page's pixels (height, width, 3; uint8), or several of them."""
VIEW = 1024
"""Side of the view of the whole page."""
TILE = 768
MEAN = STD = 0.5
"""What the processor of the model normalises with; others are not for this way."""

Encode = Callable[[Any, torch.Tensor], torch.Tensor]
"""Model and views of one size (views, 3, side, side) → features (views, tokens, width)."""


class Chunks:
    """How views are encoded: in what numbers at once."""

    def __init__(self, most: int = 4) -> None:
        """MOST: whole pages at once, each of one view and six tiles."""
        self.views = _descending((most, 4, 2, 1), most)
        self.tiles = _descending((6 * most, 24, 12, 6, 4, 3, 2, 1), 6 * most)

    def split(self, count: int, side: int) -> List[int]:
        """COUNT views of SIDE in as few parts as there are numbers for."""
        parts = []
        for size in self.views if side == VIEW else self.tiles:
            parts += [size] * (count // size)
            count %= size
        return parts


def _descending(sizes: Sequence[int], most: int) -> List[int]:
    return sorted({size for size in sizes if size <= most}, reverse=True)


def features(model: Any, views: torch.Tensor) -> torch.Tensor:
    """The vision encoder: views (n, 3, side, side) → (n, tokens, width of the language model)."""
    return model.projector(model.qwen2_model(model.sam_model(views)))


def embeddings(model: Any, pages: Sequence[torch.Tensor], encode: Encode = features,
               chunks: Chunks | None = None) -> List[torch.Tensor]:
    """What stands for each of PAGES in its prompt: (tokens, width), tiles first, then the view
    of the whole and the separator."""
    weight = next(model.sam_model.parameters())
    chunks = chunks or Chunks()
    values = _values(weight.dtype, weight.device)
    grids = [grid(page.shape[1], page.shape[0]) for page in pages]
    whole = _blank(len(pages), VIEW, weight)
    for number, page in enumerate(pages):
        view(page, values, whole[number:number + 1])
    whole = _encoded(model, whole, encode, chunks)
    counts = [across * down for across, down in grids]
    tiles, at = _blank(sum(counts), TILE, weight), 0
    for page, size, count in zip(pages, grids, counts, strict=True):
        if count:
            cut(page, size, values, tiles[at:at + count])
        at += count
    tiles = _encoded(model, tiles, encode, chunks)
    result, at = [], 0
    for number, count in enumerate(counts):
        parts = [whole[number], model.view_seperator[None, :]]
        if count:
            parts.insert(0, tiles[at:at + count].flatten(0, 1))
        at += count
        result.append(torch.cat(parts))
    return result


def _blank(count: int, side: int, like: torch.Tensor) -> torch.Tensor:
    return torch.empty((count, 3, side, side), dtype=like.dtype, device=like.device)


def _encoded(model: Any, views: torch.Tensor, encode: Encode, chunks: Chunks) -> torch.Tensor:
    parts, at = [], 0
    for size in chunks.split(*views.shape[::3]):
        parts.append(encode(model, views[at:at + size]))
        at += size
    return torch.cat(parts) if len(parts) > 1 else parts[0] if parts else views


def view(page: torch.Tensor, values: torch.Tensor, out: torch.Tensor) -> None:
    """The whole PAGE in the middle of a grey square, into OUT (1, 3, VIEW, VIEW)."""
    height, width = page.shape[:2]
    across, down = contained(width, height, VIEW)
    left = round((VIEW - across) * 0.5)
    top = round((VIEW - down) * 0.5)
    if (across, down) != (VIEW, VIEW):
        out.fill_(_value(int(MEAN * 255)))
    pixels = resized(page, across, down)
    out[0, :, top:top + down, left:left + across] = values[pixels.long()].permute(2, 0, 1)


def cut(page: torch.Tensor, size: Tuple[int, int], values: torch.Tensor,
        out: torch.Tensor) -> None:
    """PAGE stretched to SIZE (across, down) tiles, into OUT (tiles, 3, TILE, TILE), row by row."""
    across, down = size
    pixels = resized(page, across * TILE, down * TILE).view(down, TILE, across, TILE, 3)
    out.view(down, across, 3, TILE, TILE).copy_(values[pixels.long()].permute(0, 2, 4, 1, 3))


def grid(width: int, height: int) -> Tuple[int, int]:
    """Tiles across and down, as the installed processor chooses them; 0, 0: no tiles."""
    if width <= TILE and height <= TILE:
        return 0, 0
    from vllm.transformers_utils.processors.deepseek_ocr import count_tiles

    across, down = count_tiles(width, height, image_size=TILE)
    return (across, down) if across * down > 1 else (0, 0)


@functools.lru_cache(maxsize=8)
def _values(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Each of the 256 values of a pixel as the processor normalises it."""
    pixels = torch.arange(256, dtype=torch.uint8).to(torch.float32).div(255)
    return pixels.sub(MEAN).div(STD).to(dtype).to(device)


def _value(pixel: int) -> float:
    return float((torch.tensor(pixel, dtype=torch.float32).div(255) - MEAN) / STD)


def apply(force: bool = False) -> str:
    """Let the model take pages under :data:`KEY` beside its own input. FORCE: without a device
    too, where it is slower than the processor's own way."""
    try:
        from vllm.model_executor.models import deepseek_ocr2 as module
        from vllm.transformers_utils.processors import deepseek_ocr as processor
    except ImportError as error:
        raise NotHere("this vLLM has no DeepSeek-OCR-2") from error
    from vllm.platforms import current_platform

    if not force and not current_platform.is_cuda_alike():
        raise NotHere("there is no CUDA device to cut pages on")
    model = getattr(module, "DeepseekOCR2ForCausalLM", None)
    name = next((name for name in ("embed_multimodal", "get_multimodal_embeddings")
                 if name in vars(model or object)), None)
    if (name is None or getattr(module, "IMAGE_SIZE", None) != TILE
            or getattr(processor, "BASE_SIZE", None) != VIEW
            or not getattr(processor, "CROP_MODE", False)
            or not hasattr(processor, "count_tiles")):
        raise NotHere("this vLLM cuts pages in another way")
    order()
    install(model, name)
    return "cut into views on the device"


def install(model: Any, name: str) -> None:
    """Put ours before method NAME of the class MODEL."""
    stock = getattr(model, name)

    def embed(self: Any, **kwargs: Any) -> Any:
        pages = kwargs.pop(KEY, None)
        if pages is None:
            return stock(self, **kwargs)
        # Of one size they come as one tensor; a batch of one page too.
        encoder = self.__dict__.get("_verso_encoder")
        if encoder is None:
            encoder = self.__dict__["_verso_encoder"] = make_encoder(self)
        return embeddings(self, list(pages), encoder.encode, encoder.chunks)

    setattr(model, name, embed)


class Launched:
    """The encoder's kernels launched one by one."""

    def __init__(self, most: int = 1) -> None:
        """MOST: pages at once."""
        self.chunks = Chunks(most)

    def encode(self, model: Any, views: torch.Tensor) -> torch.Tensor:
        """See :data:`Encode`."""
        return features(model, views)


_SHARE = 0.6
"""Of the device memory that is free, most that encoding may take."""


def room(model: Any, most: int) -> int:
    """For how many pages at once, up to MOST, the free memory of the device suffices; 0: for
    none. vLLM has measured its encoder with one page at a time."""
    weight = next(model.sam_model.parameters())
    if weight.device.type != "cuda":
        return 1
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    for side, count in ((TILE, 6), (VIEW, 1)):
        features(model, torch.zeros((count, 3, side, side), dtype=weight.dtype,
                                    device=weight.device))
    torch.cuda.synchronize()
    each = max(1, torch.cuda.max_memory_allocated() - before)
    free = torch.cuda.mem_get_info()[0]
    found = min(most, int(free * _SHARE / each))
    log.info("Verso: vision encoder: a page takes %d MiB, %d MiB are free: %d at once",
             each >> 20, free >> 20, max(1, found))
    return found


def launched(model: Any) -> Launched:
    """What encodes where there are no graphs."""
    return Launched(max(1, room(model, 4)))


make_encoder: Callable[[Any], Any] = launched
"""Makes what encodes the views of a model; ``graphs`` puts its own here."""
