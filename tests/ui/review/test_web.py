"""The rendering in QtWebEngine: what changes, what is drawn, what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QImage
from PySide6.QtTest import QTest
from PySide6.QtWebEngineCore import QWebEnginePage
from PySide6.QtWidgets import QApplication

from desktop.document.model import Block
from desktop.document.parser import parse
from desktop.jobs.events import PageState
from desktop.ui.review.fallback import TextRendering
from desktop.ui.review.pane import ReviewPane
from desktop.ui.review.rendering import RenderedBlock
from desktop.ui.review.web import WebRendering
from desktop.ui.theme import DARK, LIGHT
from tests.ui.review.helpers import (
    become,
    bitmap,
    fill,
    fresh,
    pause,
    script,
    settle,
    uneven,
    wait_for,
)


def web(pane: ReviewPane) -> WebRendering:
    assert isinstance(pane.result.rendering, WebRendering)
    return pane.result.rendering


def test_only_the_block_that_changed_is_replaced(web_pane: ReviewPane) -> None:
    blocks = uneven()
    fill(web_pane, blocks)
    script(web_pane, """
        globalThis.before = [...document.querySelectorAll('.block')].map(
            e => e.querySelector('.body').firstChild);
        globalThis.touched = [];
        globalThis.watch = new MutationObserver(list => list.forEach(m => {
            const block = (m.target.closest || m.target.parentElement.closest).call(
                m.target.closest ? m.target : m.target.parentElement, '.block');
            if (block) touched.push(block.dataset.id); }));
        watch.observe(document.body, {childList: true, subtree: true, characterData: true}); 1""")
    web_pane.apply_blocks(web_pane.page_id or "", [
        *blocks[:2], replace(blocks[2], markdown="Another line."), *blocks[3:]])
    settle(web_pane)
    wait_for(lambda: "Another line." in script(web_pane, "document.body.innerText"))
    assert script(web_pane, "[...new Set(touched)].join()") == "b3"
    same = script(web_pane, """[...document.querySelectorAll('.block')].map(
        (e, i) => before[i] === e.querySelector('.body').firstChild).join()""")
    assert same.split(",") == ["true", "true", "false", "true", "true", "true", "true", "true"]
    script(web_pane, "watch.disconnect(); 1")


def test_blocks_that_come_late_are_put_in_their_place(web_pane: ReviewPane) -> None:
    fill(web_pane, [Block(0, "text", (), "one"), Block(2, "text", (), "three")])
    web_pane.apply_blocks(web_pane.page_id or "", [Block(1, "text", (), "two")])
    settle(web_pane)
    assert script(web_pane, "[...document.querySelectorAll('.body')].map("
                            "e => e.textContent).join()") == "one,two,three"


def test_formulas_are_drawn_and_broken_ones_shown_as_they_are(web_pane: ReviewPane) -> None:
    fill(web_pane, [
        Block(0, "equation", (), r"\[ \frac{a}{b} = \sqrt{2} \]"),
        Block(1, "text", (), r"inline \(x_1 < y\) and $$ z $$ done"),
        Block(2, "text", (), r"\[ \begin{vmatrix} a \end{vmathmatrix} \]"),
        Block(3, "text", (), r"still open \( a + ", open=True),
    ])
    assert script(web_pane, "document.querySelectorAll('[data-id=b1] .katex-display').length") == 1
    assert script(web_pane, "document.querySelectorAll('[data-id=b2] .katex').length") == 2
    assert script(web_pane, "document.querySelectorAll('[data-id=b3] .katex-error').length") == 1
    assert r"\( a +" in script(web_pane, "document.querySelector('[data-id=b4]').innerText")
    wait_for(lambda: script(web_pane, "document.fonts.status") == "loaded")
    assert script(web_pane, "[...document.fonts].filter(f => f.status == 'loaded' && "
                            "f.family.startsWith('KaTeX')).length") > 0


def test_formulas_of_a_block_that_grows_keep_their_form(web_pane: ReviewPane) -> None:
    """Drawn once, copied then: with the heights and shifts that make a fraction of it."""
    web(web_pane)._page.complaints = []
    formula = r"\(\frac{a}{b}\)"
    forms = []
    for text in (formula, formula + " and more", formula + " and more words"):
        fill(web_pane, [Block(0, "text", (), text, open=True)])
        forms.append(script(web_pane, """[...document.querySelectorAll('.katex-html *')].map(
            e => e.style.cssText + Math.round(e.getBoundingClientRect().height)).join('|')"""))
    assert forms[0] == forms[1] == forms[2]
    assert "top:" in forms[0]
    assert "height:" in forms[0]
    assert web(web_pane)._page.complaints == []


def test_a_formula_cannot_link_load_or_hang(web_pane: ReviewPane) -> None:
    fill(web_pane, [Block(0, "text", (), r"\( \href{javascript:alert(1)}{x} "
                          r"\includegraphics{http://example.com/a.png} \) "
                          r"\( \def\a{\a\a} \a \) \( \rule{1e9em}{1e9em} \)")])
    assert script(web_pane, "document.querySelectorAll('.katex a, .katex img').length") == 0
    assert script(web_pane, "document.documentElement.scrollWidth") < 3000


def test_a_figure_is_cut_from_the_page(web_pane: ReviewPane) -> None:
    """Its box is the red quarter of the bitmap."""
    fill(web_pane, [Block(0, "image", ((500, 500, 999, 999),), "")], image=bitmap())
    picture = "document.querySelector('[data-id=b1] img')"
    wait_for(lambda: script(web_pane, f"{picture} ? {picture}.naturalWidth : 0") > 0)
    assert script(web_pane, f"[{picture}.naturalWidth, {picture}.naturalHeight].join()") == \
        "350,499"
    assert script(web_pane, f"""(() => {{
        const c = document.createElement('canvas'); c.width = c.height = 1;
        const g = c.getContext('2d'); g.drawImage({picture}, 0, 0, 1, 1);
        return [...g.getImageData(0, 0, 1, 1).data].slice(0, 3).join(); }})()""") == "255,0,0"


def test_figures_appear_when_the_bitmap_comes_after_the_text(web_pane: ReviewPane) -> None:
    page = web_pane.page_id or ""
    web_pane.apply_blocks(page, [Block(0, "image", ((500, 500, 999, 999),), "")])
    settle(web_pane)
    assert script(web_pane, "document.querySelectorAll('img').length") == 0
    web_pane.set_bitmap(page, bitmap())
    wait_for(lambda: script(web_pane, "(document.querySelector('img') || {}).naturalWidth") == 350)


HOSTILE = """<script>globalThis.pwned = 1</script>
<img src="http://example.com/track.png" onerror="globalThis.pwned = 2">
<img src="x" onerror="globalThis.pwned = 3"><iframe src="https://example.com/"></iframe>
<a href="javascript:globalThis.pwned = 4" onclick="globalThis.pwned = 5">click</a>
<style>@import url("https://example.com/a.css"); body { display: none }</style>
<link rel="stylesheet" href="https://example.com/b.css">
<svg onload="globalThis.pwned = 6"><use href="https://example.com/c.svg#a"/></svg>
<video src="https://example.com/v.mp4" autoplay></video><object data="file:///etc/passwd"></object>
<img src="file:///etc/passwd"><form action="https://example.com/"><button>go</button></form>
<meta http-equiv="refresh" content="0; url=https://example.com/"><base href="https://example.com/">
<div style="background: url(https://example.com/d.png)">styled</div>
"""


def test_hostile_markdown_does_nothing(web_pane: ReviewPane) -> None:
    web(web_pane).guard.refused = []
    fill(web_pane, [Block(0, "text", (), HOSTILE), Block(1, "table", (), f"<table><tr><td>{HOSTILE}"
                          "</td></tr></table>"), Block(2, "image", ((0, 0, 9, 9),), HOSTILE)])
    pause(300)
    assert script(web_pane, "document.querySelectorAll('#page script, #page iframe, #page svg, "
                            "#page object, #page style, #page link, #page form, #page meta, "
                            "#page [onerror], #page [onclick], #page [style*=url]').length") == 0
    assert web(web_pane).guard.refused == []
    assert main_world(web_pane) is None


def test_even_unsanitised_html_runs_nothing_and_loads_nothing(web_pane: ReviewPane) -> None:
    """Behind the sanitiser stand the content-security policy and the request filter."""
    rendering = web(web_pane)
    rendering.guard.refused = []
    rendering.apply([RenderedBlock("b1", 0, "text", HOSTILE)], "")
    wait_for(lambda: script(web_pane, "document.querySelectorAll('#page img').length") >= 3)
    script(web_pane, "document.querySelector('#page a').click(); 1")
    script(web_pane, "document.querySelector('#page form').submit(); 1")
    pause(400)
    assert script(web_pane, "globalThis.pwned === undefined")
    assert main_world(web_pane) is None
    assert script(web_pane, "location.href") == "verso-page://page/page.html"
    assert script(web_pane, "[...document.querySelectorAll('#page img')].every("
                            "i => i.naturalWidth === 0)")
    assert script(web_pane, "performance.getEntriesByType('resource').filter("
                            "e => !e.name.startsWith('verso-page:') && e.transferSize > 0).length"
                  ) == 0
    rendering.clear()


def main_world(pane: ReviewPane) -> object:
    """What content may have left in its own world."""
    got: list[object] = []
    web(pane)._page.runJavaScript("globalThis.pwned", 0, got.append)
    wait_for(lambda: bool(got))
    return got[0] if got[0] != "" else None


def test_the_page_goes_nowhere(web_pane: ReviewPane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even our own script could leave the template, or load another file through it."""
    seen: list[object] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", seen.append)
    for url in ("https://example.com/", "file:///etc/passwd", "data:text/html,x",
                "verso-page://page/../../etc/passwd", "verso-page://other/page.css"):
        script(web_pane, f"location.href = '{url}'; 1")
        pause(50)
    assert script(web_pane, "location.href") == "verso-page://page/page.html"
    assert script(web_pane, "document.querySelectorAll('#page').length") == 1
    assert seen == []


@pytest.mark.parametrize(("url", "opened"), [
    ("https://example.com/a", True), ("mailto:a@example.com", True),
    ("file:///etc/passwd", False), ("verso-page://page/page.css", False)])
def test_links_open_outside_and_only_harmless_ones(
        web_pane: ReviewPane, monkeypatch: pytest.MonkeyPatch, url: str, opened: bool) -> None:
    seen: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: seen.append(url.toString()))
    web(web_pane).apply([RenderedBlock("b1", 0, "text", f'<a href="{url}">a</a>')], "")
    wait_for(lambda: script(web_pane, "document.querySelectorAll('#page a').length") == 1)
    script(web_pane, "document.querySelector('#page a').click(); 1")
    pause(50)
    assert seen == []
    x, y = script(web_pane, "(b => `${b.x + b.width / 2},${b.y + b.height / 2}`)("
                  "document.querySelector('#page a').getBoundingClientRect())").split(",")
    view = web(web_pane)._view.focusProxy()
    QTest.mouseClick(view, Qt.MouseButton.LeftButton, pos=QPoint(round(float(x)), round(float(y))))
    wait_for(lambda: bool(seen)) if opened else pause(200)
    assert seen == ([url] if opened else [])
    assert script(web_pane, "location.href") == "verso-page://page/page.html"
    web(web_pane).clear()


def test_profile_keeps_nothing(web_pane: ReviewPane) -> None:
    profile = web(web_pane)._profile
    assert profile.isOffTheRecord()
    assert profile.httpCacheType() == profile.HttpCacheType.NoCache


def test_the_caret_stands_at_the_end_of_what_streams(web_pane: ReviewPane) -> None:
    become(web_pane, PageState.STREAMING)
    fill(web_pane, [Block(0, "text", (), "done"), Block(1, "list", (), "- one\n- two", open=True)])
    assert script(web_pane, "document.querySelectorAll('.caret').length") == 1
    assert script(web_pane, "document.querySelector('.caret').parentElement.tagName") == "LI"
    assert script(web_pane, "document.querySelector('.caret').parentElement.innerText.trim()"
                  ) == "two"
    become(web_pane, PageState.COMPLETE)
    wait_for(lambda: script(web_pane, "document.querySelectorAll('.caret').length") == 0)


def test_right_to_left_text_runs_right_to_left(web_pane: ReviewPane) -> None:
    fill(web_pane, [Block(0, "text", (), "مرحبا بالعالم"), Block(1, "text", (), "hello")])
    directions = [script(web_pane, f"getComputedStyle(document.querySelector('[data-id={id_}]'))"
                         ".direction") for id_ in ("b1", "b2")]
    assert directions == ["rtl", "ltr"]


def test_the_theme_colours_the_page(web_pane: ReviewPane) -> None:
    fill(web_pane, uneven())
    for theme in (DARK, LIGHT):
        web_pane.apply_theme(theme)
        red, green, blue = (int(theme.surface[i:i + 2], 16) for i in (1, 3, 5))
        wait_for(lambda: script(web_pane, "getComputedStyle(document.body).backgroundColor")
                 == f"rgb({red}, {green}, {blue})")  # noqa: B023


def test_recorded_pages_show_whole(web_pane: ReviewPane, recordings: Path) -> None:
    """Real model output, odd as it is: every block has its element, none breaks the script."""
    web(web_pane)._page.complaints = []
    for path in sorted(recordings.glob("*.txt"))[::3]:
        blocks = parse(path.read_text(encoding="utf-8"))
        fresh(web_pane)
        fill(web_pane, list(blocks))
        shown = script(web_pane, "[...document.querySelectorAll('.block')].map("
                                 "e => e.dataset.id).join()")
        assert shown == ",".join(block.id for block in blocks), path.name
    assert web(web_pane)._page.complaints == []


def test_a_large_page_shows_whole(web_pane: ReviewPane) -> None:
    blocks = [Block(i, "text", ((10, i * 3, 900, i * 3 + 2),), f"Block {i}. " + "text " * 40)
              for i in range(300)]
    fill(web_pane, blocks)
    assert script(web_pane, "document.querySelectorAll('.block').length") == 300


@pytest.mark.logs_errors
def test_a_render_process_that_dies_is_replaced_then_given_up(
        qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERSO_NO_WEBENGINE", "")
    pane = ReviewPane()
    pane.resize(600, 400)
    pane.show()
    pane.show_page("p", "Page")
    pane.result.start_rendering()
    first = web(pane)
    wait_for(lambda: first._waiting is None, 60)
    fill(pane, uneven()[:3])
    status = QWebEnginePage.RenderProcessTerminationStatus.CrashedTerminationStatus
    first._page.renderProcessTerminated.emit(status, 11)
    wait_for(lambda: first._waiting is None)
    settle(pane)
    assert script(pane, "document.querySelectorAll('.block').length") == 3
    first._page.renderProcessTerminated.emit(status, 11)
    wait_for(lambda: isinstance(pane.result.rendering, TextRendering))
    settle(pane)
    assert [extent.id for extent in pane.result.rendering.extents] == ["b1", "b2", "b3"]
    assert "A title" in pane.result.rendering.browser.toPlainText()
    pane.close_engine()
    pane.hide()
    pane.deleteLater()
    pause(50)


def test_plain_view_loads_nothing_from_outside(plain_pane: ReviewPane) -> None:
    fill(plain_pane, [Block(0, "text", (), HOSTILE)])
    rendering = plain_pane.result.rendering
    assert isinstance(rendering, TextRendering)
    for url in ("http://example.com/a.png", "file:///etc/passwd", "verso-page://page/crop/1/b9"):
        picture = rendering.browser.loadResource(2, QUrl(url))
        assert isinstance(picture, QImage)
        assert picture.width() == 1
