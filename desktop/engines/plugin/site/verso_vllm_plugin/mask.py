"""The vision encoder's attention mask by tensor operations.

DeepSeek-OCR-2's encoder is a Qwen2 decoder with a mask of its own: a page's patches see each
other, a query sees all patches and the queries up to itself. vLLM as published fills it row by
row in Python, for each image and each call. Here it is one comparison, kept for the next call.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch

from verso_vllm_plugin import NotHere, installed

_PARAMETERS = ("self", "sequence_length", "dtype", "device", "batch_size", "token_type_ids")


def attention_mask(token_types: torch.Tensor, dtype: torch.dtype,
                   device: torch.device | str) -> torch.Tensor:
    """The mask to be added to attention scores: (images, 1, length, length).

    TOKEN_TYPES (images, length): 0 a patch, 1 a query, anything else sees and is seen by nobody.
    0.0 where a row may look at a column, the type's lowest value elsewhere.
    """
    types = token_types.to(device)
    patch, query = types == 0, types == 1
    order = torch.arange(types.shape[1], device=device)
    # Every row of a patch or query sees the patches; a query's also the queries not after it.
    seen = (patch | query)[:, :, None] & patch[:, None, :]
    seen |= query[:, :, None] & query[:, None, :] & (order[None, :] <= order[:, None])
    mask = torch.full(seen.shape, torch.finfo(dtype).min, dtype=dtype, device=device)
    return mask.masked_fill_(seen, 0.0).unsqueeze(1)


def _replacement(self: Any, sequence_length: int, dtype: torch.dtype,
                 device: torch.device | str, batch_size: int,
                 token_type_ids: torch.Tensor) -> torch.Tensor:
    types = token_type_ids[:batch_size, :sequence_length]
    if types.device.type != "cpu":  # reading them would wait for the device
        return attention_mask(types, dtype, device)
    key = (str(device), dtype, tuple(types.shape), types.numpy().tobytes())
    # Never given back: captured graphs read them. There are as many as numbers of views.
    kept = self.__dict__.setdefault("_verso_masks", {})
    mask = kept.get(key)
    if mask is None:
        mask = kept[key] = attention_mask(types, dtype, device)
    return mask


def apply() -> str:
    """Replace the loop in every encoder made from now on."""
    try:
        from vllm.model_executor.models import deepencoder2
    except ImportError as error:
        raise NotHere("this vLLM has no DeepSeek-OCR-2") from error
    owner: Any = getattr(deepencoder2, "CustomQwen2Decoder", None)
    create = getattr(owner, "_create_custom_model", None)
    if create is None:
        raise NotHere("this vLLM makes its encoder in another way")
    if not loops(deepencoder2):
        raise NotHere("this vLLM makes the mask without a loop")
    module, decoder = installed.ascend_decoder(installed.folder("vllm_ascend"))
    if installed.own_mask(decoder):
        raise NotHere(f"vllm-ascend makes the mask itself ({module})")

    def created(self: Any, *args: Any, **kwargs: Any) -> Any:
        model = create(self, *args, **kwargs)
        method = getattr(type(model), "_create_custom_4d_mask", None)
        if method is not None and tuple(inspect.signature(method).parameters) == _PARAMETERS:
            type(model)._create_custom_4d_mask = _replacement
        return model

    owner._create_custom_model = created
    return "made by tensor operations instead of a loop over its rows"


def loops(module: Any) -> bool:
    """Whether MODULE's mask goes through its queries one by one."""
    try:
        source = inspect.getsource(module)
    except (OSError, TypeError):
        return False
    start = source.find("def _create_custom_4d_mask")
    return start >= 0 and "enumerate(text_positions)" in source[start:]
