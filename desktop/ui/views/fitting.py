"""Text that is given lines instead of being cut, and a record of what had to be cut after all."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetrics, QTextLayout, QTextOption

_JOINER = re.compile(r"(?<=\w)([_\-.])(?=\w)")

on_cut: Callable[[str], None] | None = None
"""Called with every text that did not fit and was shortened (the tests listen here)."""


def wrapped(text: str, font: QFont, width: int, most: int = 2) -> list[str]:
    """TEXT in at most MOST lines of WIDTH pixels; the last one is shortened where need be."""
    # Names are made of few words: they may also be parted after a joining character.
    lines, cut = _wrapped(_JOINER.sub("\\1\u200b", text), font.toString(), width, most)
    if cut and on_cut is not None:
        on_cut(text)
    return list(lines)


@lru_cache(maxsize=2048)
def _wrapped(text: str, font_name: str, width: int, most: int) -> tuple[tuple[str, ...], bool]:
    font = QFont()
    font.fromString(font_name)
    metrics = QFontMetrics(font)
    if width <= 0:
        return ((text,), True)
    if metrics.horizontalAdvance(text) <= width:
        return ((text,), False)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    layout = QTextLayout(text, font)
    layout.setTextOption(option)
    layout.beginLayout()
    lines: list[str] = []
    start = 0
    while len(lines) < most:
        line = layout.createLine()
        if not line.isValid():
            break
        line.setLineWidth(width)
        start = line.textStart()
        lines.append(text[start:start + line.textLength()].strip(" \u200b"))
    layout.endLayout()
    rest = text[start:].strip(" \u200b")
    cut = metrics.horizontalAdvance(rest) > width
    if cut:
        lines[-1] = metrics.elidedText(rest, Qt.TextElideMode.ElideMiddle, width)
    return tuple(lines), cut
