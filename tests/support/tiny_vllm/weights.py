"""Random weights under the names that the published checkpoint has, in the sizes of the tiny model.

The sizes of the vision towers are those that ``path/verso_tiny_vllm.py`` shrinks them to.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

VOCABULARY = 2048
HIDDEN = 128
LAYERS = 2
EXPERTS = 4
EXPERT_SIZE = 64

_TOWER = 64  # width of the image encoder
_VISION = 896  # width of the second tower: fixed in vLLM's code
_VISION_MLP = 64

Shape = tuple[int, ...]


def write(path: Path, *, dense: bool = False) -> None:
    """A safetensors file with every tensor in bfloat16, about 19 MB; the same each time. DENSE:
    no layer has experts."""
    random = np.random.default_rng(2)
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    blobs: list[bytes] = []
    end = 0
    for name, shape in _tensors(dense):
        blob = _bfloat16(_values(name, shape, random))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + len(blob)]}
        blobs.append(blob)
        end += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        file.writelines(blobs)


def _values(name: str, shape: Shape, random: np.random.Generator) -> np.ndarray:
    if name.endswith(".bias"):
        return np.zeros(shape, np.float32)
    if len(shape) == 1 and name.endswith("weight"):  # a norm
        return np.ones(shape, np.float32)
    return random.standard_normal(shape, np.float32) * np.float32(0.05)


def _bfloat16(values: np.ndarray) -> bytes:
    """The upper half of each 32-bit float."""
    return (values.view(np.uint32) >> 16).astype("<u2").tobytes()


def _tensors(dense: bool) -> Iterator[tuple[str, Shape]]:
    yield "lm_head.weight", (VOCABULARY, HIDDEN)
    yield "model.embed_tokens.weight", (VOCABULARY, HIDDEN)
    yield "model.norm.weight", (HIDDEN,)
    for layer in range(LAYERS):
        yield from _language_layer(f"model.layers.{layer}", dense=dense or layer == 0)
    yield "model.view_seperator", (HIDDEN,)  # spelt so in the checkpoint
    yield from _linear("model.projector.layers", _VISION, HIDDEN)
    yield from _image_encoder("model.sam_model")
    yield from _second_tower("model.qwen2_model")


def _language_layer(name: str, *, dense: bool) -> Iterator[tuple[str, Shape]]:
    for projection in ("q", "k", "v", "o"):
        yield f"{name}.self_attn.{projection}_proj.weight", (HIDDEN, HIDDEN)
    yield f"{name}.input_layernorm.weight", (HIDDEN,)
    yield f"{name}.post_attention_layernorm.weight", (HIDDEN,)
    if dense:
        yield from _gated(f"{name}.mlp", HIDDEN, 2 * HIDDEN)
        return
    yield f"{name}.mlp.gate.weight", (EXPERTS, HIDDEN)
    yield from _gated(f"{name}.mlp.shared_experts", HIDDEN, EXPERT_SIZE)
    for expert in range(EXPERTS):
        yield from _gated(f"{name}.mlp.experts.{expert}", HIDDEN, EXPERT_SIZE)


def _image_encoder(name: str) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.pos_embed", (1, 64, 64, _TOWER)
    yield f"{name}.patch_embed.proj.weight", (_TOWER, 3, 16, 16)
    yield f"{name}.patch_embed.proj.bias", (_TOWER,)
    block = f"{name}.blocks.0"
    for norm in ("norm1", "norm2"):
        yield from _norm(f"{block}.{norm}", _TOWER)
    for axis in ("h", "w"):
        yield f"{block}.attn.rel_pos_{axis}", (27, _TOWER // 2)  # windows of 14, two heads
    yield from _linear(f"{block}.attn.qkv", _TOWER, 3 * _TOWER)
    yield from _linear(f"{block}.attn.proj", _TOWER, _TOWER)
    yield from _linear(f"{block}.mlp.lin1", _TOWER, 4 * _TOWER)
    yield from _linear(f"{block}.mlp.lin2", 4 * _TOWER, _TOWER)
    yield f"{name}.neck.0.weight", (256, _TOWER, 1, 1)
    yield from _norm(f"{name}.neck.1", 256)
    yield f"{name}.neck.2.weight", (256, 256, 3, 3)
    yield from _norm(f"{name}.neck.3", 256)
    yield f"{name}.net_2.weight", (512, 256, 3, 3)
    yield f"{name}.net_3.weight", (_VISION, 512, 3, 3)


def _second_tower(name: str) -> Iterator[tuple[str, Shape]]:
    layer = f"{name}.model.model.layers.0"
    for projection, size in (("q", _VISION), ("k", 128), ("v", 128)):
        yield from _linear(f"{layer}.self_attn.{projection}_proj", _VISION, size)
    yield f"{layer}.self_attn.o_proj.weight", (_VISION, _VISION)
    yield from _gated(f"{layer}.mlp", _VISION, _VISION_MLP)
    yield f"{layer}.input_layernorm.weight", (_VISION,)
    yield f"{layer}.post_attention_layernorm.weight", (_VISION,)
    yield f"{name}.model.model.norm.weight", (_VISION,)
    yield f"{name}.query_768.weight", (144, _VISION)
    yield f"{name}.query_1024.weight", (256, _VISION)


def _linear(name: str, inputs: int, outputs: int) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (outputs, inputs)
    yield f"{name}.bias", (outputs,)


def _norm(name: str, size: int) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (size,)
    yield f"{name}.bias", (size,)


def _gated(name: str, size: int, inner: int) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.gate_proj.weight", (inner, size)
    yield f"{name}.up_proj.weight", (inner, size)
    yield f"{name}.down_proj.weight", (size, inner)
