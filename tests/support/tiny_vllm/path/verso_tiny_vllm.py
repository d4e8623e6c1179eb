"""Loaded by vLLM in each of its processes: small vision towers, and a model that recites.

Lies on PYTHONPATH with a dist-info of its own; see ``tests/support/tiny_vllm``.
"""

import os
from functools import partial
from pathlib import Path

from vllm.v1.sample.logits_processor import AdapterLogitsProcessor


def shrink() -> None:
    """Entry point of ``vllm.general_plugins``; vLLM may call it several times in a process.

    The sizes of the vision towers are written into vLLM's code, not into the model's
    configuration. What they cut an image into, and into how many tokens, stays.
    """
    import vllm.model_executor.models.deepseek_ocr2 as code

    if getattr(code, "verso_tiny", False):
        return
    code.verso_tiny = True
    tower = code.ImageEncoderViT

    def small_tower(**sizes):
        sizes.update(depth=1, embed_dim=64, num_heads=2, global_attn_indexes=())
        return tower(**sizes)

    code.ImageEncoderViT = small_tower
    code.build_qwen2_decoder_as_encoder = partial(
        code.build_qwen2_decoder_as_encoder, decoder_layer=1, intermediate_size=64)


class Recital(AdapterLogitsProcessor):
    """Makes the model write a given text, token by token, and end.

    The text is what the file named by ``VERSO_TINY_SCRIPT`` holds when a page begins; for a page
    with the n-gram processor's arguments it is that of the file with ``.ngram`` at the end of its
    name, where there is one. Without a file, or with an empty one, the page gets noise that does
    not end. The text's tokens are only made very likely: what another processor forbids stays
    forbidden, and a request that prefers tokens of its own (``logit_bias``) gets those.
    """

    def __init__(self, vllm_config, device, is_pin_memory):
        super().__init__(vllm_config, device, is_pin_memory)
        from tokenizers import Tokenizer

        folder = vllm_config.model_config.tokenizer
        self._tokenizer = Tokenizer.from_file(str(Path(folder, "tokenizer.json")))
        self._end = self._tokenizer.token_to_id("<｜end▁of▁sentence｜>")

    def is_argmax_invariant(self) -> bool:
        return False

    def new_req_logits_processor(self, params):
        text = _text("ngram_size" in (params.extra_args or {}))
        if not text or params.logit_bias:
            return self._noise
        tokens = self._tokenizer.encode(text, add_special_tokens=False).ids
        return partial(self._recite, [*tokens, self._end])

    def _recite(self, tokens, written, logits):
        logits[tokens[min(len(written), len(tokens) - 1)]] += 1e6
        return logits

    def _noise(self, written, logits):
        logits[self._end] = float("-inf")
        return logits


def _text(ngram: bool) -> str:
    name = os.environ.get("VERSO_TINY_SCRIPT", "")
    for path in ([f"{name}.ngram"] if ngram else []) + [name]:
        if path and os.path.isfile(path):
            with open(path, encoding="utf-8", newline="") as file:
                return file.read()
    return ""
