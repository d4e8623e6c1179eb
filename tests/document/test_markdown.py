"""Blocks → Markdown: what is mended, what is left alone, what is left out."""

from __future__ import annotations

import pytest

from desktop.document.markdown import (
    alt_text,
    block_markdown,
    code_span,
    document_markdown,
    fenced,
    page_markdown,
)
from desktop.document.model import Block
from desktop.document.parser import parse
from tests.document.recordings import OWN, read

BOX = ((1, 2, 3, 4),)


def blocks(*pairs: tuple[str, str]) -> list[Block]:
    return [Block(index, label, BOX, text) for index, (label, text) in enumerate(pairs)]


def one(label: str, text: str) -> str:
    return block_markdown(Block(0, label, BOX, text))


@pytest.mark.parametrize(("label", "text", "expected"), [
    ("title", "# Done", "# Done"),
    ("title", "#### 3.2.1. Deep", "#### 3.2.1. Deep"),
    ("title", "Bare", "# Bare"),
    ("sub_title", "3. Bare\nin two lines", "## 3. Bare in two lines"),
    ("sub_title", "# Level as the model saw it", "# Level as the model saw it"),
    ("text", "## Read as a heading", "## Read as a heading"),
    ("text", "# Symbole:\nx=1\n# Ende", "\\# Symbole:\nx=1\n\\# Ende"),
    ("text", "#hashtag", "#hashtag"),
    ("", "# Free OCR heading", "# Free OCR heading"),
    ("text", "edge- first 2025- 02- 18 &amp;gt;", "edge- first 2025- 02- 18 &amp;gt;"),
    ("text", r"\(a \coloneqq b \eqqcolon c\)", r"\(a := b =: c\)"),
    ("text", "a\n\n\n\nb\n\n\nc", "a\n\nb\n\nc"),
    ("image_caption", "<center>Fig. 1: <b>x</b> </center>", "Fig. 1: <b>x</b>"),
    ("equation", "\\[\nx\n\\]", "\\[\nx\n\\]"),
    ("code", "a `b`", "```\na `b`\n```"),
    ("code", "```py\na\n```", "```py\na\n```"),
    ("equation_image", "a `b` = c", "``a `b` = c``"),
    ("table", "<table><tr><td>a</td></tr></table>", "<table><tr><td>a</td></tr></table>"),
    ("table", "<table><tr><td>cut", "<table><tr><td>cut</table>"),
    ("table", "<table>\n\n<tr><td>a</td></tr>\n</table>", "<table>\n<tr><td>a</td></tr>\n</table>"),
    ("list", "- a\n- b", "- a\n- b"),
    ("image", "", ""),
])
def test_one_block(label: str, text: str, expected: str) -> None:
    assert one(label, text) == expected


PAGE = blocks(
    ("header", "Journal of Things"), ("title", "Head"), ("noise", "====="),
    ("image", ""), ("image_caption", "<center>Fig. 1: [5] \\(x\\)</center>"),
    ("table_caption", "Table 1"), ("table", "<table></table>"), ("equation_image", "E = mc2"),
    ("page_number", "7"),
)


def test_a_page_without_pictures() -> None:
    assert page_markdown(PAGE) == (
        "# Head\n\nFig. 1: [5] \\(x\\)\n\nTable 1\n\n<table></table>\n\n`E = mc2`")


def test_a_page_with_its_pictures_and_furniture() -> None:
    text = page_markdown(PAGE, image=lambda block: f"images/{block.id}.png", furniture=True)
    assert text == (
        "Journal of Things\n\n# Head\n\n![Fig. 1: (5) x](images/b4.png)\n\n"
        "Fig. 1: [5] \\(x\\)\n\nTable 1\n\n<table></table>\n\n![E = mc2](images/b8.png)\n\n7")


def test_a_caption_before_its_figure_describes_it_too() -> None:
    page = blocks(("figure_title", "Figure 2"), ("image", ""), ("table_caption", "no"))
    assert page_markdown(page, image=lambda _: "x.png").splitlines()[2] == "![Figure 2](x.png)"


def test_a_picture_that_is_missing_leaves_no_broken_link() -> None:
    assert page_markdown(PAGE[3:5], image=lambda _: None) == "Fig. 1: [5] \\(x\\)"


@pytest.mark.parametrize(("separator", "expected"), [
    ("none", "One\n\nThree\n"), ("rule", "One\n\n---\n\nThree\n"),
    ("heading", "## Page 1\n\nOne\n\n## Page 2\n\n## Page 3\n\nThree\n"),
])
def test_pages_make_a_document(separator: str, expected: str) -> None:
    pages = [(1, "One"), (2, ""), (3, "Three")]
    assert "".join(document_markdown(pages, separator=separator)) == expected  # type: ignore[arg-type]


def test_nothing_makes_an_empty_document() -> None:
    assert "".join(document_markdown([(1, "")])) == ""


def test_descriptions_and_code_hold_anything() -> None:
    assert alt_text("![a](b) <i>`x`</i>\n\\[y\\]") == "(a)(b) ‹i›'x'‹/i› y"
    assert len(alt_text("word " * 1000)) < 310
    assert code_span("`` ` ``") == "``` `` ` `` ```"
    assert fenced("````\nx") == "`````\n````\nx\n`````"


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_no_tag_is_left_in_the_markdown_of_a_recording(path: object) -> None:
    text = page_markdown(parse(read(path)))  # type: ignore[arg-type]
    assert text
    assert "<|" not in text
    assert "<center>" not in text
    assert "\n\n\n" not in text
