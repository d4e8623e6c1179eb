"""The words that a digital page carries, with fonts, lines and pictures around them.

On the hot path: everything comes from the page's display list, and text is split into words by
MuPDF; only what a word looks like is looked up here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any

import pymupdf

from desktop.intake.words import BOLD, ITALIC, MONOSPACE, SUPERSCRIPT, PageWords, Word

_Box = tuple[float, float, float, float]

# Without PRESERVE_LIGATURES "ﬁ" comes as "fi"; without CID_FOR_UNKNOWN an unmapped glyph comes
# as U+FFFD and not as a letter that is not on the page.
_TEXT = pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_MEDIABOX_CLIP
_VECTORS = pymupdf.TEXT_COLLECT_VECTORS | pymupdf.TEXT_MEDIABOX_CLIP
_IMAGES = pymupdf.TEXT_PRESERVE_IMAGES | pymupdf.TEXT_MEDIABOX_CLIP

_PAINTED = 16 | 32
"""Bits of a span's char_flags: filled, stroked. Neither: render mode 3, invisible."""
_THIN = 3.0
"""Points: what is drawn thinner than this and longer than _LONG is a rule."""
_LONG = 6.0
_MOST_RULES = 4000
_MOST_PATHS = 40_000
"""A drawing with more paths than this is no table."""
_SUBSET = re.compile(r"^[A-Z]{6}\+")

_STYLE = tuple(
    (BOLD if flags & pymupdf.TEXT_FONT_BOLD else 0)
    | (ITALIC if flags & pymupdf.TEXT_FONT_ITALIC else 0)
    | (SUPERSCRIPT if flags & pymupdf.TEXT_FONT_SUPERSCRIPT else 0)
    | (MONOSPACE if flags & pymupdf.TEXT_FONT_MONOSPACED else 0)
    for flags in range(32)
)


def text_layer(page: pymupdf.Page, pictures: pymupdf.DisplayList, zoom: float,
               pixmap: pymupdf.Pixmap, clockwise: int) -> PageWords | None:
    """The words of PAGE in pixels of PIXMAP turned CLOCKWISE; None where it has none."""
    place = _Placing(zoom, pixmap, clockwise)
    words, fonts, invisible = _words(pictures, place, zoom)
    if not words:
        return None
    images = [tuple(info["bbox"]) for info in _textpage(pictures, _IMAGES).extractIMGINFO()]
    if invisible < len(words) and _covered(page, images):
        invisible = len(words)
    return PageWords(words, fonts, [place(box) for box in _rules(pictures)],
                     [place(box) for box in images], invisible / len(words))


class _Placing:
    """Points of the page → pixels of the turned bitmap."""

    def __init__(self, zoom: float, pixmap: pymupdf.Pixmap, clockwise: int) -> None:
        self._zoom = zoom
        self._x, self._y = pixmap.x, pixmap.y
        self._width, self._height = float(pixmap.width), float(pixmap.height)
        self._turn = clockwise % 360

    def __call__(self, box: Any) -> _Box:
        zoom, width, height = self._zoom, self._width, self._height
        x1, y1 = box[0] * zoom - self._x, box[1] * zoom - self._y
        x2, y2 = box[2] * zoom - self._x, box[3] * zoom - self._y
        # A word may reach over the edge; its box must not.
        x1, x2 = min(max(x1, 0.0), width), min(max(x2, 0.0), width)
        y1, y2 = min(max(y1, 0.0), height), min(max(y2, 0.0), height)
        if self._turn == 0:
            return x1, y1, x2, y2
        if self._turn == 90:
            return height - y2, x1, height - y1, x2
        if self._turn == 180:
            return width - x2, height - y2, width - x1, height - y1
        return y1, width - x2, y2, width - x1


def _textpage(pictures: pymupdf.DisplayList, flags: int) -> pymupdf.TextPage:
    return pymupdf.TextPage(pictures.get_textpage(flags))


def _words(pictures: pymupdf.DisplayList, place: _Placing,
           zoom: float) -> tuple[list[Word], list[str], int]:
    """The words, the fonts they name and how many of the words are invisible."""
    textpage = _textpage(pictures, _TEXT)
    found = textpage.extractWORDS()
    if not found:
        return [], [], 0
    blocks = {block["number"]: block["lines"] for block in textpage.extractDICT()["blocks"]
              if block["type"] == 0}
    words: list[Word] = []
    fonts: dict[str, int] = {}
    invisible = 0
    current: tuple[int, int] | None = None
    line = -1
    cursor = 0
    text = ""
    starts: list[int] = []
    looks: list[tuple[float, int, int, bool]] = []
    for x1, y1, x2, y2, word, block_number, line_number, _number in found:
        if (block_number, line_number) != current:
            current = (block_number, line_number)
            line += 1
            cursor = 0
            text, starts, looks = _line(blocks[block_number][line_number], fonts, zoom)
        at = text.find(word, cursor)
        if at >= 0:
            cursor = at + len(word)
            middle = at + len(word) // 2
            size, style, font, hidden = looks[bisect_right(starts, middle) - 1]
        else:
            size, style, font, hidden = looks[0]
        invisible += hidden
        words.append(Word(word, place((x1, y1, x2, y2)), line, size, style, font))
    return words, list(fonts), invisible


def _line(line: dict[str, Any], fonts: dict[str, int],
          zoom: float) -> tuple[str, list[int], list[tuple[float, int, int, bool]]]:
    """A line's text, where its spans start in it, and size, style, font and hidden of each."""
    parts: list[str] = []
    starts: list[int] = []
    looks: list[tuple[float, int, int, bool]] = []
    length = 0
    for span in line["spans"]:
        font = fonts.setdefault(_SUBSET.sub("", span["font"]), len(fonts))
        starts.append(length)
        looks.append((round(span["size"] * zoom, 2), _STYLE[span["flags"] & 31], font,
                      not span["char_flags"] & _PAINTED))
        parts.append(span["text"])
        length += len(span["text"])
    return "".join(parts), starts, looks


def _rules(pictures: pymupdf.DisplayList) -> list[_Box]:
    """Thin lines, the edges of stroked rectangles among them."""
    paths = _textpage(pictures, _VECTORS).extractDICT()["blocks"]
    rules: list[_Box] = []
    for path in paths[:_MOST_PATHS]:
        if path["type"] != 3:
            continue
        x1, y1, x2, y2 = path["bbox"]
        width, height = x2 - x1, y2 - y1
        if min(width, height) <= _THIN:
            if max(width, height) >= _LONG:
                rules.append((x1, y1, x2, y2))
        elif path["stroked"] and path["isrect"]:
            rules += [(x1, y1, x2, y1), (x1, y2, x2, y2), (x1, y1, x1, y2), (x2, y1, x2, y2)]
        if len(rules) >= _MOST_RULES:
            break
    return rules


def _covered(page: pymupdf.Page, images: list[Any]) -> bool:
    """Whether a picture of the whole page is painted over the text, as some scanners do it."""
    area = page.rect.width * page.rect.height
    if not any((x2 - x1) * (y2 - y1) > 0.8 * area for x1, y1, x2, y2 in images):
        return False
    text = 0
    for kind, box in reversed(page.get_bboxlog()):
        if kind == "fill-text":
            text += 1
        elif kind == "fill-image" and (box[2] - box[0]) * (box[3] - box[1]) > 0.8 * area:
            return text == 0
    return False
