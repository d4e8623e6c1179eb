"""What a block's text says about it: captions, page numbers, list items, headings' depth."""

from __future__ import annotations

import re

from desktop.engines.embedded import paragraphs
from desktop.engines.embedded.model import Block

_NUMBERED = r"\s*(?:[A-Z]?\d+(?:[-.–]\d+)*[a-z]?|[IVXLC]+)(?![\w])"
CAPTION_TABLE = re.compile(
    r"^(table|tab\.|tabelle|tableau|tabla|tabela|tabella|tabell|taulukko|tablo|bảng|πίνακας|"
    r"табл\.|таблица|таблиця|表|표|جدول)" + _NUMBERED, re.IGNORECASE)
CAPTION_IMAGE = re.compile(
    r"^(figure|figs?\.|abbildung|abb\.|figura|figur|bild|obr\.|obrázek|rys\.|rysunek|şekil|hình|"
    r"εικόνα|рис\.|рисунок|图|図|圖|그림|شكل|photo|scheme|chart|plate|graphique|diagram)"
    + _NUMBERED, re.IGNORECASE)
PAGE_NUMBER = re.compile(
    r"^(page|seite|p\.|第)?\s*[-–—·|]*\s*(\d{1,4}|[ivxlc]{1,7})\s*[-–—·|]*\s*(页|頁)?"
    r"(\s*(/|of|von|de)\s*\d{1,4})?$", re.IGNORECASE)
_NOTE = re.compile(r"^[*†‡§¹²³]\s*\w")
"""A note at the foot of the page, which is not a running footer."""
SECTION = re.compile(r"^(\d{1,2}(?:\.\d{1,2}){0,4})\.?\s+\S")


def refine(block: Block, height: float) -> list[Block]:
    """BLOCK, its text known now, with a better label, or cut into several.

    HEIGHT is the page's.
    """
    if not block.lines or block.label in ("table", "image"):
        return [block]
    whole = " ".join(line.text for line in block.lines).strip()
    if block.label == "header" or block.label == "footer":
        if PAGE_NUMBER.match(whole):
            block.label = "page_number"
        elif block.label == "footer" and _NOTE.match(whole):
            block.label = "text"
        else:
            block.label = caption(whole) or block.label
    near_edge = block.box[3] < 0.1 * height or block.box[1] > 0.9 * height
    if block.label in ("text", "title", "sub_title") and near_edge and PAGE_NUMBER.match(whole):
        block.label = "page_number"
    if block.label in ("table_caption", "image_caption", "title", "sub_title"):
        block.label = caption(whole) or block.label
    if block.label in ("title", "sub_title") and (
            not any(c.isalnum() for c in whole) or len(whole) > 160
            or re.match(r"^(https?://|www\.)", whole) or "___" in whole
            or whole[-1] in ",;" or re.match(r"^\S+@\S+$", whole)
            or (whole[-1] in ".;,”\"»" and whole.count(" ") >= 7)):
        block.label = "text"
    if block.label != "text":
        return [block]
    parts = paragraphs.split(block)
    for part in parts:
        if part.label == "text":
            part.label = caption(" ".join(line.text for line in part.lines)) or "text"
    return parts


def caption(text: str) -> str:
    """The label of a caption that says what it is; "" for any other text.

    "Table 2 lists the results" begins a sentence, "Table 2: Results" a caption.
    """
    for label, pattern in (("table_caption", CAPTION_TABLE), ("image_caption", CAPTION_IMAGE)):
        if match := pattern.match(text):
            rest = text[match.end():]
            if not rest or rest[0] in ".:：.–—-|)、" or (
                    rest[0].isspace() and not rest.lstrip()[:1].islower()):
                return label
    return ""


def section_depth(text: str) -> int:
    """Depth of a numbered heading ("2.1 Method" is 2); 0 without a number."""
    match = SECTION.match(text)
    return match.group(1).count(".") + 1 if match else 0
