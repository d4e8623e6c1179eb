"""What stands under a setting: what it costs, what the engine made of it. Qt-free."""

from __future__ import annotations

import sys

from desktop.engines.registry import EngineEntry
from desktop.engines.visual_tokens import visual_tokens
from desktop.i18n import _
from desktop.jobs.events import PageView
from desktop.protocol.messages import EngineReady
from desktop.settings import Applies, Values
from desktop.ui import words


def badge(applies: Applies) -> str:
    """When a change takes effect, in words."""
    return {
        Applies.NOW: _("now"),
        Applies.NEXT_PAGE: _("next page"),
        Applies.ENGINE_RESTART: _("engine restart"),
    }[applies]


def crop_cost(values: Values, page: PageView | None) -> str:
    """What the page at hand costs in visual tokens in the chosen crop mode."""
    if page is None or not page.width or not page.height:
        return _("No page is shown yet: what it costs appears with one.")
    cost = visual_tokens(page.width, page.height, values["crop"])
    if not cost.across:
        return _("This page: one view · {n} visual tokens").format(n=words.count_of(cost.tokens))
    return _("This page: {w}×{h} tiles · {n} visual tokens").format(
        w=cost.across, h=cost.down, n=words.count_of(cost.tokens))


def got(key: str, ready: EngineReady | None) -> str:
    """What the running engine got where KEY asked for something; "" where that is nothing."""
    if ready is None:
        return ""
    if key in ("concurrency", "threads") and ready.capacity:
        return _("The engine reads {n} at once.").format(n=ready.capacity)
    if key == "memory_utilization" and ready.memory_total:
        parts = [_("engine holds {used} of {total}").format(
            used=words.bytes_of(ready.memory_used), total=words.bytes_of(ready.memory_total))]
        if ready.cache_tokens:
            parts.append(_("{n} tokens of cache").format(n=words.count_of(ready.cache_tokens)))
        return words.DOT.join(parts)
    if key == "max_tokens" and ready.context:
        return _("The engine's context is {n} tokens.").format(n=words.count_of(ready.context))
    return ""


def engine_got(ready: EngineReady | None) -> str:
    """What the engine is and got, for under the engine's name."""
    if ready is None:
        return ""
    parts = [ready.device or ready.model]
    if ready.memory_total:
        parts.append(_("{used} of {total}").format(
            used=words.bytes_of(ready.memory_used), total=words.bytes_of(ready.memory_total)))
    elif ready.memory_used:
        parts.append(words.bytes_of(ready.memory_used))
    return words.DOT.join(part for part in parts if part)


def why_missing(entry: EngineEntry) -> str:
    """Why an engine cannot be chosen and what to do, "" when it can."""
    missing = entry.missing()
    if not missing:
        return ""
    return _("{engine} needs {modules}, which this Python does not have. "
             "Install Verso with all it needs and start it again: {command}").format(
        engine=_(entry.title), modules=", ".join(missing),
        command=f"{sys.executable} -m pip install --upgrade verso-ocr")
