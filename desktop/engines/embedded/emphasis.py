"""Bold print, told by its strokes where no font says so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from desktop.engines.embedded.model import BOLD, Line, Pixels
from desktop.engines.embedded.recognize import slice_of

_HEAVIER, _HEAVIER_LESS_SURE = 1.22, 1.32
"""Times the page's usual stroke from which on a line is bold; more where strokes differ more."""
_CONTRAST = 40
"""Gray levels by which ink differs from its ground."""


def set_bold(lines: Sequence[Line], luminance: Pixels) -> None:
    """Mark those of LINES as bold whose strokes are clearly heavier than the page's usual ones.

    Strokes are measured against the size of the type, so that large print is not bold for being
    large.
    """
    kinds: dict[str, list[Line]] = {}
    for line in lines:
        if not line.vertical and (kind := _kind(line)):
            kinds.setdefault(kind, []).append(line)
    for kind, members in kinds.items():
        least = _HEAVIER if kind == "letters" else _HEAVIER_LESS_SURE
        weights = [_stroke(slice_of(luminance, line.box)) / max(line.size, 1.0)
                   for line in members]
        known = sorted((weight, line.box[2] - line.box[0]) for line, weight in
                       zip(members, weights, strict=True) if weight)
        if len(known) < 4:
            continue
        running = np.cumsum([width for _, width in known])
        usual = known[int(np.searchsorted(running, running[-1] / 2))][0]
        for line, weight in zip(members, weights, strict=True):
            if weight > least * usual:
                line.style |= BOLD


def _kind(line: Line) -> str:
    """Lines of which kind LINE can be compared with; "" for none."""
    text = line.text
    if not text:
        return "unread"
    if "__" in text:
        return ""
    if sum("\u2e80" <= c <= "\u9fff" or "\uac00" <= c <= "\ud7a3" for c in text) > len(text) / 2:
        return "square"
    # Figures and capitals are drawn a little heavier or lighter than small letters.
    return "letters" if sum(map(str.islower, text)) > 2 else ""


def _stroke(part: Pixels) -> float:
    """Mean width of the strokes in pixels; 0 where it cannot be told."""
    if min(part.shape) < 8:
        return 0.0
    ground = float(np.median(part))
    ink = np.abs(part.astype(np.float32) - ground)
    most = float(np.percentile(ink, 97))
    if most < _CONTRAST:
        return 0.0
    ink = np.minimum(ink / most, 1.0)
    mask = ink > 0.5
    runs = int(mask[:, 0].sum() + (mask[:, 1:] & ~mask[:, :-1]).sum())
    return float(ink.sum()) / runs if runs >= 8 else 0.0
