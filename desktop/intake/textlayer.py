"""The words that a digital page carries, with fonts, lines and pictures around them.

On the hot path: everything comes from the page's display list, and text is split into words by
MuPDF; only what a word looks like is looked up here.
"""

from __future__ import annotations

import re
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
_WORD = re.compile(r"[^\s\u200b\u200e\u200f\u2060\ufeff\x00-\x1f]+")
"""Spaces of every width part words; marks without width are no words."""
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
    images = image_boxes(pictures)
    hidden = invisible / len(words)
    if hidden < 1.0:
        hidden = max(hidden, _covered(page, images))
    return PageWords(words, fonts, [place(box) for box in _rules(pictures)],
                     [place(box) for box in images], hidden)


def has_visible_text(pictures: pymupdf.DisplayList) -> bool:
    """Whether any text is painted on the page."""
    return any(span["char_flags"] & _PAINTED and _WORD.search(span["text"])
               for block in _textpage(pictures, _TEXT).extractDICT()["blocks"]
               if block["type"] == 0 for line in block["lines"] for span in line["spans"])


def image_boxes(pictures: pymupdf.DisplayList) -> list[_Box]:
    """Where the page's pictures are, in points."""
    return [tuple(info["bbox"]) for info in _textpage(pictures, _IMAGES).extractIMGINFO()]


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
    words: list[Word] = []
    fonts: dict[str, int] = {}
    invisible = 0
    line_number = -1
    for block in _textpage(pictures, _TEXT).extractRAWDICT()["blocks"]:
        if block["type"] != 0:
            continue
        for line in block["lines"]:
            line_number += 1
            for text, box, span in _line(line["spans"]):
                font = fonts.setdefault(_SUBSET.sub("", span["font"]), len(fonts))
                invisible += not span["char_flags"] & _PAINTED
                words.append(Word(text, place(box), line_number, round(span["size"] * zoom, 2),
                                  _STYLE[span["flags"] & 31], font))
    return words, list(fonts), invisible


def _line(spans: list[dict[str, Any]]) -> list[tuple[str, _Box, dict[str, Any]]]:
    """The words of a line: text, box and the span that most of it comes from.

    MuPDF begins a span wherever font, size or colour change, also inside a word: "Wor" and
    "ld" of two spans are one word unless there is a space between them.
    """
    words: list[tuple[str, _Box, dict[str, Any]]] = []
    longest = 0
    joined = False
    for span in spans:
        chars = span["chars"]
        text = "".join([char["c"] for char in chars])
        for match in _WORD.finditer(text):
            start, end = match.span()
            # The characters between the first and the last lie between them, whichever way
            # the line runs.
            box = _union(chars[start]["bbox"], chars[end - 1]["bbox"])
            if start == 0 and joined:
                before, before_box, before_span = words[-1]
                if end > longest:
                    longest, before_span = end, span
                words[-1] = before + match[0], _union(before_box, box), before_span
            else:
                words.append((match[0], box, span))
                longest = end - start
        joined = bool(words) and bool(text) and _WORD.match(text[-1]) is not None
    return words


def _union(one: _Box, other: _Box) -> _Box:
    return (min(one[0], other[0]), min(one[1], other[1]),
            max(one[2], other[2]), max(one[3], other[3]))


def _rules(pictures: pymupdf.DisplayList) -> list[_Box]:
    """Thin lines, the edges of stroked rectangles among them."""
    vectors = _textpage(pictures, _VECTORS)
    if not _fewer_blocks(vectors, _MOST_PATHS):
        return []
    rules: list[_Box] = []
    for path in vectors.extractDICT()["blocks"]:
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


def _fewer_blocks(textpage: pymupdf.TextPage, limit: int) -> bool:
    # Counted before they become Python objects, which takes ten times as long.
    block = textpage.this.m_internal.first_block
    while block and limit:
        block = block.next
        limit -= 1
    return limit > 0


def _covered(page: pymupdf.Page, images: list[Any]) -> float:
    """The share of texts over which a picture of the whole page is painted, as some scanners
    hide what they recognised."""
    area = page.rect.width * page.rect.height
    if not any((x2 - x1) * (y2 - y1) > 0.8 * area for x1, y1, x2, y2 in images):
        return 0.0
    texts = covered = 0
    for kind, box in page.get_bboxlog():
        if kind in ("fill-text", "stroke-text", "ignore-text"):
            texts += 1
        elif kind == "fill-image" and (box[2] - box[0]) * (box[3] - box[1]) > 0.8 * area:
            covered = texts
    return covered / texts if texts else 0.0
