"""States as a person reads them: a short text, an icon and a colour token. Qt-free."""

from __future__ import annotations

from typing import NamedTuple

from desktop.i18n import _, ngettext
from desktop.jobs.events import (
    DocumentState,
    DocumentView,
    EngineState,
    EngineView,
    PageState,
    PageView,
)

DOT = " · "


class Words(NamedTuple):
    """A state in words. ``icon`` is a name from resources/icons, ``tone`` a token of Theme."""

    text: str
    icon: str
    tone: str


def count_of(number: int) -> str:
    """NUMBER with a thousands separator that every reader of English and Chinese knows."""
    return f"{number:,}"


def seconds_of(seconds: float) -> str:
    """A short duration: ``0.4 s``, ``38 s``, ``4 min``, ``2 h 10 min``."""
    if seconds < 10:
        return _("{n} s").format(n=f"{seconds:.1f}")
    if seconds < 100:
        return _("{n} s").format(n=round(seconds))
    minutes = round(seconds / 60)
    if minutes < 60:
        return _("{n} min").format(n=minutes)
    return _("{h} h {m} min").format(h=minutes // 60, m=minutes % 60)


def bytes_of(size: int) -> str:
    """A size in GB (or MB below one)."""
    if size >= 1 << 30:
        return _("{n} GB").format(n=f"{size / (1 << 30):.1f}")
    return _("{n} MB").format(n=round(size / (1 << 20)))


def kept_of(page: PageView) -> str:
    """What there is of a page that ended early: ``kept 2 tables``, ``kept 5 blocks``."""
    if page.tables:
        return ngettext("kept {n} table", "kept {n} tables", page.tables).format(n=page.tables)
    if page.blocks:
        return ngettext("kept {n} block", "kept {n} blocks", page.blocks).format(n=page.blocks)
    return _("nothing kept")


def _amount(page: PageView) -> str:
    if page.output_tokens:
        return ngettext("{n} token", "{n} tokens", page.output_tokens).format(
            n=count_of(page.output_tokens))
    if page.blocks:
        return ngettext("{n} block", "{n} blocks", page.blocks).format(n=page.blocks)
    return ""


def page_words(page: PageView) -> Words:
    """The second line of a page in the queue."""
    state = page.state
    if state is PageState.STREAMING:
        doing = _("once more after a loop") if page.loops else _("streaming")
        return Words(DOT.join(filter(None, (doing, _amount(page)))), "", "link")
    if state is PageState.LOOP:
        return Words(_("loop stopped, {kept}").format(kept=kept_of(page)),
                     "triangle-alert", "warning")
    if state is PageState.LENGTH:
        return Words(_("cut by length, {kept}").format(kept=kept_of(page)),
                     "triangle-alert", "warning")
    if state is PageState.FAILED:
        text = page.problem.message if page.problem else _("failed")
        return Words(text, "circle-x", "error")
    return {
        PageState.WAITING: Words(_("waiting"), "clock", "secondary"),
        PageState.RENDERING: Words(_("being drawn"), "loader-circle", "secondary"),
        PageState.READY: Words(_("next"), "clock", "secondary"),
        PageState.COMPLETE: Words(_("complete"), "circle-check", "ok"),
        PageState.EMPTY: Words(_("no text found"), "triangle-alert", "warning"),
        PageState.BLANK: Words(_("blank"), "square-dashed", "secondary"),
        PageState.CANCELLED: Words(_("stopped"), "square", "secondary"),
    }[state]


def document_words(document: DocumentView, live: bool = False) -> Words:
    """What stands at the right of a document in the queue; LIVE: a page of it is being read."""
    if document.state is DocumentState.OPENING:
        return Words(_("opening"), "loader-circle", "secondary")
    if document.state is DocumentState.PASSWORD:
        return Words(_("password…"), "lock", "error")
    if document.state is DocumentState.UNREADABLE:
        return Words(_("unreadable"), "circle-x", "error")
    if not document.selected:
        return Words(_("no pages"), "", "secondary")
    if document.finished >= document.selected:
        if document.suspicious:
            return Words(_("{n} to check").format(n=document.suspicious),
                         "triangle-alert", "warning")
        return Words(count_of(document.selected), "circle-check", "ok")
    if not document.finished:
        return Words(_("reading"), "", "link") if live else Words(_("waiting"), "", "secondary")
    return Words(f"{count_of(document.finished)} / {count_of(document.selected)}", "", "link")


def engine_words(engine: EngineView, title: str) -> Words:
    """The engine's pill: ``Built in · CPU · ready``."""
    if engine.state is EngineState.READY:
        device = engine.ready.device if engine.ready else ""
        return Words(DOT.join(filter(None, (title, device, _("ready")))), "", "ok")
    if engine.state is EngineState.LOADING:
        step = engine.step or _("loading")
        if engine.fraction >= 0:
            step = f"{step} {engine.fraction:.0%}"
        return Words(DOT.join((title, step)), "", "warning")
    if engine.state is EngineState.RESTARTING:
        return Words(DOT.join((title, _("restarting in {time}").format(
            time=seconds_of(engine.retry_in)))), "", "warning")
    if engine.state is EngineState.FAILED:
        return Words(DOT.join((title, _("cannot start"))), "", "error")
    return Words(DOT.join((title, _("not loaded"))), "", "secondary")


def measured_words(title: str) -> Words:
    """The engine's pill while its throughput is measured."""
    return Words(DOT.join((title, _("being measured"))), "", "link")


def page_facts(page: PageView, tokens: int | None = None) -> list[str]:
    """Lines about one page for the panel: size, turning, cost, times, outcome.

    TOKENS is the visual tokens it costs, None where the engine has none.
    """
    size = []
    if page.width and page.height:
        size.append(_("{w} × {h} px").format(w=page.width, h=page.height))
        size.append(_("turned {n}° clockwise").format(n=page.rotation) if page.rotation
                    else _("upright"))
    cost = page.prompt_tokens or tokens
    if cost:
        size.append(_("{n} prompt tokens").format(n=count_of(cost)))
    times = []
    if page.first_text > 0:
        times.append(_("first block after {time}").format(time=seconds_of(page.first_text)))
    if page.state.final and page.seconds > 0:
        if page.output_tokens:
            times.append(_("{n} tokens/s").format(n=round(page.output_tokens / page.seconds)))
        times.append(_("{time} in all").format(time=seconds_of(page.seconds)))
    lines = [DOT.join(size), DOT.join(times), page_words(page).text]
    if page.attempts > 1:
        lines.append(ngettext("read {n} time", "read {n} times", page.attempts).format(
            n=page.attempts))
    if page.loops:
        lines.append(ngettext("repeated itself {n} time and was begun again",
                              "repeated itself {n} times and was begun again", page.loops).format(
            n=page.loops))
    return [line for line in lines if line]
