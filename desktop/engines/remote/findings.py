"""What the probe may find wrong with a server, in words and with a way out."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from desktop.engines.model import sampling
from desktop.errors import Problem
from desktop.i18n import N_, _


class Level(enum.Enum):
    """How bad it is."""

    NOTE = "note"
    """It costs something, pages are read all the same."""
    FAULT = "fault"
    """Pages come out worse, or not at all."""


class Finding(NamedTuple):
    """One thing that is not as it should be."""

    level: Level
    problem: Problem


_WORDS: dict[str, tuple[Level, str, str]] = {
    "squashed": (
        Level.FAULT,
        N_("It squashes pages: a page that should cost {expected} tokens costs {seen}."),
        N_("Something in front of the server shrinks images, or its crop mode is off; take that "
           "out, or start vLLM without --mm-processor-kwargs.")),
    "first_generation": (
        Level.FAULT,
        N_("It serves DeepSeek-OCR of the first generation: a page costs {seen} tokens instead "
           "of {expected}."),
        N_("Start it with deepseek-ai/DeepSeek-OCR-2.")),
    "tokens": (
        Level.FAULT,
        N_("It does not count a page as DeepSeek-OCR-2 does: {seen} tokens instead of about "
           "{expected}."),
        N_("Start vLLM with deepseek-ai/DeepSeek-OCR-2 and without --mm-processor-kwargs.")),
    "uncounted": (
        Level.NOTE,
        N_("It does not count tokens, so nobody can tell whether it sees pages as it should."),
        N_("A proxy that drops “stream_options” is to blame, or a server that does not know it.")),
    "prompt": (
        Level.FAULT,
        N_("It adds about {seen} tokens of its own to the prompt; extra words break "
           "recognition."),
        N_("Start vLLM without --chat-template and without a default system message.")),
    "tags": (
        Level.FAULT,
        N_("It swallows special tokens: pages come without their boxes."),
        N_("It must honour “skip_special_tokens: false”; vLLM does, so look for a proxy that "
           "drops fields it does not know.")),
    "no_tags": (
        Level.NOTE,
        N_("It wrote no grounding tags for the test page."),
        N_("Make sure that it serves deepseek-ai/DeepSeek-OCR-2 with its own weights and "
           "tokenizer.")),
    "reading": (
        Level.NOTE,
        N_("It did not read the test page: it wrote “{text}”."),
        N_("Known of the container image of vLLM 0.19.0, and of transformers 5.0 to 5.7 (wrong "
           "tokenizer); another version of vLLM helps.")),
    "guard": (
        Level.NOTE,
        N_("It was started without --logits-processors: a page that loops is read again in two "
           "halves, not with the no-repeat n-gram."),
        N_("Start vLLM with --logits-processors {processor}")),
    "guard_unknown": (
        Level.NOTE,
        N_("Whether its n-gram processor works could not be seen; it is not used."),
        N_("The server refuses “logit_bias”, by which Verso finds out.")),
    "whole": (
        Level.NOTE,
        N_("It does not stream: text comes when the page is done."),
        N_("Switch off buffering in the proxy in front of it (proxy_buffering off in nginx).")),
    "context": (
        Level.NOTE,
        N_("Its context of {context} tokens leaves {rest} for a full page's text."),
        N_("Start vLLM with --max-model-len 8192.")),
    "several": (
        Level.NOTE,
        N_("It lists several models ({models}); Verso asks for “{model}”."),
        N_("Choose one under Model on the server (--remote-model).")),
    "bare_key": (
        Level.NOTE,
        N_("The key travels to it without encryption."),
        N_("Put a TLS proxy in front of the server and use an https address.")),
    "slow": (
        Level.NOTE,
        N_("It did not finish the test within {seconds:.0f} s; it may be busy."),
        N_("Try `verso servers` again when it has nothing else to do.")),
    "test": (
        Level.FAULT,
        N_("It does not read the test page: {reason}"),
        N_("See the server's log.")),
}


def finding(name: str, **values: Any) -> Finding:
    """The finding called NAME, its sentences filled with VALUES."""
    level, message, hint = _WORDS[name]
    values.setdefault("processor", sampling.PROCESSOR)
    return Finding(level, Problem(f"probe.{name}", _(message).format(**values),
                                  _(hint).format(**values)))
