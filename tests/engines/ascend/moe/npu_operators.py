"""The operators of torch_npu that vllm-ascend's mixture of experts calls, on a processor.

What each does is published in op-plugin's documentation (github.com/Ascend/op-plugin,
docs/zh/custom_APIs/torch_npu/torch_npu-NAME.md; for npu_swiglu its tests): formula, shapes and
types. ``checks.py`` holds each of them against that, written out in another way.

Put into ``sys.modules`` as ``torch_npu``. Only what those functions use is here; anything else is
an error.
"""

from __future__ import annotations

from typing import Optional

import torch


def npu_moe_gating_top_k_softmax(
    x: torch.Tensor, finished: Optional[torch.Tensor] = None, k: int = 1,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Softmax over the last axis, then its K largest: (weights of X's type, experts int32, rows
    int32), all (rows, k). Row r of the third is r, r + rows, r + 2·rows …"""
    assert finished is None
    assert x.dim() == 2
    assert 0 < k <= x.shape[-1]
    weights, experts = torch.softmax(x, dim=-1).topk(k, dim=-1)
    rows = torch.arange(x.shape[0] * k, dtype=torch.int32).view(k, -1).t()
    return weights, experts.to(torch.int32), rows


def npu_moe_init_routing(
    x: torch.Tensor, row_idx: torch.Tensor, expert_idx: torch.Tensor, active_num: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rows of X, once for each of their experts, sorted by expert.

    X (rows, hidden), ROW_IDX and EXPERT_IDX int32 (rows, k). Returns the rows
    (min(rows, ACTIVE_NUM)·k, hidden), for each entry of ROW_IDX its place among them, and the
    sorted experts, both int32 (rows·k)."""
    assert x.dim() == 2
    assert row_idx.shape == expert_idx.shape
    assert row_idx.dtype == expert_idx.dtype == torch.int32
    rows, k = expert_idx.shape
    experts, order = torch.sort(expert_idx.reshape(-1), stable=True)
    sources = row_idx.reshape(-1)[order].to(torch.int64)
    places = torch.empty(rows * k, dtype=torch.int32)
    places[sources] = torch.arange(rows * k, dtype=torch.int32)
    return x[sources[:min(active_num, rows) * k] % rows], places, experts


def npu_moe_compute_expert_tokens(
    sorted_expert_for_source_row: torch.Tensor, num_expert: int,
) -> torch.Tensor:
    """For each expert the end of its rows among the sorted ones; int32 (NUM_EXPERT)."""
    assert sorted_expert_for_source_row.dtype == torch.int32
    ids = torch.arange(num_expert, dtype=torch.int32)
    return torch.searchsorted(sorted_expert_for_source_row, ids, right=True).to(torch.int32)


def npu_grouped_matmul(
    x: list[torch.Tensor],
    weight: list[torch.Tensor],
    *,
    group_list: torch.Tensor,
    split_item: int = 0,
    group_type: int = -1,
    group_list_type: int = 0,
) -> list[torch.Tensor]:
    """Rows of X[0] (rows, in) by groups, each times its matrix of WEIGHT[0] (groups, in, out).

    GROUP_LIST int64 holds each group's end. Only this way: one tensor in, one out
    (SPLIT_ITEM 2), groups of rows (GROUP_TYPE 0), ends (GROUP_LIST_TYPE 0)."""
    assert (split_item, group_type, group_list_type) == (2, 0, 0)
    assert len(x) == len(weight) == 1
    assert group_list.dtype == torch.int64
    assert group_list.shape == weight[0].shape[:1]
    assert bool((group_list.diff() >= 0).all())
    assert int(group_list[-1]) == x[0].shape[0]
    out = x[0].new_empty(x[0].shape[0], weight[0].shape[2])
    begin = 0
    for group, end in enumerate(group_list.tolist()):
        out[begin:end] = x[0][begin:end] @ weight[0][group]
        begin = end
    return [out]


def npu_swiglu(self: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """The first half along DIM through silu, times the second."""
    gate, up = self.chunk(2, dim)
    return torch.nn.functional.silu(gate) * up


def npu_moe_finalize_routing(
    expanded_permuted_rows: torch.Tensor,
    skip1: Optional[torch.Tensor],
    skip2: Optional[torch.Tensor],
    bias: Optional[torch.Tensor],
    scales: torch.Tensor,
    expanded_src_to_dst_row: torch.Tensor,
    export_for_source_row: torch.Tensor,
) -> torch.Tensor:
    """For each source row the sum of its K results, weighted by SCALES (rows, k).

    The result of row i's expert k stands at EXPANDED_SRC_TO_DST_ROW[i + k·rows] of
    EXPANDED_PERMUTED_ROWS (rows·k, hidden). Only without SKIP1, SKIP2 and BIAS."""
    assert skip1 is skip2 is bias is None
    assert scales.dtype == expanded_permuted_rows.dtype
    assert scales.shape == export_for_source_row.shape
    rows, k = scales.shape
    picked = expanded_permuted_rows[expanded_src_to_dst_row.to(torch.int64)].view(k, rows, -1)
    return (picked * scales.t().unsqueeze(-1)).sum(0)
