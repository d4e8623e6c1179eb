"""What Verso changes in vLLM for DeepSeek-OCR-2, loaded in each of vLLM's processes.

Each repair looks at the modules that are installed, is done only where they offer what it needs,
and says in vLLM's log what it did or why not. None is done unless its environment variable asks
for it. A repair that fails leaves vLLM as it was.

Runs on Python 3.10. torch and vLLM are imported when a repair is asked for.
"""

from __future__ import annotations

import logging
import os
from typing import Callable, Dict

log = logging.getLogger("vllm.verso")
"""Below vLLM's own logger, so that it has its handlers and level."""

done: Dict[str, str] = {}
"""What :func:`register` did in this process: the repair's name → "" where it is in force, else
why it is not."""


class NotHere(Exception):
    """The installed modules do not offer what a repair needs, or do not need it."""


def register() -> None:
    """The entry point; may be called more than once in a process."""
    for name, variable, apply in _repairs():
        value = os.environ.get(variable, "")
        if value in ("", "0") or name in done:
            continue
        try:
            said = apply(value)
        except NotHere as reason:
            done[name] = str(reason)
            log.info("Verso: %s left as it is: %s", name, reason)
        except Exception as error:
            done[name] = f"{type(error).__name__}: {error}"
            log.warning("Verso: %s left as it is", name, exc_info=True)
        else:
            done[name] = ""
            log.info("Verso: %s: %s", name, said)


def in_force(name: str) -> bool:
    """Whether the repair NAME was done in this process."""
    return done.get(name) == ""


def _repairs() -> list[tuple[str, str, Callable[[str], str]]]:
    return [
        ("tokenizer class", "VERSO_TOKENIZER_CLASS", _tokenizer_class),
        ("attention type", "VERSO_ATTENTION_TYPE", _attention_type),
        ("vision mask", "VERSO_FAST_MASK", _mask),
        ("head size", "VERSO_HEAD_SIZE", _head_size),
        ("vision attention", "VERSO_FAST_ATTENTION", _attention),
        ("raw pages", "VERSO_RAW_PAGES", _pages),
        ("encoder graphs", "VERSO_ENCODER_GRAPHS", _graphs),
    ]


def _tokenizer_class(value: str) -> str:
    from verso_vllm_plugin import tokenizer_class

    return str(tokenizer_class.apply())


def _attention_type(value: str) -> str:
    from verso_vllm_plugin import attention_type

    return str(attention_type.apply())


def _mask(value: str) -> str:
    from verso_vllm_plugin import mask

    return str(mask.apply())


def _attention(value: str) -> str:
    try:
        import triton  # noqa: F401
    except ImportError as error:
        raise NotHere("there is no Triton") from error
    from verso_vllm_plugin import attention

    return str(attention.apply())


def _head_size(value: str) -> str:
    from verso_vllm_plugin import head_size

    return str(head_size.apply())


def _pages(value: str) -> str:
    from verso_vllm_plugin import pages

    return str(pages.apply(force=value == "force"))


def _graphs(value: str) -> str:
    if not in_force("raw pages"):
        raise NotHere("they need raw pages")
    from vllm.model_executor.models import deepencoder2

    from verso_vllm_plugin import graphs, mask

    if mask.loops(deepencoder2) and not in_force("vision mask"):
        raise NotHere("they need the vision mask without a loop")
    return str(graphs.apply(int(value)))
