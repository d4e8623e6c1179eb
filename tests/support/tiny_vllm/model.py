"""The folder of the tiny model: configuration, processor, tokenizer and random weights.

The numbers that decide how an image is cut and how many tokens it takes are those of
DeepSeek-OCR-2; those that only make it large are small.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from tests.support.tiny_vllm import weights

CONTEXT = 8192
"""Most tokens of page and output together that the configuration allows."""

BEGIN, END, PAD = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"
"""Ids 0, 1, 2."""

_MARKS = ("<image>", "<|ref|>", "<|/ref|>", "<|det|>", "<|/det|>", "<|grounding|>", "<td>", "</td>")
_RECORDINGS = Path(__file__).resolve().parents[2] / "samples" / "recordings"

# How GPT-2's byte-level pre-tokenizer cuts text, nearly: a pair across another cut is never used.
_WORD = re.compile(r" ?[^\W\d_]+| ?\d+| ?[^\s\w]+|\s+(?!\S)|\s+|_")


def build(folder: Path, *, dense: bool = False) -> Path:
    """Write the model into FOLDER (19 MB); FOLDER. Takes about two seconds.

    DENSE: without the mixture of experts, which vLLM cannot spread over data parallel copies on
    a processor.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "config.json": _config(dense),
        "processor_config.json": {
            "processor_class": "DeepseekOCRProcessor", "image_token": "<image>",
            "patch_size": 16, "downsample_ratio": 4, "normalize": True,
            "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "pad_token": PAD,
            "add_special_token": False, "mask_prompt": False, "ignore_id": -100,
            "sft_format": "deepseek"},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": BEGIN, "eos_token": END,
            "pad_token": PAD, "add_bos_token": False, "add_eos_token": False,
            "clean_up_tokenization_spaces": False, "model_max_length": CONTEXT},
        "tokenizer.json": _tokenizer(),
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    weights.write(folder / "model.safetensors", dense=dense)
    return folder


def _config(dense: bool) -> dict[str, object]:
    return {
        "architectures": ["DeepseekOCR2ForCausalLM"], "model_type": "deepseek_vl_v2",
        "candidate_resolutions": [[1024, 1024]], "global_view_pos": "head", "tile_tag": "2D",
        "torch_dtype": "float32",
        "language_config": {
            "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2",
            "bos_token_id": 0, "eos_token_id": 1, "vocab_size": weights.VOCABULARY,
            "max_position_embeddings": CONTEXT, "torch_dtype": "float32",
            "hidden_size": weights.HIDDEN, "intermediate_size": 2 * weights.HIDDEN,
            "num_hidden_layers": weights.LAYERS, "num_attention_heads": 2,
            "num_key_value_heads": 2, "use_mla": False,
            "kv_lora_rank": None, "q_lora_rank": None, "qk_nope_head_dim": 0,
            "qk_rope_head_dim": 0, "v_head_dim": 0, "lm_head": True, "rm_head": False,
            "first_k_dense_replace": weights.LAYERS if dense else 1,
            "moe_intermediate_size": weights.EXPERT_SIZE,
            "n_routed_experts": 0 if dense else weights.EXPERTS,
            "n_shared_experts": 1, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
            "topk_method": "greedy"},
        "projector_config": {"model_type": "mlp_projector", "projector_type": "linear",
                             "input_dim": 896, "n_embed": weights.HIDDEN},
        "vision_config": {"model_type": "vision", "model_name": "deeplip_b_l",
                          "image_size": 1024, "mlp_ratio": 3.7362},
    }


def _tokenizer() -> dict[str, object]:
    """A byte-level BPE tokenizer in the format of the library ``tokenizers``: every text goes
    through it and back unchanged. Its words are those of the sample recordings, so that one of
    them takes about as many tokens as with the real one."""
    alphabet = _byte_letters()
    specials = [BEGIN, END, PAD]
    tokens = [*specials, *sorted(alphabet.values())]
    texts = [path.read_text(encoding="utf-8") for path in sorted(_RECORDINGS.glob("*.txt"))]
    merges = _merges(texts, alphabet, weights.VOCABULARY - len(tokens) - len(_MARKS))
    tokens += dict.fromkeys(left + right for left, right in merges)
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    added = {**{token: vocabulary[token] for token in specials},
             **{mark: len(vocabulary) + number for number, mark in enumerate(_MARKS)}}
    return {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None,
        "added_tokens": [
            {"id": number, "content": token, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False, "special": True}
            for token, number in sorted(added.items(), key=lambda item: item[1])],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                          "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                    "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": vocabulary, "merges": [list(pair) for pair in merges]},
    }


def _byte_letters() -> dict[int, str]:
    """The letter by which byte-level BPE writes each byte: itself where it can be printed, else
    one of those from U+0100 on."""
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in printed)
    return {**{byte: chr(byte) for byte in printed},
            **{byte: chr(0x100 + number) for number, byte in enumerate(others)}}


def _merges(texts: Iterable[str], alphabet: dict[int, str],
            number: int) -> list[tuple[str, str]]:
    """The NUMBER most useful pairs, the most frequent first (byte-pair encoding)."""
    counts = Counter(word for text in texts for word in _WORD.findall(text))
    words = [[alphabet[byte] for byte in word.encode()] for word in counts]
    weights = list(counts.values())
    frequency: Counter[tuple[str, str]] = Counter()
    places: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for index, word in enumerate(words):
        for pair in pairwise(word):
            frequency[pair] += weights[index]
            places[pair].add(index)
    merges: list[tuple[str, str]] = []
    while len(merges) < number and frequency:
        best = max(frequency, key=lambda pair: (frequency[pair], pair))
        if frequency[best] <= 0:
            break
        merges.append(best)
        for index in list(places[best]):
            word = words[index]
            for pair in pairwise(word):
                frequency[pair] -= weights[index]
                places[pair].discard(index)
            words[index] = word = _joined(word, best)
            for pair in pairwise(word):
                frequency[pair] += weights[index]
                places[pair].add(index)
    return merges


def _joined(word: list[str], pair: tuple[str, str]) -> list[str]:
    joined: list[str] = []
    for letter in word:
        if joined and (joined[-1], letter) == pair:
            joined[-1] += letter
        else:
            joined.append(letter)
    return joined
