"""What the context and the KV cache of vLLM hold of pages."""

from __future__ import annotations

from typing import NamedTuple

from desktop.engines.base import Finish
from desktop.engines.model import fitting, sampling
from desktop.engines.visual_tokens import visual_tokens
from desktop.errors import VersoError
from desktop.i18n import N_, _
from desktop.protocol.messages import SubmitPage

FULL = 0.95
"""Share of the KV cache that admitted pages are expected to fill: blocks are taken whole, and
some pages write more than expected."""
FULL_PAGE = visual_tokens(1190, 1684).tokens
"""Visual tokens of a full page: A4 at 144 dpi."""


class PageTooLong(VersoError):
    """A page whose image alone fills the context."""

    code = "engine.context"
    message = N_("The page takes {tokens} tokens and the model's context holds {context}: nothing "
                 "is left for its text.")
    hint = N_("Raise “Context length” in the settings, or set “Crop mode” to off.")


class Share(NamedTuple):
    """A page's part of the context, in tokens."""

    prompt: int
    """The image and the words beside it."""
    output: int
    """Most that may be written."""


class Room:
    """How pages share a CONTEXT of so many tokens (0: not known yet) and a KV cache of
    CACHE_TOKENS."""

    def __init__(self, context: int = 0, cache_tokens: int = 0) -> None:
        self.context = context
        self.cache_tokens = cache_tokens
        self._expectation = fitting.Expectation()

    @property
    def budget(self) -> int:
        """Tokens that all admitted pages may be expected to fill (``Engine.budget``)."""
        return int(self.cache_tokens * FULL)

    def cost(self, page: SubmitPage) -> int:
        """Tokens that the page will fill of the KV cache: its own and those it is expected to
        write (``Engine.cost``)."""
        visual = fitting.sent(page.width, page.height, page.settings).tokens
        prompt = visual + fitting.PROMPT_TOKENS
        limit = sampling.limit(page.settings, self.context, prompt)
        return prompt + self._expectation.of(visual, limit.tokens)

    def share(self, page: SubmitPage, words: int = fitting.PROMPT_TOKENS) -> Share:
        """That of PAGE, whose prompt has WORDS tokens beside the image; raises PageTooLong."""
        length = fitting.sent(page.width, page.height, page.settings).tokens + words
        limit = sampling.limit(page.settings, self.context, length)
        if limit.tokens < 1:
            raise PageTooLong(tokens=length, context=self.context)
        return Share(length, limit.tokens)

    def learn(self, page: SubmitPage, finish: Finish) -> None:
        """PAGE came to this FINISH: what is expected of the next ones follows it."""
        if finish.reason == "complete":
            visual = fitting.sent(page.width, page.height, page.settings).tokens
            self._expectation.learn(visual, finish.output_tokens)

    def forget(self) -> None:
        """What was learned from pages that were no person's."""
        self._expectation = fitting.Expectation()

    @property
    def pages(self) -> int:
        """Full pages that the KV cache holds at once, at least 1."""
        full = fitting.PROMPT_TOKENS + FULL_PAGE
        return max(1, self.budget // (full + self._expectation.of(FULL_PAGE,
                                                                  max(1, self._left()))))

    def notes(self, max_tokens: int, sequences: int) -> tuple[str, ...]:
        """What a person should know, who asked for MAX_TOKENS a page and whose engine works on as
        many as SEQUENCES pages."""
        found = []
        if self._left() < max_tokens:
            found.append(_("A full page leaves {room} tokens of the context of {context} for its "
                           "text: “Max tokens” is lowered to that.").format(
                room=self._left(), context=self.context))
        if self.pages < sequences:
            found.append(_("The KV cache of {tokens} tokens holds about {pages} pages at once.")
                         .format(tokens=self.cache_tokens, pages=self.pages))
        return tuple(found)

    def _left(self) -> int:
        """What a full page leaves of the context for its text."""
        return sampling.limit({"max_tokens": self.context}, self.context,
                              fitting.PROMPT_TOKENS + FULL_PAGE).tokens
