"""Makes ``resources/samples/sample.pdf``, the document behind “try the sample”.

Three pages of the project's own making with what a real document has: a title, two columns,
headings of two levels, a list, a table with spans, a formula, a figure with its caption, running
header, footer and page numbers. Beside it goes ``tests/samples/sample_expected.json``: the parts
in reading order, for tests. Run it with ``python packaging/make_sample.py``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pymupdf

ROOT = Path(__file__).resolve().parent.parent
PAGE = pymupdf.Rect(0, 0, 595, 842)  # A4 in points
LEFT, MIDDLE, RIGHT = 54, 297.5, 541
GAP = 20
TOP, BOTTOM = 92, 776
SERIF, SERIF_BOLD, SERIF_ITALIC = "tiro", "tibo", "tiit"
SANS, SANS_BOLD = "helv", "hebo"
INK, GREY, BLUE, TEAL, AMBER = (0.1,) * 3, (0.4,) * 3, (0, .447, .698), (0, .62, .45), (.9, .62, 0)

HEADER = "Valley Weather Notes"
FOOTER = "Written for Verso; free to copy"
TITLE = "A Year of Rain in Three Valleys"
AUTHORS = "Ada Lindqvist and Tomás Weber"
ABSTRACT = (
    "Three rain gauges stood in three neighbouring valleys for one year. We describe how they "
    "were read, how much rain they caught in each season, and how far the valleys differ. The "
    "upper valley received almost twice as much rain as the lower one, and most of the "
    "difference fell in autumn."
)
INTRODUCTION = [
    "Rain is easy to notice and hard to measure. A bucket left in the open catches rain, but "
    "also leaves, dew and the curiosity of passing goats. For one year we kept three plain "
    "gauges in three valleys that lie side by side and share one ridge of hills.",
    "The question was simple: does the ridge matter? People in the lower valley say that the "
    "hills take the rain before it reaches them. People in the upper valley say that they would "
    "gladly give some of it away.",
]
MEASURING = [
    "Each gauge was a glass cylinder with a funnel of twenty centimetres on top. It was read "
    "every morning at seven, by the person who lived nearest, and the reading was written into "
    "a notebook with a pencil, because ink runs.",
    "Three rules kept the notebooks comparable:",
]
RULES = [
    "Read at eye level, at the bottom of the curve.",
    "Write a dash when nothing fell, never leave a gap.",
    "Empty the glass only after the reading is on paper.",
]
MISSING = [
    "Of the 1,095 readings that the year asked for, 1,078 were made. The missing ones were "
    "filled with the mean of the day before and the day after, which changes no season by more "
    "than four millimetres.",
]
CALIBRATION = [
    "Before the year began, all three gauges stood together on one lawn for thirty days. They "
    "never differed by more than half a millimetre, and no gauge was always the highest.",
]
RESULTS = [
    "Table 1 gives the rain of each season. The order of the valleys is the same in all of them: "
    "the upper valley is wettest, the lower one driest. In spring and summer the difference is "
    "small. In autumn it is not.",
]
TABLE_CAPTION = "Table 1: Rain caught in each season, in millimetres."
TABLE = [
    [("Valley", 1, 2), ("Growing season", 2, 1), ("Resting season", 2, 1), ("Year", 1, 2)],
    [("Spring", 1, 1), ("Summer", 1, 1), ("Autumn", 1, 1), ("Winter", 1, 1)],
    [("Upper", 1, 1), ("212", 1, 1), ("188", 1, 1), ("431", 1, 1), ("297", 1, 1), ("1128", 1, 1)],
    [("Middle", 1, 1), ("190", 1, 1), ("171", 1, 1), ("286", 1, 1), ("224", 1, 1), ("871", 1, 1)],
    [("Lower", 1, 1), ("164", 1, 1), ("149", 1, 1), ("158", 1, 1), ("142", 1, 1), ("613", 1, 1)],
]
"""Rows of (text, columns spanned, rows spanned)."""
SPREAD = [
    "How unlike the valleys are can be said with one number for each season: the spread, which "
    "is the root of the mean squared distance from the mean of the three,",
]
SPREAD_AFTER = [
    "where x stands for the rain of one valley and the bar for the mean of all three. The spread "
    "is 20 mm in spring, 16 mm in summer, 112 mm in autumn and 63 mm in winter.",
    "Autumn alone therefore makes the year. Without it the upper valley would have received 697 "
    "mm and the lower one 455 mm, which nobody would have remarked on.",
]
WIND = [
    "In autumn the wind came from the west on 61 of 91 days, across the ridge and into the upper "
    "valley. In summer it had no favourite direction. The notebooks record the wind only as a "
    "word, so nothing finer can be said.",
]
FIGURE_CAPTION = "Figure 1: Rain of the four seasons in the upper, middle and lower valley."
MEANING = [
    "The ridge matters, and it matters in autumn. Figure 1 shows the four seasons side by side: "
    "three of them look like one another, and one stands apart.",
    "One year is one year. A wet autumn may have been an accident, and a gauge in each valley "
    "cannot tell a valley from the spot where the gauge stood. We would rather measure for "
    "three more years than write three more pages.",
]
NEXT = [
    "A second gauge has been placed in every valley, higher up the slope. The notebooks, the "
    "pencils and the goats remain the same.",
]
THANKS = [
    "We thank the seven readers, who got up at seven on 365 mornings, and the school of the "
    "middle valley, which lent us the lawn.",
]


class Writer:
    """Puts parts on pages, and remembers them in reading order."""

    def __init__(self) -> None:
        self.document = pymupdf.open()
        self.parts: list[dict[str, Any]] = []
        self.page: pymupdf.Page

    def new_page(self) -> None:
        self.page = self.document.new_page(width=PAGE.width, height=PAGE.height)
        number = len(self.document)
        self.line(LEFT, 50, HEADER, SANS, 8, GREY)
        self.line(RIGHT, 50, "No. 7", SANS, 8, GREY, right=True)
        self.page.draw_line((LEFT, 56), (RIGHT, 56), color=GREY, width=0.5)
        self.line(LEFT, 806, FOOTER, SANS, 8, GREY)
        self.line(RIGHT, 806, str(number), SANS, 9, GREY, right=True)
        self.part("header", HEADER)

    def part(self, label: str, content: Any) -> None:
        self.parts.append({"page": len(self.document), "label": label, "content": content})

    def line(self, x: float, y: float, text: str, font: str, size: float,
             colour: tuple[float, ...] = INK, right: bool = False, centre: bool = False) -> None:
        width = pymupdf.get_text_length(text, fontname=font, fontsize=size)
        x -= width if right else width / 2 if centre else 0
        self.page.insert_text((x, y), text, fontname=font, fontsize=size, color=colour)

    def paragraph(self, x0: float, y: float, x1: float, text: str, font: str = SERIF,
                  size: float = 12, leading: float = 16, indent: float = 0) -> float:
        """Justified lines from Y (the top) down; returns the bottom."""
        space = pymupdf.get_text_length(" ", fontname=font, fontsize=size)
        lines: list[list[str]] = [[]]
        room = x1 - x0 - indent

        def width(words: list[str]) -> float:
            return sum(pymupdf.get_text_length(w, fontname=font, fontsize=size) for w in words)

        for word in text.split():
            if lines[-1] and width([*lines[-1], word]) + space * len(lines[-1]) > room:
                lines.append([])
                room = x1 - x0
            lines[-1].append(word)
        for number, words in enumerate(lines):
            y += leading
            x = x0 + (indent if number == 0 else 0)
            last = number == len(lines) - 1
            gap = space if last or len(words) < 2 else (x1 - x - width(words)) / (len(words) - 1)
            for word in words:
                self.page.insert_text((x, y - leading * .25), word, fontname=font, fontsize=size,
                                      color=INK)
                x += pymupdf.get_text_length(word, fontname=font, fontsize=size) + gap
        return y

    def text(self, x0: float, y: float, x1: float, paragraphs: list[str]) -> float:
        for text in paragraphs:
            y = self.paragraph(x0, y, x1, text) + 5
            self.part("text", text)
        return y

    def heading(self, x: float, y: float, text: str, level: int) -> float:
        size = 14 if level == 2 else 12
        self.line(x, y + 16, text, SANS_BOLD, size)
        self.part(f"heading{level}", text)
        return y + 23

    def numbered(self, x0: float, y: float, x1: float, items: list[str]) -> float:
        for number, item in enumerate(items, 1):
            self.line(x0 + 6, y + 12, f"{number}.", SERIF, 12)
            y = self.paragraph(x0 + 22, y, x1, item) + 2
        self.part("list", items)
        return y + 4


def first_page(out: Writer) -> None:
    out.new_page()
    out.line(PAGE.width / 2, 104, TITLE, SANS_BOLD, 21, centre=True)
    out.part("heading1", TITLE)
    out.line(PAGE.width / 2, 126, AUTHORS, SERIF_ITALIC, 11, centre=True)
    out.part("text", AUTHORS)
    y = out.paragraph(LEFT + 40, 140, RIGHT - 40, ABSTRACT, SERIF_ITALIC, 11, 14.5)
    out.part("text", ABSTRACT)
    top = y + 14
    y = out.heading(LEFT, top, "1 Introduction", 2)
    y = out.text(LEFT, y, MIDDLE - GAP / 2, INTRODUCTION)
    y = out.heading(LEFT, y + 4, "2 How the rain was measured", 2)
    y = out.text(LEFT, y, MIDDLE - GAP / 2, MEASURING)
    out.numbered(LEFT, y, MIDDLE - GAP / 2, RULES)
    x = MIDDLE + GAP / 2
    y = out.heading(x, top, "2.1 Missing readings", 3)
    y = out.text(x, y, RIGHT, MISSING)
    y = out.heading(x, y + 4, "2.2 Calibration", 3)
    out.text(x, y, RIGHT, CALIBRATION)


def table(out: Writer, x0: float, y0: float, x1: float) -> float:
    """Ruled table; returns its bottom."""
    height, columns = 22.0, 6
    width = (x1 - x0) / columns
    taken: set[tuple[int, int]] = set()
    for row, cells in enumerate(TABLE):
        column = 0
        for text, across, down in cells:
            while (row, column) in taken:
                column += 1
            taken |= {(row + r, column + c) for r in range(down) for c in range(across)}
            box = pymupdf.Rect(x0 + column * width, y0 + row * height,
                               x0 + (column + across) * width, y0 + (row + down) * height)
            head = row < 2
            out.page.draw_rect(box, color=INK, width=0.6, fill=(.93, .95, .97) if head else None)
            out.line((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2 + 3.4, text,
                     SANS_BOLD if head or column == 0 else SANS, 9.5, centre=True)
    out.part("table", [[{"text": t, "colspan": c, "rowspan": r} for t, c, r in row]
                       for row in TABLE])
    return y0 + height * len(TABLE)


def formula(out: Writer, x: float, y: float) -> float:
    """s = √( ⅓ Σ (x − x̄)² ), drawn with the Symbol font and strokes."""
    size = 12
    page = out.page
    page.insert_text((x, y), "s", fontname=SERIF_ITALIC, fontsize=size)
    page.insert_text((x + 11, y), "=", fontname=SERIF, fontsize=size)
    page.draw_polyline([(x + 25, y - 3), (x + 28, y - 5), (x + 33, y + 12), (x + 39, y - 20),
                        (x + 133, y - 20)], color=INK, width=0.8)
    page.insert_text((x + 43, y - 6), "1", fontname=SERIF, fontsize=size)
    page.draw_line((x + 41, y - 3.5), (x + 51, y - 3.5), color=INK, width=0.7)
    page.insert_text((x + 43, y + 8), "3", fontname=SERIF, fontsize=size)
    # Code point 0x53 of the Symbol font draws a large sigma.
    page.insert_text((x + 56, y + 3), "S", fontname="symb", fontsize=18)
    page.insert_text((x + 72, y), "(", fontname=SERIF, fontsize=size)
    page.insert_text((x + 78, y), "x", fontname=SERIF_ITALIC, fontsize=size)
    page.draw_line((x + 90, y - 3.5), (x + 97, y - 3.5), color=INK, width=0.8)
    page.insert_text((x + 103, y), "x", fontname=SERIF_ITALIC, fontsize=size)
    page.draw_line((x + 103, y - 8), (x + 108, y - 8), color=INK, width=0.7)
    page.insert_text((x + 111, y), ")", fontname=SERIF, fontsize=size)
    page.insert_text((x + 117, y - 5), "2", fontname=SERIF, fontsize=8)
    out.line(RIGHT, y, "(1)", SERIF, 10, right=True)
    out.part("equation", "s = sqrt(1/3 sum (x - mean)^2)")
    return y + 18


def second_page(out: Writer) -> None:
    out.new_page()
    y = out.heading(LEFT, 66, "3 Results", 2)
    y = out.text(LEFT, y, RIGHT, RESULTS)
    out.line(PAGE.width / 2, y + 14, TABLE_CAPTION, SERIF_ITALIC, 9.5, centre=True)
    out.part("table_caption", TABLE_CAPTION)
    top = table(out, LEFT, y + 22, RIGHT) + 12
    y = out.heading(LEFT, top, "3.1 Wind", 3)
    out.text(LEFT, y, MIDDLE - GAP / 2, WIND)
    x = MIDDLE + GAP / 2
    y = out.heading(x, top, "3.2 Spread", 3)
    y = out.text(x, y, RIGHT, SPREAD)
    y = formula(out, x + 30, y + 26)
    out.text(x, y, RIGHT, SPREAD_AFTER)


def chart(out: Writer, box: pymupdf.Rect) -> None:
    """Bars of the table's twelve values."""
    page, base = out.page, box.y1 - 24
    page.draw_rect(box, color=(.8,) * 3, width=0.6)
    for mm in range(0, 500, 100):
        y = base - mm * (base - box.y0 - 24) / 450
        page.draw_line((box.x0 + 40, y), (box.x1 - 12, y), color=(.85,) * 3, width=0.5)
        out.line(box.x0 + 34, y + 3, str(mm), SANS, 8, GREY, right=True)
    group = (box.width - 60) / 4
    for season, name in enumerate(["Spring", "Summer", "Autumn", "Winter"]):
        x = box.x0 + 50 + season * group
        for valley, colour in enumerate([BLUE, TEAL, AMBER]):
            mm = int(TABLE[2 + valley][1 + season][0])
            top = base - mm * (base - box.y0 - 24) / 450
            left = x + valley * group * .26
            page.draw_rect((left, top, left + group * .24, base), color=None, fill=colour)
        out.line(x + group * .39, base + 14, name, SANS, 9, GREY, centre=True)
    for valley, colour in enumerate([BLUE, TEAL, AMBER]):
        x = box.x0 + 52 + valley * 74
        page.draw_rect((x, box.y0 + 12, x + 9, box.y0 + 21), color=None, fill=colour)
        out.line(x + 13, box.y0 + 20, TABLE[2 + valley][0][0], SANS, 9, GREY)
    out.part("image", "")


def third_page(out: Writer) -> None:
    out.new_page()
    box = pymupdf.Rect(LEFT + 30, 78, RIGHT - 30, 300)
    chart(out, box)
    out.line(PAGE.width / 2, 318, FIGURE_CAPTION, SERIF_ITALIC, 9.5, centre=True)
    out.part("image_caption", FIGURE_CAPTION)
    y = out.heading(LEFT, 332, "4 What to make of it", 2)
    out.text(LEFT, y, MIDDLE - GAP / 2, MEANING)
    x = MIDDLE + GAP / 2
    y = out.heading(x, 332, "5 What comes next", 2)
    y = out.text(x, y, RIGHT, NEXT)
    y = out.heading(x, y + 4, "Thanks", 2)
    out.text(x, y, RIGHT, THANKS)


def make(pdf: Path, expected: Path) -> None:
    """Write the document to PDF and its parts in reading order to EXPECTED."""
    out = Writer()
    first_page(out)
    second_page(out)
    third_page(out)
    date = "D:20260101000000Z"
    out.document.set_metadata({"title": TITLE, "author": AUTHORS, "creator": "Verso",
                               "creationDate": date, "modDate": date})
    pdf.parent.mkdir(parents=True, exist_ok=True)
    out.document.save(pdf, garbage=4, deflate=True, clean=True, no_new_id=True)
    expected.parent.mkdir(parents=True, exist_ok=True)
    expected.write_text(json.dumps(out.parts, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    make(target / "resources/samples/sample.pdf", target / "tests/samples/sample_expected.json")
