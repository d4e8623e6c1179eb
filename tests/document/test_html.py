"""Markdown → HTML: it shows what is written, and nothing in it can run or reach out."""

from __future__ import annotations

import gc
import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.document.html import block_html, markdown_html
from desktop.document.model import Block
from desktop.document.parser import parse
from tests.document.recordings import everything, read

BOX = ((1, 2, 3, 4),)
CLASSES = {"math inline", "math display", "math open", "noise", "plain"}
TAGS = re.compile(
    "table|thead|tbody|tfoot|tr|td|th|caption|colgroup|col|br|hr|sup|sub|b|strong|i|em|u|s|del|ins|"
    "small|mark|code|ul|ol|li|p|div|span|img|a|blockquote|pre|h[1-6]|figure")
ATTRIBUTES = re.compile("rowspan|colspan|scope|start|src|alt|title|href|rel|span|class")


class Check(HTMLParser):
    """Reads HTML as a browser would and fails on anything that is not on the list."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert TAGS.fullmatch(tag), tag
        for name, value in attrs:
            assert ATTRIBUTES.fullmatch(name), name
            if name == "class":
                assert value in CLASSES, value
            if name == "href":
                assert re.match(r"(?:https?://|mailto:)", value or "", re.I), value
            if name == "src":
                assert (value or "").startswith("verso://crop/"), value

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"comment {data!r}")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"declaration {decl!r}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"instruction {data!r}")


def url(path: str) -> str | None:
    return f"verso://crop/{path}" if re.fullmatch(r"images/[\w.-]+", path) else None


def shown(text: str, **kwargs: bool) -> str:
    """The text a person sees, after checking that the HTML is safe."""
    check = Check()
    check.feed(markdown_html(text, image_url=url, **kwargs))
    check.close()
    return "".join(check.text)


HOSTILE = [
    "<script>alert(1)</script>", "<SCRIPT SRC=//evil/x.js></SCRIPT>",
    "<script\n>alert(1)</script >",
    "<img src=x onerror=alert(1)>", "<img src='verso://crop/../secret'>", "<img/src=x/onerror=a()>",
    "<svg onload=alert(1)>", "<svg><script>alert(1)</script></svg>", "<math><mi xlink:href='x'>",
    "<iframe src='https://evil'></iframe>", "<object data='x'></object>", "<embed src=x>",
    "<a href='javascript:alert(1)'>x</a>", "[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))", "[x](&#106;avascript:alert(1))", "[x](data:text/html,<script>)",
    "[x](file:///etc/passwd)", "[x](/etc/passwd)", "[x](//evil.example)", "[x](verso://crop/1)",
    "![x](https://evil/track.png)", "![x](file:///etc/passwd)", "![x](verso://page/1)",
    "![x](images/../../secret)", "![a\" onerror=\"alert(1)](images/a.png)",
    "<p style='background:url(https://evil)'>x</p>", "<div class='math inline'>x</div>",
    "<span class=\"math inline\">\\href{javascript:x}{y}</span>", "<td onclick=alert(1)>x",
    "<table background='https://evil'><tr><td style='x' id=a name=b>y</table>",
    "<style>body{display:none}</style>", "<link rel=stylesheet href=https://evil>",
    "<meta http-equiv=refresh content='0;url=https://evil'>", "<base href='https://evil'>",
    "<form action='https://evil'><input name=x autofocus onfocus=alert(1)></form>",
    "<!-- <script>alert(1)</script> -->", "<!--><img src=x onerror=alert(1)>-->", "<![CDATA[x]]>",
    "<?php echo 1 ?>", "<!DOCTYPE html>",
    "<noscript><p title='</noscript><img src=x onerror=a()>'>",
    "<textarea><img src=x onerror=alert(1)></textarea>", "<title><img src=x onerror=a()></title>",
    "<a title='\"><script>alert(1)</script>' href='https://a'>x</a>",
    "```\n<script>alert(1)</script>\n```", "`<script>alert(1)</script>`",
    "\\(<script>alert(1)</script>\\)", "\\[</span><script>alert(1)</script>\\]",
    "\\(\" onmouseover=\"alert(1)\\)", "$$<img src=x onerror=alert(1)>$$",
    "![\\(x\\)](images/a.png \"\\(\\\" onerror=alert(1) \\)\")", "[\\(x\\)](https://a \"\\(y\\)\")",
    "<a href=\"https://a?\\(x\\)\">y</a>", "<img alt=\"\\(x\\)\" src=\"images/a.png\">",
    "\ue0010\ue003", "\ue0020\ue003", "\ue000script>alert(1)\ue000/script>", "\ue00199\ue003",
    "\x02klzzwxh:0000\x03", "\x02wzxhzdk:0\x03", "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<table><tr><td><script>alert(1)</script></td></tr></table>",
    "<table><tr><td><img src=x onerror=alert(1)></td></tr></table>", "<table><form><td>x</table>",
    "<b onclick='x'>y</b>", "<b/onclick=x>y", "<b <script>alert(1)</script>>", "<<b>script>x",
    "<scr<b></b>ipt>alert(1)</script>", "\x00<script>", "<\x00script>", "\ud800<script>\udfff",
    "<a href=https://a onclick=x>y</a>", "<https://ok.example/<script>>", "<javascript:alert(1)>",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_hostile_gets_through(text: str) -> None:
    for variant in (text, f"A {text} b", f"- {text}", f"|a|b|\n|-|-|\n|{text}|x|", f"# {text}",
                    f"<table><tr><td>{text}", text * 2, text[:-1]):
        for open_ended in (False, True):
            shown(variant, open_ended=open_ended)


PIECES = ["<", ">", "<table>", "<td>", "</table>", "<script>", "<b>", "</b>", "<a href=", "\"", "'",
          "\\(", "\\)", "\\[", "\\]", "$$", "`", "```\n", "[", "]", "(", ")", "![",
          "](images/a.png)", "](javascript:x)", "\n", "\n\n", "- ", "1. ", "> ", "|", "*", "_", "#",
          "&lt;", "&", "x", "\ue000", "\ue001", "0", "\ue003", " onload=x", "<!--", "-->",
          "https://a.b", "\t"]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join), st.booleans())
def test_nothing_made_of_dangerous_pieces_gets_through(text: str, open_ended: bool) -> None:
    shown(text, open_ended=open_ended)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60), st.sampled_from(["text", "table", "image", "noise", "equation_image"]))
def test_any_block_becomes_safe_html(text: str, label: str) -> None:
    check = Check()
    check.feed(block_html(Block(0, label, BOX, text), picture="verso://crop/1?a=1&b=2"))
    check.close()


@pytest.mark.parametrize(("text", "expected"), [
    ("List<String> a < b", "List<String> a < b"),
    ("<think>hm</think>", "<think>hm</think>"),
    ("# Head", "Head"),
    ("`x<y` and ``a`b``", "x<y and a`b"),
    ("[15]: Yuan He", "[15]: Yuan He"),
    ("see [1], [2] and [[3]]", "see [1], [2] and [[3]]"),
    ("a\nb", "a\nb"),
    ("snake_case_name", "snake_case_name"),
    ("&lt;td&gt;", "<td>"),
])
def test_what_is_written_is_shown(text: str, expected: str) -> None:
    assert shown(text).strip() == expected


@pytest.mark.parametrize(("text", "expected"), [
    (r"a \(x<1 & y_1^*\) b", '<p>a <span class="math inline">x&lt;1 &amp; y_1^*</span> b</p>'),
    ("\\[\na_1\n\n*b*\n\\]", '<p><span class="math display">\na_1\n\n*b*\n</span></p>'),
    ("$$a_b_c$$", '<p><span class="math display">a_b_c</span></p>'),
    (r"\(a &lt; b\)", '<p><span class="math inline">a &lt; b</span></p>'),
    (r"cost \$5 and $6", "<p>cost \\$5 and $6</p>"),
    (r"open \[ \frac{1}", '<p>open <span class="math open">\\[ \\frac{1}</span></p>'),
    ("open \\( a\n\nb \\) c", '<p>open <span class="math open">\\( a</span></p>\n<p>b ) c</p>'),
    ("$$ alone", "<p>$$ alone</p>"),
    (r"`\(x\)`", "<p><code>\\(x\\)</code></p>"),
    ("```\n\\(x\\) <b>\n```\n\\(y\\)",
     '<pre><code>\\(x\\) &lt;b&gt;\n</code></pre>\n<p><span class="math inline">y</span></p>'),
    ("<table><tr><td>\\(x_1 < 3|\\)</td></tr></table>",
     '<table><tbody><tr><td><span class="math inline">x_1 &lt; 3|</span></td></tr></tbody>'
     "</table>"),
])
def test_formulas_reach_katex_untouched(text: str, expected: str) -> None:
    assert markdown_html(text).strip() == expected


@pytest.mark.parametrize(("text", "expected"), [
    ("<table><tr><td>a<td>b<tr><td>c", "<tr><td>a</td><td>b</td></tr><tr><td>c</td></tr>"),
    ("<table><tr><tr><td>a</td></tr></table>", "<tr></tr><tr><td>a</td></tr>"),
    ("<table>数值 66</table>", "<tr><td>数值 66</td></tr>"),
    ('<table><td rowspan="2"># layers<td>x</table>',
     '<tr><td rowspan="2"># layers</td><td>x</td></tr>'),
    ("<table><tr><td>**a** _b_ # c</td></tr></table>", "<tr><td>**a** _b_ # c</td></tr>"),
])
def test_broken_tables(text: str, expected: str) -> None:
    assert markdown_html(text) == f"<table><tbody>{expected}</tbody></table>"


@pytest.mark.parametrize("end", ["<", "</", "<t", "<td", "<td row", '<td rowspan="2', "</td"])
def test_half_a_tag_is_not_shown_while_it_streams(end: str) -> None:
    text = "<table><tr><td>a</td>" + end
    assert markdown_html(text, open_ended=True) == markdown_html("<table><tr><td>a</td>")
    assert markdown_html("a <b", open_ended=False) == "<p>a &lt;b</p>"


def test_a_table_in_the_middle_of_a_paragraph() -> None:
    assert markdown_html("Before <table><td>1</table> after").replace("\n", "") == (
        "<p>Before </p><table><tbody><tr><td>1</td></tr></tbody></table><p>after</p>")


def test_links_and_pictures() -> None:
    assert markdown_html("[x](https://a.b/c_(d))") == (
        '<p><a href="https://a.b/c_(d)" rel="noopener noreferrer nofollow">x</a></p>')
    assert markdown_html("![alt](images/p1-1.png)", image_url=url) == (
        '<p><img alt="alt" src="verso://crop/images/p1-1.png"></p>')
    assert "src" not in markdown_html("![alt](images/p1-1.png)")


def test_blocks_with_a_picture() -> None:
    image = Block(0, "image", BOX, "")
    assert block_html(image, picture="verso://c/1?a&b") == (
        '<figure><img src="verso://c/1?a&amp;b" alt=""></figure>')
    assert block_html(image) == ""
    formula = Block(0, "equation_image", BOX, 'E < "mc2"')
    assert block_html(formula, picture="u") == (
        '<figure><img src="u" alt="E &lt; &quot;mc2&quot;"></figure>')
    assert block_html(formula) == "<p><code>E &lt; \"mc2\"</code></p>"
    assert block_html(Block(0, "text", BOX, "x"), picture="u") == "<p>x</p>"
    assert block_html(Block(0, "noise", (), "<b>")) == '<pre class="noise">&lt;b&gt;</pre>'


@pytest.mark.parametrize("path", everything(), ids=lambda path: path.stem)
def test_recordings_become_safe_html_at_every_moment(path: object) -> None:
    for block in parse(read(path)):  # type: ignore[arg-type]
        check = Check()
        check.feed(block_html(block, picture="verso://crop/1"))
        check.close()
        for end in range(0, len(block.markdown), max(7, len(block.markdown) // 6)):
            shown(block.markdown[:end], open_ended=True)


SLOW = ["[", "![", "[a](", "[a", "*a ", "_", "**", "`", "<", "<b>", "\\(", "\\[", "$$", "|", "1. ",
        "> ", "- ", "<table>", "<div>", "(", "&", "http://a.b ", "~~~\n", "<!--", "\\(a\n\n", "<td"]


@pytest.mark.parametrize("piece", SLOW)
def test_no_text_takes_more_than_its_length(piece: str) -> None:
    def seconds(length: int) -> float:
        text = (piece * length)[:length]
        best = float("inf")
        gc.collect()
        gc.disable()  # it goes over all that other tests have left, the more the longer this takes
        try:
            for _ in range(3):
                began = time.thread_time()
                markdown_html(text)
                best = min(best, time.thread_time() - began)
        finally:
            gc.enable()
        return best

    # Sixteen would be the mark of quadratic growth.
    assert seconds(12_000) < 10 * seconds(3_000) + 0.05


def test_text_too_long_or_too_deep_is_shown_plain() -> None:
    assert markdown_html("<b>" * 100_000).startswith('<pre class="plain">&lt;b&gt;')
    before = markdown_html("# a\n\n*b* ")
    assert shown("1. " * 3000).count("1.") == 3000
    assert markdown_html("# a\n\n*b* ") == before


def test_threads_do_not_disturb_each_other() -> None:
    from concurrent.futures import ThreadPoolExecutor

    texts = [f"# {n}\n\n" + f"*{n}* " * 50 for n in range(40)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(markdown_html, texts)) == [markdown_html(text) for text in texts]
