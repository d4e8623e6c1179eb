"""One block's Markdown → safe HTML, for the result view and the HTML export.

The text is untrusted. Formulas and tables are taken out first, so that Markdown does not touch
them; what looks like a tag and is none that documents use is text; the rest goes through a
sanitiser with a short list of tags, and only then formulas return, escaped, as
``<span class="math inline">`` or ``<span class="math display">`` for KaTeX to draw
(``class="math open"`` while the closing delimiter has not come: to be shown as it is).
"""

from __future__ import annotations

import html
import re
import threading
from collections.abc import Callable

import markdown
import nh3

from desktop.document.markdown import block_markdown
from desktop.document.model import CROPPED, NOISE, Block

ImageUrl = Callable[[str], "str | None"]
"""The address to load a picture of the Markdown from; None: it is not shown."""

# Private-use characters stand for what is taken out; the text itself may not contain them.
_LT, _MATH, _TABLE, _END = "\ue000", "\ue001", "\ue002", "\ue003"
_BRACKET = {"[": "\ue004", "]": "\ue005"}
_RESERVED = re.compile("[\ue000-\ue005\x00-\x08\x0b\x0c\x0e-\x1f\ufdd0\ud800-\udfff]")

_TABLE_TAGS = "table|thead|tbody|tfoot|tr|td|th|caption|colgroup|col"
_TAGS = (f"{_TABLE_TAGS}|br|hr|sup|sub|b|strong|i|em|u|s|del|ins|small|mark|code|ul|ol|li|p|div|"
         "span|img|a|blockquote|pre|h1|h2|h3|h4|h5|h6")
_TAG = re.compile(
    rf"</?(?:{_TAGS})(?=[\s/>])[^<>]*>|<(?:https?://|mailto:)[^<>\s]+>", re.IGNORECASE)
_TAG_BEGUN = re.compile(r"</?(?:[A-Za-z][^<>]{0,80})?\Z")
_ALLOWED = set(_TAGS.split("|"))
_ATTRIBUTES = {
    "td": {"rowspan", "colspan"}, "th": {"rowspan", "colspan", "scope"}, "ol": {"start"},
    "img": {"src", "alt", "title"}, "a": {"href", "title"}, "col": {"span"},
    "colgroup": {"span"},
}

_INTEREST = re.compile(
    r"(?P<fence>^ {0,3}(?:`{3,}|~{3,})[^`\n]*$)|(?P<code>`+)|(?P<escape>\\\\)"
    r"|(?P<math>\\\(|\\\[|\$\$)|(?P<tag><)", re.MULTILINE)
_CLOSERS = {r"\(": r"\)", r"\[": r"\]", "$$": "$$"}
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&#39;": "'", "&nbsp;": " "}
_ENTITY = re.compile("|".join(_ENTITIES))
_FIND_TABLE = re.compile(r"<table\b.*?(?:</table\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_BARE_TEXT = re.compile(r"(<table\b[^<>]*>)\s*(?=[^<\s])", re.IGNORECASE)
_FIND_PLACE = re.compile(f"<p>{_TABLE}(\\d+){_END}</p>|{_TABLE}(\\d+){_END}")
_FIND_LAST = re.compile(f'<(?:[^">]|"[^"]*")*>|{_MATH}(\\d+){_END}|{_LT}')
_IN_TAG = re.compile(f"{_MATH}(\\d+){_END}|{_LT}")
_BRACKETS = re.compile(r"[\[\]]")
_TARGET = re.compile(r"\([^()\n]{0,1000}(?:\([^()\n]{0,200}\)[^()\n]{0,1000})?\)")
_WEB = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_LONGEST = 200_000


def block_html(block: Block, *, picture: str | None = None,
               image_url: ImageUrl | None = None) -> str:
    """A block as HTML.

    PICTURE is the trusted address of the crop of a figure or formula, shown where the block has
    one (``model.CROPPED``). IMAGE_URL resolves pictures named in the Markdown itself; without it
    none is shown.
    """
    if block.label == NOISE:
        return f'<pre class="noise">{_escaped(_safe(block.markdown))}</pre>'
    shown = ""
    if picture and block.label in CROPPED:
        formula = block.label == "equation_image"
        alt = _escaped(_safe(block.markdown)) if formula else ""
        shown = f'<figure><img src="{html.escape(picture)}" alt="{alt}"></figure>'
        if formula:
            return shown
    return shown + markdown_html(block_markdown(block), open_ended=block.open,
                                 image_url=image_url)


def markdown_html(text: str, *, open_ended: bool = False,
                  image_url: ImageUrl | None = None) -> str:
    """Markdown as safe HTML. OPEN_ENDED: the text still grows, so half a tag at its end is not
    shown."""
    if not text:
        return ""
    if len(text) > _LONGEST:
        return _plain(text)
    original = text
    text, formulas = _take_out(_safe(text), open_ended)
    tables: list[str] = []

    def take_table(match: re.Match[str]) -> str:
        tables.append(_BARE_TEXT.sub(r"\1<tr><td>", match[0]))
        return f"\n\n{_TABLE}{len(tables) - 1}{_END}\n\n"

    text = _only_links(_FIND_TABLE.sub(take_table, text))
    result = _converter.convert(text)
    if result is None:
        return _plain(original)
    result = _FIND_PLACE.sub(lambda match: tables[int(match[1] or match[2])], result)
    return _put_back(_sanitise(result, image_url), formulas)


def _plain(text: str) -> str:
    return f'<pre class="plain">{_escaped(_safe(text))}</pre>'


def _only_links(text: str) -> str:
    """TEXT with all brackets but those of links and pictures replaced: Python-Markdown takes
    quadratic time over brackets that lead nowhere."""
    if "[" not in text:
        return text
    opened: list[int] = []
    plain: set[int] = set()
    for match in _BRACKETS.finditer(text):
        if match[0] == "[":
            opened.append(match.start())
        elif opened:
            begin = opened.pop()
            if len(opened) > 2 or not _TARGET.match(text, match.end()):
                plain |= {begin, match.start()}
    plain.update(opened)
    if not plain:
        return text
    out: list[str] = []
    at = 0
    for position in sorted(plain):
        out += (text[at:position], _BRACKET[text[position]])
        at = position + 1
    return "".join((*out, text[at:]))


def _safe(text: str) -> str:
    return _RESERVED.sub("�", text)


def _escaped(text: str) -> str:
    return html.escape(text, quote=True)


def _take_out(text: str, open_ended: bool) -> tuple[str, list[str]]:
    """TEXT with formulas replaced by places and stray ``<`` by a character of their own, and
    the finished HTML of the formulas. Linear: nothing is searched for twice."""
    out: list[str] = []
    formulas: list[str] = []
    closers: dict[str, int] = {}

    def find(closer: str, start: int) -> int:
        if start > closers.get(closer, -1):
            found = text.find(closer, start)
            closers[closer] = found if found >= 0 else len(text)
        return closers[closer]

    def add_formula(kind: str, content: str) -> None:
        formulas.append(f'<span class="math {kind}">{_escaped(content)}</span>')
        out.append(f"{_MATH}{len(formulas) - 1}{_END}")

    at = 0
    while match := _INTEREST.search(text, at):
        out.append(text[at:match.start()])
        at = match.end()
        kind = match.lastgroup
        if kind == "math":
            opener = match[0]
            end = find(_CLOSERS[opener], at)
            paragraph = find("\n\n", at)
            if end < len(text) and not (opener == r"\(" and paragraph < end):
                content = _ENTITY.sub(lambda found: _ENTITIES[found[0]], text[at:end])
                add_formula("inline" if opener == r"\(" else "display", content)
                at = end + len(opener)
            elif opener == "$$":
                out.append(opener)
            else:
                end = min(paragraph, len(text))
                add_formula("open", text[match.start():end])
                at = end
        elif kind == "tag":
            tag = _TAG.match(text, match.start())
            if tag:
                out.append(tag[0])
                at = tag.end()
            elif open_ended and _TAG_BEGUN.match(text, match.start()):
                break
            else:
                out.append(_LT)
        elif kind == "escape":
            out.append(match[0])
        else:
            # Code stays as it is: what is in it is neither formula nor tag.
            closer = "\n" + match[0].lstrip()[:3] if kind == "fence" else match[0]
            end = find(closer, at)
            if kind == "code" and end >= len(text):
                out.append(match[0])
                continue
            end = min(end + len(closer), len(text))
            out.append(text[match.start():end].replace("<", _LT))
            at = end
    else:
        out.append(text[at:])
    return "".join(out), formulas


class _Converter(threading.local):
    """Python-Markdown keeps state while it works: one a thread."""

    def __init__(self) -> None:
        self._markdown = self._new()

    @staticmethod
    def _new() -> markdown.Markdown:
        converter = markdown.Markdown(
            extensions=["tables", "fenced_code", "sane_lists", "nl2br"], output_format="html")
        # "[15]: Yuan He" is an entry of a bibliography here, not a link's definition to drop.
        converter.parser.blockprocessors.deregister("reference")
        for pattern in ("reference", "image_reference", "short_reference", "short_image_ref"):
            converter.inlinePatterns.deregister(pattern)
        return converter

    def convert(self, text: str) -> str | None:
        """None for lists within lists without end: no document, but a loop of the model."""
        self._markdown.reset()
        try:
            result: str = self._markdown.convert(text)
        except RecursionError:
            # It was left in the middle of its work, which reset() does not end.
            self._markdown = self._new()
            return None
        return result


_converter = _Converter()


def _sanitise(text: str, image_url: ImageUrl | None) -> str:
    def attribute(tag: str, name: str, value: str) -> str | None:
        if tag == "img" and name == "src":
            return image_url(value) if image_url else None
        if name == "href" and not _WEB.match(value):
            return None
        return value

    return nh3.clean(
        text, tags=_ALLOWED, attributes=_ATTRIBUTES, attribute_filter=attribute,
        url_schemes={"http", "https", "mailto"}, link_rel="noopener noreferrer nofollow",
    )


def _put_back(text: str, formulas: list[str]) -> str:
    def last(match: re.Match[str]) -> str:
        if match[1]:
            return formulas[int(match[1])]
        if match[0] == _LT:
            return "&lt;"
        # Within a tag, in the description of a picture, only plain words will do.
        return _IN_TAG.sub("", match[0]) if _IN_TAG.search(match[0]) else match[0]

    text = _FIND_LAST.sub(last, text)
    for character, place in _BRACKET.items():
        text = text.replace(place, character)
    return text
