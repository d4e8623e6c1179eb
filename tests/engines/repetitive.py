"""Documents that repeat themselves as real ones do, and outputs that loop, for the loop guard.

``documents()`` must never be taken for loops; ``LOOPS`` make endless outputs to be put behind any
real text, each of which must be.
"""

from __future__ import annotations

import calendar
import random
from collections.abc import Callable, Iterator

Box = tuple[int, int, int, int]


def block(label: str, box: Box, text: str = "") -> str:
    return (f"<|ref|>{label}<|/ref|><|det|>[[{', '.join(map(str, box))}]]<|/det|>\n"
            f"{text}\n\n")


def stripped(text: str) -> str:
    """As a server sends it that leaves special tokens out."""
    for token in ("<|ref|>", "<|/ref|>", "<|det|>", "<|/det|>"):
        text = text.replace(token, "")
    return text


def table(rows: list[list[str]], box: Box = (60, 100, 940, 900)) -> str:
    cells = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>"
                    for row in rows)
    return block("table", box, f"<table>{cells}</table>")


def pipes(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]) + "\n"


def lines(texts: list[str], label: str = "text", x: tuple[int, int] = (100, 900)) -> str:
    """Each text a block of its own, one below the other."""
    step = 920 / max(1, len(texts))
    return "".join(block(label, (x[0], round(40 + n * step), x[1], round(40 + (n + 0.8) * step)),
                         text) for n, text in enumerate(texts))


PROSE = ("The committee met on the third of May and heard the report of its secretary, who had "
         "visited eleven of the fourteen stations along the river. Of these, four lacked any "
         "means of keeping records, and two were found to have been closed since the winter. ")


def documents() -> Iterator[tuple[str, str]]:
    """Name and output of pages that are read rightly."""
    dice = random.Random(5)
    yield "prose", block("text", (60, 60, 940, 900), PROSE)
    yield "empty rows", table([["Name", "Date", "Signature"], *[["", "", ""]] * 60])
    yield "numbered empty rows", table([["No.", "Name", ""],
                                        *[[str(n), "", ""] for n in range(1, 101)]])
    yield "equal rows of numbers", table(
        [["t", "a", "b", "c"], *[["12", "0.00", "0.00", "0.00"]] * 60])
    yield "equal rows of words", table([["Day", "Open", "Note"],
                                        *[["daily", "08:00–17:00", "by appointment"]] * 60])
    yield "equal rows in a small box", table([["0", "0", "0"]] * 60, (100, 100, 900, 240))
    yield "zeros", table([["0"] * 20] * 40)
    yield "matrix of zeros in pipes", pipes([["x"] * 12, *[["0"] * 12] * 60])
    yield "long table of numbers", table(
        [[f"{dice.random() * 1000:.2f}" for _ in range(8)] for _ in range(90)])
    yield "truth table", table([["p", "q", "r", "p ∧ q", "q ∨ r"],
                                *[[dice.choice("TF") for _ in range(5)] for _ in range(64)]])
    yield "conversion table", table([["°C", "°F"], *[[str(n), f"{n * 9 // 5 + 32}"]
                                                     for n in range(120)]])
    yield "multiplication table", table([[str(a * b) for b in range(1, 13)]
                                         for a in range(1, 26)])
    yield "hundred chart", table([[str(10 * a + b) for b in range(1, 11)] for a in range(10)])
    yield "register of attendance", table(
        [["Pupil", *map(str, range(1, 32))],
         *[[f"Pupil {name}", *[dice.choice(["P", "P", "P", "A", ""]) for _ in range(31)]]
           for name in ("Ahn", "Berg", "Cole", "Diaz", "Eder", "Fox", "Gil", "Hall") * 3]])
    yield "yes and no", table([[f"Requirement {n}", *[dice.choice(["Yes", "No"])
                                                      for _ in range(6)]] for n in range(60)])
    yield "price list", table([["Article", "Unit", "Price"],
                               *[[f"Screw M{n % 12 + 2} × {n}", "100 pcs", "4.90 €"]
                                 for n in range(80)]])
    yield "receipt", lines(["Beer 0,5 l   4,50"] * 30 + ["Total 135,00"])
    yield "timetable", table([["Line 7", *[f"{hour:02}:{minute:02}" for minute in (4, 24, 44)]]
                              for hour in range(5, 24) for _ in range(3)])
    yield "calendar", "".join(
        block("sub_title", (60, 80 * month - 60, 940, 80 * month - 40), f"## {month}")
        + table([week.split() for week in calendar.month(2026, month).splitlines()[1:]],
                (60, 80 * month - 38, 940, 80 * month + 15)) for month in range(1, 13))
    yield "calendar in boxes", "".join(
        block("text", (60 + 40 * (day % 20), 40 + 45 * (day // 20), 90 + 40 * (day % 20),
                       70 + 45 * (day // 20)), str(day % 31 + 1)) for day in range(365))
    yield "weeks as columns", table([[f"Week {n}" for n in range(1, 54)],
                                     *[["x"] * 53 for _ in range(10)]])
    yield "contents with leaders", lines(
        [f"{n}.{n % 4} Section about topic number {n} {'.' * (150 - n)} {3 * n}"
         for n in range(1, 41)])
    yield "contents with spaced leaders", "\n".join(
        f"Chapter {n}: of things {'. ' * 70}{7 * n}" for n in range(1, 45))
    yield "leaders of dots in one paragraph", block(
        "text", (60, 60, 940, 300), " ".join("…" * 60 for _ in range(12)))
    yield "ruled lines", "\n".join(["_" * 90] * 45)
    yield "ruled lines with boxes", lines(["_" * 80] * 40)
    yield "a form", block("text", (60, 60, 940, 940), "\n".join(
        ["Name: " + "." * 90 + " Signature: " + "." * 60] * 35))
    yield "a form in boxes", lines(["Name: ______________ Signature: ______________"] * 30)
    yield "check boxes", lines(["☐"] * 45)
    yield "yes in boxes", lines(["Yes"] * 50, x=(800, 840))
    yield "answer sheet", "\n".join(f"{n}. Ⓐ Ⓑ Ⓒ Ⓓ Ⓔ" for n in range(1, 181))
    yield "answer sheet in a table", table([[str(n), "A", "B", "C", "D"] for n in range(1, 121)])
    yield "numbered list", "\n".join(f"{n}. {PROSE[:40 + n]}" for n in range(1, 30))
    yield "numbered short lines", lines([f"Item {n}" for n in range(1, 61)])
    yield "bullets of one word", "\n".join(["- tba"] * 40)
    yield "icons", "".join(
        block("image", (60 + 88 * (n % 10), 40 + 90 * (n // 10), 130 + 88 * (n % 10),
                        110 + 90 * (n // 10))) for n in range(100))
    yield "icons down the margin", "".join(
        block("image", (40, 40 + 22 * n, 58, 58 + 22 * n)) for n in range(42))
    yield "labels", "".join(
        block("text", (60 + 300 * (n % 3), 30 + 88 * (n // 3), 320 + 300 * (n % 3),
                       100 + 88 * (n // 3)),
              "Verso Press\nattn. of the editor in chief\n12 Riverside Road\nOxford OX1 4AZ\n"
              "United Kingdom") for n in range(33))
    yield "code", block("code", (60, 60, 940, 940), "\n".join(
        ["for i in range(10):", *['    System.out.println("Hello, world");'] * 60, "end"]))
    yield "code with braces", "\n".join(["{" * 8, *["    nop"] * 80, *["}"] * 40])
    yield "assembler", "\n".join(f"{address:08x}:  90 90 90 90 90 90 90 90  nop"
                                 for address in range(0x400000, 0x400000 + 8 * 100, 8))
    yield "hex dump", "\n".join(["0000 " * 16] * 60)
    yield "base64", "\n".join(["A" * 76] * 60)
    yield "booleans", "[" + ",\n ".join(["true, false, true, true, false, false, true"] * 40) + "]"
    yield "ASCII table", "\n".join(["+------+------+------+", "|      |      |      |"] * 50)
    yield "tablature", "\n".join(
        f"{string}|" + "--0---2---3-" * 6 + "|" for _ in range(16) for string in "eBGDAE")
    yield "chords", "\n".join("C   G   Am   F   " * 4 for _ in range(40))
    yield "chords in a line", " ".join(["Am F C G"] * 60)
    yield "refrain", "\n".join(
        line for verse in range(8) for line in
        (f"Verse {verse} tells another story", "Row, row, row your boat",
         "Gently down the stream", "Merrily, merrily, merrily, merrily", "Life is but a dream"))
    yield "laughter", "“" + "ha " * 30 + "” she said."
    yield "chant", "\n".join(["Na na na na, na na na na, hey hey hey, goodbye"] * 12)
    yield "knitting", "\n".join(
        f"Row {n}: " + "k2, p2, " * 20 + "k1." for n in range(1, 45))
    yield "knitting in a line", " ".join(dice.choice(["k2", "p2", "yo", "k1"])
                                         for _ in range(300))
    yield "peptide", " ".join(dice.choice(["Ala", "Gly", "Leu", "Ser", "Val", "Lys", "Glu",
                                             "Arg", "Asn", "Asp", "Thr", "Pro"])
                              for _ in range(500))
    yield "nucleotides", "\n".join(
        "".join(dice.choice("acgt") for _ in range(10)) + " " + "".join(
            dice.choice("acgt") for _ in range(10)) for _ in range(60))
    yield "legal boilerplate", "\n\n".join(
        f"({letter}) The Lessee shall indemnify and hold harmless the Lessor against all claims, "
        f"losses and expenses arising out of Section {n}.{n + 1} of this Agreement."
        for n, letter in enumerate("abcdefghijklmnopqrstuvwxyz"))
    yield "four forms on a page", (PROSE * 2 + "\nSigned: ______\n\n") * 4
    yield "bibliography", "\n\n".join(
        f"[{n}] A. Author, B. Writer, and C. Editor. On the theory of things, part {n}. In "
        f"Proceedings of the International Conference on Things, pages {10 * n}–{10 * n + 9}, "
        f"{1980 + n}." for n in range(1, 41))
    yield "index of articles", "See " + ", ".join(
        f"Art. {n}" for n in sorted(dice.sample(range(1, 900), 160))) + "."
    yield "plates of wells", table([[f"{row}{column}" for column in range(1, 13)]
                                    for row in "ABCDEFGH"])
    yield "zero matrix in a formula", block("equation", (60, 60, 940, 900), "\\[ \\begin{pmatrix} "
                                            + " \\\\ ".join([" & ".join("0" * 18)] * 18)
                                            + " \\end{pmatrix} \\]")
    yield "identity matrix", "\\[ " + " \\\\ ".join(
        " & ".join("1" if a == b else "0" for b in range(20)) for a in range(20)) + " \\]"
    yield "Chinese table", table([["项目", "数量", "单价"], *[["合计", "0", "0.00"]] * 60])
    yield "Chinese form", "\n".join(["姓名：＿＿＿＿＿＿　日期：＿＿＿＿＿＿"] * 40)
    yield "Japanese cries", "「" + "あ" * 60 + "！」"
    yield "pages of a report", "<--- Page Split --->\n".join(
        block("header", (60, 20, 940, 40), "Annual report of the river authority, volume two")
        + block("text", (60, 60, 940, 900), " ".join(
            dice.choice(PROSE.split()) for _ in range(60))) for page in range(40))
    yield "the same words in two columns", "".join(
        block("text", (x, y, x + 400, y + 12), word) for x in (60, 520)
        for y, word in zip(range(40, 940, 20), ["credit", "debit", "balance"] * 15, strict=True))


# --- loops


def _forever(unit: Callable[[int], str]) -> Iterator[str]:
    number = 0
    while True:
        yield unit(number)
        number += 1


def _shuffled(words: list[str], end: str = " ") -> Callable[[], Iterator[str]]:
    def make() -> Iterator[str]:
        choice = random.Random(3)
        return _forever(lambda n: choice.choice(words) + end)
    return make


def _constant(unit: str) -> Callable[[], Iterator[str]]:
    return lambda: _forever(lambda n: unit)


def _numbered(make: Callable[[int], str]) -> Callable[[], Iterator[str]]:
    return lambda: _forever(make)


def _march(label: str, text: str, step: int, wide: int = 18) -> Callable[[int], str]:
    def unit(number: int) -> str:
        top = number % (980 // step) * step
        return block(label, (0, top, wide, top + step), text)
    return unit


PARAGRAPH = ("Upon the arrival of the delegation the doors were opened and the register was "
             "signed by each of those present in the order of their precedence. ")

LOOPS: dict[str, tuple[Callable[[], Iterator[str]], int]] = {
    # name: (pieces without end, characters within which it must be noticed)
    "a word": (_constant("thing "), 1000),
    "a letter": (_constant("a"), 2500),
    "a letter and a space": (_constant("a "), 2500),
    "dots": (_constant("."), 2000),
    "dashes": (_constant("- "), 2000),
    "underscores": (_constant("_"), 2000),
    "a phrase": (_constant("in the name of the law, "), 1000),
    "a sentence": (_constant("It is what it is and it was what it was. "), 1000),
    "a paragraph": (_constant(PARAGRAPH * 2 + "\n\n"), 6000),
    "a line": (_constant("- the same item\n"), 3500),
    "a long line": (_constant(PARAGRAPH + "\n"), 5000),
    "empty lines": (_constant("\n"), 400),
    "spaces": (_constant(" "), 3000),
    "words of one kind, shuffled": (_shuffled(["airy", "charming", "in", "an", "the"]), 1500),
    "Vietnamese words, shuffled": (_shuffled(["thấy", "thày", "thay", "thầy"]), 1500),
    "Chinese phrase": (_constant("的时候，我们"), 2500),
    "Chinese sign": (_constant("的"), 1500),
    "rows": (_constant("<tr><td>Total</td><td>0.00</td><td>0.00</td></tr>"), 7500),
    "empty rows": (_constant("<tr><td></td><td></td></tr>"), 4500),
    "long rows": (_constant(f"<tr><td>{PARAGRAPH}</td><td>{PARAGRAPH}</td></tr>"), 6000),
    "rows, shuffled": (_shuffled(
        [f"<tr><td>{word}</td><td>1</td></tr>" for word in ("a", "b", "c")], ""), 6500),
    "cells": (_constant("<td>0</td>"), 2500),
    "empty cells": (_constant("<td></td>"), 2500),
    "counted rows": (_numbered(lambda n: f"<tr><td>{n}</td><td></td></tr>"), 8000),
    "counted columns": (_numbered(lambda n: f"Col{n}|"), 1000),
    "counted columns from afar": (_numbered(lambda n: f"Col{700 + n}|"), 1000),
    "counted cells": (_numbered(lambda n: f"<td>Week {n}</td>"), 2500),
    "counted numbers": (_numbered(lambda n: f"{n}, "), 2500),
    "counted lines": (_numbered(lambda n: f"{n}. the next\n"), 4500),
    "counted phrases": (_numbered(lambda n: f"and then step {n}, "), 3500),
    "pipes": (_constant("| 1 | 2 | 3 |\n"), 3000),
    "pipes in a line": (_constant("|  "), 1000),
    "a rule without end": (_constant("---|"), 2500),
    "formulas": (_constant("\\quad "), 2500),
    "nested formulas": (_constant("\\frac{"), 2500),
    "images marching": (_numbered(_march("image", "", 19)), 5500),
    "images marching in small steps": (_numbered(_march("image", "", 5)), 6000),
    "texts marching": (_numbered(_march("text", "查看详细信息", 18, 300)), 6000),
    "sentences marching": (_numbered(_march("text", PARAGRAPH, 30, 800)), 7000),
    "counted texts marching": (_numbered(
        lambda n: _march("text", f"Figure {n}", 20, 200)(n)), 6500),
    "one box": (_constant(block("table", (0, 0, 999, 999))), 1500),
    "one text at one place": (_constant(block("text", (60, 60, 900, 90), PARAGRAPH)), 2500),
    "blocks in turn": (_numbered(
        lambda n: _march("image", "", 20)(n) + _march("text", "more", 20, 300)(n)), 9500),
    "the page again": (_constant("".join(
        block("text", (60, 100 * n, 900, 100 * n + 80), PARAGRAPH[n:] + str(n))
        for n in range(8))), 4500),
}
"""Every way to loop; pieces are to be put behind real text."""
