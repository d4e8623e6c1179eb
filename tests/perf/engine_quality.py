"""How exactly the built-in engine reads, on the pages of engine_pages.json. JSON on stdout.

* ``characters``: character error rate against transcriptions, from pixels alone; and from pixels
  against the page's own words for digital pages (both in the engine's own order, so that only
  recognition counts).
* ``order``: share of neighbouring pairs of the expected phrases that come in this order.
* ``tables``: a table counts as found when its size is nearly right and nine in ten of the
  expected neighbours of cells are neighbours.

    python tests/perf/engine_quality.py [--pixels] [--only NAME]
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from engine_pages import Page, blocks, corpus, drawn, markdown, read, reader

_SAME = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "‐": "-",
                       "ſ": "s", "•": " ", "ﬁ": "fi", "ﬂ": "fl", "…": "...", "∙": " "})


def normal(text: str) -> str:
    """Text as it is compared: no marks of Markdown, one kind of quotes and dashes, one space."""
    text = re.sub(r"<[^>]+>", " ", text)
    text = text.replace("&amp;", "&").replace("&lt;", "<").replace("\\", "")
    text = re.sub(r"^\s*(#+|[-*•0]|\d+\.)\s", " ", text, flags=re.MULTILINE)
    text = unicodedata.normalize("NFKD", text.translate(_SAME))
    text = "".join(c for c in text if not unicodedata.combining(c))
    text = re.sub(r"(\w)-\s*\n\s*(\w)", r"\1\2", text)
    return re.sub(r"\s+", " ", text).strip()


def distance(a: str, b: str) -> int:
    """Levenshtein distance."""
    first = np.fromiter(map(ord, a), np.int32, len(a))
    row = np.arange(len(a) + 1, dtype=np.int32)
    steps = np.arange(len(a) + 1, dtype=np.int32)
    for i, char in enumerate(b, 1):
        new = np.empty_like(row)
        new[0] = i
        new[1:] = np.minimum(row[1:] + 1, row[:-1] + (first != ord(char)))
        # An insertion costs one for each step to the right of the best place so far.
        row = np.minimum.accumulate(new - steps) + steps
    return int(row[-1])


def error_rate(truth: str, read_text: str) -> float:
    """Character error rate without regard to white space between words of broken lines."""
    truth, read_text = (re.sub(r"[\s-]", "", normal(text)) for text in (truth, read_text))
    return distance(truth, read_text) / max(1, len(truth))


class _Tables(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.grid: dict[tuple[int, int], str] = {}
        self.spans = False
        self._row = self._column = -1
        self._places: list[tuple[int, int]] = []
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self._row, self._column = self._row + 1, 0
        elif tag in ("td", "th"):
            values = dict(attrs)
            down, across = int(values.get("rowspan") or 1), int(values.get("colspan") or 1)
            self.spans |= down > 1 or across > 1
            while (self._row, self._column) in self.grid:
                self._column += 1
            self._places = [(self._row + r, self._column + c) for r in range(down)
                            for c in range(across)]
            self._text = ""
            for place in self._places:
                self.grid[place] = ""

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            for place in self._places:
                self.grid[place] = squeezed(self._text)


def squeezed(text: str) -> str:
    """A cell's text without white space, in one form."""
    return re.sub(r"\s+", "", normal(text)).casefold()


def table_score(html: str, expected: dict[str, Any]) -> float:
    """How well a table is the expected one, 0–1."""
    parser = _Tables()
    parser.feed(html)
    grid = parser.grid
    if not grid:
        return 0.0
    checks = [abs(max(r for r, _ in grid) + 1 - expected["rows"]) <= max(1, expected["rows"] // 10),
              abs(max(c for _, c in grid) + 1 - expected["columns"]) <= 0]
    for name, (down, across) in {"rights": (0, 1), "belows": (1, 0)}.items():
        for one, other in expected.get(name, ()):
            checks.append(any(text == squeezed(one) and
                              grid.get((r + down, c + across)) == squeezed(other)
                              for (r, c), text in grid.items()))
    if expected.get("spans"):
        checks.append(parser.spans)
    return sum(checks) / len(checks)


def order_score(text: str, phrases: list[str]) -> tuple[float, list[str]]:
    """Share of neighbouring phrases in order, and those that are missing or misplaced."""
    flat = re.sub(r"\s+", "", normal(text)).casefold()
    at = flat.find(squeezed(phrases[0]))
    wrong: list[str] = [] if at >= 0 else [phrases[0]]
    for phrase in phrases[1:]:
        found = flat.find(squeezed(phrase), max(at, 0))
        if found < 0:
            wrong.append(phrase)
        at = max(at, found)
    return 1 - len(wrong) / len(phrases), wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pixels", action="store_true",
                        help="also read digital pages from their pixels (slow)")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    report: dict[str, Any] = {"characters": [], "order": [], "tables": []}
    with tempfile.TemporaryDirectory() as folder:
        pages = drawn(Path(folder), lambda page: options.only in page["file"] and any(
            key in page for key in ("order", "tables", "text", "columns")))
        engine = reader()
        for page in pages:
            _page(engine, page, options.pixels, report)
    orders = [entry["score"] for entry in report["order"]]
    tables = [entry["found"] for entry in report["tables"]]
    rates = [entry["rate"] for entry in report["characters"]]
    clean = [entry["rate"] for entry in report["characters"] if entry["clean"]]
    report["summary"] = {
        "order": round(statistics.mean(orders), 4) if orders else None,
        "order_pages_whole": f"{sum(s == 1 for s in orders)} of {len(orders)}",
        "tables": f"{sum(tables)} of {len(tables)}",
        "error_rate_median": round(statistics.median(rates), 4) if rates else None,
        "error_rate_median_clean": round(statistics.median(clean), 4) if clean else None,
    }
    json.dump(report, sys.stdout, indent=1, ensure_ascii=False)
    print()


def _page(engine: Any, page: Page, pixels: bool, report: dict[str, Any]) -> None:
    expected = page.expected
    never = expected["kind"] == "scanned"
    outputs = read(engine, page, **({"text_layer": "never"} if never else {}))
    text = markdown(outputs)
    if "order" in expected:
        score, wrong = order_score(text, expected["order"])
        report["order"].append({"page": page.name, "score": round(score, 3), "wrong": wrong})
    if "tables" in expected:
        written = [content for label, content in blocks(outputs) if label == "table"]
        for table in expected["tables"]:
            best = max((table_score(html, table) for html in written), default=0.0)
            report["tables"].append({"page": page.name, "score": round(best, 3),
                                     "found": best >= 0.9})
    if "text" in expected:
        truth = (corpus() / "gt" / expected["text"]).read_text("utf-8")
        report["characters"].append({"page": page.name, "clean": "columns" in expected
                                     and expected["columns"] <= 2,
                                     "rate": round(error_rate(truth, text), 4)})
    if pixels and not never and expected.get("columns", 9) <= 2:
        seen = markdown(read(engine, page, text_layer="never"))
        report["characters"].append({"page": page.name + " (pixels)", "clean": True,
                                     "rate": round(error_rate(text, seen), 4)})


if __name__ == "__main__":
    main()
