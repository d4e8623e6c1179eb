"""Blocks → the Markdown of a page → the Markdown of a document.

The text itself is left alone (hyphens, entities, line breaks); what is mended is what would
display wrongly everywhere: leftovers of the model's habits and marks that its labels contradict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from desktop.document.grounding import is_caption
from desktop.document.model import CROPPED, FURNITURE, NOISE, Block
from desktop.i18n import _

Separator = Literal["none", "rule", "heading"]
ImagePath = Callable[[Block], "str | None"]
"""Where the picture of a block lies, relative to the Markdown file; None where there is none."""

_HEADINGS = {"title": "# ", "sub_title": "## ", "subtitle": "## "}
_CODE = frozenset({"code", "algorithm"})
_ALT_LENGTH = 300

_CENTER = re.compile(r"</?center\s*>\s?", re.IGNORECASE)
_NEWLINES = re.compile(r"\n[ \t]*(?:\n[ \t]*){2,}(?=\n|\S)|\n{3,}")
_MARKED = re.compile(r"#{1,6}\s")
_COMMENT = re.compile(r"^#(?=\s)", re.MULTILINE)
_TABLE = re.compile(r"<table\b.*?(?:</table\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_TABLE_END = re.compile(r"</table\s*>\Z", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n\s*\n")
_MATH_MARKS = re.compile(r"\\[()\[\]]|\$\$")


def block_markdown(block: Block) -> str:
    """The Markdown of one block, without any picture that belongs to it."""
    text = _official(block.markdown)
    if not text:
        return ""
    if block.label == "equation_image":
        return code_span(text)
    if block.label in _CODE:
        return text if text.startswith(("```", "~~~")) else fenced(text)
    text = _TABLE.sub(_whole_table, text)
    heading = _HEADINGS.get(block.label)
    if heading and not _MARKED.match(text) and not text.startswith("<"):
        return heading + " ".join(text.split())
    if block.label == "text":
        # A heading of the first level would carry the label title: this is a comment in code.
        return _COMMENT.sub(r"\\#", text)
    return text


def page_markdown(
    blocks: Sequence[Block], *, image: ImagePath | None = None, furniture: bool = False
) -> str:
    """The Markdown of a page.

    IMAGE says where the pictures of figures and untranscribed formulas are; without it they are
    left out. FURNITURE keeps running headers, footers and page numbers.
    """
    parts: list[str] = []
    for position, block in enumerate(blocks):
        if block.label == NOISE or (block.label in FURNITURE and not furniture):
            continue
        text = block_markdown(block)
        path = image(block) if image and block.label in CROPPED else None
        if path:
            formula = block.label == "equation_image"
            alt = block.markdown if formula else caption_of(blocks, position)
            parts.append(f"![{alt_text(alt)}]({path})")
            text = "" if formula else text
        if text:
            parts.append(text)
    return "\n\n".join(parts)


def document_markdown(
    pages: Iterable[tuple[int, str]], *, separator: Separator = "none"
) -> Iterator[str]:
    """The Markdown of a document in pieces, from (page number, Markdown of the page).

    Pages without text leave no trace, except their heading.
    """
    first = True
    for number, text in pages:
        if separator == "heading":
            text = f"## {page_heading(number)}" + (f"\n\n{text}" if text else "")
        if not text:
            continue
        if not first:
            yield "\n\n---\n\n" if separator == "rule" else "\n\n"
        first = False
        yield text
    if not first:
        yield "\n"


def page_heading(number: int) -> str:
    """The words of a page's heading."""
    return _("Page {number}").format(number=number)


def caption_of(blocks: Sequence[Block], position: int) -> str:
    """The text of the caption beside a figure: the block after it, else the one before."""
    for other in (position + 1, position - 1):
        if 0 <= other < len(blocks):
            label = blocks[other].label
            if is_caption(label) and not label.startswith("table"):
                return blocks[other].markdown
    return ""


def alt_text(text: str) -> str:
    """A text as the description of a picture: one line, nothing that Markdown would read."""
    line = " ".join(_MATH_MARKS.sub(" ", _CENTER.sub("", text)).split())
    line = line.translate({ord("["): "(", ord("]"): ")", ord("\\"): "", ord("<"): "‹",
                           ord(">"): "›", ord("`"): "'", ord("!"): None})
    return line if len(line) <= _ALT_LENGTH else line[:_ALT_LENGTH].rstrip() + "…"


def code_span(text: str) -> str:
    """A text as inline code, whatever back-ticks it holds."""
    line = " ".join(text.split())
    fence = "`" * (_longest_run(line) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}"


def fenced(text: str) -> str:
    """A text as a block of code, whatever back-ticks it holds."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)


def _official(text: str) -> str:
    """The clean-up of the official scripts, and ``<center>``, which nothing displays any more."""
    if "<" in text:
        text = _CENTER.sub("", text)
    if "qq" in text:
        text = text.replace(r"\coloneqq", ":=").replace(r"\eqqcolon", "=:")
    return _NEWLINES.sub("\n\n", text).strip("\n").rstrip()


def _whole_table(match: re.Match[str]) -> str:
    """A table that ends where it should and holds no blank line, which would end it early."""
    table = _BLANK_LINES.sub("\n", match[0])
    return table if _TABLE_END.search(table) else table.rstrip() + "</table>"
