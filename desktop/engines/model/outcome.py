"""How a page ended, in the product's words, and the token that ends it."""

from __future__ import annotations

END = "<｜end▁of▁sentence｜>"
"""End of sentence: the model says that the page is done. Never part of a page's text."""
BEGIN = "<｜begin▁of▁sentence｜>"

_REASONS = {
    "stop": "complete",
    "eos": "complete",
    "length": "length",
    "max_tokens": "length",
    "repetition": "loop",
}


def outcome(reason: str | None) -> str | None:
    """The product's word for vLLM's or an OpenAI server's finish reason: complete, length,
    loop; None where the page was broken off (aborted, an error, a stream that just ended)."""
    return _REASONS.get(reason or "")


class Ending:
    """Takes :data:`END` out of a stream whose pieces may cut it anywhere."""

    def __init__(self) -> None:
        self._held = ""
        self.seen = False
        """Whether the token came; nothing after it is let through."""

    def feed(self, piece: str) -> str:
        """What of PIECE, and of what was held back, is text."""
        if self.seen:
            return ""
        text = self._held + piece
        place = text.find(END)
        if place >= 0:
            self.seen = True
            self._held = ""
            return text[:place]
        keep = _partial(text)
        self._held = text[len(text) - keep:] if keep else ""
        return text[:len(text) - keep] if keep else text

    def finish(self) -> str:
        """What was held back and turned out to be text."""
        text, self._held = self._held, ""
        return text


def _partial(text: str) -> int:
    """Characters at the end of TEXT that may be the beginning of the token."""
    place = text.rfind("<", max(0, len(text) - len(END) + 1))
    return len(text) - place if place >= 0 and END.startswith(text[place:]) else 0
