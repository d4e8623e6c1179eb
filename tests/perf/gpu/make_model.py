"""Write a folder of DeepSeek-OCR-2 at its full size without weights, for ``load_format=dummy``.

    python tests/perf/gpu/make_model.py FOLDER

The sizes are the public model's (its config.json); ordinary tokens are made-up syllables, so
that any token id the random model chooses has a text.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

VOCABULARY = 129280
FIRST_MARK = 128000
"""Id of the first token that is not an ordinary one."""
BEGIN, END, PAD = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"
MARKS = {128815: "<image>", 128816: "<|ref|>", 128817: "<|/ref|>", 128818: "<|det|>",
         128819: "<|/det|>", 128820: "<|grounding|>", 128821: "<td>", 128822: "</td>",
         128823: "<tr>", 128824: "</tr>"}

_LANGUAGE = {
    "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2",
    "vocab_size": VOCABULARY, "hidden_size": 1280, "num_hidden_layers": 12,
    "num_attention_heads": 10, "num_key_value_heads": 10, "intermediate_size": 6848,
    "moe_intermediate_size": 896, "n_routed_experts": 64, "n_shared_experts": 2,
    "num_experts_per_tok": 6, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
    "topk_method": "greedy", "use_mla": False, "kv_lora_rank": None, "q_lora_rank": None,
    "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "v_head_dim": 0, "lm_head": True,
    "rm_head": False, "max_position_embeddings": 8192, "bos_token_id": 0, "eos_token_id": 1,
    "torch_dtype": "bfloat16",
}
_SAM = {"layers": 12, "heads": 12, "width": 768, "global_attn_indexes": [2, 5, 8, 11],
        "downsample_channels": [512, 1024]}
_CONFIG = {
    "architectures": ["DeepseekOCR2ForCausalLM"], "model_type": "deepseek_vl_v2",
    "torch_dtype": "bfloat16", "bos_token_id": 0, "eos_token_id": 1,
    "candidate_resolutions": [[1024, 1024]], "global_view_pos": "head", "tile_tag": "2D",
    "language_config": _LANGUAGE,
    "projector_config": {"model_type": "mlp_projector", "projector_type": "linear",
                         "input_dim": 896, "n_embed": 1280},
    "vision_config": {"model_type": "vision", "model_name": "deepencoderv2", "image_size": 1024,
                      "mlp_ratio": 3.7362,
                      "width": {"qwen2-0-5b": {"dim": 896}, "sam_vit_b": _SAM}},
}
_PROCESSOR = {
    "processor_class": "DeepseekVLV2Processor", "image_token": "<image>", "pad_token": PAD,
    "patch_size": 16, "downsample_ratio": 4, "normalize": True, "image_mean": [0.5] * 3,
    "image_std": [0.5] * 3, "candidate_resolutions": [[1024, 1024]], "add_special_token": False,
    "mask_prompt": False, "ignore_id": -100, "sft_format": "deepseek",
}
_WORDS = "Convert the document to markdown. Free OCR."


def write(folder: Path) -> Path:
    """Write the files into FOLDER; FOLDER."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, Any] = {
        "config.json": _CONFIG, "processor_config.json": _PROCESSOR,
        "generation_config.json": {"bos_token_id": 0, "eos_token_id": 1},
        "tokenizer.json": _tokenizer(),
        "tokenizer_config.json": {
            "tokenizer_class": "LlamaTokenizerFast", "bos_token": BEGIN, "eos_token": END,
            "pad_token": PAD, "unk_token": None, "add_bos_token": True, "add_eos_token": False,
            "clean_up_tokenization_spaces": False, "legacy": True, "model_max_length": 16384},
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return folder


def _tokenizer() -> dict[str, Any]:
    letters = _letters()
    vocabulary = {token: number for number, token in enumerate((BEGIN, END, PAD, *letters))}
    merges: list[tuple[str, str]] = []
    for word in _WORDS.split():  # the prompt's words are few tokens, as with the real one
        mapped = "Ġ" + word
        for end in range(2, len(mapped) + 1):
            if mapped[:end] not in vocabulary:
                vocabulary[mapped[:end]] = len(vocabulary)
                merges.append((mapped[:end - 1], mapped[end - 1]))
    syllables = ["".join(pair) for pair in itertools.product("bcdfghjklmnprstvwz", "aeiou")]
    made_up = ("Ġ" + "".join(parts) for size in (2, 3)
               for parts in itertools.product(syllables, repeat=size))
    while len(vocabulary) < FIRST_MARK:
        vocabulary.setdefault(next(made_up), len(vocabulary))
    special = {0: BEGIN, 1: END, 2: PAD}
    special.update((number, MARKS.get(number, f"<｜reserved▁{number}｜>"))
                   for number in range(FIRST_MARK, VOCABULARY))
    return {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None,
        "added_tokens": [
            {"id": number, "content": token, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False, "special": number not in MARKS}
            for number, token in special.items()],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False,
                          "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False,
                    "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "fuse_unk": False,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "byte_fallback": False, "ignore_merges": False, "vocab": vocabulary,
                  "merges": merges},
    }


def _letters() -> list[str]:
    """How byte-level BPE writes each of the 256 bytes."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = itertools.count(0x100)
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
