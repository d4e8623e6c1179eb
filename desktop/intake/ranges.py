"""Page ranges as people write them: "1-3,7", "5-", "-3"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from desktop.intake.errors import BadPageRange, PageRangeOutside

_PART = re.compile(r"(\d*)\s*(-?)\s*(\d*)")
_DASHES = str.maketrans({"–": "-", "—": "-", "‐": "-", "‑": "-", "－": "-", "~": "-",
                         "，": ",", "、": ",", ";": ",", "；": ","})


def parse(text: str, pages: int) -> list[int]:
    """The page numbers (from 1, ascending, each once) that TEXT names in a document of PAGES.

    "" is every page. An open end reaches to the first or last page; what lies beyond the
    document is left out. Raises :class:`BadPageRange`, :class:`PageRangeOutside` when nothing
    is left.
    """
    if not text.strip():
        return list(range(1, pages + 1))
    chosen: set[int] = set()
    for first, last in spans(text):
        chosen.update(range(first, min(last or pages, pages) + 1))
    if not chosen:
        raise PageRangeOutside(text=text.strip(), pages=pages)
    return sorted(chosen)


def check(text: str) -> None:
    """Raise :class:`BadPageRange` if TEXT is no page range, whatever the document."""
    if text.strip():
        spans(text)


def spans(text: str) -> list[tuple[int, int]]:
    """(first, last) of each part of TEXT as written; a last of 0 means: to the end."""
    result: list[tuple[int, int]] = []
    for part in text.translate(_DASHES).split(","):
        match = _PART.fullmatch(part.strip())
        if match is None or not (match[1] or match[3]) or len(part) > 40:
            raise BadPageRange(text=text.strip())
        first = int(match[1] or 1)
        last = int(match[3] or 0) if match[2] else first
        if first < 1 or (match[3] and last < first):
            raise BadPageRange(text=text.strip())
        result.append((first, last))
    return result


def format_pages(numbers: Iterable[int]) -> str:
    """NUMBERS as the shortest range text: [1, 2, 3, 7] → "1-3,7"."""
    parts: list[str] = []
    run: list[int] = []
    for number in sorted(set(numbers)):
        if run and number == run[-1] + 1:
            run.append(number)
            continue
        if run:
            parts.append(_run(run))
        run = [number]
    if run:
        parts.append(_run(run))
    return ",".join(parts)


def _run(run: list[int]) -> str:
    return str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}"
