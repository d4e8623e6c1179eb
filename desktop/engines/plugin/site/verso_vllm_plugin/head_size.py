"""The head size of a language model whose configuration says 0.

DeepSeek-OCR-2's configuration has the sizes of compressed attention, which it does not use, set
to 0. With some versions of transformers vLLM adds them up to a head size of 0, and its attention
kernels divide by it: the engine core ends with SIGFPE.
"""

from __future__ import annotations

import functools
from typing import Any

from verso_vllm_plugin import NotHere


def apply() -> str:
    """Compute the head size from the width and the number of heads where it would be 0."""
    import vllm.config  # noqa: F401 - first: it and the next module import each other

    try:
        from vllm.transformers_utils import model_arch_config_convertor as convertor
    except ImportError as error:
        raise NotHere("this vLLM reads the head size in another place") from error
    base: Any = getattr(convertor, "ModelArchConfigConvertorBase", None)
    read = getattr(base, "get_head_size", None)
    if read is None or not hasattr(base, "get_hidden_size") \
            or not hasattr(base, "get_total_num_attention_heads"):
        raise NotHere("this vLLM reads the head size in another way")

    @functools.wraps(read)
    def head_size(self: Any) -> int:
        size = int(read(self) or 0)
        return size or int(self.get_hidden_size() // self.get_total_num_attention_heads())

    base.get_head_size = head_size
    return "computed where the configuration says 0"
