"""The class that reads the model's tokenizer, with transformers 5 before 5.8.

The model's tokenizer_config.json names a class whose pre-tokenizer is not the one in
tokenizer.json. These versions of transformers believe the name, and spaces are lost. They have a
list of models for which they do not, and the model is on it under the name that its configuration
has in the files (deepseek_vl_v2); vLLM gives it another (deepseek_ocr2). vLLM (0.23 at the
latest) has a list of its own for such models.
"""

from __future__ import annotations

from typing import Any

from verso_vllm_plugin import NotHere

MODEL_TYPE = "deepseek_ocr2"
"""What vLLM calls the kind of model."""
VLLM_LIST = "_MODEL_TYPES_WITH_INCORRECT_TOKENIZER_CLASS"
TRANSFORMERS_LIST = "MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS"


def apply() -> str:
    """Have the tokenizer read as tokenizer.json says."""
    try:
        from transformers.models.auto import tokenization_auto as auto
        from transformers.tokenization_utils_tokenizers import TokenizersBackend
    except ImportError as error:
        raise NotHere("this transformers does not choose the class by the model's name") from error
    theirs = getattr(auto, TRANSFORMERS_LIST, None)
    if theirs is not None and MODEL_TYPE in theirs:
        raise NotHere("this transformers reads the model's tokenizer rightly")
    listed = _vllm_list()
    if listed is not None:
        if MODEL_TYPE in listed:
            raise NotHere("this vLLM reads the model's tokenizer rightly")
        listed.add(MODEL_TYPE)
        return f"{MODEL_TYPE} added to vLLM's list of models whose tokenizer class is wrong"
    names: Any = getattr(auto, "TOKENIZER_MAPPING_NAMES", None)
    if theirs is None or names is None:
        raise NotHere("neither vLLM nor transformers has a list of models whose tokenizer class "
                      "is wrong")
    theirs.add(MODEL_TYPE)
    names.setdefault(MODEL_TYPE, TokenizersBackend.__name__)
    return f"{MODEL_TYPE} added to transformers' list of models whose tokenizer class is wrong"


def _vllm_list() -> Any:
    try:
        from vllm.tokenizers import registry
    except ImportError:  # before 0.13
        return None
    return getattr(registry, VLLM_LIST, None)
