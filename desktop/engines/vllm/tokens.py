"""The model's tokenizer, as vLLM has loaded it: tested, and used for prompts.

Prompts go to vLLM as token ids. So a page's prompt is the same in every version, whatever a
version thinks about the token that begins a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from desktop.engines.model import outcome, sampling
from desktop.engines.model.prompts import IMAGE
from desktop.engines.vllm.failures import WrongTokenizer
from desktop.i18n import _

SPECIAL = (IMAGE, "<|ref|>", "<|/ref|>", "<|det|>", "<|/det|>", "<|grounding|>")
"""Each must be one token, kept when it is written out."""

SAMPLE = ("<|ref|>sub_title<|/ref|><|det|>[[51, 7, 949, 998]]<|/det|>\n"
          "## Two words, größer 世界\n\n"
          "<|ref|>table<|/ref|><|det|>[[0, 1, 2, 3]]<|/det|>\n<table><tr><td>a  b</td></tr></table>"
          "\n\\( x_{1} \\)")
"""What the model may write: must come back as it went in."""


@dataclass(frozen=True)
class Tokens:
    """A tokenizer that has passed the test."""

    tokenizer: Any
    begin: int
    """Id of the token that begins a prompt; -1: none."""
    image: int
    white_list: tuple[int, ...]
    """Ids of the tokens that may repeat in spite of the n-gram."""

    def prompt(self, text: str) -> list[int]:
        """TEXT, which names the image once, with the token that begins a text."""
        return list(_prompt(self, text))


def check(tokenizer: Any) -> Tokens:
    """Test TOKENIZER; raises WrongTokenizer."""
    ids = {token: tokenizer.encode(token, add_special_tokens=False) for token in SPECIAL}
    split = [token for token, found in ids.items() if len(found) != 1]
    if split:
        raise WrongTokenizer(what=_("{tokens} are not single tokens").format(
            tokens=", ".join(split)), detail=repr(ids))
    back = tokenizer.decode(tokenizer.encode(SAMPLE, add_special_tokens=False),
                            skip_special_tokens=False)
    if back != SAMPLE:
        raise WrongTokenizer(what=_("text does not come back as it went in"),
                             detail=f"{type(tokenizer).__name__}: {SAMPLE!r} → {back!r}")
    white_list = [tokenizer.encode(token, add_special_tokens=False)
                  for token in sampling.WHITE_LIST]
    begin = tokenizer.encode(outcome.BEGIN, add_special_tokens=False)
    return Tokens(tokenizer, begin[0] if len(begin) == 1 else -1, ids[IMAGE][0],
                  tuple(found[0] for found in white_list if len(found) == 1))


@lru_cache(maxsize=64)
def _prompt(tokens: Tokens, text: str) -> tuple[int, ...]:
    found = tokens.tokenizer.encode(text, add_special_tokens=False)
    return ((tokens.begin,) if tokens.begin >= 0 else ()) + tuple(found)
