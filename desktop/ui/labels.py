"""What the window calls the labels of blocks, and their colours: one place for all views.

The colours are safe for colour-blind people (after Okabe and Ito); a label is never told by its
colour alone. Labels are an open set: an unknown one gets the colour of text and its own name.
Qt-free.
"""

from __future__ import annotations

from dataclasses import dataclass

from desktop.i18n import N_, _


@dataclass(frozen=True)
class LabelStyle:
    """How blocks of one label are drawn. ``dashed``: a crop of the page, no text."""

    title: str
    colour: str
    dashed: bool = False
    dark_colour: str = ""
    """A lighter tone for a dark ground, where the colour itself is too dark."""

    def on(self, dark: bool) -> str:
        """The colour for a view whose ground is DARK (the page bitmap itself is light)."""
        return self.dark_colour if dark and self.dark_colour else self.colour


_TITLE = ("#0072b2", "#4fb3ea")
_TEXT = ("#6b7280", "#a3acba")
_TABLE = ("#d98e04", "#f0ad34")
_EQUATION = ("#7b4fb5", "#b493e6")
_IMAGE = ("#1a9e5c", "#4cc98b")
_CAPTION = ("#0f8b8d", "#45bfc1")
_FURNITURE = ("#9aa3af", "#7f8998")


def _style(title: str, tones: tuple[str, str], *, dashed: bool = False) -> LabelStyle:
    return LabelStyle(title, tones[0], dashed, tones[1])


LABELS: dict[str, LabelStyle] = {
    "title": _style(N_("title"), _TITLE),
    "sub_title": _style(N_("heading"), _TITLE),
    "text": _style(N_("text"), _TEXT),
    "list": _style(N_("list"), _TEXT),
    "code": _style(N_("code"), _TEXT),
    "table": _style(N_("table"), _TABLE),
    "table_caption": _style(N_("table caption"), _CAPTION),
    "table_footnote": _style(N_("table note"), _CAPTION),
    "image": _style(N_("image"), _IMAGE, dashed=True),
    "image_caption": _style(N_("image caption"), _CAPTION),
    "equation": _style(N_("equation"), _EQUATION),
    "equation_image": _style(N_("equation (image)"), _EQUATION, dashed=True),
    "header": _style(N_("header"), _FURNITURE),
    "footer": _style(N_("footer"), _FURNITURE),
    "page_number": _style(N_("page number"), _FURNITURE),
}
"""Label → style, for the labels that are known."""


def style_of(label: str) -> LabelStyle:
    """The style of LABEL; one that is not known looks like text and is called by its own name."""
    known = LABELS.get(label)
    if known is not None:
        return known
    return _style(label.replace("_", " ") or N_("text"), _TEXT)


def colour_of(label: str, dark: bool = False) -> str:
    """The colour of LABEL as ``#rrggbb``."""
    return style_of(label).on(dark)


def title_of(label: str) -> str:
    """What a person reads for LABEL, in the current language."""
    return _(style_of(label).title)


DOUBTFUL = 0.7
"""Blocks the engine is less sure of are marked: compare them with the page."""


def doubtful(confidence: float | None) -> bool:
    """Whether a block of this CONFIDENCE (0–1, None: unknown) should be looked at."""
    return confidence is not None and confidence < DOUBTFUL
