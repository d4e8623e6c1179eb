"""Character error rate on made pages whose text is known exactly. JSON on stdout.

Clean pages of one and two columns in six languages, several fonts and sizes, drawn from
prose.json with a fixed seed, and the pages of the bundled sample. The whole text of a page counts
in its order, so that a paragraph in the wrong place costs as much as one that is missing; running
headers, footers and page numbers must be left out. A page that fails counts as wholly wrong.

* ``text_layer``: as a person reads them (the page's own words where they agree).
* ``pixels``: recognition alone, for the languages whose letters the recogniser has.

    python tests/perf/engine_text_layer.py [--pages N]
"""

from __future__ import annotations

import argparse
import html
import json
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import pymupdf

sys.path.insert(0, str(Path(__file__).resolve().parent))

from engine_pages import ROOT, Page, finished, markdown, read, reader
from engine_quality import error_rate

from desktop.intake.model import RenderRequest
from desktop.intake.rasterizer import Rasterizer

PROSE: dict[str, list[str]] = json.loads(
    (Path(__file__).parent / "prose.json").read_text("utf-8"))
UNREAD = {"ru"}
"""Languages whose letters the recogniser does not have: with the text layer only."""
A4 = pymupdf.paper_rect("a4")
_ASIAN = {"zh", "ja"}


def write(path: Path, language: str, columns: int, chance: random.Random) -> str:
    """A page at PATH; its text in reading order."""
    family = chance.choice(("serif", "sans-serif"))
    size = chance.choice((9.5, 10.5, 12))
    space = "" if language in _ASIAN else " "
    sentences = chance.sample(PROSE[language], min(len(PROSE[language]), 14))
    title = sentences.pop().rstrip(".。")[:60]
    parts = [("h1", title)]
    while sentences:
        if len(parts) > 1 and chance.random() < 0.35:
            parts.append(("h2", sentences.pop().split("，")[0].split(",")[0].rstrip(".。")[:40]))
        count = min(len(sentences), chance.randint(2, 4))
        if count:
            parts.append(("p", space.join(sentences.pop() for _ in range(count))))
    style = (f"body {{font-family: {family}; font-size: {size}pt; line-height: 1.3;}} "
             f"p {{text-align: {chance.choice(('left', 'justify'))}; margin: 0 0 6pt 0;}} "
             "h1 {font-size: 18pt; margin: 0 0 10pt 0;} h2 {font-size: 13pt; margin: 8pt 0 4pt 0;}")
    gap = 22.0
    width = (A4.width - 120 - gap * (columns - 1)) / columns
    story = pymupdf.Story(
        "".join(f"<{tag}>{html.escape(text)}</{tag}>" for tag, text in parts), user_css=style)
    # Columns as high as the text needs, so that both are filled.
    height = 650.0 if columns == 1 else 100.0
    while True:
        rectangles = [pymupdf.Rect(60 + n * (width + gap), 70, 60 + n * (width + gap) + width,
                                   70 + height) for n in range(columns)]
        if not _fill(story, rectangles, None):
            break
        height += 12
        if 70 + height > A4.height - 60:
            raise ValueError(f"{language}: does not fit the page")
    writer = pymupdf.DocumentWriter(str(path))
    device = writer.begin_page(A4)
    _fill(story, rectangles, device)
    writer.end_page()
    writer.close()
    with pymupdf.open(path) as document:
        document[0].insert_text((290, 815), str(chance.randint(2, 400)), fontsize=9)
        document.saveIncr()
    return "\n\n".join(text for _tag, text in parts)


def _fill(story: Any, rectangles: list[pymupdf.Rect], device: Any) -> bool:
    """Set the story from its start; whether some of it did not fit."""
    story.reset()
    more = True
    for rectangle in rectangles:
        more = story.place(rectangle)[0]
        story.draw(device)
        if not more:
            break
    return bool(more)


def sample() -> list[tuple[int, str]]:
    """Number and text of the bundled sample's pages."""
    parts = json.loads((ROOT / "tests/samples/sample_expected.json").read_text("utf-8"))
    found: dict[int, list[str]] = {}
    skipped = {"header", "footer", "page_number", "figure", "image", "equation"}
    for part in parts:
        if part["label"] in skipped:
            continue
        content = part["content"]
        if isinstance(content, str):
            text = content
        elif part["label"] == "table":
            text = "\n".join(cell["text"] for row in content for cell in row)
        else:
            text = "\n".join(content)
        found.setdefault(part["page"], []).append(text)
    return [(number, "\n\n".join(texts)) for number, texts in sorted(found.items())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=24, help="made pages")
    options = parser.parse_args()
    report: dict[str, Any] = {"text_layer": [], "pixels": []}
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for number in range(options.pages):
            chance = random.Random(number)
            language = list(PROSE)[number % len(PROSE)]
            columns = 1 + number // len(PROSE) % 2
            path = Path(folder) / f"{language}{columns}-{number}.pdf"
            made.append((path, 1, write(path, language, columns, chance), language))
        made += [(ROOT / "resources/samples/sample.pdf", number, text, "")
                 for number, text in sample()]
        rasterizer = Rasterizer(Path(folder) / "drawn", processes=2)
        try:
            engine = reader()
            for path, number, truth, language in made:
                rasterizer.open(path).result()
                drawn = rasterizer.render(RenderRequest(str(path), number, words=True)).result()
                page = Page(f"{path.stem}:{number}", {}, drawn.image, drawn.words, drawn.width,
                            drawn.height)
                _read(engine, page, truth, report["text_layer"])
                # The sample's formula and figure have no text of their own to compare.
                if language and language not in UNREAD:
                    _read(engine, page, truth, report["pixels"], text_layer="never")
        finally:
            rasterizer.close()
    report["summary"] = {
        name: {"pages": len(report[name]),
               "median": round(statistics.median(e["rate"] for e in report[name]), 4),
               "mean": round(statistics.mean(e["rate"] for e in report[name]), 4),
               "worst": max(e["rate"] for e in report[name])}
        for name in ("text_layer", "pixels")}
    json.dump(report, sys.stdout, indent=1, ensure_ascii=False)
    print()


def _read(engine: Any, page: Page, truth: str, entries: list[dict[str, Any]],
          **settings: Any) -> None:
    outputs = read(engine, page, **settings)
    rate = 1.0 if finished(outputs) != "complete" else min(1.0, error_rate(truth,
                                                                          markdown(outputs)))
    entries.append({"page": page.name, "rate": round(rate, 4)})


if __name__ == "__main__":
    main()
