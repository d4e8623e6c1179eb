"""The attention of the page's first encoder (SAM) with its relative positions, in one kernel.

Each score gets two terms: one from the difference of rows of query and key, one from that of
columns. vLLM as published writes their sum out for every query and key (1.2 GB for the views of
an A4 page, in each of four layers), copies it to an alignment, and reads it again. Here each row
of keys is one step: the columns' terms are the same in every step, the row's is one number a
query. Queries, keys and values are read where the projection wrote them, and the result is
written where the next one reads it.
"""

from __future__ import annotations

import math
from typing import Any, Tuple

import torch
import triton
import triton.language as tl

from verso_vllm_plugin import NotHere, log


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(qkv, terms_h, terms_w, out, scale, length,  # type: ignore[no-untyped-def]
            rows: tl.constexpr, columns: tl.constexpr, heads: tl.constexpr, size: tl.constexpr,
            queries: tl.constexpr, keys: tl.constexpr):
    """A block of QUERIES of one image and head. Scores are in powers of two.

    qkv (images, length, 3, heads, size); terms_h (images, heads, 2·rows−1, length) and terms_w
    likewise: what a query adds for a difference of rows or columns.
    """
    image_head = tl.program_id(1)
    image, head = image_head // heads, image_head % heads
    stride = 3 * heads * size
    base = qkv + image.to(tl.int64) * length * stride + head * size
    at = tl.program_id(0) * queries + tl.arange(0, queries)
    inside = at < length
    depth = tl.arange(0, size)
    query = tl.load(base + at[:, None] * stride + depth[None, :], mask=inside[:, None], other=0.0)
    row, column = at // columns, at % columns
    key = tl.arange(0, keys)
    there = key < columns
    both = inside[:, None] & there[None, :]
    terms_w += image_head.to(tl.int64) * (2 * columns - 1) * length
    terms_h += image_head.to(tl.int64) * (2 * rows - 1) * length
    across = tl.load(terms_w + (column[:, None] - key[None, :] + columns - 1) * length
                     + at[:, None], mask=both, other=0.0).to(tl.float32) * 1.4426950408889634
    across = tl.where(there[None, :], across, float("-inf"))
    most = tl.full([queries], float("-inf"), tl.float32)
    total = tl.zeros([queries], tl.float32)
    result = tl.zeros([queries, size], tl.float32)
    for line in range(rows):
        place = line * columns + key
        k = tl.load(base + heads * size + place[None, :] * stride + depth[:, None],
                    mask=there[None, :], other=0.0)
        down = tl.load(terms_h + (row - line + rows - 1) * length + at, mask=inside,
                       other=0.0).to(tl.float32) * 1.4426950408889634
        scores = tl.dot(query, k) * scale + across + down[:, None]
        new = tl.maximum(most, tl.max(scores, 1))
        weights = tl.exp2(scores - new[:, None])
        shrink = tl.exp2(most - new)
        total = total * shrink + tl.sum(weights, 1)
        v = tl.load(base + 2 * heads * size + place[:, None] * stride + depth[None, :],
                    mask=there[:, None], other=0.0)
        result = result * shrink[:, None] + tl.dot(weights.to(v.dtype), v)
        most = new
    result = result / total[:, None]
    tl.store(out + (image.to(tl.int64) * length + at[:, None]) * heads * size + head * size
             + depth[None, :], result.to(out.dtype.element_ty), mask=inside[:, None])


def attended(qkv: torch.Tensor, table_h: torch.Tensor, table_w: torch.Tensor, rows: int,
             columns: int, heads: int) -> torch.Tensor:
    """QKV (images, rows·columns, 3·heads·size) → (images, rows·columns, heads·size).

    TABLE_H (2·rows−1, size), TABLE_W (2·columns−1, size): the positions' vectors, from the most
    negative difference (query − key) to the most positive.
    """
    images, length, width = qkv.shape
    size = width // (3 * heads)
    query = qkv.view(images, length, 3, heads, size)[:, :, 0].permute(0, 2, 3, 1)
    terms_h, terms_w = torch.matmul(table_h, query), torch.matmul(table_w, query)
    out = torch.empty((images, length, heads * size), dtype=qkv.dtype, device=qkv.device)
    whole = length > 1024
    queries = 128 if whole else 64
    _kernel[(triton.cdiv(length, queries), images * heads)](
        qkv, terms_h, terms_w, out, size ** -0.5 * math.log2(math.e), length,
        rows=rows, columns=columns, heads=heads, size=size, queries=queries,
        keys=max(16, triton.next_power_of_2(columns)), num_warps=8 if whole else 4,
        num_stages=3 if whole else 2)
    return out


def _tables(module: Any, rows: int, columns: int, get: Any) -> Tuple[torch.Tensor, torch.Tensor]:
    """The tables of MODULE for a grid, as GET (vLLM's own) fits them to it."""
    kept = module.__dict__.setdefault("_verso_tables", {})
    if (rows, columns) not in kept:
        found = []
        for count, vectors in ((rows, module.rel_pos_h), (columns, module.rel_pos_w)):
            # GET's result for a query and a key depends on their difference alone.
            each = get(count, count, vectors)
            found.append(torch.cat([each[0].flip(0), each[1:, 0]]).contiguous())
        kept[rows, columns] = tuple(found)
    return kept[rows, columns]  # type: ignore[no-any-return]


def apply() -> str:
    """Take the kernel in every attention with relative positions that it can do."""
    try:
        from vllm.model_executor.models import deepencoder
    except ImportError as error:
        raise NotHere("this vLLM has no DeepSeek-OCR") from error
    from vllm.platforms import current_platform

    if not current_platform.is_cuda():
        raise NotHere("there is no CUDA")
    if not current_platform.has_device_capability(80):
        raise NotHere("the kernel is for GPUs since Ampere")
    owner: Any = getattr(deepencoder, "RelPosAttention", None)
    get = getattr(deepencoder, "get_rel_pos", None)
    if owner is None or get is None or "forward" not in vars(owner):
        raise NotHere("this vLLM has its attention with relative positions elsewhere")
    install(owner, get)
    return "in one kernel, without writing the positions' terms out"


def install(owner: Any, get: Any) -> None:
    """Put the kernel before the method ``forward`` of the class OWNER."""
    stock = owner.forward

    failed = False

    def forward(self: Any, x: torch.Tensor) -> Any:
        nonlocal failed
        size = getattr(self, "qkv", None) is not None and x.shape[-1] // self.num_heads
        if failed or not (getattr(self, "use_rel_pos", False) and x.is_cuda
                          and size in (32, 64, 128) and not torch.is_grad_enabled()
                          and x.dtype in (torch.bfloat16, torch.float16)):
            return stock(self, x)
        images, rows, columns, width = x.shape
        table_h, table_w = _tables(self, rows, columns, get)
        qkv = self.qkv(x).view(images, rows * columns, 3 * width)
        try:
            found = attended(qkv, table_h, table_w, rows, columns, self.num_heads)
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception:  # noqa: BLE001 - vLLM goes on without it
            # Triton could not compile it here; that shows while vLLM measures its memory.
            failed = True
            log.warning("Verso: the attention's kernel does not run here; vLLM's own is used",
                        exc_info=True)
            return stock(self, x)
        return self.proj(found.view(images, rows, columns, width))

    owner.forward = forward
