"""A plugin that lets the real vLLM 0.8.5, as its source archive has it, run the official code on a
processor, and lets that write what a test wants.

Its compiled part is missing: two kernels of the cache are written here with tensors, the others
have a way through PyTorch in vLLM itself. The vision towers are made as small as the tiny model's
weights are. ``VERSO_RECITAL`` names a JSON file, read anew at each step: ``text`` (what every page
gets), ``noise`` (instead: what the random weights say, ended after so many tokens), ``die`` (what
a step dies of) ``after`` so many tokens.
"""

import importlib.util
import json
import os
import sys

import torch


def register():
    from vllm import _custom_ops, platforms
    from vllm.distributed.device_communicators import cpu_communicator
    from vllm.model_executor import custom_op
    from vllm.model_executor.layers import fused_moe, logits_processor

    if hasattr(logits_processor, "verso_original"):
        return
    torch.library.define("_C::silu_and_mul", "(Tensor out, Tensor x) -> ()")  # looked up, not used
    custom_op.CustomOp.default_on = staticmethod(lambda: False)
    _custom_ops.reshape_and_cache = reshape_and_cache
    _custom_ops.paged_attention_v1 = paged_attention_v1
    platform = platforms.current_platform
    check = platform.check_and_update_config
    platform.check_and_update_config = lambda config: check(small_blocks(config))
    cpu_communicator._CPUSHMDistributed = lambda _communicator: torch.distributed
    logits_processor.verso_original = logits_processor._apply_logits_processors
    logits_processor._apply_logits_processors = recited
    if importlib.util.find_spec("vllm_ascend") is None:
        fused_moe.fused_moe = experts  # vLLM's own is a kernel for GPUs.
    if "deepseek_ocr2" in sys.modules:
        shrink()
    else:  # A further process of vLLM: the code comes by the engine's own plugin.
        from desktop.engines.ascend_legacy import official

        load = official.load
        official.load = lambda wanted: (load(wanted), shrink())[0]


def small_blocks(config):
    """CONFIG with the only block size that vLLM has on a processor; the scripts ask for 256."""
    config.cache_config.block_size = 16
    return config


def shrink():
    """The sizes of tests/support/tiny_vllm/weights.py instead of the published ones."""
    if "deepencoderv2.sam_vary_sdpa" not in sys.modules:
        return  # Code of our own, which sees nothing.
    model, sam = sys.modules["deepseek_ocr2"], sys.modules["deepencoderv2.sam_vary_sdpa"]
    full = model.build_qwen2_decoder_as_encoder
    model.build_qwen2_decoder_as_encoder = lambda: full(decoder_layer=1, intermediate_size=64)
    model.build_sam_vit_b = lambda: sam._build_sam(64, 1, 2, [])
    made = model.DeepseekOCR2ForCausalLM.__init__
    made.__code__ = made.__code__.replace(co_consts=tuple(
        128 if each == 1280 else each for each in made.__code__.co_consts))


def recited(logits, metadata):
    from vllm.model_executor.layers import logits_processor

    with open(os.environ["VERSO_RECITAL"], encoding="utf-8") as file:
        script = json.load(file)
    tokenizer = sys.modules["config"].TOKENIZER
    end = tokenizer.eos_token_id
    text = tokenizer.encode(script.get("text", ""), add_special_tokens=False)
    for group in metadata.seq_groups:
        for number, row in zip(group.seq_ids, group.sample_indices, strict=False):
            done = len(group.seq_data[number].output_token_ids)
            if done == script.get("after", -1):
                raise RuntimeError(script["die"])
            if "noise" not in script or done >= script["noise"]:
                logits[row] = 0
                logits[row, end] = 1
                if "noise" not in script:
                    logits[row, text[done] if done < len(text) else end] = 2
            else:
                logits[row, end] = -float("inf")
    return logits_processor.verso_original(logits, metadata)


def experts(hidden_states, w1, w2, gating_output, topk, renormalize, **_more):
    """The mixture of experts, one after the other."""
    weights, chosen = gating_output.float().softmax(-1).topk(topk, -1)
    if renormalize:
        weights = weights / weights.sum(-1, keepdim=True)
    made = torch.zeros_like(hidden_states, dtype=torch.float32)
    for number in range(w1.shape[0]):
        gate, up = (hidden_states @ w1[number].t()).chunk(2, -1)
        out = (torch.nn.functional.silu(gate) * up) @ w2[number].t()
        made += out.float() * (weights * (chosen == number)).sum(-1, keepdim=True)
    return made.to(hidden_states.dtype)


def reshape_and_cache(key, value, key_cache, value_cache, slots, *_more):
    """KEY and VALUE (tokens, heads, size) into their SLOTS of the caches (blocks, heads, size / x,
    block, x) and (blocks, heads, size, block)."""
    size = value_cache.shape[3]
    block, offset = slots // size, slots % size
    key_cache[block, :, :, offset] = key.view(*key.shape[:2], -1, key_cache.shape[-1])
    value_cache[block, :, :, offset] = value


def paged_attention_v1(out, query, key_cache, value_cache, _heads, scale, block_tables, lengths,
                       size, *_more):
    """Attention of each sequence's newest token, QUERY (sequences, heads, size), over its cache."""
    for number in range(query.shape[0]):
        at = torch.arange(int(lengths[number]))
        blocks, offset = block_tables[number][at // size].long(), at % size
        keys = key_cache[blocks, :, :, offset].flatten(2).float()
        values = value_cache[blocks, :, :, offset].float()
        scores = torch.einsum("hd,lhd->hl", query[number].float(), keys) * scale
        out[number] = torch.einsum("hl,lhd->hd", scores.softmax(-1), values).to(out.dtype)
