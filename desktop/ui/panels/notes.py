"""What stands under a setting: what it costs, what the engine made of it. Qt-free."""

from __future__ import annotations

from desktop.client.interpreter import missing_here
from desktop.engines.registry import EngineEntry
from desktop.engines.visual_tokens import visual_tokens
from desktop.i18n import _
from desktop.jobs.events import PageView
from desktop.protocol.messages import EngineReady
from desktop.settings import Applies, Values, setting
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
    if page is None:
        return _("No page is shown yet: what it costs appears with one.")
    if not page.width or not page.height:
        return _("What this page costs appears when it is read.")
    cost = visual_tokens(page.width, page.height, values["crop"])
    if not cost.across:
        return _("This page: one view · {n} visual tokens").format(n=words.count_of(cost.tokens))
    return _("This page: {w}×{h} tiles · {n} visual tokens").format(
        w=cost.across, h=cost.down, n=words.count_of(cost.tokens))


def under(text: str, outdated: bool) -> str:
    """TEXT as it stands under a setting that is OUTDATED: the running engine does not have it."""
    if not outdated:
        return text
    return " ".join(part for part in (
        _("The engine is started again for this before the next page."), text) if part)


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
    if key in ("max_tokens", "max_model_len") and ready.context:
        return _("The engine's context is {n} tokens.").format(n=words.count_of(ready.context))
    if key in ("eager", "npu_graphs") and ready.versions.get("vllm"):
        return _("The engine runs in eager mode.") if ready.eager else _(
            "The engine runs with compiled graphs.")
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
    if ready.cache_tokens:
        parts.append(_("{n} tokens of cache").format(n=words.count_of(ready.cache_tokens)))
    return words.DOT.join(part for part in parts if part)


def engine_facts(ready: EngineReady) -> list[tuple[str, str]]:
    """Everything the engine got, as names and values."""
    facts = [(_("Model"), ready.model), (_("Device"), ready.device),
             (_("Pages at once"), str(ready.capacity) if ready.capacity else "")]
    if ready.memory_total:
        memory = _("{used} held, {free} free of {total}").format(
            used=words.bytes_of(ready.memory_used), free=words.bytes_of(ready.memory_free),
            total=words.bytes_of(ready.memory_total))
        facts.append((_("Memory"), memory))
    elif ready.memory_used:
        facts.append((_("Memory"), _("{used} held").format(
            used=words.bytes_of(ready.memory_used))))
    if ready.cache_tokens:
        facts.append((_("KV cache"), _("{n} tokens").format(
            n=words.count_of(ready.cache_tokens))))
    if ready.context:
        facts.append((_("Context"), _("{n} tokens").format(n=words.count_of(ready.context))))
    if ready.versions.get("vllm"):
        facts.append((_("Mode"), _("eager") if ready.eager else _("compiled graphs")))
    if ready.versions:
        facts.append((_("Versions"), ", ".join(
            f"{TITLES.get(name, name)} {version}" for name, version in ready.versions.items())))
    return [(name, value) for name, value in facts if value]


TITLES = {"vllm": "vLLM", "pillow": "Pillow", "python": "Python"}
"""Names of packages as their makers write them."""


def installed_here(entry: EngineEntry) -> bool:
    """Whether the Python that runs Verso has what ENTRY needs."""
    return not entry.missing()


def elsewhere(entry: EngineEntry) -> bool:
    """Whether another Python may run ENTRY."""
    return setting("engine_interpreter").applies_to(entry.name)


def why_missing(entry: EngineEntry, values: Values | None = None) -> str:
    """Why an engine cannot start as VALUES are, and what to do; "" when nothing is known
    against it."""
    if values is not None and elsewhere(entry) and values["engine_interpreter"]:
        return ""  # judged there, when it is checked or started
    missing = missing_here(entry, choosable=elsewhere(entry))
    return missing.problem().line() if missing else ""


def engine_title(entry: EngineEntry, values: Values) -> str:
    """The engine's name in a list of them, with a word when it is not there."""
    if why_missing(entry, values):
        return _("{engine} (not installed)").format(engine=_(entry.title))
    return _(entry.title)


def relevant(key: str, values: Values) -> bool:
    """Whether the setting KEY does anything while the others are as they are."""
    if key == "custom_prompt":
        return values["prompt"] in ("custom", "locate")
    if key in ("ngram_size", "ngram_window"):
        return bool(values["ngram_preset"] == "custom" and values["ngram"] != "off")
    if key == "ngram_preset":
        return bool(values["ngram"] != "off")
    return True
