"""The attention type of the layers in vllm-ascend's visual decoder.

vllm-ascend (0.18 and later) runs DeepSeek-OCR-2's second vision tower with a class of its own,
which picks a layer's mask by the layer's ``attention_type``. The layers are transformers', which
have it in version 4 and not any more in 5: the engine core ends at its first page with an
AttributeError. There is one kind of mask in this model, so there is one kind of layer.
"""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType
from typing import Any, Optional

from verso_vllm_plugin import NotHere, installed, later, log

LAYER = "AscendQwen2DecoderLayer"
BASE = "Qwen2DecoderLayer"
BASE_MODULE = "transformers.models.qwen2.modeling_qwen2"
ATTRIBUTE = "attention_type"
VALUE = "full_attention"
"""The only key of the masks that the decoder is given."""


def needed(ascend: Optional[Path], transformers: Optional[Path]) -> str:
    """The module to be repaired. ASCEND, TRANSFORMERS: the packages' folders, None: not
    installed. Raises NotHere with the reason why there is none."""
    if ascend is None:
        raise NotHere("there is no vllm-ascend")
    module, tree = installed.ascend_decoder(ascend)
    if tree is None:
        raise NotHere("this vllm-ascend has no visual decoder of its own")
    layer = installed.find_class(tree, LAYER)
    if layer is None or not installed.reads(tree, ATTRIBUTE):
        raise NotHere("this vllm-ascend does not ask its layers for attention_type")
    if installed.sets(layer, ATTRIBUTE):
        raise NotHere("this vllm-ascend's layers have attention_type")
    text = installed.source(BASE_MODULE, transformers)
    base = installed.find_class(ast.parse(text), BASE)
    if base is None:
        raise NotHere(f"this transformers has no {BASE}")
    if installed.sets(base, ATTRIBUTE):
        raise NotHere("this transformers' layers have attention_type")
    return str(module)


def apply() -> str:
    """Give vllm-ascend's layers the attention type, as soon as their module is imported."""
    module = needed(installed.folder("vllm_ascend"), installed.folder("transformers"))
    later.when_imported(module, repair)
    return (f"{LAYER} of {module} gets attention_type = {VALUE!r}, which it asks for and "
            "transformers' layers do not have")


def repair(module: ModuleType) -> None:
    """Give the layers of MODULE the attention type, unless they have one."""
    layer: Any = getattr(module, LAYER, None)
    if layer is None or hasattr(layer, ATTRIBUTE):
        return
    setattr(layer, ATTRIBUTE, VALUE)
    log.info("Verso: attention type: %s has it now", layer.__qualname__)
