"""Large initials, put back in front of the word that they begin."""

from __future__ import annotations

from statistics import median

from desktop.engines.embedded.model import Block, Word

_LARGE = 1.7
"""Sizes of the text from which on a letter is an initial."""


def attach(block: Block) -> None:
    """Join the initial of BLOCK, if it has one, with its first word; its line goes away."""
    if len(block.lines) < 3 or block.label not in ("text", "list"):
        return
    usual = median(line.size for line in block.lines)
    for initial in block.lines:
        if not initial.words or len(initial.text) > 2 or initial.size < _LARGE * usual:
            continue
        middle = (initial.box[1] + initial.box[3]) / 2
        beside = [line for line in block.lines if line is not initial and line.words
                  and line.box[0] > initial.box[0] and line.box[1] < middle]
        if beside:
            first = min(beside, key=lambda line: (line.box[1], line.box[0]))
            word = first.words[0]
            first.words[0] = Word(initial.text + word.text, word.box, word.style)
            block.lines.remove(initial)
        return
