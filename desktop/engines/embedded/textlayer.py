"""A digital page's own words: are they what the page shows, and as lines."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from itertools import groupby

import cv2

from desktop.engines.embedded import scripts
from desktop.engines.embedded.bitmap import gray, ink
from desktop.engines.embedded.model import MONOSPACE, Box, Line, Pixels, Word, overlap, rows, union
from desktop.engines.embedded.recognize import Recognizer, slice_of
from desktop.intake import words as intake

_SAMPLES = 4
_WIDEST = 8.0
"""Width over height of the longest sample: what recognising it costs goes by that."""
_AGREES, _AGREES_HIDDEN = 0.7, 0.92
_FEW = 60
"""Words from which on a page is taken to speak for itself."""
_UNTOLD = 0.6
"""Share of what stands out from the paper that no word accounts for, if most is told."""
_MARK_GAP = 3.5
"""Sizes of the type between the mark of an item and its text."""
_COLUMN_GAP = 1.5
"""Font sizes between two words from which on they are two pieces of text, not one."""


def lines_of(page: intake.PageWords) -> list[Line]:
    """The words of PAGE as lines, cut where a gap is wider than one between words."""
    groups = [[word for word in group if word.text.strip()]
              for _, group in groupby(page.words, key=lambda word: word.line)]
    hidden = _hides_hyphens(page.words)
    leftwards = scripts.leftwards("".join(word.text for word in page.words))
    lines: list[Line] = []
    for members in scripts.stacked([group for group in groups if group]):
        vertical = _vertical(members, union([word.box for word in members]))
        if vertical:
            lines.append(_line(members, hidden, vertical=True))
            continue
        if scripts.leftwards("".join(word.text for word in members), some=leftwards):
            lines += [_line(piece, hidden, leftwards=True)
                      for piece in _columns(scripts.leftward_line(members))]
            continue
        piece: list[intake.Word] = []
        for word in members:
            if piece and _apart(piece[-1], word):
                lines.append(_line(piece, hidden))
                piece = []
            piece.append(word)
        lines.append(_line(piece, hidden))
    if leftwards:
        lines = _leftward_joined(lines)
    lines = _entries_joined(_marks_joined(lines))
    typed = sum(len(line.text) for line in lines if line.style & MONOSPACE)
    if typed > 0.6 * sum(len(line.text) for line in lines):
        # Where all is set like that, it does not tell code from text.
        for line in lines:
            line.style &= ~MONOSPACE
    return lines


_MARK = re.compile(r"^(?:[•●○▪■□◦‣⁃∙·➢➤►▶✓✔☐☑☒–—-]|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)]"
                   r"|\[\d{1,3}\])$")


def _marks_joined(lines: list[Line]) -> list[Line]:
    """LINES with the mark of a list item that a tab parts from its text put before it."""
    marks = [line for line in lines if len(line.words) == 1 and not line.vertical
             and _MARK.match(line.words[0].text)]
    gone: set[int] = set()
    for mark in marks:
        beside = [line for line in lines if line is not mark and id(line) not in gone
                  and not line.vertical and line.leftwards == mark.leftwards
                  and 0 <= line.box[0] - mark.box[2] < _MARK_GAP * mark.size
                  and overlap(line.box[1], line.box[3], mark.box[1], mark.box[3])
                  > 0.5 * min(line.box[3] - line.box[1], mark.box[3] - mark.box[1])]
        if len(beside) != 1 or not any(c.isalpha() for c in beside[0].text):
            continue
        line = beside[0]
        line.words = [*mark.words, *line.words]
        line.box = union([mark.box, line.box])
        gone.add(id(mark))
    return [line for line in lines if id(line) not in gone]


_LEADER = re.compile(r"(?:[.·…‥]\s*){4,}(\w{1,5})?$")
_FOLIO = re.compile(r"^(?:\d{1,4}|[ivxlc]{1,6})$", re.IGNORECASE)


def _entries_joined(lines: list[Line]) -> list[Line]:
    """LINES with those entries of a table of contents that have no dots joined with their page
    number, which stands under those of the entries that have."""
    edges = [line.box[2] for line in lines if not line.vertical and _LEADER.search(line.text)]
    if len(edges) < 3:
        return lines
    gone: set[int] = set()
    for folio in lines:
        if not _FOLIO.match(folio.text) or min(abs(folio.box[2] - x) for x in edges) > folio.size:
            continue
        beside = [line for line in lines if line is not folio and line.box[2] <= folio.box[0]
                  and overlap(line.box[1], line.box[3], folio.box[1], folio.box[3])
                  > 0.5 * (folio.box[3] - folio.box[1])]
        if beside:
            entry = max(beside, key=lambda line: line.box[2])
            entry.words = [*entry.words, *folio.words]
            entry.box = union([entry.box, folio.box])
            gone.add(id(folio))
    return [line for line in lines if id(line) not in gone]


def _hides_hyphens(words: list[intake.Word]) -> bool:
    """Whether the soft hyphens inside words are not seen on the page.

    Programs that hyphenate leave one at every place where a word might have been broken; old
    fonts have the visible hyphen under the same code.
    """
    inside = sum("\u00ad" in word.text[1:-1] for word in words)
    return inside > 0 and (inside > 0.05 * len(words) or any(
        "-" in word.text or "\u2010" in word.text for word in words))


def _vertical(members: list[intake.Word], box: Box) -> bool:
    width, height = box[2] - box[0], box[3] - box[1]
    return height > 1.8 * width and sum(len(word.text) for word in members) > 2


def _columns(members: list[intake.Word]) -> list[list[intake.Word]]:
    """MEMBERS of a right-to-left line cut at wide gaps, each part in its own order: words of
    another script in it run the other way."""
    cuts: list[float] = []
    reached = float("-inf")
    for word in sorted(members, key=lambda word: word.box[0]):
        if word.box[0] - reached > _COLUMN_GAP * max(word.size, 1.0):
            cuts.append(word.box[0])
        reached = max(reached, word.box[2])
    parts: dict[int, list[intake.Word]] = {}
    for word in members:
        parts.setdefault(sum(x <= word.box[0] for x in cuts), []).append(word)
    return [parts[index] for index in sorted(parts, reverse=True)]


def _leftward_joined(lines: list[Line]) -> list[Line]:
    """LINES of a page that is read from right to left with their pieces put together: they come
    parted where another script begins."""
    joined = [line for line in lines if line.vertical]
    for row in rows([line for line in lines if not line.vertical]):
        row.sort(key=lambda line: -line.box[2])
        current = row[0]
        for line in row[1:]:
            # The box of a word in both scripts lacks the part that runs the other way.
            lacking = 0.5 * sum("a" <= c.lower() <= "z" for c in current.words[-1].text)
            if current.box[0] - line.box[2] < (_COLUMN_GAP + lacking) * current.size:
                longer = max(current, line, key=lambda part: len(part.text))
                current = Line(union([current.box, line.box]), longer.size,
                               [*current.words, *line.words], style=longer.style,
                               leftwards=current.leftwards or line.leftwards)
            else:
                joined.append(current)
                current = line
        joined.append(current)
    return joined


def _apart(left: intake.Word, right: intake.Word) -> bool:
    gap = right.box[0] - left.box[2]
    size = max(left.size, right.size, 1.0)
    return gap > _COLUMN_GAP * size or gap < -2 * size


def _line(members: list[intake.Word], hidden: bool, *, vertical: bool = False,
          leftwards: bool = False) -> Line:
    weights = [len(word.text) for word in members]
    total = sum(weights)
    size = sum(word.size * weight for word, weight in zip(members, weights, strict=True)) / total
    style = 0
    for bit in (intake.BOLD, intake.ITALIC, intake.MONOSPACE):
        share = sum(w for word, w in zip(members, weights, strict=True) if word.style & bit)
        if share > 0.6 * total:
            style |= bit
    words = [Word(clean(word.text, hidden), word.box, word.style) for word in members]
    box = union([word.box for word in members])
    if vertical and all(len(word.text) == 1 for word in words):
        words = [Word("".join(word.text for word in words), box, style)]
    return Line(box, size, words, style=style, vertical=vertical, leftwards=leftwards)


_LIGATURES = {ord(c): unicodedata.normalize("NFKC", c) for c in "ﬀﬁﬂﬃﬄﬅﬆ"}
_LIGATURES.update({0xA0: " ", 0x200B: None, 0xFEFF: None})  # type: ignore[dict-item]
_BROKEN = re.compile(r"(?<=\w)[-\u2010]?\u00ad[-\u2010]?$")
"""The hyphen at which a word was broken: a soft one, that which is seen, or both."""


def clean(text: str, hidden: bool = True) -> str:
    """TEXT with ligatures spelled out and invisible characters removed.

    A soft hyphen stays at the end, where a word is broken; within a word it is dropped if
    HIDDEN, else it is a hyphen.
    """
    text = unicodedata.normalize("NFC", text.translate(_LIGATURES))
    if "\u00ad" in text:
        broken = _BROKEN.search(text)
        text = text[:broken.start()] if broken else text
        text = text.replace("\u00ad", "" if hidden else "-") + ("\u00ad" if broken else "")
    return text.replace("‘‘", "“").replace("’’", "”").replace("``", "“")


def trusted(page: intake.PageWords, image: Pixels, recognizer: Recognizer,
            known: Callable[[str], bool], verified: Callable[[Iterable[str]], None]) -> bool:
    """Whether the words say what IMAGE shows.

    A few short pieces are recognised and compared. Fonts for which KNOWN says so are not looked
    at again; those that agreed are reported to VERIFIED. A layer in a script that the recogniser
    does not have cannot be compared: it is believed if its characters are sane and it is not an
    OCR layer.
    """
    words = [word for word in page.words if word.text.strip()]
    if not words or not _sane(words):
        return False
    readable = [word for word in words if _readable(word.text, recognizer)]
    hidden = page.hidden > 0.5
    if len(readable) < 0.5 * len(words):
        return not hidden
    unknown = readable if hidden else [w for w in readable if not known(page.fonts[w.font])]
    if sum(len(w.text) for w in unknown) < 0.03 * sum(len(w.text) for w in words):
        return True
    samples = _samples(unknown, 3 * _SAMPLES if hidden else _SAMPLES)
    crops = [slice_of(image, word.box) for word in samples]
    agreement = [_agreement(word.text, reading.text) for word, reading in
                 zip(samples, recognizer.read(crops), strict=True)]
    if not agreement:
        return True
    believed = {w.font for w in readable} - {w.font for w in unknown}
    if _weighed(samples, agreement, words, believed) < (_AGREES_HIDDEN if hidden else _AGREES):
        return False
    if not hidden:
        verified({page.fonts[word.font] for word, value in zip(samples, agreement, strict=True)
                  if value >= _AGREES})
    return True


def tells_all(page: intake.PageWords, image: Pixels) -> bool:
    """Whether the words are most of what there is to read.

    Pages with few words of their own and much else standing out from the paper – slides of
    screenshots, scans with a stamped date – have more to say than their text layer does.
    """
    if len(page.words) >= _FEW:
        return True
    marks = ink(gray(image))
    everything = cv2.countNonZero(marks)
    for x1, y1, x2, y2 in [*(word.box for word in page.words), *page.rules]:
        marks[max(0, int(y1) - 3):int(y2) + 4, max(0, int(x1) - 3):int(x2) + 4] = 0
    untold = cv2.countNonZero(marks)
    if untold < max(_UNTOLD * everything, 0.002 * marks.size):
        return True
    _x, _y, width, height = cv2.boundingRect(marks)
    return bool(width * height < 0.05 * marks.size)


def _weighed(samples: list[intake.Word], agreement: list[float], words: list[intake.Word],
             believed: set[int]) -> float:
    """Mean AGREEMENT of SAMPLES, a long word counting more than a letter, and a font by how much
    of the page is set in it: a note in the margin that is not to be seen decides nothing, nor
    does one garbled font on a page whose other fonts are BELIEVED already."""
    share: dict[int, int] = {}
    for word in words:
        share[word.font] = share.get(word.font, 0) + len(word.text)
    agrees = dict.fromkeys(believed & share.keys(), 1.0)
    for font in {word.font for word in samples}:
        own = [(min(len(word.text), 10), value) for word, value
               in zip(samples, agreement, strict=True) if word.font == font]
        agrees[font] = sum(weight * value for weight, value in own) / sum(w for w, _ in own)
    return (sum(share[font] * value for font, value in agrees.items())
            / sum(share[font] for font in agrees))


def _sane(words: list[intake.Word]) -> bool:
    text = "".join(word.text for word in words)
    odd = sum(unicodedata.category(c) in ("Co", "Cn", "Cc", "Cs") or c == "�" for c in text)
    return odd <= 0.05 * len(text)


def _readable(text: str, recognizer: Recognizer) -> bool:
    return all(c in recognizer.alphabet for c in clean(text))


def _samples(words: list[intake.Word], count: int) -> list[intake.Word]:
    """Words worth comparing: letters, long but not wide, from all over the page and every font."""
    def worth(word: intake.Word) -> float:
        width, height = word.box[2] - word.box[0], word.box[3] - word.box[1]
        if height < 4 or width < 4 or width > _WIDEST * height or height > 2.2 * width:
            return 0.0
        return sum(c.isalpha() for c in word.text) + 0.2 * len(word.text)

    chosen: list[intake.Word] = []
    fonts: dict[int, int] = {}
    for word in words:
        fonts[word.font] = fonts.get(word.font, 0) + len(word.text)
    for font in sorted(fonts, key=lambda f: -fonts[f])[:count]:
        share = max(1, round(count * fonts[font] / sum(fonts.values())))
        own = [word for word in words if word.font == font and worth(word) > 0]
        stripe = max(1, len(own) // share)
        for start in range(0, len(own), stripe):
            if len(chosen) < 2 * count and start // stripe < share:
                chosen.append(max(own[start:start + stripe], key=worth))
    return chosen


def _agreement(written: str, read: str) -> float:
    a, b = _compared(written), _compared(read)
    return SequenceMatcher(None, a, b, autojunk=False).ratio() if a else 1.0


def _compared(text: str) -> str:
    folded = unicodedata.normalize("NFKD", clean(text)).casefold()
    return "".join(c for c in folded if c.isalnum())
