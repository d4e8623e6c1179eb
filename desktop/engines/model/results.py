"""What vLLM gives of a page, as the worker takes it, and what is said where it gives none."""

from __future__ import annotations

from typing import Any

from desktop.engines.base import Finish, Text
from desktop.engines.model import outcome
from desktop.errors import VersoError
from desktop.i18n import N_, _


class PageRefused(VersoError):
    """vLLM did not take the page, or broke it off."""

    code = "engine.refused"
    message = N_("The engine did not read this page: {reason}")
    hint = N_("Read the page again; if this repeats, see the log (View › Log).")


class Results:
    """The results (vLLM's ``RequestOutput``, each with what is new) of one request, as text and
    in the end a :class:`Finish`.

    PROMPT: the prompt's length in tokens, until vLLM has told it.
    """

    def __init__(self, prompt: int) -> None:
        self.prompt = prompt
        self.written = 0
        """Output tokens."""
        self.reason: str | None = None
        """vLLM's word for how it ended."""
        self._ending = outcome.Ending()

    def take(self, result: Any) -> list[Text]:
        """What of RESULT is text, and its tokens."""
        self.prompt = len(result.prompt_token_ids or ()) or self.prompt
        found = []
        for part in result.outputs:
            self.written += len(part.token_ids)
            text = self._ending.feed(part.text)
            if text or part.token_ids:
                found.append(Text(text, len(part.token_ids)))
            self.reason = part.finish_reason or self.reason
        return found

    def rest(self) -> list[Text]:
        """What was held back and turned out to be text, once there are no more results."""
        rest = self._ending.finish()
        return [Text(rest)] if rest else []

    def finish(self, limit: int) -> Finish | None:
        """How the page ended that could have LIMIT tokens; None: it was broken off."""
        word = outcome.outcome(self.reason)
        return Finish(word, self.prompt, self.written, limit) if word is not None else None

    def broken_off(self) -> PageRefused:
        """The stream ended in a way that says nothing about the page."""
        return PageRefused(reason=_("it was broken off ({reason})").format(
            reason=self.reason or "?"))


def refused(error: Exception) -> PageRefused:
    """ERROR of vLLM's about one page, which it lived through."""
    name = type(error).__name__
    lines = str(error).strip().splitlines()
    return PageRefused(reason=lines[0] if lines else name, detail=f"{name}: {error}")
