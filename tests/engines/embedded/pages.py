"""Pages made of words in code, and what the engine writes of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from desktop.engines.embedded import blocks, headings, refine, textlayer, write
from desktop.engines.embedded.layout import Found
from desktop.engines.embedded.model import Block, Line
from desktop.intake.words import PageWords, Word

WIDTH, HEIGHT = 1000.0, 1400.0


def layer(*groups: Sequence[Word]) -> PageWords:
    """A text layer of the words of each line."""
    return PageWords([word for group in groups for word in group], ["Font"], [], [])


class Page:
    """Lines are set one by one; every character is half as wide as high."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self._line = 0

    def line(self, text: str, x: float = 100, y: float = 100, size: float = 20,
             style: int = 0, gap: float = 0.25) -> Page:
        """Set TEXT with its left end at X and its foot at Y; words are GAP sizes apart."""
        for word in text.split(" "):
            width = sum(size if ord(c) > 0x2e80 else size / 2 for c in word)
            self.words.append(Word(word, (x, y - size, x + width, y), self._line, size, style, 0))
            x += width + gap * size
        self._line += 1
        return self

    def column(self, texts: Iterable[str], x: float = 100, y: float = 100, pitch: float = 26,
               size: float = 20, style: int = 0) -> Page:
        """Set TEXTS below each other."""
        for number, text in enumerate(texts):
            self.line(text, x, y + number * pitch, size, style)
        return self

    def lines(self) -> list[Line]:
        """The lines as the text layer gives them."""
        return textlayer.lines_of(PageWords(self.words, ["Font"], [], []))

    def blocks(self, regions: Sequence[Found] = ()) -> list[Block]:
        """The blocks in reading order, refined."""
        lines = self.lines()
        built = blocks.build(lines, blocks.Sheet(WIDTH, HEIGHT, list(regions)))
        headings.set_levels(built, blocks.body_size(lines))
        return [part for block in built for part in refine.refine(block, HEIGHT)]

    def written(self, regions: Sequence[Found] = ()) -> list[tuple[str, str]]:
        """Label and Markdown of each block."""
        return [(block.label, write.markdown(block)) for block in self.blocks(regions)]
